"""`cupel explain`: explanations of the scores of a submission."""

from collections.abc import Sequence

import click

from cupel_client.api.client import Client
from cupel_client.main import SERVICE_FAILED
from cupel_client.offline.presentation.explanation_lines import show_explanations
from cupel_client.online.connection import with_client
from cupel_client.online.online_output import json_value, print_line, print_rows, progress_bar
from cupel_client.output import format_option, write_json
from cupel_contract.score_resources import ExplanationResource, PendingExplanations
from cupel_contract.states import JobState
from cupel_measures.explaining.explained_parts import ABOUT

COLUMNS = ("run", "measure", "about", "data")
PARTS = "\b\nParts of an explanation:\n" + "\n".join(
    f"  {name:<10} {sentence}" for name, sentence in ABOUT.items()
)


@click.command(epilog=PARTS)
@click.argument("submission")
@click.option(
    "-m",
    "--measures",
    multiple=True,
    help="Measures, separated by spaces or commas (default: the measures of the track).",
)
@click.option(
    "--about",
    "parts",
    multiple=True,
    type=click.Choice([*ABOUT, "all"]),
    help="Part of the explanation to print; repeatable (default: all).",
)
@click.option(
    "--qrels", type=click.IntRange(1), help="Number of the qrels version (default: the current one)."
)
@format_option()
@with_client
def explain(
    client: Client,
    submission: str,
    measures: tuple[str, ...],
    parts: tuple[str, ...],
    qrels: int | None,
    form: str,
) -> None:
    """Explain the scores of a SUBMISSION (sub_...).

    The parts are ties, unjudged documents, scale, aspects and profiles.

    The service computes each explanation once and stores it. The exit code is 3 if a computation fails.

    \b
    Example:
      cupel explain sub_0192f0c5 -m nDCG@10 --about ties --about judgments
    """
    parts = () if "all" in parts else parts
    request = client.explain(submission, measures=measures, about=parts, qrels=qrels)
    failures = _wait(client, request)
    response = client.explanations(submission, measures=request.measures, qrels=request.qrels)
    by_measure = {item.measure: _select_parts(item, parts or tuple(ABOUT)) for item in response.explanations}
    explanations = [by_measure[text] for text in request.measures if text in by_measure]
    if form == "json":
        selected = response.model_copy(update={"explanations": tuple(explanations)})
        write_json(json_value(selected.model_dump()))
    else:
        _print_explanations(client.submission(submission).name or submission, explanations, form)
    for failure in failures:
        print_line(failure, err=True)
    click.get_current_context().exit(SERVICE_FAILED if failures else 0)


def _select_parts(explanation: ExplanationResource, parts: Sequence[str]) -> ExplanationResource:
    """Return the explanation with only `parts`.

    Earlier requests may have stored further parts.
    """
    selected = {name: data for name, data in explanation.parts.items() if name in parts}
    return ExplanationResource(measure=explanation.measure, parts=selected)


def _print_explanations(run: str, explanations: Sequence[ExplanationResource], form: str) -> None:
    if form == "table":
        for explanation in explanations:
            show_explanations(run, explanation.measure, explanation.parts)
        return
    rows = [
        {"run": run, "measure": explanation.measure, "about": name, "data": data}
        for explanation in explanations
        for name, data in explanation.parts.items()
    ]
    print_rows(form, COLUMNS, rows)


def _wait(client: Client, request: PendingExplanations) -> list[str]:
    """Wait for the jobs of a request; return a sentence for each job that failed."""
    failures = []
    with progress_bar(f"explaining {request.submission}") as bar:
        for done, job in enumerate(request.jobs, 1):
            *_, last = client.watch_job(job.id)
            bar.set(done, len(request.jobs))
            if last.state is JobState.DEAD:
                failures.append(f"not explained: {last.error} ({last.id})")
    return failures

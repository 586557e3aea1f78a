"""`cupel explain`: what the scores of a submission do not tell by themselves."""

from collections.abc import Sequence

import click

from cupel_client.api.client import Client
from cupel_client.main import SERVICE_FAILED
from cupel_client.offline.presentation.explanation_lines import show_explanations
from cupel_client.online.connection import service
from cupel_client.online.online_output import plain, progress, rows, say
from cupel_client.output import format_option, write_json
from cupel_contract.score_resources import ExplanationResource, PendingExplanations
from cupel_measures.explaining import ABOUT

LONG = ("run", "measure", "about", "told")
TOLD = "\b\nWhat may be told:\n" + "\n".join(f"  {name:<10} {sentence}" for name, sentence in ABOUT.items())


@click.command(epilog=TOLD)
@click.argument("submission")
@click.option("-m", "--measures", multiple=True, help="Measures, one or more [default: the plan].")
@click.option(
    "--about", multiple=True, type=click.Choice([*ABOUT, "all"]), help="What to tell [default: all]."
)
@click.option("--qrels", type=click.IntRange(1), help="The qrels version [default: the current one].")
@format_option()
@service
def explain(
    client: Client,
    submission: str,
    measures: tuple[str, ...],
    about: tuple[str, ...],
    qrels: int | None,
    form: str,
) -> None:
    """Tell what the scores of a SUBMISSION (sub_...) do not tell by themselves.

    The service works it out once, and keeps it. The exit code is 3 where it could not.

    \b
    Example:
      cupel explain sub_0192f0c5 -m nDCG@10 --about ties --about judgments
    """
    about = () if "all" in about else about
    wanted = client.explain(submission, measures=measures, about=about, qrels=qrels)
    failures = _followed(client, wanted)
    found = client.explanations(submission, measures=wanted.measures, qrels=wanted.qrels)
    parts = about or tuple(ABOUT)
    kept = {one.measure: one for one in found.explanations}
    told = [_only(kept[text], parts) for text in wanted.measures if text in kept]
    if form == "json":
        write_json(plain(found.model_copy(update={"explanations": tuple(told)}).model_dump()))
    else:
        _print(client.submission(submission).name or submission, told, form)
    for failure in failures:
        say(failure, err=True)
    click.get_current_context().exit(SERVICE_FAILED if failures else 0)


def _only(one: ExplanationResource, parts: Sequence[str]) -> ExplanationResource:
    """Without what was told to somebody else."""
    return ExplanationResource(
        measure=one.measure, told={name: one.told[name] for name in one.told if name in parts}
    )


def _print(run: str, told: Sequence[ExplanationResource], form: str) -> None:
    if form == "table":
        for one in told:
            show_explanations(run, one.measure, one.told)
        return
    long = [
        {"run": run, "measure": one.measure, "about": name, "told": data}
        for one in told
        for name, data in one.told.items()
    ]
    rows(form, LONG, long)


def _followed(client: Client, wanted: PendingExplanations) -> list[str]:
    """Wait for the jobs; what went wrong, if anything did."""
    failures = []
    with progress(f"explaining {wanted.submission}") as bar:
        for done, job in enumerate(wanted.jobs, 1):
            *_, last = client.watch_job(job.id)
            bar.set(done, len(wanted.jobs))
            if last.state == "dead":
                failures.append(f"not explained: {last.error} ({last.id})")
    return failures

"""`cupel compare`: differences between runs, with intervals and significance tests."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import numpy as np

from cupel_client.offline.evaluate_command import finish, read_judgments, scoring_options, scoring_task
from cupel_client.offline.parallel import map_in_parallel
from cupel_client.offline.presentation.comparison_output import PRINTERS, ComparisonResult
from cupel_client.offline.presentation.comparison_tables import print_tables
from cupel_client.offline.presentation.evaluation_report import EvaluationReport
from cupel_client.offline.presentation.latex_tables import print_latex
from cupel_client.offline.run_names import names_of
from cupel_client.offline.run_scoring import ScoringTask, score
from cupel_client.output import format_option, printable
from cupel_measures.comparing.compared_measures import ComparedMeasure, compared_measure
from cupel_measures.comparing.comparison import NO_CORRECTION, Choices
from cupel_measures.comparing.comparison import compare as compare_runs
from cupel_measures.comparing.corrections import CORRECTIONS
from cupel_measures.comparing.paired_tests import TESTS
from cupel_measures.comparing.resampling import SUREST

CHANCE = click.FloatRange(0, 1, min_open=True, max_open=True)
SURE = click.FloatRange(0, SUREST, min_open=True)
USUAL = Choices()


@click.command()
@scoring_options
@click.option(
    "--all-pairs", is_flag=True, help="Compare all pairs of runs instead of each run with the first."
)
@click.option(
    "--test", type=click.Choice([*TESTS]), default=USUAL.test, show_default=True, help="Significance test."
)
@click.option(
    "--correction",
    type=click.Choice([*CORRECTIONS, NO_CORRECTION]),
    default=USUAL.correction,
    show_default=True,
    help="Correction of p-values over all pairs and measures.",
)
@click.option("--alpha", type=CHANCE, default=USUAL.alpha, show_default=True, help="Significance level.")
@click.option(
    "--confidence",
    type=SURE,
    default=USUAL.confidence,
    show_default=True,
    help="Confidence level of the intervals.",
)
@click.option("--seed", type=click.IntRange(0), default=USUAL.seed, show_default=True, help="Random seed.")
@format_option("latex")
def compare(
    files: tuple[Path, ...],
    texts: tuple[str, ...],
    profile: str | None,
    aspects: tuple[tuple[str, Path], ...],
    depth: int | None,
    jobs: int | None,
    form: str,
    **chosen: str | float | bool,
) -> None:
    """Compare runs.

    QRELS and RUN are those of `cupel evaluate`. The first run is the baseline, with which each other run is
    compared; --all-pairs compares all pairs. The report has means and differences with confidence intervals,
    a significance test with p-values corrected over all pairs and measures, the topics with the largest
    differences, differences by aspect, and the share of unjudged documents. For three or more runs, it also
    has groups of runs that are not significantly different (randomised Tukey HSD). The same seed gives the
    same report. An invalid run is skipped, and the exit code is 1.

    \b
    Examples:
      cupel compare qrels.txt baseline.txt new.txt -m "nDCG@10 AP"
      cupel compare collection.yaml runs/*.gz -m "TOMA(of=nDCG@10)" --all-pairs --format latex
      cupel compare qrels.txt baseline.txt new.txt -m P@10 --test sign --correction none --alpha 0.01
    """
    qrels, runs = (None, files) if aspects else (files[0], files[1:])
    if len(runs) < 2:
        raise click.UsageError(
            "a comparison needs at least two runs: give QRELS first, then the baseline, then the other runs"
        )
    names = names_of(runs)
    collection = read_judgments(qrels, aspects, runs, profile)
    job = scoring_task(collection, " ".join(texts), depth)
    requests = [compared_measure(measure, job.qrels) for measure in job.parsed]
    wide = replace(job, measures=_needed(job, requests))
    scored = map_in_parallel(partial(score, job=wide), runs, doing="scoring", jobs=jobs)
    found = {name: report for name, report in zip(names, scored, strict=True) if report is not None}
    report = EvaluationReport(collection=collection, job=job, runs=found, per_topic=False)
    choices = Choices(**chosen)  # type: ignore[arg-type]  # as declared above
    if _comparable(report, names[0], choices):
        {**PRINTERS, "table": print_tables, "latex": print_latex}[form](
            _compare(report, wide, requests, choices)
        )
    finish(report, names)


def _needed(job: ScoringTask, requests: Sequence[ComparedMeasure]) -> tuple[str, ...]:
    """Return the measures of the job and those reported with them."""
    return tuple(dict.fromkeys([*job.measures, *(text for request in requests for text in request.required)]))


def _comparable(report: EvaluationReport, baseline: str, choices: Choices) -> bool:
    """Return whether enough runs were scored, and print what is missing if not."""
    if baseline not in report.scored and not choices.all_pairs:
        click.echo(f"no comparison: the baseline {printable(baseline)} was not scored", err=True)
        return False
    if len(report.scored) < 2:
        click.echo("no comparison: fewer than two runs were scored", err=True)
        return False
    return True


def _compare(
    report: EvaluationReport, wide: ScoringTask, requests: Sequence[ComparedMeasure], choices: Choices
) -> ComparisonResult:
    scores = {
        text: np.column_stack([(run.values or ())[place] for run in report.scored.values()])
        for place, text in enumerate(wide.measures)
    }
    return ComparisonResult(
        report, compare_runs(list(report.scored), report.topics, scores, requests, choices)
    )

"""`cupel compare`: differences between runs.

They are reported with intervals and significance tests.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from cupel_client.offline.closeness.margin_options import check_margins, margin_options
from cupel_client.offline.closeness.same_system_comparison import (
    SameSystemChoices,
    compare_same_system,
    same_system_options,
)
from cupel_client.offline.evaluate_command import (
    finish,
    judgments_name,
    read_judgments,
    scoring_options,
    scoring_task,
)
from cupel_client.offline.input_files import named_runs
from cupel_client.offline.parallel import map_in_parallel
from cupel_client.offline.presentation.comparison_output import PRINTERS
from cupel_client.offline.presentation.comparison_tables import print_tables
from cupel_client.offline.presentation.page_files import page_option, write_page
from cupel_client.output import console, format_option, printable, scale_notes_option
from cupel_measures.comparing.closeness.margins import MarginTest
from cupel_measures.comparing.corrections import CORRECTIONS
from cupel_measures.comparing.differences.comparison_choices import (
    INTERVALS,
    NO_CORRECTION,
    SIMULTANEOUS,
    Choices,
)
from cupel_measures.comparing.paired_tests import TESTS
from cupel_measures.comparing.resampling import SUREST
from cupel_measures.evaluation.compare import ComparisonPlan, compare_scored
from cupel_measures.evaluation.comparison_result import ComparisonResult
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.margin_comparison import MarginChoices
from cupel_measures.evaluation.run_scoring import score
from cupel_measures.inputs.run_inputs import FileRun

PROBABILITY = click.FloatRange(0, 1, min_open=True, max_open=True)
CONFIDENCE = click.FloatRange(0, SUREST, min_open=True)
USUAL = Choices()
MOST_PAIRS = 10
"""Largest number of pairs whose differences are printed by default."""


@click.command()
@scoring_options
@click.option(
    "--all-pairs", is_flag=True, help="Compare all pairs of runs instead of each run with the first."
)
@click.option(
    "--pairs",
    is_flag=True,
    help="Print every pair. By default, tables only summarise the pairs if there are more than "
    f"{MOST_PAIRS}. Other formats always list all pairs.",
)
@click.option(
    "--test",
    type=click.Choice([*SIMULTANEOUS, *TESTS]),
    help="Significance test (default: max-t with --all-pairs, otherwise randomisation). max-t: studentised "
    "step-down max-T. hsd: randomised Tukey HSD, which assumes equal spreads. nemenyi, conover, "
    "aligned-ranks: mean ranks with topics as blocks, after Friedman's test; conover finds "
    "too many differences if some systems differ. These tests correct p-values "
    "over the pairs of each measure.",
)
@click.option(
    "--correction",
    type=click.Choice([*CORRECTIONS, NO_CORRECTION]),
    help="Correction of the p-values of paired tests over all pairs and measures (default: holm).",
)
@click.option(
    "--permutations",
    type=click.IntRange(1),
    help="Number of random permutations or assignments of signs (default: 100,000 for the randomisation "
    "test, 10,000 for max-t, hsd, groups and the best set).",
)
@click.option("--alpha", type=PROBABILITY, default=USUAL.alpha, show_default=True, help="Significance level.")
@click.option(
    "--confidence",
    type=CONFIDENCE,
    help="Confidence level of the intervals (default: 1 - alpha).",
)
@click.option(
    "--interval",
    type=click.Choice(INTERVALS),
    default=USUAL.interval,
    show_default=True,
    help="Method of the intervals. t: Student's t. bca: bias-corrected accelerated bootstrap, too narrow if "
    "runs differ on few topics. Bounds are clipped to possible means and differences.",
)
@click.option("--seed", type=click.IntRange(0), default=USUAL.seed, show_default=True, help="Random seed.")
@scale_notes_option
@margin_options
@same_system_options
@page_option
@format_option(
    "latex", "markdown", "html", notes=" latex: for the package booktabs. html: a table to put in a page."
)
def compare(
    files: tuple[Path, ...],
    texts: tuple[str, ...],
    profile: str | None,
    aspects: tuple[tuple[str, Path], ...],
    depth: int | None,
    jobs: int | None,
    form: str,
    pairs: bool,
    scale_notes: bool,
    margins: tuple[tuple[str | None, float], ...],
    margin_test: MarginTest,
    bayes: bool,
    same: bool,
    baselines: tuple[Path, Path] | None,
    rbo_p: float,
    out: Path | None,
    **chosen: str | float | bool | None,
) -> None:
    """Compare runs.

    QRELS and RUN are files as in `cupel evaluate`. Each run is compared with the first run, the baseline;
    --all-pairs compares all pairs of runs. The report has means and differences with confidence intervals,
    a significance test with corrected p-values, the topics with the largest differences, differences by
    aspect, and the share of unjudged documents. For three or more runs, it also has groups of runs that are
    not significantly different, and the runs that are not significantly worse than the best (max-T). The same
    seed gives the same report. An invalid run is skipped, and the exit code is 1.

    With --margin M, each pair also gets a verdict by one-sided tests: better, no worse (not worse by M or
    more), equal within M, worse, or undecided.

    With --same, an original run is compared with its reproduction instead (Breuer et al., SIGIR 2020).

    \b
    Examples:
      cupel compare qrels.txt baseline.txt new.txt -m "nDCG@10 AP"
      cupel compare collection.yaml runs/*.gz -m "TOMA(of=nDCG@10)" --all-pairs --format latex
      cupel compare qrels.txt baseline.txt new.txt -m "nDCG@10 AP" --format markdown --out differences.html
      cupel compare qrels.txt baseline.txt new.txt -m P@10 --test sign --correction none --alpha 0.01
      cupel compare qrels.txt baseline.txt new.txt -m "nDCG@10 AP" --margin 0.02 --margin AP=0.01 --bayes
      cupel compare --same qrels.txt original.txt reproduced.txt --baselines old-base.txt new-base.txt
    """
    qrels, runs = (None, files) if aspects else (files[0], files[1:])
    if len(runs) < 2:
        raise click.UsageError(
            "a comparison needs at least two runs: give QRELS first, then the baseline, then the other runs"
        )
    if baselines and not same:
        raise click.UsageError("--baselines requires --same")
    if same and out:
        raise click.UsageError("--out has no page for --same")
    if same and margins:
        raise click.UsageError("--margin does not apply to --same; compare the two runs without --same")
    choices = _checked(chosen)
    named = named_runs(runs)
    names, runs = [*named], tuple(named.values())
    collection = read_judgments(qrels, aspects, runs, profile)
    job = scoring_task(collection, " ".join(texts), depth)
    margin_choices = MarginChoices(margins=margins, test=margin_test, bayes=bayes)
    check_margins(margin_choices, job.measures, choices.alpha, form)
    if same:
        same_choices = SameSystemChoices(
            baselines=baselines,
            rbo_p=rbo_p,
            alpha=choices.alpha,
            confidence=choices.level,
            jobs=jobs,
        )
        same_choices.check(runs, form)
        compare_same_system(runs, collection, job, same_choices, form)
        return
    plan = ComparisonPlan.of(job)
    scored = map_in_parallel(partial(score, job=plan.task), [*map(FileRun, runs)], doing="scoring", jobs=jobs)
    by_name = {name: run for name, run in zip(names, scored, strict=True) if run is not None}
    report = EvaluationReport(
        collection=collection, job=job, runs=by_name, name=judgments_name(qrels, aspects)
    )
    if _comparable(report, names[0], choices):
        result = _compared(report, plan, choices, margin_choices, pairs)
        result = replace(result, shows_scale_notes=scale_notes)
        write_page(out, result)
        {**PRINTERS, "table": print_tables}[form](result)
    finish(report, names)


def _checked(chosen: Mapping[str, Any]) -> Choices:
    try:
        return Choices(**chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _comparable(report: EvaluationReport, baseline: str, choices: Choices) -> bool:
    """Return whether enough runs were scored. If not, print a message."""
    if baseline not in report.scored and not choices.all_pairs:
        click.echo(f"no comparison: the baseline {printable(baseline)} was not scored", err=True)
        return False
    if len(report.scored) < 2:
        click.echo("no comparison: fewer than two runs were scored", err=True)
        return False
    return True


def _compared(
    report: EvaluationReport,
    plan: ComparisonPlan,
    choices: Choices,
    margins: MarginChoices,
    shows_pairs: bool,
) -> ComparisonResult:
    """Compare the scored runs, and show the progress on a terminal."""
    screen = console(stderr=True)
    with screen.status("comparing") if screen.is_terminal else nullcontext() as status:
        result = compare_scored(
            report,
            plan,
            choices,
            margins,
            progress=str if status is None else lambda text: status.update(f"comparing by {printable(text)}"),
        )
    return replace(result, shows_pairs=shows_pairs or len(result.compared.pairs) <= MOST_PAIRS)

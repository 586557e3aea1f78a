"""`cupel gate`: pass or fail a run against a baseline."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click

from cupel_client.main import USAGE
from cupel_client.offline.gates.gate_output import (
    print_annotations,
    print_gate_warnings,
    print_report,
    write_gate_files,
)
from cupel_client.offline.input_files import InputFile, run_names
from cupel_client.offline.presentation import finding_lines
from cupel_client.output import discard_output
from cupel_measures.comparing.closeness.margins import MarginTest
from cupel_measures.evaluation.gates.gate import gate as judge_run
from cupel_measures.evaluation.gates.gate import gates as judge_by_file
from cupel_measures.evaluation.gates.gate_reports import GateReport
from cupel_measures.evaluation.gates.gate_rules import MAX_UNJUDGED, MIN_TOPICS, number_problem
from cupel_measures.evaluation.run_scoring import DEEPEST
from cupel_measures.findings import Findings, Refused
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.inputs.run_inputs import FileRun
from cupel_measures.model.profiles import PROFILES

OF_ONE_GATE = {
    "qrels": "--qrels",
    "measures": "-m",
    "max_drop": "--max-drop",
    "alpha": "--alpha",
    "test": "--test",
    "min_topics": "--min-topics",
    "max_unjudged": "--max-unjudged",
}
"""Options that a file of gates replaces, by parameter."""

EPILOG = """\b
Verdicts. d is the mean difference over topics, RUN - BASELINE. The first that applies:
  better     a one-sided test at --alpha rejects d <= 0
  no worse   a one-sided test rejects d <= -M (M: --max-drop)
  worse      a one-sided test rejects d >= 0; a drop of M or more is not ruled out
  undecided  none of the tests rejects, or one of the three rules below applies

\b
Undecided, whatever the tests say:
  - BASELINE lacks more than 10% of the judged topics that RUN has. Judged topics
    that BASELINE lacks are never compared. A compared topic that RUN lacks counts
    as an empty ranking.
  - fewer than --min-topics topics are compared.
  - the verdict depends on unjudged documents. These documents count: unjudged for
    the aspect of the measure (the first, if it combines several), among the first
    ten of one run, and not among the first ten of the other. If they are more than
    --max-unjudged of the first ten of either run, the tests are repeated twice:
    with labels that are worst for RUN (its documents get the lowest label, those
    of BASELINE the highest), and the other way round. If all three verdicts pass,
    RUN passes; if they differ otherwise, the verdict is undecided. Below this
    share, unjudged documents are treated as the measure treats them, and a note
    says so if the verdict depends on them.

\b
Exit codes: 0 better or no worse; 1 worse; 2 wrong usage or an invalid file;
3 undecided. Of several gates, the least favourable verdict counts: worse,
undecided, no worse, better.
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="[BASELINE] RUN", type=InputFile())
@click.option("--qrels", type=InputFile(), help="Qrels file or collection file.")
@click.option(
    "-m",
    "--measures",
    multiple=True,
    metavar="MEASURES",
    help="Measures, separated by spaces or commas. Each one is a gate.",
)
@click.option(
    "--max-drop",
    type=float,
    metavar="M",
    help="Smallest loss of the mean that must be ruled out, in the unit of the measure.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the one-sided tests.")
@click.option(
    "--test",
    type=click.Choice(get_args(MarginTest)),
    default="t",
    show_default=True,
    help="One-sided test of the differences by topic.",
)
@click.option(
    "--min-topics",
    type=int,
    default=MIN_TOPICS,
    show_default=True,
    help="Smallest number of compared topics. With fewer, the verdict is undecided.",
)
@click.option(
    "--max-unjudged",
    type=float,
    default=MAX_UNJUDGED,
    show_default=True,
    help="Accepted share of the first ten documents of one run that are unjudged and not among the first "
    "ten of the other. With a larger share, the verdict is undecided if it depends on their labels.",
)
@click.option(
    "--gates",
    type=InputFile(),
    help="File of gates (cupel-gates.yaml), instead of BASELINE and the options above.",
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    help="Tie-breaking and parsing conventions (default: those of the collection, or cupel).",
)
@click.option(
    "--depth",
    type=click.IntRange(1, DEEPEST),
    help="Truncate rankings to this many documents before scoring.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "markdown"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option(
    "--summary",
    type=click.Path(path_type=Path),
    envvar="GITHUB_STEP_SUMMARY",
    help="Append the report in Markdown to this file (default: $GITHUB_STEP_SUMMARY, if set).",
)
@click.option(
    "--annotate/--no-annotate",
    envvar="GITHUB_ACTIONS",
    help="Print annotations of GitHub Actions to standard error (default: if $GITHUB_ACTIONS is true).",
)
def gate(
    files: tuple[Path, ...],
    gates: Path | None,
    profile: str | None,
    depth: int | None,
    form: str,
    junit: Path | None,
    summary: Path | None,
    annotate: bool,
    **rule: Any,
) -> None:
    """Pass or fail a run against a baseline.

    The verdict on RUN is better, no worse, worse or undecided. RUN passes if a loss of --max-drop or more is
    ruled out. It is not enough that RUN is not significantly worse. Each gate is tested at --alpha, without
    correction for several gates. All gates must pass, so this makes passing no easier.

    \b
    Examples:
      cupel gate baseline.txt run.txt --qrels qrels.txt -m nDCG@10 --max-drop 0.01
      cupel gate --gates cupel-gates.yaml run.txt --junit gates.xml
    """
    try:
        if gates is not None:
            report = _by_file(gates, files, profile, depth)
        else:
            report = _by_options(files, profile, depth, rule)
    except Refused as refused:
        _print_errors(refused.findings)
        raise click.exceptions.Exit(USAGE) from None
    except MeasureError as problem:
        raise click.UsageError(str(problem)) from None
    write_gate_files(report, junit, summary)
    _print_to_pipe(report, form)
    print_gate_warnings(report)
    if annotate:
        print_annotations(report)
    raise click.exceptions.Exit(report.exit_code)


def _print_to_pipe(report: GateReport, form: str) -> None:
    """Print a report. A closed pipe (`| head`) must not change the exit code."""
    try:
        print_report(report, form)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich raises SystemExit(1) for a closed pipe
        discard_output()


def _by_options(
    files: Sequence[Path], profile: str | None, depth: int | None, rule: dict[str, Any]
) -> GateReport:
    if len(files) != 2:
        raise click.UsageError(f"expected BASELINE RUN, got {len(files)} files; or give --gates FILE and RUN")
    for name in ("qrels", "measures", "max_drop"):
        if rule[name] in (None, ()):
            raise click.UsageError(f"{OF_ONE_GATE[name]} is missing; give it, or --gates FILE")
    for name in ("max_drop", "alpha", "min_topics", "max_unjudged"):
        if problem := number_problem(name, rule[name]):
            raise click.UsageError(f"{OF_ONE_GATE[name]}: {problem}")
    baseline, run = ({name: FileRun(path)} for name, path in zip(run_names(files), files, strict=True))
    qrels, measures = rule.pop("qrels"), rule.pop("measures")
    return judge_run(qrels, baseline, run, measures, profile=profile, depth=depth, **rule)


def _by_file(gates: Path, files: Sequence[Path], profile: str | None, depth: int | None) -> GateReport:
    if len(files) != 1:
        raise click.UsageError(f"--gates names the baselines; expected RUN only, got {len(files)} files")
    context = click.get_current_context()
    for name, option in OF_ONE_GATE.items():
        if context.get_parameter_source(name) != click.core.ParameterSource.DEFAULT:
            raise click.UsageError(f"{option} contradicts --gates; write it to the file of gates")
    [name] = run_names(files)
    return judge_by_file(gates, {name: FileRun(files[0])}, profile=profile, depth=depth)


def _print_errors(findings: Findings) -> None:
    for line in finding_lines.coloured_lines_of(findings, file="", at_most=finding_lines.LISTED):
        click.echo(line, err=True)

"""`cupel evaluate`: score runs against qrels."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from cupel_client.main import NEGATIVE, SERVICE_FAILED
from cupel_client.offline.input_files import (
    InputFile,
    first_row,
    looks_like_qrels,
    named,
    named_runs,
    shown_name,
    shown_path,
)
from cupel_client.offline.parallel import map_in_parallel
from cupel_client.offline.presentation import finding_lines
from cupel_client.offline.presentation.evaluation_output import BY_TOPIC, EXPLAINING, OF_ONE_RUN, PRINTERS
from cupel_client.offline.presentation.page_files import page_option, write_page
from cupel_client.output import format_option, printable
from cupel_measures.catalogue.parser import parse_many
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.exports.result_files import PLANS, check_names
from cupel_measures.evaluation.run_scoring import DEEPEST, ScoringTask, score
from cupel_measures.evaluation.scoring_plan import plan_scoring, texts_of
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.findings import Findings, Refused
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.inputs.judgment_sources import qrels as read_qrels
from cupel_measures.inputs.run_inputs import FileRun
from cupel_measures.model import Texts
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.collection_files import Collection

_Command = TypeVar("_Command", bound=Callable[..., Any])


class AspectFile(click.ParamType[tuple[str, Path]]):
    """Type of the parameter NAME=FILE: an aspect and its qrels file."""

    name = "NAME=FILE"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        name, separator, file = value.partition("=")
        if not separator or not name or not file:
            self.fail(f"expected NAME=FILE, such as relevance=qrels.txt, got {value!r}", param, ctx)
        return name, InputFile().convert(file, param, ctx)


EXPLANATIONS = "\b\nParts of --explain, which requires --format table or json:\n" + "\n".join(
    f"  {name:<10} {sentence}" for name, sentence in ABOUT.items()
)


def scoring_options(command: _Command) -> _Command:
    """Add QRELS RUN... and the scoring options to a command.

    These are measures, profile, aspects, depth and processes.
    """
    for option in reversed(
        [
            click.argument("files", nargs=-1, required=True, metavar="QRELS RUN...", type=InputFile()),
            click.option(
                "-m",
                "--measures",
                "texts",
                multiple=True,
                metavar="MEASURES",
                help="Measures, separated by spaces or commas (default: those of the collection, or a "
                "default set).",
            ),
            click.option(
                "--profile",
                type=click.Choice(list(PROFILES)),
                help="Tie-breaking and parsing conventions (default: those of the collection, or cupel).",
            ),
            click.option(
                "--aspect",
                "aspects",
                multiple=True,
                type=AspectFile(),
                help="Plain qrels file of an aspect, instead of QRELS; may be given several times.",
            ),
            click.option(
                "--depth",
                type=click.IntRange(1, DEEPEST),
                help="Truncate rankings to this many documents before scoring.",
            ),
            click.option(
                "--jobs",
                type=click.IntRange(1),
                help="Number of processes (default: chosen by the amount of work).",
            ),
        ]
    ):
        command = option(command)
    return command


FORMAT_NOTES = (
    " latex: for the package booktabs. html: a table to put in a page. beir, mteb, tira: result of one run "
    "for these tools; the default measures of beir and mteb are those that they report."
)


@click.command(epilog=EXPLANATIONS)
@scoring_options
@click.option("--per-topic", is_flag=True, help="Also print the values of each topic.")
@click.option(
    "--explain",
    "parts",
    multiple=True,
    type=click.Choice([*ABOUT, "all"]),
    help="Part of the explanation of each score (see below); may be given several times.",
)
@click.option(
    "--average-over",
    type=click.Choice(["judged", "run"]),
    default="judged",
    show_default=True,
    help="Topics that enter the means: all judged topics, like trec_eval -c, or only those in the run, like "
    "trec_eval without -c.",
)
@page_option
@format_option("trec_eval", "latex", "markdown", "html", *OF_ONE_RUN, notes=FORMAT_NOTES)
def evaluate(
    files: tuple[Path, ...],
    texts: tuple[str, ...],
    per_topic: bool,
    profile: str | None,
    aspects: tuple[tuple[str, Path], ...],
    depth: int | None,
    parts: tuple[str, ...],
    jobs: int | None,
    average_over: str,
    out: Path | None,
    form: str,
) -> None:
    """Score runs against qrels.

    QRELS is a qrels file or a collection file. With --aspect, omit QRELS: all files are runs. A folder stands
    for the runs in it, - for standard input, and irds:ID for a data set of ir_datasets. Files are in TREC
    format, JSON, JSON Lines, CSV or TSV with a header, or Parquet; the content decides. Without -m, the
    measures are those of the collection, or a default set. A topic that is missing from a run scores as an
    empty ranking. An invalid run is refused with all its errors; the other runs are scored, and the exit code
    is 1. `cupel validate` reports all findings about a run.

    \b
    Examples:
      cupel evaluate qrels.txt run-a.txt run-b.txt.gz -m "nDCG@10 AP(rel=2)"
      cupel evaluate collection.yaml runs/*.gz -m "TOMA(of=nDCG@10) CAM(of=nDCG@10)"
      cupel evaluate --aspect relevance=rel.txt --aspect quality=q.txt run.txt --format jsonl --per-topic
      cupel evaluate qrels.txt run.txt -m nDCG@10 --explain ties --explain judgments
      cupel evaluate qrels.txt runs/ --format latex --out scores.html
      cupel evaluate qrels.txt run.txt --format beir --profile trec_eval-9 --average-over run
    """
    qrels, runs = (None, files) if aspects else (files[0], files[1:])
    if not runs:
        raise click.UsageError("no run to score: give QRELS first, then the runs")
    if parts and form not in EXPLAINING:
        raise click.UsageError(f"--explain requires --format {' or '.join(EXPLAINING)}, not {form}")
    over_run = average_over == "run"
    if parts and over_run:
        raise click.UsageError("--explain applies to means over all judged topics; omit --average-over run")
    if per_topic and form not in BY_TOPIC:
        raise click.UsageError(f"--per-topic requires --format {', '.join(BY_TOPIC)}, not {form}")
    named = named_runs(runs)
    names, runs = [*named], tuple(named.values())
    if form in OF_ONE_RUN and len(runs) > 1:
        raise click.UsageError(f"--format {form} describes one run, but {len(runs)} are given; give one run")
    collection = read_judgments(qrels, aspects, runs, profile)
    words = " ".join(texts).strip() or PLANS.get(form, "")
    job = scoring_task(collection, words, depth, details=form in ("json", "trec_eval"))
    if form in PLANS:
        _check_names(job)
    is_ranked = out is not None or form in ("table", "latex", "markdown", "html")
    exact = len(job.measures) if form == "json" else int(is_ranked and len(runs) > 1)
    job = replace(job, exact=exact, explain=tuple(ABOUT) if "all" in parts else parts, over_run=over_run)
    scored = map_in_parallel(partial(score, job=job), [*map(FileRun, runs)], doing="scoring", jobs=jobs)
    official = bool({"official", "all_trec"} & set(" ".join(texts).split()))
    by_name = {name: run for name, run in zip(names, scored, strict=True) if run is not None}
    report = EvaluationReport(
        collection=collection,
        job=job,
        runs=by_name,
        name=judgments_name(qrels, aspects),
        shows_topics=per_topic,
        official=official,
    )
    if report.scored:
        write_page(out, report)
    if report.scored or form in BY_TOPIC:
        PRINTERS[form](report)
    finish(report, names)


def _check_names(job: ScoringTask) -> None:
    """Raise click.UsageError if BEIR and MTEB have no name for a measure."""
    try:
        check_names(job.measures)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from None


def judgments_name(qrels: Path | None, aspects: Sequence[tuple[str, Path]]) -> str:
    """Return the name of the judgments for titles of pages."""
    return shown_name(qrels.name) if qrels else ", ".join(shown_name(path.name) for _, path in aspects)


def finish(report: EvaluationReport, names: Sequence[str]) -> None:
    """Print refused runs, warnings and runs whose process was killed.

    Exit if the exit code is not 0.
    """
    print_findings(report)
    exit_with_verdict(report, names)


def exit_with_verdict(report: EvaluationReport, names: Sequence[str]) -> None:
    """Print the runs whose process was killed. Exit if the exit code is not 0."""
    if lost := [name for name in names if name not in report.runs]:
        click.echo(
            f"not scored, because a process was killed (out of memory?): {printable(', '.join(lost))}",
            err=True,
        )
        raise click.exceptions.Exit(SERVICE_FAILED)
    if report.refused:
        raise click.exceptions.Exit(NEGATIVE)


def read_judgments(
    qrels: Path | None,
    aspects: Sequence[tuple[str, Path]],
    runs: Sequence[Path] = (),
    profile: str | None = None,
) -> Collection:
    """Read the judgments that the command line names.

    Print errors and exit if they are invalid.
    """
    if len(dict(aspects)) < len(aspects):
        raise click.UsageError("--aspect names two files for one aspect; use a collection file")
    try:
        return read_qrels(dict(aspects) if qrels is None else qrels, profile=profile)
    except Refused as refused:
        findings = refused.findings
    _print_lines(findings, shown_path(qrels) if qrels else "")
    if qrels is not None and len(first_row(qrels)) == 6 and any(map(looks_like_qrels, runs)):
        click.echo("QRELS and RUN seem to be swapped: give the qrels first, then the runs.", err=True)
    raise click.exceptions.Exit(NEGATIVE)


def _print_lines(findings: Findings, file: str) -> None:
    for line in finding_lines.coloured_lines_of(findings, file=file, at_most=finding_lines.LISTED):
        click.echo(line, err=True)


def scoring_task(
    collection: Collection, words: str, depth: int | None, *, details: bool = False
) -> ScoringTask:
    """Return the task for the measures in `words`.

    By default, these are the measures of the collection.
    """
    try:
        return plan_scoring(collection, parse_many(words), depth=depth, details=details)
    except MeasureError as problem:
        raise click.UsageError(str(problem)) from None
    except Refused as refused:
        _print_lines(refused.findings, "")
        raise click.exceptions.Exit(NEGATIVE) from None


def read_texts(collection: Collection) -> Texts:
    """Read the document texts of the collection.

    Print errors and exit if they are invalid.
    """
    try:
        return texts_of(collection)
    except Refused as refused:
        _print_lines(refused.findings, "")
        raise click.exceptions.Exit(NEGATIVE) from None


def print_findings(report: EvaluationReport) -> None:
    """Print refusals with their reasons, and a summary of warnings, to standard error."""
    for name, run in report.refused.items():
        _print_lines(named(run.findings, run.source), shown_name(run.source))
        click.echo(f"{printable(shown_name(name))} is refused and not scored.", err=True)
    findings = {name: named(run.findings, run.source) for name, run in report.scored.items()}
    for line in finding_lines.summary(findings):
        click.echo(line, err=True)
    for line in finding_lines.lines_of(report.collection.findings, file="", at_most=3):
        click.echo(finding_lines.coloured(line), err=True)
    for line in report.remarks():
        click.echo(printable(line), err=True)

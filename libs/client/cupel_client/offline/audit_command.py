"""`cupel audit`: audits of how reliable a collection and its ranking of runs are."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from cupel_audits import KINDS, Audit, AuditError, parse_audit
from cupel_audits.declarations import check_audit
from cupel_audits.execution import Result, result
from cupel_audits.subject import AuditSubject
from cupel_audits.subject_files import NamedQrels, RunView, assemble_subject
from cupel_client.main import SERVICE_FAILED
from cupel_client.offline.audit_combination import combine
from cupel_client.offline.audit_work import (
    AuditedRun,
    Worker,
    open_saved_parts,
    read_runs,
    request_of,
    work_all,
)
from cupel_client.offline.evaluate_command import (
    exit_with_verdict,
    print_findings,
    read_judgments,
    read_texts,
    scoring_options,
    scoring_task,
)
from cupel_client.offline.input_files import InputFile, named_runs
from cupel_client.offline.presentation import audit_reference as pages
from cupel_client.offline.presentation.audit_output import (
    PRINTERS,
    provenance,
    warn_of_missing_page,
    write_files,
)
from cupel_client.offline.team_files import teams_of
from cupel_client.output import console, format_option, printable, write_csv, write_json, write_jsonl
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.run_scoring import ScoringTask
from cupel_measures.grammar.parameters import Flag, nearest
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.reading.collection_files import Collection, is_collection


class Kinds(click.Group):
    """A group whose commands are the declared kinds of audits."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*KINDS, combine.name or ""]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == combine.name:
            return combine
        return command_of(KINDS[cmd_name]) if cmd_name in KINDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            hint = nearest(args[0], [*KINDS]) or f"; use one of {', '.join(KINDS)}"
            ctx.fail(f"unknown audit {printable(args[0])!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Kinds"):
            formatter.write_dl([(kind.name, kind.answers) for kind in KINDS.values()])
        with formatter.section("Commands"):
            formatter.write_dl([("combine", combine.get_short_help_str(100))])


@click.command(cls=Kinds, invoke_without_command=True, subcommand_metavar="[KIND ...]")
@format_option("markdown")
@click.pass_context
def audit(ctx: click.Context, form: str) -> None:
    """Audit how reliable a collection and its ranking of runs are.

    Each KIND answers one question; `cupel audit KIND --help` describes the method. Without KIND, list all
    kinds. With --out, an audit saves its progress: after Ctrl-C, the same command resumes it.

    \b
    Examples:
      cupel audit
      cupel audit downsampling --help
      cupel audit downsampling qrels.txt runs/*.gz -m "AP nDCG@10" --ratios 90,50,10 --out my-audit
    """
    if ctx.invoked_subcommand is not None:
        if ctx.get_parameter_source("form") is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError("give --format after the kind")
    elif form == "markdown":
        click.echo(pages.document(), nl=False)
    elif form == "table":
        _print_kinds()
    else:
        _write_kinds(pages.data(), form)


def _write_kinds(rows: Sequence[Mapping[str, Any]], form: str) -> None:
    if form == "json":
        write_json(rows)
    elif form == "jsonl":
        write_jsonl(rows)
    else:
        write_csv([*rows[0]], rows)


def _print_kinds() -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("audit", no_wrap=True)
    table.add_column("question")
    for kind in KINDS.values():
        table.add_row(Text(kind.name), Text(kind.answers))
    console().print(table)
    click.echo("`cupel audit KIND --help` describes a kind.")


# ------------------------------------------------------------------------------------------ commands


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Options of an audit command other than its kind and its input.

    given: parameters of the kind, as texts.
    """

    given: Mapping[str, str]
    seed: int
    jobs: int | None
    out: Path | None
    restart: bool
    form: str


def command_of(kind: type[Audit]) -> click.Command:
    """Return the command for audits of this kind."""

    def perform(seed: int, jobs: int | None, out: Path | None, restart: bool, form: str, **more: Any) -> None:
        given = {name: more.pop(SETTING + name) for name in kind.settings}
        given = {name: text for name, text in given.items() if text is not None}
        _perform(
            kind, AuditOptions(given=given, seed=seed, jobs=jobs, out=out, restart=restart, form=form), **more
        )

    command = click.command(kind.name, help=_help(kind), short_help=kind.answers)(_options(perform))
    taken = {option for parameter in command.params for option in parameter.opts}
    command.params[:0] = [_option(kind, name, taken) for name in kind.settings]
    return command


SETTING = "setting_"
"""Prefix of the Python names of a kind's parameters, because other options may have the same names."""


def _option(kind: type[Audit], name: str, taken: set[str]) -> click.Option:
    """Return the option of a parameter.

    Its name starts with `audit-` if all audits have an option of this name.
    """
    setting, written = kind.settings[name], pages.option(name)
    if written in taken:
        written = pages.option(f"audit_{name}")
    about = pages.help_text(setting)
    if not isinstance(setting.parameter.kind, Flag):
        return click.Option([SETTING + name, written], metavar=name.upper(), help=about)
    if setting.parameter.default:
        written, about = f"--no-{written[2:]}", f"Do not {setting.about}."
    return click.Option([SETTING + name, written], flag_value=str(not setting.parameter.default), help=about)


def _options(command: Any) -> Any:
    for option in reversed(
        [
            scoring_options,
            click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed."),
            click.option(
                "--teams", type=InputFile(), help="File with the team of each run: two columns, run and team."
            ),
            click.option(
                "--team-pattern",
                metavar="REGEX",
                help="Regular expression to search for in the name of each run. Its first group matches the "
                "team.",
            ),
            click.option(
                "--other",
                type=InputFile(),
                help="Second version of QRELS, for audits that compare two versions.",
            ),
            click.option(
                "--out",
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="Folder for the report and for saved progress.",
            ),
            click.option(
                "--restart", is_flag=True, help="Delete the saved progress in --out and start again."
            ),
            format_option(),
        ]
    ):
        command = option(command)
    return command


def _help(kind: type[Audit]) -> str:
    paragraphs = [text if not text.startswith("    ") else f"\b\n{text}" for text in pages.paragraphs(kind)]
    rules = (
        "QRELS, RUN and the scoring options work as in `cupel evaluate`. The same seed gives the same "
        "result with any number of processes."
    )
    shown = f"\b\nExample:\n  {pages.example(kind)}"
    return "\n\n".join([kind.answers, *paragraphs, f"Source: {kind.source}.", rules, shown])


# -------------------------------------------------------------------------------------------- audits


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditInput:
    """Input of an audit, as read from the command line and its files.

    names: names of the runs. other: second version of the judgments, or None. teams: team by name of the run,
    or None.
    """

    audit: Audit
    collection: Collection
    job: ScoringTask
    qrels: NamedQrels
    other: NamedQrels | None
    names: Sequence[str]
    teams: Mapping[str, str] | None


def _perform(
    kind: type[Audit],
    how: AuditOptions,
    *,
    files: tuple[Path, ...],
    texts: tuple[str, ...],
    profile: str | None,
    aspects: tuple[tuple[str, Path], ...],
    depth: int | None,
    teams: Path | None,
    team_pattern: str | None,
    other: Path | None,
) -> None:
    """Perform the audit that the command line describes, and print its result."""
    begin = time.perf_counter()
    qrels, runs = (None, files) if aspects else (files[0], files[1:])
    if not runs:
        raise click.UsageError("no run to audit: give QRELS first, then the runs")
    with _usage_errors():
        audit = parse_audit(kind.name, how.given)
    if how.out is not None:
        warn_of_missing_page()
    folders = any(path.is_dir() for path in runs)
    named = named_runs(runs)
    names, runs = [*named], tuple(named.values())
    teams_by_run = teams_of(names, teams, team_pattern, by_folder=folders)
    collection = read_judgments(qrels, aspects, runs, profile)
    job = scoring_task(collection, " ".join(texts), depth)
    if audit.needs_texts and collection.texts is not None:
        job = replace(job, texts=job.texts or read_texts(collection))
    qrels_name = qrels.name if qrels else ", ".join(path.name for _, path in aspects)
    second = None if other is None else _second(other, collection)
    given = AuditInput(
        audit=audit,
        collection=collection,
        job=job,
        qrels=NamedQrels(qrels_name, job.qrels),
        other=second,
        names=names,
        teams=teams_by_run,
    )
    report = _read_runs(given, runs, how.jobs)
    print_findings(report)
    if report.scored:
        _run_audit(given, report, how, begin)
    exit_with_verdict(report, names)


@contextlib.contextmanager
def _usage_errors() -> Iterator[None]:
    """Convert AuditError and MeasureError to click.UsageError.

    The message of the UsageError has all sentences of the original error.
    """
    try:
        yield
    except AuditError as problem:
        raise click.UsageError("\n".join(map(printable, problem.sentences))) from None
    except MeasureError as problem:
        raise click.UsageError(printable(str(problem))) from None


def _second(path: Path, collection: Collection) -> NamedQrels:
    """Read the second version of the judgments.

    A plain qrels file contains labels of the first aspect.
    """
    if is_collection(path):
        return NamedQrels(path.name, read_judgments(path, ()).qrels)
    return NamedQrels(path.name, read_judgments(None, [(collection.aspects[0].name, path)]).qrels)


def _read_runs(given: AuditInput, runs: Sequence[Path], jobs: int | None) -> EvaluationReport:
    """Read the runs in the form that the audit needs."""
    results = read_runs(runs, given.job, given.audit, given.other.qrels if given.other else None, jobs)
    by_name = {name: run for name, run in zip(given.names, results, strict=True) if run is not None}
    return EvaluationReport(collection=given.collection, job=given.job, runs=by_name)


def _run_audit(given: AuditInput, report: EvaluationReport, how: AuditOptions, begin: float) -> None:
    views = {
        name: run.view for name, run in report.scored.items() if isinstance(run, AuditedRun) and run.view
    }
    try:
        with _usage_errors():
            subject = _subject(given, views)
            check_audit(given.audit, subject)
    except click.UsageError as problem:
        if not report.refused:
            raise
        click.echo(f"cannot audit: {problem.format_message()}", err=True)
        return
    request = request_of(given.audit, subject, how.seed, views)
    saved = open_saved_parts(how.out, request, restart=how.restart) if how.out else None
    results = _run_trials(Worker(given.audit, subject, how.seed, saved), how)
    trials = given.audit.trials(subject)
    _print_result(
        result(given.audit, subject.about, how.seed, trials, results),
        how,
        request,
        time.perf_counter() - begin,
    )


def _subject(given: AuditInput, views: Mapping[str, RunView]) -> AuditSubject:
    return assemble_subject(
        given.qrels,
        [*views.items()],
        given.job.parsed,
        teams=None if given.teams is None else [given.teams[name] for name in views],
        depth=given.job.depth,
        top=given.audit.ranking_depth(),
        other=given.other,
    )


def _run_trials(worker: Worker, how: AuditOptions) -> Mapping[int, Any]:
    """Return the results of all trials.

    Print how to resume if the audit is interrupted.
    """
    resume = f"the same command resumes from {how.out}" if how.out else "use --out DIR to save progress"
    try:
        results = work_all(worker, how.jobs)
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: {resume}", err=True)
        raise
    if len(results) < worker.audit.trials(worker.subject):
        click.echo(f"not finished, because a process was killed (out of memory?): {resume}", err=True)
        raise click.exceptions.Exit(SERVICE_FAILED)
    return results


def _print_result(finished: Result, how: AuditOptions, request: Mapping[str, Any], seconds: float) -> None:
    """Write the files if --out names a folder, then print the result.

    A pipe that is closed early, as by `| head`, then loses no file.
    """
    assert finished.report is not None  # all trials are finished
    data = {**finished.as_data(), "provenance": provenance(seconds, request)}
    names = [] if how.out is None else write_files(how.out, data, finished.report)
    PRINTERS[how.form](data, finished.report)
    if how.out is not None:
        click.echo(f"{how.out}: {', '.join(names)}", err=how.form != "table")

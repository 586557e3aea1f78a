"""`cupel audit`: how far a collection and its board can be trusted."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from cupel_audits import KINDS, SETTINGS, Audit, AuditError, parse_audit
from cupel_audits.declarations import check_audit
from cupel_audits.execution import Result, result
from cupel_audits.subject import AuditSubject
from cupel_audits.subject_files import NamedQrels, RunView, assemble_subject
from cupel_client.main import SERVICE_FAILED
from cupel_client.offline.audit_work import Looked, Worker, look_at, request_of, shelf_for, work_all
from cupel_client.offline.evaluate_command import job_for, leave, read, read_texts, scoring_options, tell
from cupel_client.offline.input_files import InputFile
from cupel_client.offline.presentation import audit_reference as pages
from cupel_client.offline.presentation.audit_output import PRINTERS, provenance, write_files
from cupel_client.offline.presentation.evaluation_report import EvaluationReport
from cupel_client.offline.run_names import names_of
from cupel_client.offline.run_scoring import ScoringTask
from cupel_client.offline.team_files import teams_of
from cupel_client.output import console, format_option, printable, write_csv, write_json, write_jsonl
from cupel_measures.grammar.parameters import Flag, nearest
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.reading.collection_files import Collection, is_collection


class Kinds(click.Group):
    """A group whose commands are the declared kinds."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*KINDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(KINDS[cmd_name]) if cmd_name in KINDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in KINDS and not args[0].startswith("-"):
            hint = nearest(args[0], [*KINDS]) or f"; there are {', '.join(KINDS)}"
            ctx.fail(f"there is no audit {printable(args[0])!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Kinds"):
            formatter.write_dl([(kind.name, kind.answers) for kind in KINDS.values()])


@click.command(cls=Kinds, invoke_without_command=True, subcommand_metavar="[KIND ...]")
@format_option("markdown")
@click.pass_context
def audit(ctx: click.Context, form: str) -> None:
    """Tell how far a collection and its board can be trusted.

    Each KIND asks a question of its own; `cupel audit KIND --help` tells how it is answered. Without KIND,
    all of them are listed. An audit with --out keeps what it has done: after Ctrl-C the same command goes
    on from there.

    \b
    Examples:
      cupel audit
      cupel audit downsampling --help
      cupel audit downsampling qrels.txt runs/*.gz -m "AP nDCG@10" --ratios 90,50,10 --out my-audit
    """
    if ctx.invoked_subcommand is not None:
        if ctx.get_parameter_source("form") is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError("--format stands after the kind")
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
    for heading in ("audit", "question"):
        table.add_column(heading, overflow="fold")
    for kind in KINDS.values():
        table.add_row(Text(kind.name), Text(kind.answers))
    console().print(table)
    click.echo("`cupel audit KIND --help` tells of one.")


# ------------------------------------------------------------------------------------------ commands


@dataclass(frozen=True)
class How:
    """What a command line says of an audit beside its kind, and what it is of.

    given: its parameters, as texts.
    """

    given: Mapping[str, str]
    seed: int
    jobs: int | None
    out: Path | None
    restart: bool
    form: str


def command_of(kind: type[Audit]) -> click.Command:
    """The command that does audits of this kind."""

    def perform(seed: int, jobs: int | None, out: Path | None, restart: bool, form: str, **more: Any) -> None:
        given = {name: more.pop(SETTING + name) for name in SETTINGS[kind.name]}
        given = {name: text for name, text in given.items() if text is not None}
        _perform(kind, How(given, seed, jobs, out, restart, form), **more)

    command = click.command(kind.name, help=_help(kind), short_help=kind.answers)(_options(perform))
    taken = {written for one in command.params for written in one.opts}
    command.params[:0] = [_option(kind, name, taken) for name in SETTINGS[kind.name]]
    return command


SETTING = "setting_"
"""What the names of a kind's own parameters begin with, where others may be called the same."""


def _option(kind: type[Audit], name: str, taken: set[str]) -> click.Option:
    """The option of a kind's parameter; it begins with `audit-` where every audit has one so named."""
    one, written = SETTINGS[kind.name][name], pages.option(name)
    if written in taken:
        written = pages.option(f"audit_{name}")
    about = pages.help_text(one)
    if not isinstance(one.parameter.kind, Flag):
        return click.Option([SETTING + name, written], metavar=name.upper(), help=about)
    if one.parameter.default:
        written = f"--no-{written[2:]}"
    return click.Option([SETTING + name, written], flag_value=str(not one.parameter.default), help=about)


def _options(command: Any) -> Any:
    for option in reversed(
        [
            scoring_options,
            click.option(
                "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all that is drawn."
            ),
            click.option("--teams", type=InputFile(), help="Whose runs they are: two columns, run and team."),
            click.option(
                "--team-pattern",
                metavar="REGEX",
                help="Whose runs they are: the first group of this, found in a run's name, is its team.",
            ),
            click.option(
                "--other", type=InputFile(), help="QRELS to compare with, for audits of two versions."
            ),
            click.option(
                "--out",
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="A folder for the report, and for what is done already.",
            ),
            click.option("--restart", is_flag=True, help="Do away with what --out holds, and begin anew."),
            format_option(),
        ]
    ):
        command = option(command)
    return command


def _help(kind: type[Audit]) -> str:
    marked = [one if not one.startswith("    ") else f"\b\n{one}" for one in pages.paragraphs(kind)]
    rules = (
        "QRELS, RUN and how they are scored are as for `cupel evaluate`. The same seed gives the same "
        "result, whatever the number of processes."
    )
    shown = f"\b\nExample:\n  {pages.example(kind)}"
    return "\n\n".join([kind.answers, *marked, f"Source: {kind.source}.", rules, shown])


# -------------------------------------------------------------------------------------------- audits


@dataclass(frozen=True, eq=False)
class Asked:
    """What a command line asks for, as read: an audit, and what it is of.

    other: judgments to compare with. teams: of each run by its name, where they are known.
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
    how: How,
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
    """Do the audit that the command line asks for, and show what came out."""
    begin = time.perf_counter()
    qrels, runs = (None, files) if aspects else (files[0], files[1:])
    if not runs:
        raise click.UsageError("there is no run to audit: QRELS comes first, then the runs")
    with _sentences():
        audit = parse_audit(kind.name, how.given)
    names = names_of(runs)
    of_teams = teams_of(names, teams, team_pattern)
    collection = read(qrels, aspects, runs, profile)
    job = job_for(collection, " ".join(texts), depth)
    if audit.needs_texts and collection.texts is not None:
        job = replace(job, texts=job.texts or read_texts(collection))
    called = qrels.name if qrels else ", ".join(path.name for _, path in aspects)
    second = None if other is None else _second(other, collection)
    asked = Asked(audit, collection, job, NamedQrels(called, job.qrels), second, names, of_teams)
    report = _looked(asked, runs, how.jobs)
    tell(report)
    if report.scored:
        _audit(asked, report, how, begin)
    leave(report, names)


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """End the command with all reasons why there can't be such an audit."""
    try:
        yield
    except AuditError as problem:
        raise click.UsageError("\n".join(map(printable, problem.sentences))) from None
    except MeasureError as problem:
        raise click.UsageError(printable(str(problem))) from None


def _second(path: Path, collection: Collection) -> NamedQrels:
    """The judgments to compare with; a plain file judges the first aspect."""
    if is_collection(path):
        return NamedQrels(path.name, read(path, ()).qrels)
    return NamedQrels(path.name, read(None, [(collection.aspects[0].name, path)]).qrels)


def _looked(asked: Asked, runs: Sequence[Path], jobs: int | None) -> EvaluationReport:
    """The runs as the audit needs them, and those that are refused."""
    looked = look_at(runs, asked.job, asked.audit, asked.other.qrels if asked.other else None, jobs)
    found = {name: one for name, one in zip(asked.names, looked, strict=True) if one is not None}
    return EvaluationReport(asked.collection, asked.job, found, per_topic=False)


def _audit(asked: Asked, report: EvaluationReport, how: How, begin: float) -> None:
    seen = {name: one.seen for name, one in report.scored.items() if isinstance(one, Looked) and one.seen}
    try:
        with _sentences():
            subject = _subject(asked, seen)
            check_audit(asked.audit, subject)
    except click.UsageError as problem:
        if not report.refused:
            raise
        click.echo(f"nothing is audited: {problem.format_message()}", err=True)
        return
    request = request_of(asked.audit, subject, how.seed, seen)
    shelf = shelf_for(how.out, request, restart=how.restart) if how.out else None
    found = _worked(Worker(asked.audit, subject, how.seed, shelf), how)
    trials = asked.audit.trials(subject)
    _show(
        result(asked.audit, subject.about, how.seed, trials, found), how, request, time.perf_counter() - begin
    )


def _subject(asked: Asked, seen: Mapping[str, RunView]) -> AuditSubject:
    return assemble_subject(
        asked.qrels,
        [*seen.items()],
        asked.job.parsed,
        teams=None if asked.teams is None else [asked.teams[name] for name in seen],
        depth=asked.job.depth,
        top=asked.audit.ranking_depth(),
        other=asked.other,
    )


def _worked(worker: Worker, how: How) -> Mapping[int, Any]:
    """What all trials found; ends the command where it is interrupted, or where processes were killed."""
    resume = (
        f"the same command goes on from what {how.out} keeps"
        if how.out
        else "--out DIR would keep what is done"
    )
    try:
        found = work_all(worker, how.jobs)
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: {resume}", err=True)
        raise
    if len(found) < worker.audit.trials(worker.subject):
        click.echo(f"not finished, as a process was killed (short of memory?): {resume}", err=True)
        raise click.exceptions.Exit(SERVICE_FAILED)
    return found


def _show(found: Result, how: How, request: Mapping[str, Any], seconds: float) -> None:
    """Print the result, and write its files where there is a folder for them."""
    assert found.report is not None  # all trials are done
    data = {**found.as_data(), "provenance": provenance(seconds, request)}
    PRINTERS[how.form](data, found.report)
    if how.out is not None:
        names = write_files(how.out, data, found.report)
        click.echo(f"{how.out}: {', '.join(names)}", err=how.form != "table")

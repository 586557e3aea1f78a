"""`cupel audits`: request audits of a track, follow them and read their reports."""

import json
from pathlib import Path

import click

from cupel_client.api.client import Client
from cupel_client.command_group import CommandGroup
from cupel_client.main import SERVICE_FAILED
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.audit_request_options import audit_request_options
from cupel_client.online.audit_schedule_commands import alert, schedule
from cupel_client.online.connection import with_client
from cupel_client.online.online_output import (
    format_number,
    format_time,
    json_value,
    print_fields,
    print_line,
    print_rows,
    progress_bar,
)
from cupel_client.output import format_option
from cupel_contract.audit_resources import AuditKindResource, AuditResource
from cupel_contract.states import AuditState

COLUMNS = ("id", "track", "kind", "parameters", "measures", "seed", "qrels", "other", "state", "progress",
           "digest", "verdict", "numbers", "created_at", "concluded_at")  # fmt: skip
KIND_COLUMNS = ("name", "title", "answers", "source", "texts")
POINT_COLUMNS = ("at", "qrels", "value", "audit")

LISTED = 40
"""Maximum number of values of a report that are printed as a table."""


@click.group(cls=CommandGroup)
def audits() -> None:
    """Audit the reliability of a track's judgments and leaderboard.

    The service runs the audits in parts; `cupel audit` audits files on this machine.

    \b
    Example:
      cupel audits request health-2026 downsampling --set ratios=[90,50,10] --watch
    """


audits.add_command(schedule)
audits.add_command(alert)


@audits.command()
@click.argument("kind", required=False)
@format_option()
@with_client
def kinds(client: Client, kind: str | None, form: str) -> None:
    """List the kinds of audits, or describe KIND with its parameters.

    \b
    Example:
      cupel audits kinds downsampling
    """
    by_name = {item.name: item for item in client.audit_kinds()}
    if kind is not None and kind not in by_name:
        raise click.UsageError(f"there is no kind {kind!r}; the kinds are {', '.join(by_name)}")
    selected = [item for item in by_name.values() if kind in (None, item.name)]
    if form != "table":
        print_rows(form, KIND_COLUMNS, [json_value(item.model_dump()) for item in selected])
    elif kind is None:
        answers = [item.answers for item in selected]
        show_blocks(["kind"], [[item.name] for item in selected], [("question", answers)])
    else:
        _print_kind(by_name[kind])


def _print_kind(kind: AuditKindResource) -> None:
    print_line(f"{kind.title}: {kind.answers}")
    print_line(f"({kind.source})", dim=True)
    for line in kind.documentation.splitlines():
        print_line(line)
    keys = [[parameter.name, parameter.default or ""] for parameter in kind.parameters]
    descriptions = [f"{parameter.about}; value: {parameter.expects}" for parameter in kind.parameters]
    show_blocks(["parameter", "default"], keys, [("", descriptions)])


@audits.command()
@click.argument("track")
@click.argument("kind")
@audit_request_options
@click.option(
    "--submission",
    "submissions",
    multiple=True,
    help="Submission to audit (sub_...); repeatable (default: all scored submissions).",
)
@click.option(
    "--part-trials",
    type=click.IntRange(1),
    help="Maximum number of trials in a part of the audit (default: chosen by the service).",
)
@click.option("--watch", "wait", is_flag=True, help="Wait for the audit and print its findings.")
@with_client
def request(client: Client, track: str, kind: str, wait: bool, **request: object) -> None:
    """Request an audit of TRACK. `cupel audits kinds` lists the values of KIND.

    \b
    Example:
      cupel audits request health-2026 downsampling --set repeats=10 -m "nDCG@10 AP" --watch
    """
    audit = client.request_audit(track, kind, **request)  # type: ignore[arg-type]
    print_line(audit.id)
    if wait:
        _watch(client, audit.id)


@audits.command("list")
@click.argument("track")
@click.option("--kind", help="List only audits of this kind.")
@format_option()
@with_client
def list_(client: Client, track: str, kind: str | None, form: str) -> None:
    """List the audits of TRACK, newest first.

    \b
    Example:
      cupel audits list health-2026 --kind downsampling
    """
    listed = list(client.audits(track, kind=kind))
    if form != "table":
        print_rows(form, COLUMNS, [json_value(audit.model_dump()) for audit in listed])
        return
    if not listed:
        of_kind = f" of kind {kind}" if kind else ""
        print_line(f"{track} has no audits{of_kind} yet; request one with `cupel audits request`.", err=True)
        return
    keys = [[audit.id, audit.kind, str(audit.qrels), audit.state] for audit in listed]
    trials = [_trials(audit) for audit in listed]
    times = [format_time(audit.created_at) for audit in listed]
    show_blocks(["audit", "kind", "qrels", "state"], keys, [("trials", trials), ("requested (UTC)", times)])


@audits.command()
@click.argument("audit")
@format_option()
@with_client
def show(client: Client, audit: str, form: str) -> None:
    """Show the state, verdict and numbers of an AUDIT (aud_...).

    \b
    Example:
      cupel audits show aud_0192f0c5
    """
    resource = client.audit(audit)
    if form != "table":
        print_rows(form, COLUMNS, [json_value(resource.model_dump())])
        return
    _print_audit(resource)


@audits.command()
@click.argument("audit")
@with_client
def watch(client: Client, audit: str) -> None:
    """Wait for an AUDIT (aud_...) and print its findings.

    The exit code is 3 if it failed.

    \b
    Example:
      cupel audits watch aud_0192f0c5
    """
    _watch(client, audit)


@audits.command()
@click.argument("audit")
@click.option(
    "--format", "form", type=click.Choice(["json", "csv", "html"]), default="json", show_default=True,
    help="Format of the report.",
)  # fmt: skip
@click.option("--table", default="points", show_default=True, help="Table of the report to print as CSV.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write (default: standard output).",
)
@with_client
def report(client: Client, audit: str, form: str, table: str, out: Path | None) -> None:
    """Print the report of an AUDIT (aud_...), or write it to a file.

    It is partial while the audit runs.

    \b
    Example:
      cupel audits report aud_0192f0c5 --format html --out report.html
    """
    text = _report_text(client, audit, form, table)
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


def _report_text(client: Client, audit: str, form: str, table: str) -> str:
    if form == "csv":
        return client.audit_table(audit, table)
    if form == "html":
        return client.audit_page(audit)
    return json.dumps(client.audit_report(audit).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


@audits.command()
@click.argument("track")
@click.argument("kind")
@click.argument("number")
@format_option()
@with_client
def history(client: Client, track: str, kind: str, number: str, form: str) -> None:
    """Show the values of NUMBER in the audits of KIND, over time and qrels versions.

    \b
    Example:
      cupel audits history health-2026 downsampling "tau(AP)@50"
    """
    points = client.audit_history(track, kind, number).points
    if form != "table":
        print_rows(form, POINT_COLUMNS, [json_value(point.model_dump()) for point in points])
        return
    if not points:
        print_line(f"no finished audit of kind {kind} has a number {number!r}", err=True)
        return
    keys = [[format_time(point.at), str(point.qrels), point.audit] for point in points]
    values = [format_number(point.value) for point in points]
    show_blocks(["time (UTC)", "qrels", "audit"], keys, [(number, values)])


@audits.command()
@click.argument("audit")
@with_client
def cancel(client: Client, audit: str) -> None:
    """Cancel an AUDIT (aud_...). Its finished trials are kept.

    \b
    Example:
      cupel audits cancel aud_0192f0c5
    """
    state = client.cancel_audit(audit).state
    print_line(f"{audit} is {state}; finished trials: {_trials(client.audit(audit))}")


@audits.command()
@click.argument("audit")
@click.argument("parts", nargs=-1, type=click.IntRange(0))
@with_client
def rerun(client: Client, audit: str, parts: tuple[int, ...]) -> None:
    """Retry failed PARTS of an AUDIT (aud_...) (default: all failed parts).

    \b
    Example:
      cupel audits rerun aud_0192f0c5
    """
    numbers = parts or tuple(failure.part for failure in client.audit(audit).failures)
    for number in numbers:
        client.rerun_audit_part(audit, number)
    print_line(f"Retrying {len(numbers)} part{'s' * (len(numbers) != 1)} of {audit}.")


def _watch(client: Client, audit_id: str) -> None:
    """Wait for an audit, print it and end the command."""
    with progress_bar(f"auditing {audit_id}") as bar:
        for state in client.watch_audit(audit_id):
            bar.set(state.progress.trials_done, state.progress.trials or 1)
    audit = client.audit(audit_id)
    _print_audit(audit)
    click.get_current_context().exit(0 if audit.state is AuditState.DONE else SERVICE_FAILED)


def _print_audit(audit: AuditResource) -> None:
    compared = f" compared with {audit.other}" if audit.other else ""
    print_fields(
        {
            "audit": f"{audit.kind} of {audit.track}",
            "state": audit.state,
            "trials": _trials(audit),
            "qrels": f"{audit.qrels}{compared}",
            "runs": str(audit.submissions),
            "measures": " ".join(audit.measures),
            "seed": str(audit.seed),
        }
    )
    for sentence in (*audit.problems, *audit.verdict):
        print_line(sentence)
    for raised in audit.alerts:
        print_line(f"alert: {raised.number} is {format_number(raised.value)} ({raised.alert})", err=True)
    for failure in audit.failures:
        retry = f"retry with `cupel audits rerun {audit.id}`"
        print_line(f"part {failure.part} failed: {failure.error}; {retry}", err=True)
    names = list(audit.numbers)[:LISTED]
    if names:
        values = [format_number(audit.numbers[name]) for name in names]
        show_blocks(["number"], [[name] for name in names], [("value", values)])


def _trials(audit: AuditResource) -> str:
    """Return finished and planned trials, such as "3/20"."""
    return f"{audit.progress.trials_done}/{audit.progress.trials or '?'}"

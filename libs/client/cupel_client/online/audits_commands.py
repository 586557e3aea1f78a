"""`cupel audits`: have the track of a service audited, watch it, read what came out."""

import json
from pathlib import Path

import click

from cupel_client.api.client import Client
from cupel_client.main import SERVICE_FAILED
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.audit_options import asked_options
from cupel_client.online.audit_schedule_commands import alert, schedule
from cupel_client.online.connection import service
from cupel_client.online.online_output import decimal, each, fields, plain, progress, rows, say, when
from cupel_client.output import format_option
from cupel_contract.audit_resources import AuditResource

COLUMNS = ("id", "track", "kind", "parameters", "measures", "seed", "qrels", "other", "state", "progress",
           "digest", "verdict", "numbers", "created_at", "concluded_at")  # fmt: skip

POINTS = ("at", "qrels", "value", "audit")

LISTED = 40
"""Numbers that are printed for people."""


@click.group()
def audits() -> None:
    """Tell how far the judgments and the board of a track can be trusted.

    The service does it, part by part; `cupel audit` does the same on files of this machine.

    \b
    Example:
      cupel audits request health-2026 downsampling --set ratios=[90,50,10] --watch
    """


audits.add_command(schedule)
audits.add_command(alert)


@audits.command()
@click.argument("kind", required=False)
@format_option()
@service
def kinds(client: Client, kind: str | None, form: str) -> None:
    """List the kinds of audits, or tell all about KIND.

    \b
    Example:
      cupel audits kinds downsampling
    """
    known = {one.name: one for one in client.audit_kinds()}
    if kind is not None and kind not in known:
        raise click.UsageError(f"there is no kind {kind!r}; there are {', '.join(known)}")
    chosen = [one for one in known.values() if kind in (None, one.name)]
    if form != "table":
        rows(
            form, ("name", "title", "answers", "source", "texts"), [plain(one.model_dump()) for one in chosen]
        )
    elif kind is None:
        show_blocks(["kind"], [[one.name] for one in chosen], [("answers", [one.answers for one in chosen])])
    else:
        (one,) = chosen
        say(f"{one.title}: {one.answers}")
        say(f"({one.source})", dim=True)
        for line in one.documentation.splitlines():
            say(line)
        keys = [[part.name, part.default or ""] for part in one.parameters]
        shown = [f"{part.about}: {part.expects}" for part in one.parameters]
        show_blocks(["parameter", "default"], keys, [("", shown)])


@audits.command()
@click.argument("track")
@click.argument("kind")
@asked_options
@click.option(
    "--submission", "submissions", multiple=True, help="One of those audited [default: all scored]."
)
@click.option("--part-trials", type=click.IntRange(1), help="Trials of a part, at most.")
@click.option("--watch", "watch_too", is_flag=True, help="Wait for it, and tell what came out.")
@service
def request(client: Client, track: str, kind: str, watch_too: bool, **asked: object) -> None:
    """Have TRACK audited.

    \b
    Example:
      cupel audits request health-2026 downsampling --set repeats=10 -m "nDCG@10 AP" --watch
    """
    audit = client.request_audit(track, kind, **asked)  # type: ignore[arg-type]
    say(audit.id)
    if watch_too:
        _watch(client, audit.id)


@audits.command("list")
@click.argument("track")
@click.option("--kind", help="Only of this kind.")
@format_option()
@service
def list_(client: Client, track: str, kind: str | None, form: str) -> None:
    """List the audits of TRACK, newest first.

    \b
    Example:
      cupel audits list health-2026 --kind downsampling
    """
    found = list(client.audits(track, kind=kind))
    if form != "table":
        rows(form, COLUMNS, [plain(one.model_dump()) for one in found])
        return
    if not found:
        which = f" by {kind}" if kind else ""
        say(f"{track} has no audits{which} yet: `cupel audits request` makes one.", err=True)
        return
    keys = [[one.id, one.kind, str(one.qrels), one.state] for one in found]
    done = [_done(one) for one in found]
    asked = [when(one.created_at) for one in found]
    show_blocks(["audit", "kind", "qrels", "state"], keys, [("trials", done), ("asked for", asked)])


@audits.command()
@click.argument("audit")
@format_option()
@service
def show(client: Client, audit: str, form: str) -> None:
    """Show an AUDIT (aud_...): its state, its verdict, its numbers.

    \b
    Example:
      cupel audits show aud_0192f0c5
    """
    found = client.audit(audit)
    if form != "table":
        rows(form, COLUMNS, [plain(found.model_dump())])
        return
    _show(found)


@audits.command()
@click.argument("audit")
@service
def watch(client: Client, audit: str) -> None:
    """Wait until an AUDIT is over, and tell what came out; exit code 3 if it failed.

    \b
    Example:
      cupel audits watch aud_0192f0c5
    """
    _watch(client, audit)


@audits.command()
@click.argument("audit")
@click.option(
    "--format", "form", type=click.Choice(["json", "csv", "html"]), default="json", show_default=True,
    help="How to write it.",
)  # fmt: skip
@click.option("--table", default="points", show_default=True, help="Of the report, as csv.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="A file [default: print it].")
@service
def report(client: Client, audit: str, form: str, table: str, out: Path | None) -> None:
    """Print the report of an AUDIT, or write it to a file; a partial one, while it runs.

    \b
    Example:
      cupel audits report aud_0192f0c5 --format html --out report.html
    """
    text = _text(client, audit, form, table)
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


def _text(client: Client, audit: str, form: str, table: str) -> str:
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
@service
def history(client: Client, track: str, kind: str, number: str, form: str) -> None:
    """Show a NUMBER of the reports of one KIND over time and qrels versions.

    \b
    Example:
      cupel audits history health-2026 downsampling "tau(AP)@50"
    """
    points = client.audit_history(track, kind, number).points
    if form != "table":
        rows(form, POINTS, [plain(one.model_dump()) for one in points])
        return
    if not points:
        say(f"no audit by {kind} that is done has a number {number!r}", err=True)
        return
    keys = [[when(one.at), str(one.qrels), one.audit] for one in points]
    show_blocks(["time", "qrels", "audit"], keys, [(number, [decimal(one.value) for one in points])])


@audits.command()
@click.argument("audit")
@service
def cancel(client: Client, audit: str) -> None:
    """Stop an AUDIT; what is done of it stays.

    \b
    Example:
      cupel audits cancel aud_0192f0c5
    """
    say(f"{audit} is {client.cancel_audit(audit).state}: {_done(client.audit(audit))} trials are done.")


@audits.command()
@click.argument("audit")
@click.argument("parts", nargs=-1, type=click.IntRange(0))
@service
def rerun(client: Client, audit: str, parts: tuple[int, ...]) -> None:
    """Try PARTS of an AUDIT again that were given up [default: all of them].

    \b
    Example:
      cupel audits rerun aud_0192f0c5
    """
    wanted = parts or tuple(one.part for one in client.audit(audit).failures)
    for number in wanted:
        client.rerun_audit_part(audit, number)
    say(f"{len(wanted)} part{'s' * (len(wanted) != 1)} of {audit} will be tried again.")


def _watch(client: Client, id: str) -> None:
    with progress(f"auditing {id}") as bar:
        for audit in client.watch_audit(id):
            bar.set(audit.progress.trials_done, audit.progress.trials or 1)
    found = client.audit(id)
    _show(found)
    click.get_current_context().exit(0 if found.state == "done" else SERVICE_FAILED)


def _show(audit: AuditResource) -> None:
    compared = f" against {audit.other}" if audit.other else ""
    fields(
        {
            "audit": f"{audit.kind} of {audit.track}",
            "state": audit.state,
            "trials": _done(audit),
            "qrels": f"{audit.qrels}{compared}",
            "runs": str(audit.submissions),
            "measures": " ".join(audit.measures),
            "seed": str(audit.seed),
        }
    )
    for sentence in (*audit.problems, *audit.verdict):
        say(sentence)
    for one in audit.alerts:
        say(f"alert: {one.number} is {decimal(one.value)} ({one.alert})", err=True)
    for failure in audit.failures:
        say(f"part {failure.part} failed: {failure.error} (`cupel audits rerun {audit.id}`)", err=True)
    names = list(audit.numbers)[:LISTED]
    if names:
        show_blocks(
            ["number"], [[name] for name in names], [("", [decimal(audit.numbers[n]) for n in names])]
        )


def _done(audit: AuditResource) -> str:
    return "/".join(each((audit.progress.trials_done, audit.progress.trials or "?")))

"""`cupel audits schedule` and `cupel audits alert`: audits again and again, and bounds on what they find."""

import click

from cupel_client.api.client import Client
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.audit_options import asked_options
from cupel_client.online.connection import service
from cupel_client.online.online_output import decimal, plain, rows, say, when
from cupel_client.output import format_option
from cupel_contract.audit_rule_resources import AlertResource

SCHEDULES = ("id", "request", "cron", "zone", "runs", "due_at", "problem", "created_at", "paused_at")
ALERTS = ("id", "kind", "number", "below", "above", "raised", "value", "audit", "judged_at")


@click.group()
def schedule() -> None:
    """Have a track audited again and again.

    \b
    Example:
      cupel audits schedule add health-2026 downsampling --cron "0 3 * * 1" --zone Europe/Berlin
    """


@schedule.command("add")
@click.argument("track")
@click.argument("kind")
@click.option("--cron", help="When: minute hour day month weekday.")
@click.option("--zone", help="The time zone of that [default: UTC].")
@click.option("--runs", type=click.IntRange(1), help="With so many new runs instead.")
@asked_options
@service
def add_schedule(client: Client, track: str, kind: str, **asked: object) -> None:
    """Have TRACK audited by --cron, or with so many new --runs, or else with every new qrels version.

    \b
    Example:
      cupel audits schedule add health-2026 downsampling --runs 10 --set repeats=10
    """
    made = client.add_schedule(track, kind, **asked)  # type: ignore[arg-type]
    due = f", next at {when(made.due_at)} UTC" if made.due_at else ""
    say(f"{made.id}: {_rule(made.cron, made.zone, made.runs)}{due}")


@schedule.command("list")
@click.argument("track")
@format_option()
@service
def list_schedules(client: Client, track: str, form: str) -> None:
    """List the schedules of TRACK.

    \b
    Example:
      cupel audits schedule list health-2026
    """
    found = list(client.schedules(track))
    if form != "table":
        rows(form, SCHEDULES, [plain(one.model_dump()) for one in found])
        return
    keys = [[one.id, str(one.request.get("kind")), _rule(one.cron, one.zone, one.runs)] for one in found]
    due = ["paused" if one.paused_at else when(one.due_at) if one.due_at else "" for one in found]
    problems = [one.problem or "" for one in found]
    show_blocks(["schedule", "kind", "when"], keys, [("next (UTC)", due), ("problem", problems)])


@schedule.command("pause")
@click.argument("schedule")
@click.option("--resume", is_flag=True, help="Let it go on; what it missed is passed over.")
@service
def pause_schedule(client: Client, schedule: str, resume: bool) -> None:
    """Pause a SCHEDULE (sch_...), or let it go on.

    \b
    Example:
      cupel audits schedule pause sch_0192f0c5 --resume
    """
    client.pause_schedule(schedule, paused=not resume)
    say(f"{schedule} {'goes on' if resume else 'is paused'}.")


@schedule.command("remove")
@click.argument("schedule")
@service
def remove_schedule(client: Client, schedule: str) -> None:
    """End a SCHEDULE; the audits that it made stay.

    \b
    Example:
      cupel audits schedule remove sch_0192f0c5
    """
    client.remove_schedule(schedule)
    say(f"{schedule} is gone.")


@click.group()
def alert() -> None:
    """Be alerted when a number of an audit's report is out of bounds.

    \b
    Example:
      cupel audits alert add health-2026 downsampling "tau(AP)@50" --below 0.9
    """


@alert.command("add")
@click.argument("track")
@click.argument("kind")
@click.argument("number")
@click.option("--below", type=float, help="Raised below this.")
@click.option("--above", type=float, help="Raised above this.")
@service
def add_alert(
    client: Client, track: str, kind: str, number: str, below: float | None, above: float | None
) -> None:
    """Be alerted when NUMBER of the reports of KIND on TRACK is --below or --above a bound.

    \b
    Example:
      cupel audits alert add health-2026 downsampling "tau(AP)@50" --below 0.9
    """
    made = client.add_alert(track, kind, number, below=below, above=above)
    say(f"{made.id}: {_judged(made)}")


@alert.command("list")
@click.argument("track")
@format_option()
@service
def list_alerts(client: Client, track: str, form: str) -> None:
    """List the alerts of TRACK, and which are raised by the newest audits.

    \b
    Example:
      cupel audits alert list health-2026
    """
    found = list(client.alerts(track))
    if form != "table":
        rows(form, ALERTS, [plain(one.model_dump()) for one in found])
        return
    keys = [[one.id, one.kind, one.number, _judged(one)] for one in found]
    bounds = [
        ("below", [decimal(one.below) for one in found]),
        ("above", [decimal(one.above) for one in found]),
    ]
    show_blocks(
        ["alert", "kind", "number", "state"], keys, [*bounds, ("is", [decimal(one.value) for one in found])]
    )


@alert.command("remove")
@click.argument("alert")
@service
def remove_alert(client: Client, alert: str) -> None:
    """End an ALERT (alt_...).

    \b
    Example:
      cupel audits alert remove alt_0192f0c5
    """
    client.remove_alert(alert)
    say(f"{alert} is gone.")


def _rule(cron: str | None, zone: str | None, runs: int | None) -> str:
    if cron is not None:
        return f"{cron} ({zone})"
    return f"every {runs} new runs" if runs else "every new qrels version"


def _judged(alert: AlertResource) -> str:
    if alert.raised is None:
        return "no audit yet"
    if alert.value is None:
        return "no such number, or undefined"
    return "raised" if alert.raised else "within bounds"

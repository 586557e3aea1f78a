"""`cupel audits schedule` and `cupel audits alert`.

They manage repeated audits, and bounds on reported numbers.
"""

import click

from cupel_client.api.client import Client
from cupel_client.command_group import CommandGroup
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.audit_request_options import audit_request_options
from cupel_client.online.connection import with_client
from cupel_client.online.online_output import format_number, format_time, json_value, print_line, print_rows
from cupel_client.output import format_option
from cupel_contract.audit_rule_resources import AlertResource, ScheduleResource

SCHEDULE_COLUMNS = ("id", "request", "cron", "zone", "runs", "due_at", "problem", "created_at", "paused_at")
ALERT_COLUMNS = ("id", "kind", "number", "below", "above", "raised", "value", "audit", "judged_at")


@click.group(cls=CommandGroup)
def schedule() -> None:
    """Repeat audits of a track.

    \b
    Example:
      cupel audits schedule add health-2026 downsampling --cron "0 3 * * 1" --zone Europe/Berlin
    """


@schedule.command("add")
@click.argument("track")
@click.argument("kind")
@click.option("--cron", help="Cron expression: minute, hour, day, month and weekday.")
@click.option("--zone", help="Time zone of the cron expression (default: UTC).")
@click.option(
    "--runs", type=click.IntRange(1), help="Repeat after this many new runs are scored, instead of --cron."
)
@audit_request_options
@with_client
def add_schedule(client: Client, track: str, kind: str, **request: object) -> None:
    """Repeat audits of KIND on TRACK.

    They run at the times of --cron or after every --runs new runs.

    Without --cron and --runs, each new qrels version is audited.

    \b
    Example:
      cupel audits schedule add health-2026 downsampling --runs 10 --set repeats=10
    """
    created = client.add_schedule(track, kind, **request)  # type: ignore[arg-type]
    due = f", next at {format_time(created.due_at)} UTC" if created.due_at else ""
    print_line(f"{created.id}: {_rule(created)}{due}")


@schedule.command("list")
@click.argument("track")
@format_option()
@with_client
def list_schedules(client: Client, track: str, form: str) -> None:
    """List the schedules of TRACK.

    \b
    Example:
      cupel audits schedule list health-2026
    """
    schedules = list(client.schedules(track))
    if form != "table":
        print_rows(form, SCHEDULE_COLUMNS, [json_value(item.model_dump()) for item in schedules])
        return
    keys = [[item.id, str(item.request.get("kind")), _rule(item)] for item in schedules]
    due = [_next_time(item) for item in schedules]
    problems = [item.problem or "" for item in schedules]
    show_blocks(["schedule", "kind", "when"], keys, [("next (UTC)", due), ("problem", problems)])


@schedule.command("pause")
@click.argument("schedule")
@click.option("--resume", is_flag=True, help="Resume the schedule. Missed audits are skipped.")
@with_client
def pause_schedule(client: Client, schedule: str, resume: bool) -> None:
    """Pause or resume a SCHEDULE (sch_...).

    \b
    Example:
      cupel audits schedule pause sch_0192f0c5 --resume
    """
    client.pause_schedule(schedule, paused=not resume)
    print_line(f"{'Resumed' if resume else 'Paused'} schedule {schedule}.")


@schedule.command("remove")
@click.argument("schedule")
@with_client
def remove_schedule(client: Client, schedule: str) -> None:
    """Remove a SCHEDULE (sch_...). Its audits remain.

    \b
    Example:
      cupel audits schedule remove sch_0192f0c5
    """
    client.remove_schedule(schedule)
    print_line(f"Removed schedule {schedule}.")


@click.group(cls=CommandGroup)
def alert() -> None:
    """Raise alerts when a number of an audit report is out of bounds.

    \b
    Example:
      cupel audits alert add health-2026 downsampling "tau(AP)@50" --below 0.9
    """


@alert.command("add")
@click.argument("track")
@click.argument("kind")
@click.argument("number")
@click.option("--below", type=float, help="Raise the alert if the number is below this bound.")
@click.option("--above", type=float, help="Raise the alert if the number is above this bound.")
@with_client
def add_alert(
    client: Client, track: str, kind: str, number: str, below: float | None, above: float | None
) -> None:
    """Raise an alert when NUMBER in an audit of KIND on TRACK is out of bounds.

    `cupel audits show` lists the numbers of an audit by name.

    \b
    Example:
      cupel audits alert add health-2026 downsampling "tau(AP)@50" --below 0.9
    """
    created = client.add_alert(track, kind, number, below=below, above=above)
    print_line(f"{created.id}: {_alert_state(created)}")


@alert.command("list")
@click.argument("track")
@format_option()
@with_client
def list_alerts(client: Client, track: str, form: str) -> None:
    """List the alerts of TRACK, each with its state after the newest audit.

    \b
    Example:
      cupel audits alert list health-2026
    """
    alerts = list(client.alerts(track))
    if form != "table":
        print_rows(form, ALERT_COLUMNS, [json_value(item.model_dump()) for item in alerts])
        return
    keys = [[item.id, item.kind, item.number, _alert_state(item)] for item in alerts]
    columns = [
        ("below", [format_number(item.below) for item in alerts]),
        ("above", [format_number(item.above) for item in alerts]),
        ("value", [format_number(item.value) for item in alerts]),
    ]
    show_blocks(["alert", "kind", "number", "state"], keys, columns)


@alert.command("remove")
@click.argument("alert")
@with_client
def remove_alert(client: Client, alert: str) -> None:
    """Remove an ALERT (alt_...).

    \b
    Example:
      cupel audits alert remove alt_0192f0c5
    """
    client.remove_alert(alert)
    print_line(f"Removed alert {alert}.")


def _rule(schedule: ScheduleResource) -> str:
    """Return in words when a schedule requests audits."""
    if schedule.cron is not None:
        return f"{schedule.cron} ({schedule.zone})"
    return f"every {schedule.runs} new runs" if schedule.runs else "every new qrels version"


def _next_time(schedule: ScheduleResource) -> str:
    if schedule.paused_at:
        return "paused"
    return format_time(schedule.due_at) if schedule.due_at else ""


def _alert_state(alert: AlertResource) -> str:
    if alert.raised is None:
        return "no audit yet"
    if alert.value is None:
        return "number missing or undefined"
    return "raised" if alert.raised else "within bounds"

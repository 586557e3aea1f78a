"""Calls of the client that concern audits, schedules and alerts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cupel_client.api.transport import Transport, body, parse, part
from cupel_contract.audit_resources import (
    AuditDetailResource,
    AuditHistoryResource,
    AuditKindResource,
    AuditReportResource,
    AuditRequest,
    AuditResource,
)
from cupel_contract.audit_rule_resources import (
    AlertCreate,
    AlertResource,
    ScheduleChange,
    ScheduleCreate,
    ScheduleResource,
)


class AuditCalls(Transport):
    """The part of the client that concerns audits."""

    def audit_kinds(self) -> list[AuditKindResource]:
        """Return every audit kind with its parameters."""
        return [parse(AuditKindResource, item) for item in self._json("GET", "/v1/audits/kinds")["items"]]

    def request_audit(
        self,
        track: str,
        kind: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        measures: Sequence[str] = (),
        submissions: Sequence[str] = (),
        seed: int | None = None,
        qrels: int | None = None,
        other: int | None = None,
        part_trials: int | None = None,
    ) -> AuditDetailResource:
        """Request an audit of a track.

        qrels: number of the qrels version to audit. other: number of the qrels version to compare with.
        part_trials: maximum number of trials in a part. The service chooses the value of every omitted
        argument. `watch_audit` follows the progress.
        """
        values: dict[str, Any] = {"kind": kind, "parameters": dict(parameters or {})}
        values |= {"measures": list(measures), "submissions": list(submissions)}
        values |= {"seed": seed, "qrels": qrels, "other": other, "part_trials": part_trials}
        sent = body(AuditRequest, values)
        return parse(AuditDetailResource, self._json("POST", f"{_track(track)}/audits", json=sent))

    def audit(self, id: str) -> AuditDetailResource:
        """Return an audit."""
        return parse(AuditDetailResource, self._json("GET", _audit(id)))

    def audits(self, track: str, *, kind: str | None = None) -> Iterator[AuditResource]:
        """Iterate over the audits of a track, newest first, optionally of one kind."""
        return self._all(AuditResource, f"{_track(track)}/audits", kind=kind)

    def audit_history(self, track: str, kind: str, number: str) -> AuditHistoryResource:
        """Return the values of `number` in the reports of a kind, oldest first.

        number: the name of a number of the reports, such as "tau(AP)@50".
        """
        params = {"kind": kind, "number": number}
        return parse(
            AuditHistoryResource, self._json("GET", f"{_track(track)}/audits/history", params=params)
        )

    def audit_report(self, id: str) -> AuditReportResource:
        """Return the report on the finished trials. It is partial until the audit is done."""
        return parse(AuditReportResource, self._json("GET", f"{_audit(id)}/report"))

    def audit_table(self, id: str, table: str = "points") -> str:
        """Return a table of the report as CSV; `points` selects the first table."""
        return self._send("GET", f"{_audit(id)}/report.csv", params={"table": table}).text

    def audit_page(self, id: str) -> str:
        """Return the report as an HTML page."""
        return self._send("GET", f"{_audit(id)}/report.html").text

    def cancel_audit(self, id: str) -> AuditDetailResource:
        """Cancel an audit; finished trials are kept."""
        return parse(AuditDetailResource, self._json("POST", f"{_audit(id)}/cancel", repeatable=True))

    def rerun_audit_part(self, id: str, number: int) -> AuditDetailResource:
        """Retry a failed part. Part 0 gathers the runs and judgments."""
        return parse(AuditDetailResource, self._json("POST", f"{_audit(id)}/parts/{number}/rerun"))

    def watch_audit(self, id: str) -> Iterator[AuditResource]:
        """Iterate over the states of an audit until it is done, failed or cancelled."""
        return self.watch(AuditResource, f"{_audit(id)}/events")

    # Schedules and alerts

    def add_schedule(
        self,
        track: str,
        kind: str,
        *,
        cron: str | None = None,
        zone: str | None = None,
        runs: int | None = None,
        **request: Any,
    ) -> ScheduleResource:
        """Add a schedule that repeats an audit.

        cron: a cron expression in the time zone `zone` (default: UTC). runs: repeat after this many new runs.
        Without `cron` and `runs`, the audit is repeated for every new qrels version. request: further
        arguments of `request_audit`.
        """
        given = {name: value for name, value in request.items() if value not in (None, (), {})}
        values = {"request": {"kind": kind, **given}, "cron": cron, "zone": zone, "runs": runs}
        return parse(
            ScheduleResource,
            self._json("POST", f"{_track(track)}/schedules", json=body(ScheduleCreate, values)),
        )

    def schedules(self, track: str) -> Iterator[ScheduleResource]:
        """Iterate over the schedules of a track, newest first."""
        return self._all(ScheduleResource, f"{_track(track)}/schedules")

    def pause_schedule(self, id: str, *, paused: bool = True) -> ScheduleResource:
        """Pause a schedule, or resume it if `paused` is False."""
        sent = body(ScheduleChange, {"paused": paused})
        return parse(ScheduleResource, self._json("PATCH", f"/v1/schedules/{part(id)}", json=sent))

    def remove_schedule(self, id: str) -> None:
        """Remove a schedule."""
        self._send("DELETE", f"/v1/schedules/{part(id)}")

    def add_alert(
        self, track: str, kind: str, number: str, *, below: float | None = None, above: float | None = None
    ) -> AlertResource:
        """Add an alert on a number of audit reports.

        It is raised when `number` of an audit report is below or above a bound.
        """
        values = {"kind": kind, "number": number, "below": below, "above": above}
        return parse(
            AlertResource, self._json("POST", f"{_track(track)}/alerts", json=body(AlertCreate, values))
        )

    def alerts(self, track: str) -> Iterator[AlertResource]:
        """Iterate over the alerts of a track, newest first.

        Each has the newest value of its number.
        """
        return self._all(AlertResource, f"{_track(track)}/alerts")

    def remove_alert(self, id: str) -> None:
        """Remove an alert."""
        self._send("DELETE", f"/v1/alerts/{part(id)}")


def _track(name: str) -> str:
    return f"/v1/tracks/{part(name)}"


def _audit(id: str) -> str:
    return f"/v1/audits/{part(id)}"

"""The client's calls about audits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cupel_client.api.audit_replies import Alert, Audit, AuditHistory, AuditKind, Schedule
from cupel_client.api.replies import read
from cupel_client.api.transport import Transport, part


class AuditCalls(Transport):
    """Audits of tracks."""

    def audit_kinds(self) -> list[AuditKind]:
        """Every kind of audit, with its parameters."""
        return [read(AuditKind, one) for one in self._json("GET", "/v1/audits/kinds")["items"]]

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
    ) -> Audit:
        """Have a track audited: `watch_audit` tells of its progress. Defaults are the service's."""
        body: dict[str, Any] = {"kind": kind, "parameters": dict(parameters or {})}
        body |= {"measures": list(measures), "submissions": list(submissions)}
        body |= {"seed": seed, "qrels": qrels, "other": other, "part_trials": part_trials}
        return read(Audit, self._json("POST", f"{_track(track)}/audits", json=body))

    def audit(self, id: str) -> Audit:
        return read(Audit, self._json("GET", _audit(id)))

    def audits(self, track: str, *, kind: str | None = None) -> Iterator[Audit]:
        """The track's audits, newest first, maybe of one kind only."""
        return self._all(Audit, f"{_track(track)}/audits", kind=kind)

    def audit_history(self, track: str, kind: str, number: str) -> AuditHistory:
        """A number of the reports of one kind, over time and qrels versions."""
        asked = {"kind": kind, "number": number}
        return read(AuditHistory, self._json("GET", f"{_track(track)}/audits/history", params=asked))

    def audit_report(self, id: str) -> dict[str, Any]:
        """What the trials that are done say, with its provenance; partial while some are not."""
        return dict(self._json("GET", f"{_audit(id)}/report"))

    def audit_table(self, id: str, table: str = "points") -> str:
        """A table of the report as CSV; `points` is the first one."""
        return self._send("GET", f"{_audit(id)}/report.csv", params={"table": table}).text

    def audit_page(self, id: str) -> str:
        """The report as an HTML page."""
        return self._send("GET", f"{_audit(id)}/report.html").text

    def cancel_audit(self, id: str) -> Audit:
        """Stop an audit; what is done stays."""
        return read(Audit, self._json("POST", f"{_audit(id)}/cancel", repeatable=True))

    def rerun_audit_part(self, id: str, number: int) -> Audit:
        """Try a part again that was given up; 0 is the gathering of what is audited."""
        return read(Audit, self._json("POST", f"{_audit(id)}/parts/{number}/rerun"))

    def watch_audit(self, id: str) -> Iterator[Audit]:
        """Every state of an audit until it is done, failed or cancelled."""
        return self.watch(Audit, f"{_audit(id)}/events")

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
    ) -> Schedule:
        """Have a track audited by a cron expression in a time zone (default: UTC), with so many new runs, or
        else with every new qrels version; request: as for `request_audit`."""
        given = {name: value for name, value in request.items() if value not in (None, (), {})}
        body = {"request": {"kind": kind, **given}, "cron": cron, "zone": zone, "runs": runs}
        return read(Schedule, self._json("POST", f"{_track(track)}/schedules", json=body))

    def schedules(self, track: str) -> Iterator[Schedule]:
        """The track's schedules, newest first."""
        return self._all(Schedule, f"{_track(track)}/schedules")

    def pause_schedule(self, id: str, *, paused: bool = True) -> Schedule:
        """Pause a schedule, or let it go on."""
        return read(Schedule, self._json("PATCH", f"/v1/schedules/{part(id)}", json={"paused": paused}))

    def remove_schedule(self, id: str) -> None:
        """End a schedule."""
        self._send("DELETE", f"/v1/schedules/{part(id)}")

    def add_alert(
        self, track: str, kind: str, number: str, *, below: float | None = None, above: float | None = None
    ) -> Alert:
        """Be alerted when a number of a kind's report is below or above a bound."""
        body = {"kind": kind, "number": number, "below": below, "above": above}
        return read(Alert, self._json("POST", f"{_track(track)}/alerts", json=body))

    def alerts(self, track: str) -> Iterator[Alert]:
        """The track's alerts, newest first, as the newest audits were judged by them."""
        return self._all(Alert, f"{_track(track)}/alerts")

    def remove_alert(self, id: str) -> None:
        """End an alert."""
        self._send("DELETE", f"/v1/alerts/{part(id)}")


def _track(name: str) -> str:
    return f"/v1/tracks/{part(name)}"


def _audit(id: str) -> str:
    return f"/v1/audits/{part(id)}"

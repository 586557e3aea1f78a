"""Progress as server-sent events."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest


def read_events(answer: Any) -> Iterator[tuple[str, str, dict]]:
    """Yield (name, id, data) of each event."""
    event: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "data" in event:
            yield event["event"], event["id"], json.loads(event["data"])
            event = {}


def open_stream(service, path: str, who: str = "participant", **headers: str) -> Any:
    return service.http.stream("GET", path, headers=service.auth_headers(who) | headers)


def test_submission_events_end_with_the_scored_state(service, track: str) -> None:
    submission = service.accepted_submission(track)
    with open_stream(service, submission["links"]["events"]) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = read_events(answer)
        name, _, state = next(events)
        assert (name, state["state"]) == ("change", "queued")
        service.run_jobs()
        rest = list(events)
    assert rest[-1][0] == "end"
    assert rest[-1][2] == service.get("participant", submission["links"]["self"])
    assert rest[-1][2]["state"] == "scored"


def test_event_stream_continues_after_the_last_event_id(service, track: str) -> None:
    submission = service.accepted_submission(track)
    path = f"/v1/jobs/{submission['jobs'][0]['id']}/events"
    with open_stream(service, path) as answer:
        _, seen, state = next(read_events(answer))
    assert state["state"] == "queued"
    service.run_jobs()
    with open_stream(service, path, **{"Last-Event-ID": seen}) as answer:
        (last,) = read_events(answer)
    assert (last[0], last[2]["state"]) == ("end", "done")
    with open_stream(service, path, **{"Last-Event-ID": last[1]}) as answer:
        assert answer.status_code == 204
    with open_stream(service, path) as answer:
        assert [item[1] for item in read_events(answer)] == [last[1]]


def test_qrels_events_end_when_the_version_is_current(service, track: str) -> None:
    for _ in range(3):
        service.accepted_submission(track)
    service.run_jobs()
    number = service.upload(track).json()["number"]
    path = f"/v1/tracks/{track}/qrels/{number}"
    service.request("organiser", "POST", f"{path}/publish")
    with open_stream(service, f"{path}/events") as answer:
        events = read_events(answer)
        _, _, first = next(events)
        assert (first["state"], first["progress"]) == ("publishing", {"total": 3, "scored": 0, "dead": 0})
        worker = threading.Thread(target=service.run_jobs)
        worker.start()
        *_, (name, _, last) = events
        worker.join()
    assert (name, last["state"], last["progress"]["scored"]) == ("end", "current", 3)


@pytest.mark.parametrize(
    "path", ["/v1/submissions/none/events", "/v1/jobs/none/events", "/v1/tracks/none/qrels/1/events"]
)
def test_events_of_unknown_resource_are_not_found(service, path: str) -> None:
    answer = service.request("participant", "GET", path)
    assert answer.status_code == 404


def test_stream_ends_when_the_service_stops(start_service) -> None:
    service = start_service()
    track = service.create_track()
    service.publish(track)
    submission = service.accepted_submission(track)
    service.app.state.stopping = lambda: True
    with open_stream(service, submission["links"]["events"]) as answer:
        assert [name for name, _, _ in read_events(answer)] == ["change"]


def test_idle_stream_sends_heartbeats(start_service) -> None:
    service = start_service()
    track = service.create_track()
    service.publish(track)
    submission = service.accepted_submission(track)
    service.app.state.heartbeat_seconds = 0
    with open_stream(service, submission["links"]["events"]) as answer:
        assert next(line for line in answer.iter_lines() if line.startswith(":"))
    service.run_jobs()

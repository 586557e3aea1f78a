"""Progress as server-sent events."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest


def told(answer: Any) -> Iterator[tuple[str, str, dict]]:
    """(name, id, data) of each event."""
    event: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "data" in event:
            yield event["event"], event["id"], json.loads(event["data"])
            event = {}


def watching(service, path: str, who: str = "participant", **headers: str) -> Any:
    return service.http.stream("GET", path, headers=service.signed(who) | headers)


def test_a_submission_is_followed_to_its_scores(service, track: str) -> None:
    submission = service.submitted(track)
    with watching(service, submission["links"]["events"]) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = told(answer)
        name, _, state = next(events)
        assert (name, state["state"]) == ("change", "queued")
        service.work()
        rest = list(events)
    assert rest[-1][0] == "end"
    assert rest[-1][2] == service.get("participant", submission["links"]["self"])
    assert rest[-1][2]["state"] == "scored"


def test_what_was_seen_is_not_told_again(service, track: str) -> None:
    submission = service.submitted(track)
    path = f"/v1/jobs/{submission['jobs'][0]['id']}/events"
    with watching(service, path) as answer:
        _, seen, state = next(told(answer))
    assert state["state"] == "queued"
    service.work()
    with watching(service, path, **{"Last-Event-ID": seen}) as answer:
        (last,) = told(answer)
    assert (last[0], last[2]["state"]) == ("end", "done")
    with watching(service, path, **{"Last-Event-ID": last[1]}) as answer:
        assert answer.status_code == 204
    with watching(service, path) as answer:
        assert [one[1] for one in told(answer)] == [last[1]]


def test_publishing_is_followed_to_the_switch(service, track: str) -> None:
    for _ in range(3):
        service.submitted(track)
    service.work()
    number = service.upload(track).json()["number"]
    path = f"/v1/tracks/{track}/qrels/{number}"
    service.ask("organiser", "POST", f"{path}/publish")
    with watching(service, f"{path}/events") as answer:
        events = told(answer)
        _, _, first = next(events)
        assert (first["state"], first["progress"]) == ("publishing", {"total": 3, "scored": 0, "dead": 0})
        worker = threading.Thread(target=service.work)
        worker.start()
        *_, (name, _, last) = events
        worker.join()
    assert (name, last["state"], last["progress"]["scored"]) == ("end", "current", 3)


@pytest.mark.parametrize(
    "path", ["/v1/submissions/none/events", "/v1/jobs/none/events", "/v1/tracks/none/qrels/1/events"]
)
def test_nothing_to_watch_is_an_ordinary_problem(service, path: str) -> None:
    answer = service.ask("participant", "GET", path)
    assert answer.status_code == 404


def test_streams_end_when_the_service_stops(special) -> None:
    service = special()
    track = service.track()
    service.publish(track)
    submission = service.submitted(track)
    service.app.state.stopping = lambda: True
    with watching(service, submission["links"]["events"]) as answer:
        assert [name for name, _, _ in told(answer)] == ["change"]


def test_a_stream_with_nothing_to_tell_still_shows_that_it_lives(special) -> None:
    service = special()
    track = service.track()
    service.publish(track)
    submission = service.submitted(track)
    service.app.state.heartbeat_seconds = 0
    with watching(service, submission["links"]["events"]) as answer:
        assert next(line for line in answer.iter_lines() if line.startswith(":"))
    service.work()

"""The real Prometheus looks at the running stack: every metric that the code declares is there, and moves."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from signal import SIGKILL
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen
from uuid import uuid4

import pytest
import yaml

from cupel_backend.infrastructure.metrics import METRICS
from cupel_client.api.client import Client, ServiceError
from cupel_standalone.supervisor import die_with_parent
from support.data.real_runs import Load, example
from support.patience import seconds, until
from support.service import components
from support.service.compose_stack import ROOT, Stack, ours, port_of
from support.service.faults import PLAN, Traffic, asleep

FILES = ROOT / "deploy" / "prometheus"

OFTEN = "500ms"


class Prometheus(components.Server):
    """Prometheus, with `files` as its configuration: name -> text, of which the first is where it begins."""

    programs = ("prometheus",)
    files: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        for name, text in self.files.items():
            (self.folder / name).write_text(text)

    def commands(self) -> list[list[str]]:
        options = {
            "config.file": self.folder / next(iter(self.files)),
            "storage.tsdb.path": self.folder / "data",
            "web.listen-address": f"127.0.0.1:{self.port}",
            "log.level": "warn",
        }
        return [[components.find("prometheus"), *(f"--{name}={value}" for name, value in options.items())]]

    def answers(self) -> bool:
        with suppress(OSError), urlopen(f"{self.url}/-/ready", timeout=seconds(5)) as answer:
            return bool(answer.status == 200)
        return False


@dataclass(frozen=True)
class Watched:
    """A stack that Prometheus looks at, and a track to hand in runs to."""

    stack: Stack
    prometheus: Prometheus
    organiser: Client
    load: Load

    def ask(self, what: str, **parameters: str) -> Any:
        """What Prometheus' HTTP API says."""
        with urlopen(
            f"{self.prometheus.url}/api/v1/{what}?{urlencode(parameters)}", timeout=seconds(60)
        ) as answer:
            return json.load(answer)["data"]

    def value(self, expression: str) -> float:
        """What an expression comes to now; 0 where there is nothing."""
        found = self.ask("query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else 0.0

    def health(self) -> dict[str, str]:
        """Of each target, by the name of its service."""
        return {one["labels"]["service"]: one["health"] for one in self.ask("targets")["activeTargets"]}

    def alerts(self) -> dict[str, str]:
        """How the evaluation of each alerting rule went."""
        return {
            rule["name"]: rule["health"] for group in self.ask("rules")["groups"] for rule in group["rules"]
        }

    def hand_in(self, content: bytes | None = None) -> str:
        return self.organiser.submit(self.load.track, content or self.load.runs[0]).id

    def traffic(self) -> Traffic:
        return Traffic(self.stack, self.organiser, new_track())

    @property
    def topic(self) -> str:
        return next(iter(self.load.collection.qrels.topics))


def new_track() -> str:
    return f"track-{uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def watched(quick_stack: Stack) -> Iterator[Watched]:
    components.require("prometheus")
    prometheus = Prometheus(quick_stack.folder / f"prometheus-{uuid4().hex[:8]}")
    prometheus.files, prometheus.dying = configuration(quick_stack), die_with_parent()
    load = replace(example(), track=new_track(), measures=PLAN)
    with quick_stack.client() as organiser:
        organiser.publish_qrels(load.track, load.upload(organiser))
        prometheus.start()
        yield Watched(quick_stack, prometheus, organiser, load)
    prometheus.stop()


def configuration(stack: Stack) -> dict[str, str]:
    """The files of deploy/prometheus, with addresses for names and shorter intervals."""
    read = yaml.safe_load((FILES / "prometheus.yml").read_text())
    read["global"] = dict.fromkeys(read["global"], OFTEN)
    for job in read["scrape_configs"]:
        job["static_configs"] = [address(stack, **one) for one in job.pop("dns_sd_configs")]
    return {"prometheus.yml": yaml.safe_dump(read), "rules.yml": (FILES / "rules.yml").read_text()}


def address(stack: Stack, names: list[str], type: str, port: int) -> dict[str, Any]:
    """What the name of a service comes to, and the label that Prometheus gives what it found by a name."""
    (name,) = names
    assert str(port) == port_of(name)
    return {"targets": [f"127.0.0.1:{stack[name].port}"], "labels": {"__meta_dns_name": name}}


# What makes each metric move

Stimulus = Callable[[Watched, str], None]


def counts(labels: str, do: Callable[[Watched], object]) -> Stimulus:
    """A counter or histogram: something is counted under these labels."""

    def move(watched: Watched, exposed: str) -> None:
        counted = f"sum({exposed}{{{labels}}})"
        before = watched.value(counted)
        do(watched)
        until(lambda: watched.value(counted) > before)

    return move


def hand_in_nonsense(watched: Watched) -> None:
    with pytest.raises(ServiceError):
        watched.organiser.submit(watched.load.track, b"this is no run")


def kill_a_pool_at_work(watched: Watched) -> None:
    worker = watched.stack["worker-score"]
    with watched.traffic(), asleep(watched.stack, worker, at_work=True):
        worker.kill_pool()


def lose_the_broker(watched: Watched) -> None:
    """Redis is away until the scheduler has rung in vain for a run that nobody heard of."""
    failed = 'sum(cupel_wakeups_total{queue="score",outcome="failed",service="scheduler"})'
    before = watched.value(failed)
    with without(watched.stack.redis):
        watched.hand_in()
        until(lambda: watched.value(failed) > before)


@contextmanager
def without(server: components.Server) -> Iterator[None]:
    server.stop(SIGKILL)
    try:
        yield
    finally:
        server.start()


def waits(watched: Watched, exposed: str) -> None:
    """How many wait: one, while the worker is stopped."""
    waiting = f'max({exposed}{{queue="score"}})'
    with asleep(watched.stack, watched.stack["worker-score"]):
        watched.hand_in()
        until(lambda: watched.value(waiting) >= 1)
    until(lambda: watched.value(waiting) == 0)


def grows_older(watched: Watched, exposed: str) -> None:
    """For how long the oldest has waited: ever longer, while the worker is stopped."""
    age = f'max({exposed}{{queue="score"}})'
    with asleep(watched.stack, watched.stack["worker-score"]):
        watched.hand_in()
        until(lambda: watched.value(age) > 0)
        before = watched.value(age)
        until(lambda: watched.value(age) > before + 0.5)
    until(lambda: watched.value(age) == 0)


def is_worked_on(watched: Watched, exposed: str) -> None:
    with watched.traffic():
        until(lambda: watched.value(f'max({exposed}{{queue="score"}})') >= 1)
    until(lambda: watched.value(f'max({exposed}{{queue="score"}})') == 0)


def dies(watched: Watched, exposed: str) -> None:
    """A job is given up when the content of its run is lost, and not dead any more when it was revived."""
    stack, dead = watched.stack, f'max({exposed}{{queue="score"}})'
    with asleep(stack, stack["worker-score"]):
        submission = watched.hand_in(content=f"{watched.topic} Q0 {uuid4().hex} 1 1.0 lost\n".encode())
        named = "SELECT ranking_blob FROM runs JOIN submissions ON run_id = runs.id WHERE submissions.id = %s"
        ((blob,),) = stack.query(named, submission)
        content = stack.take_blob(blob)
    until(lambda: watched.value(dead) == 1)
    stack.put_blob(blob, content)
    (job,) = watched.organiser.submission(submission).jobs
    watched.organiser.revive_job(job.id)
    until(lambda: watched.value(dead) == 0)


def goes_away(watched: Watched, exposed: str) -> None:
    """Every service says that the database does not answer, as long as it does not."""
    with without(watched.stack.postgres):
        until(lambda: watched.value(f"max({exposed})") == 0)
    until(lambda: watched.value(f"min({exposed})") == 1)


def raises_an_alert(watched: Watched, exposed: str) -> None:
    """A track without any audit yet has an alert that is not raised."""
    track = watched.organiser.create_track(
        f"alerts-{uuid4().hex[:8]}", title="x", aspects={"relevance": {"labels": [0, 1]}}, measures=["AP"]
    )
    watched.organiser.add_alert(track.name, "downsampling", "tau(AP)@50", below=0.9)
    until(lambda: watched.value(f'count({exposed}{{track="{track.name}"}})') > 0)


STIMULI: dict[str, Stimulus] = {
    "cupel_requests": counts('route="/v1/me",status="200"', lambda watched: watched.organiser.me()),
    "cupel_request_duration_seconds": counts(
        'route="/v1/me",method="GET"', lambda watched: watched.organiser.me()
    ),
    "cupel_checks": counts('kind="run",verdict="refused"', hand_in_nonsense),
    "cupel_check_duration_seconds": counts('kind="run"', hand_in_nonsense),
    "cupel_job_attempts": counts('queue="score",outcome="done"', Watched.hand_in),
    "cupel_job_attempt_duration_seconds": counts('queue="score"', Watched.hand_in),
    "cupel_job_wait_seconds": counts('queue="score"', Watched.hand_in),
    "cupel_wakeups": counts('queue="score",outcome="failed"', lose_the_broker),
    "cupel_storage_operation_duration_seconds": counts('operation="put",outcome="done"', Watched.hand_in),
    "cupel_sweeps": counts('service="scheduler"', lambda _: None),
    "cupel_expired_leases": counts('outcome="requeued"', kill_a_pool_at_work),
    "cupel_queued_jobs": waits,
    "cupel_running_jobs": is_worked_on,
    "cupel_dead_jobs": dies,
    "cupel_oldest_queued_job_age_seconds": grows_older,
    "cupel_raised_audit_alerts": raises_an_alert,
    "cupel_database_up": goes_away,
}
"""Name of each metric -> what makes it move, and looks whether it did."""


def test_each_metric_that_is_declared_has_a_stimulus() -> None:
    assert STIMULI.keys() == METRICS.keys()


def test_prometheus_reaches_every_service(watched: Watched) -> None:
    expected = {name: "up" for name in ours() if port_of(name)}
    until(lambda: watched.health() == expected)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_there_and_moves_when_it_should(watched: Watched, name: str) -> None:
    exposed = METRICS[name].sample_name
    STIMULI[name](watched, exposed)
    assert watched.value(f"count({exposed})") > 0


def test_the_alerts_are_loaded_and_can_be_evaluated(watched: Watched) -> None:
    (group,) = yaml.safe_load((FILES / "rules.yml").read_text())["groups"]
    expected = {rule["alert"]: "ok" for rule in group["rules"]}
    until(lambda: watched.alerts() == expected)


def test_a_worker_that_hears_nothing_is_not_healthy_until_it_does(watched: Watched) -> None:
    workers = [watched.stack[name] for name in ("worker-score", "worker-audit")]
    with without(watched.stack.redis):
        until(lambda: not any(worker.healthy() for worker in workers))
        assert watched.stack["gateway"].healthy()
    until(lambda: all(worker.healthy() for worker in workers))

"""Tests of monitoring with a real Prometheus: every declared metric exists and changes when it should."""

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
from support.service.compose_stack import ROOT, Stack, cupel_services, port_of
from support.service.faults import PLAN, Traffic, suspended

FILES = ROOT / "deploy" / "prometheus"

SCRAPE_INTERVAL = "500ms"


class Prometheus(components.Server):
    """A Prometheus server. files: configuration file name -> text; the first file is the main file."""

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
        with suppress(OSError), urlopen(f"{self.url}/-/ready", timeout=seconds(5)) as response:
            return bool(response.status == 200)
        return False


@dataclass(frozen=True)
class MonitoredStack:
    """A stack that Prometheus monitors, and a track for submissions."""

    stack: Stack
    prometheus: Prometheus
    organiser: Client
    load: Load

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of a request to Prometheus' HTTP API."""
        with urlopen(
            f"{self.prometheus.url}/api/v1/{path}?{urlencode(parameters)}", timeout=seconds(60)
        ) as response:
            return json.load(response)["data"]

    def value(self, expression: str) -> float:
        """Return the current value of an expression, or 0 if it has none."""
        samples = self.get("query", query=expression)["result"]
        return float(samples[0]["value"][1]) if samples else 0.0

    def health(self) -> dict[str, str]:
        """Return the health of each target by the name of its service."""
        targets = self.get("targets")["activeTargets"]
        return {target["labels"]["service"]: target["health"] for target in targets}

    def alerts(self) -> dict[str, str]:
        """Return the health of each alerting rule by its name."""
        return {
            rule["name"]: rule["health"] for group in self.get("rules")["groups"] for rule in group["rules"]
        }

    def submit(self, content: bytes | None = None) -> str:
        return self.organiser.submit(self.load.track, content or self.load.runs[0]).id

    def traffic(self) -> Traffic:
        return Traffic(self.stack, self.organiser, new_track())

    @property
    def topic(self) -> str:
        return next(iter(self.load.collection.qrels.topics))


def new_track() -> str:
    return f"track-{uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def monitored(quick_stack: Stack) -> Iterator[MonitoredStack]:
    components.require("prometheus")
    prometheus = Prometheus(quick_stack.folder / f"prometheus-{uuid4().hex[:8]}")
    prometheus.files, prometheus.dying = make_configuration(quick_stack), die_with_parent()
    load = replace(example(), track=new_track(), measures=PLAN)
    with quick_stack.client() as organiser:
        organiser.publish_qrels(load.track, load.upload(organiser))
        prometheus.start()
        yield MonitoredStack(quick_stack, prometheus, organiser, load)
    prometheus.stop()


def make_configuration(stack: Stack) -> dict[str, str]:
    """Return the files of deploy/prometheus, with addresses instead of names and with shorter intervals."""
    config = yaml.safe_load((FILES / "prometheus.yml").read_text())
    config["global"] = dict.fromkeys(config["global"], SCRAPE_INTERVAL)
    for job in config["scrape_configs"]:
        job["static_configs"] = [make_target(stack, **dns) for dns in job.pop("dns_sd_configs")]
    return {"prometheus.yml": yaml.safe_dump(config), "rules.yml": (FILES / "rules.yml").read_text()}


def make_target(stack: Stack, names: list[str], type: str, port: int) -> dict[str, Any]:
    """Return the address of a service and the label that Prometheus gives to targets found by DNS."""
    (name,) = names
    assert str(port) == port_of(name)
    return {"targets": [f"127.0.0.1:{stack[name].port}"], "labels": {"__meta_dns_name": name}}


# Stimuli: functions that make a metric change, and check that it does.

Stimulus = Callable[[MonitoredStack, str], None]


def increases(labels: str, act: Callable[[MonitoredStack], object]) -> Stimulus:
    """Return a stimulus for a counter or histogram: `act` must increase the samples with `labels`."""

    def stimulate(monitored: MonitoredStack, sample_name: str) -> None:
        total = f"sum({sample_name}{{{labels}}})"
        before = monitored.value(total)
        act(monitored)
        until(lambda: monitored.value(total) > before)

    return stimulate


def submit_invalid_run(monitored: MonitoredStack) -> None:
    with pytest.raises(ServiceError):
        monitored.organiser.submit(monitored.load.track, b"not a run file")


def kill_working_pool(monitored: MonitoredStack) -> None:
    worker = monitored.stack["worker-score"]
    with monitored.traffic(), suspended(monitored.stack, worker, at_work=True):
        worker.kill_pool()


def stop_broker(monitored: MonitoredStack) -> None:
    """Stop Redis until the scheduler has failed to send a wake-up for a submitted run."""
    failed = 'sum(cupel_wakeups_total{queue="score",outcome="failed",service="scheduler"})'
    before = monitored.value(failed)
    with stopped(monitored.stack.redis):
        monitored.submit()
        until(lambda: monitored.value(failed) > before)


@contextmanager
def stopped(server: components.Server) -> Iterator[None]:
    """Kill the server during the block."""
    server.stop(SIGKILL)
    try:
        yield
    finally:
        server.start()


def change_queued_jobs(monitored: MonitoredStack, sample_name: str) -> None:
    """Check that one job waits while the worker is stopped, and none afterwards."""
    waiting = f'max({sample_name}{{queue="score"}})'
    with suspended(monitored.stack, monitored.stack["worker-score"]):
        monitored.submit()
        until(lambda: monitored.value(waiting) >= 1)
    until(lambda: monitored.value(waiting) == 0)


def change_age(monitored: MonitoredStack, sample_name: str) -> None:
    """Check that the age of the oldest queued job grows while the worker is stopped."""
    age = f'max({sample_name}{{queue="score"}})'
    with suspended(monitored.stack, monitored.stack["worker-score"]):
        monitored.submit()
        until(lambda: monitored.value(age) > 0)
        before = monitored.value(age)
        until(lambda: monitored.value(age) > before + 0.5)
    until(lambda: monitored.value(age) == 0)


def change_running_jobs(monitored: MonitoredStack, sample_name: str) -> None:
    """Check that jobs run during traffic, and none afterwards."""
    with monitored.traffic():
        until(lambda: monitored.value(f'max({sample_name}{{queue="score"}})') >= 1)
    until(lambda: monitored.value(f'max({sample_name}{{queue="score"}})') == 0)


def change_dead_jobs(monitored: MonitoredStack, sample_name: str) -> None:
    """Check that a job dies when the content of its run is missing, and that a revived job is not dead."""
    stack, dead = monitored.stack, f'max({sample_name}{{queue="score"}})'
    with suspended(stack, stack["worker-score"]):
        submission = monitored.submit(content=f"{monitored.topic} Q0 {uuid4().hex} 1 1.0 lost\n".encode())
        query = "SELECT ranking_blob FROM runs JOIN submissions ON run_id = runs.id WHERE submissions.id = %s"
        ((blob,),) = stack.query(query, submission)
        content = stack.remove_blob(blob)
    until(lambda: monitored.value(dead) == 1)
    stack.put_blob(blob, content)
    (job,) = monitored.organiser.submission(submission).jobs
    monitored.organiser.revive_job(job.id)
    until(lambda: monitored.value(dead) == 0)


def change_database_up(monitored: MonitoredStack, sample_name: str) -> None:
    """Check that the metric is 0 while the database is stopped, and 1 afterwards."""
    with stopped(monitored.stack.postgres):
        until(lambda: monitored.value(f"max({sample_name})") == 0)
    until(lambda: monitored.value(f"min({sample_name})") == 1)


def add_alert(monitored: MonitoredStack, sample_name: str) -> None:
    """Add an alert to a new track, and wait until the metric has a sample for the track."""
    track = monitored.organiser.create_track(
        f"alerts-{uuid4().hex[:8]}", title="x", aspects={"relevance": {"labels": [0, 1]}}, measures=["AP"]
    )
    monitored.organiser.add_alert(track.name, "downsampling", "tau(AP)@50", below=0.9)
    until(lambda: monitored.value(f'count({sample_name}{{track="{track.name}"}})') > 0)


STIMULI: dict[str, Stimulus] = {
    "cupel_requests": increases('route="/v1/me",status="200"', lambda monitored: monitored.organiser.me()),
    "cupel_request_duration_seconds": increases(
        'route="/v1/me",method="GET"', lambda monitored: monitored.organiser.me()
    ),
    "cupel_checks": increases('kind="run",verdict="refused"', submit_invalid_run),
    "cupel_check_duration_seconds": increases('kind="run"', submit_invalid_run),
    "cupel_job_attempts": increases('queue="score",outcome="done"', MonitoredStack.submit),
    "cupel_job_attempt_duration_seconds": increases('queue="score"', MonitoredStack.submit),
    "cupel_job_wait_seconds": increases('queue="score"', MonitoredStack.submit),
    "cupel_wakeups": increases('queue="score",outcome="failed"', stop_broker),
    "cupel_storage_operation_duration_seconds": increases(
        'operation="put",outcome="done"', MonitoredStack.submit
    ),
    "cupel_sweeps": increases('service="scheduler"', lambda _: None),
    "cupel_expired_leases": increases('outcome="requeued"', kill_working_pool),
    "cupel_queued_jobs": change_queued_jobs,
    "cupel_running_jobs": change_running_jobs,
    "cupel_dead_jobs": change_dead_jobs,
    "cupel_oldest_queued_job_age_seconds": change_age,
    "cupel_raised_audit_alerts": add_alert,
    "cupel_database_up": change_database_up,
}
"""Name of each metric -> function that makes it change and checks the change."""


def test_every_declared_metric_has_a_stimulus() -> None:
    assert STIMULI.keys() == METRICS.keys()


def test_prometheus_reaches_every_service(monitored: MonitoredStack) -> None:
    expected = {name: "up" for name in cupel_services() if port_of(name)}
    until(lambda: monitored.health() == expected)


@pytest.mark.parametrize("name", METRICS)
def test_metric_exists_and_changes(monitored: MonitoredStack, name: str) -> None:
    sample_name = METRICS[name].sample_name
    STIMULI[name](monitored, sample_name)
    assert monitored.value(f"count({sample_name})") > 0


def test_prometheus_evaluates_every_alert(monitored: MonitoredStack) -> None:
    (group,) = yaml.safe_load((FILES / "rules.yml").read_text())["groups"]
    expected = {rule["alert"]: "ok" for rule in group["rules"]}
    until(lambda: monitored.alerts() == expected)


def test_worker_is_unhealthy_while_it_receives_no_wake_ups(monitored: MonitoredStack) -> None:
    workers = [monitored.stack[name] for name in ("worker-score", "worker-audit")]
    with stopped(monitored.stack.redis):
        until(lambda: not any(worker.healthy() for worker in workers))
        assert monitored.stack["gateway"].healthy()
    until(lambda: all(worker.healthy() for worker in workers))

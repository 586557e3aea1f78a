"""Tests of the deployment files: each one is valid, and all agree with each other and with the code.

No container engine is needed.
"""

import re
import runpy
import shlex
import stat
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cupel_backend.infrastructure.metrics import METRICS
from cupel_backend.infrastructure.settings import QUEUES, Settings
from cupel_gateway import __version__
from support.service.components import require

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
PROMETHEUS = DEPLOY / "prometheus"

LOOPBACK = "127.0.0.1:"

SECRETS: tuple[str, ...] = runpy.run_path(str(DEPLOY / "make_secrets.py"))["NAMES"]


@cache
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


def services(*, ours: bool) -> dict[str, dict[str, Any]]:
    """Return the services that run Cupel's image (ours), or the third-party services."""
    return {name: service for name, service in compose()["services"].items() if ("build" in service) == ours}


def long_running() -> dict[str, dict[str, Any]]:
    """Return Cupel's services that run until they are stopped."""
    return {name: service for name, service in services(ours=True).items() if name != "migrate"}


OURS = tuple(services(ours=True))
LONG_RUNNING = tuple(long_running())


def port_of(service: dict[str, Any]) -> int:
    """Return the port on which one of Cupel's services answers /metrics."""
    if (port := service["environment"].get("CUPEL_METRICS_PORT")) is not None:
        return int(port)
    command = service["command"]
    return int(command[command.index("--port") + 1])


def rules() -> list[dict[str, Any]]:
    text = (PROMETHEUS / "rules.yml").read_text()
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def instructions(name: str) -> list[str]:
    """Return the arguments of every instruction `name` in the Dockerfile, with continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.M).replace("\\\n", " ")
    return re.findall(rf"^{name} +(.*)$", text, re.M)


def run(*command: str | Path) -> None:
    completed = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr


# `make check` validates docker-compose.yml and the Dockerfile with their tools.


@pytest.mark.parametrize(
    ("check", "file"),
    [("check config", "prometheus.yml"), ("check rules", "rules.yml"), ("test rules", "rules.test.yml")],
)
def test_promtool_accepts_the_prometheus_files(check: str, file: str) -> None:
    run(require("promtool"), *check.split(), PROMETHEUS / file)


# Cupel's services.


def test_each_queue_has_a_worker_service() -> None:
    workers = {
        name: service for name, service in long_running().items() if service["command"][-1] == "worker"
    }
    assert {service["environment"]["CUPEL_QUEUES"] for service in workers.values()} == set(QUEUES)
    assert all(
        name == f"worker-{service['environment']['CUPEL_QUEUES']}" for name, service in workers.items()
    )
    assert set(LONG_RUNNING) == {"gateway", "scheduler", *workers}


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    variables = services(ours=True)[name]["environment"]
    settings = {
        f"CUPEL_{field.upper()}{suffix}" for field in Settings.model_fields for suffix in ("", "_FILE")
    }
    assert set(variables) <= settings


@pytest.mark.parametrize("name", OURS)
def test_settings_accept_every_value(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable, value in services(ours=True)[name]["environment"].items():
        if variable.endswith("_FILE"):
            (tmp_path / Path(value).name).write_text("secret")
            value = str(tmp_path / Path(value).name)
        monkeypatch.setenv(variable, value)
    assert Settings().s3_secret.get_secret_value() == "secret"


@pytest.mark.parametrize("name", compose()["services"])
def test_secrets_are_read_from_files_only(name: str) -> None:
    service = compose()["services"][name]
    variables = service.get("environment", {})
    secret = re.compile(r"PASSWORD|SECRET|TOKEN")
    assert all(key.endswith("_FILE") for key in variables if secret.search(key))
    assert not [value for value in variables.values() if re.search(r"//[^/@]*:[^/@]*@", value)]
    files = [value for key, value in variables.items() if key.endswith("_FILE")]
    assert set(files) <= {f"/run/secrets/{secret}" for secret in service.get("secrets", [])}


def test_make_secrets_creates_every_secret() -> None:
    created = {f"deploy/secrets/{name}" for name in SECRETS}
    assert {secret["file"] for secret in compose()["secrets"].values()} == created
    assert all(Path(secret["file"]).name == name for name, secret in compose()["secrets"].items())
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().split()


@pytest.mark.parametrize("name", OURS)
def test_cupel_service_has_minimal_privileges(name: str) -> None:
    service = services(ours=True)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True
    assert not {"privileged", "user", "cap_add", "network_mode", "pid"} & set(service)


@pytest.mark.parametrize("name", OURS)
def test_cupel_service_can_run_without_a_container(name: str) -> None:
    """Check that a service needs no shell and only absolute paths that the tests can replace."""
    service = services(ours=True)[name]
    assert isinstance(service["command"], list)
    assert "entrypoint" not in service
    words = [*service["command"], *service["environment"].values()]
    paths = {path for word in words for path in re.findall(r"(?<![:/\w])/[\w./-]+", word)}
    assert {re.sub(r"^/run/secrets/\w+$", "", path) for path in paths} <= {"", "/data"}


def test_cupel_services_have_different_ports() -> None:
    ports = [port_of(service) for service in long_running().values()]
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_long_running_service_has_restart_policy_and_health_check(name: str) -> None:
    service = long_running()[name]
    assert service["restart"] == "unless-stopped"
    assert service["stop_grace_period"] == "30s"
    assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    health = service["healthcheck"]
    assert health["test"][:3] == ["CMD", "python", "-c"]
    compile(health["test"][3], name, "exec")
    assert health["interval"] == "15s"


def test_health_checks_use_readyz_for_the_gateway_and_healthz_for_other_services() -> None:
    checks = {name: service["healthcheck"]["test"][3] for name, service in long_running().items()}
    assert f"http://127.0.0.1:{port_of(long_running()['gateway'])}/readyz" in checks.pop("gateway")
    assert all("{environ['CUPEL_METRICS_PORT']}/healthz" in check for check in checks.values())


def test_migrate_runs_once_after_database_and_object_store() -> None:
    migrate = services(ours=True)["migrate"]
    assert migrate["command"] == ["cupel", "admin", "migrate"]
    assert migrate["restart"] == "no"
    assert set(migrate["depends_on"]) == {"postgres", "s3"}


# Third-party services.


def test_third_party_services_have_restart_policies_and_health_checks() -> None:
    for name, service in services(ours=False).items():
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"][0].startswith("CMD"), name
        assert service["cap_drop"] == ["ALL"], name


def test_third_party_images_have_a_version() -> None:
    images = [service["image"] for service in services(ours=False).values()]
    assert [image for image in images if not re.search(r":v?\d+\.\d+", image)] == []


def test_addresses_name_existing_services_and_ports() -> None:
    environment = services(ours=True)["gateway"]["environment"]
    matches = {name: re.search(r"//(?:\w+@)?([\w-]+):(\d+)", value) for name, value in environment.items()}
    addresses = {match.groups() for match in matches.values() if match}
    assert addresses == {("postgres", "5432"), ("redis", "6379"), ("s3", "8333")}
    assert "-s3.port=8333" in compose()["services"]["s3"]["entrypoint"][-1]


def test_data_is_stored_in_named_volumes() -> None:
    used = {
        volume.partition(":")[0]
        for service in services(ours=False).values()
        for volume in service["volumes"]
        if not volume.startswith("./")
    }
    assert used == set(compose()["volumes"])


def test_published_ports_listen_on_loopback_only() -> None:
    published = {
        name: service["ports"] for name, service in compose()["services"].items() if "ports" in service
    }
    assert set(published) == {"gateway", "prometheus"}
    assert all(port.startswith(LOOPBACK) for ports in published.values() for port in ports)


def test_postgresql_allows_the_connections_of_four_scoring_workers() -> None:
    needed = 0
    for name, service in services(ours=True).items():
        settings = service["environment"]
        processes = int(settings.get("CUPEL_WORKERS", 0)) + 1  # One additional process answers /metrics.
        connections = int(settings.get("CUPEL_CONNECTIONS", Settings.model_fields["connections"].default))
        needed += processes * connections * (4 if name == "worker-score" else 1)
    (allowed,) = re.findall(
        r"max_connections=(\d+)", shlex.join(compose()["services"]["postgres"]["command"])
    )
    assert needed < int(allowed) - 3  # PostgreSQL reserves three connections for superusers.


# The image.


def test_image_runs_as_an_unprivileged_user_with_a_fixed_id() -> None:
    assert instructions("USER") == ["10001:10001"]


def test_image_copies_existing_paths_that_are_not_ignored() -> None:
    included = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)
    for sources in (shlex.split(copy)[:-1] for copy in instructions("COPY") if "--from" not in copy):
        for source in sources:
            assert (ROOT / source).exists()
            assert source in included


def test_image_label_has_the_version_of_the_packages() -> None:
    assert f'org.opencontainers.image.version="{__version__}"' in instructions("LABEL")[0]


def test_image_installs_every_package() -> None:
    packages = {path.parent.relative_to(ROOT) for path in ROOT.glob("*/*/pyproject.toml")}
    copied = {source for copy in instructions("COPY") for source in shlex.split(copy)[:-1]}
    assert {package.parts[0] for package in packages} <= copied


def test_backend_declares_its_database_broker_and_object_store_clients() -> None:
    """Check the dependencies that no module imports by name, because the image has only declared ones."""
    project = tomllib.loads((ROOT / "libs/backend/pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=~ ]", dependency)[0] for dependency in project["dependencies"]}
    assert {"psycopg[binary]", "celery[redis]", "boto3"} <= declared


# Monitoring.


def test_prometheus_scrapes_exactly_the_long_running_services() -> None:
    (config,) = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    targets = {tuple(dns["names"]): dns["port"] for dns in config["dns_sd_configs"]}
    assert targets == {(name,): port_of(service) for name, service in long_running().items()}


def test_target_down_alert_covers_missing_services() -> None:
    (down,) = [rule["expr"] for rule in rules() if rule["alert"] == "CupelTargetDown"]
    assert set(re.findall(r'absent\(up{job="cupel", service="([\w-]+)"}\)', down)) == set(LONG_RUNNING)


def test_rules_use_existing_metrics() -> None:
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    exposed = {metric.name + suffix for metric in METRICS.values() for suffix in suffixes[metric.kind]}
    used = {name for rule in rules() for name in re.findall(r"\bcupel_\w+", rule["expr"])}
    assert used <= exposed


def test_rule_tests_check_every_alert_firing_and_not_firing() -> None:
    cases = yaml.safe_load((PROMETHEUS / "rules.test.yml").read_text())["tests"]
    checks = [check for case in cases for check in case["alert_rule_test"]]
    alerts = {rule["alert"] for rule in rules()}
    assert {check["alertname"] for check in checks if check.get("exp_alerts")} == alerts
    assert {check["alertname"] for check in checks if not check.get("exp_alerts")} == alerts


def test_every_alert_has_a_severity_and_is_documented() -> None:
    readme = (DEPLOY / "README.md").read_text()
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert {"summary", "description"} <= set(rule["annotations"])
        assert f"| {rule['alert']} |" in readme


# Secrets and the commands of the Makefile.


def make_secrets(folder: Path) -> dict[str, str]:
    """Run make_secrets.py; return file name -> secret."""
    subprocess.run([sys.executable, DEPLOY / "make_secrets.py", folder], check=True, capture_output=True)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_secret_files_are_readable_in_a_private_folder(tmp_path: Path) -> None:
    created = make_secrets(tmp_path / "secrets")
    assert set(created) == set(SECRETS)
    assert len(set(created.values())) == len(created)
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in created.values())
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secrets").iterdir()} == {0o444}


def test_existing_secrets_are_kept(tmp_path: Path) -> None:
    (tmp_path / "broker_password").write_text("mine")
    first = make_secrets(tmp_path)
    assert first["broker_password"] == "mine"
    assert make_secrets(tmp_path) == first


@pytest.mark.parametrize("target", ["up", "down"])
def test_make_names_the_missing_container_engine(target: str) -> None:
    completed = subprocess.run(["make", target, "COMPOSE=false"], cwd=ROOT, capture_output=True, text=True)
    assert completed.returncode == 2
    assert "This needs Docker with Compose, but 'false version' fails" in completed.stdout

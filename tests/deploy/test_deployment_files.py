"""The files that set Cupel up for others are valid, agree with each other, and keep their promises.

No container engine is needed: each file is checked by its own tool, and all of them against the code.
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
    """The services that run our image, or the others."""
    return {name: one for name, one in compose()["services"].items() if ("build" in one) == ours}


def lasting() -> dict[str, dict[str, Any]]:
    """Our services that run on."""
    return {name: one for name, one in services(ours=True).items() if name != "migrate"}


OURS = tuple(services(ours=True))
LASTING = tuple(lasting())


def port_of(service: dict[str, Any]) -> int:
    """Where a service of ours answers /metrics."""
    if (port := service["environment"].get("CUPEL_METRICS_PORT")) is not None:
        return int(port)
    command = service["command"]
    return int(command[command.index("--port") + 1])


def rules() -> list[dict[str, Any]]:
    text = (PROMETHEUS / "rules.yml").read_text()
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def instructions(name: str) -> list[str]:
    """The arguments of every `name` in the Dockerfile, lines that go on joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.M).replace("\\\n", " ")
    return re.findall(rf"^{name} +(.*)$", text, re.M)


def run(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# `make check` checks docker-compose.yml and the Dockerfile with their own tools; the others follow.


@pytest.mark.parametrize(
    ("check", "file"),
    [("check config", "prometheus.yml"), ("check rules", "rules.yml"), ("test rules", "rules.test.yml")],
)
def test_promtool_finds_nothing_in_the_files_of_prometheus(check: str, file: str) -> None:
    run(require("promtool"), *check.split(), PROMETHEUS / file)


# Our services.


def test_there_is_a_service_for_each_kind_of_work() -> None:
    workers = {name: one for name, one in lasting().items() if one["command"][-1] == "worker"}
    assert {one["environment"]["CUPEL_QUEUES"] for one in workers.values()} == set(QUEUES)
    assert all(name == f"worker-{one['environment']['CUPEL_QUEUES']}" for name, one in workers.items())
    assert set(LASTING) == {"gateway", "scheduler", *workers}


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    variables = services(ours=True)[name]["environment"]
    known = {f"CUPEL_{field.upper()}{end}" for field in Settings.model_fields for end in ("", "_FILE")}
    assert set(variables) <= known


@pytest.mark.parametrize("name", OURS)
def test_every_value_is_accepted_by_the_settings(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable, value in services(ours=True)[name]["environment"].items():
        if variable.endswith("_FILE"):
            (tmp_path / Path(value).name).write_text("secret")
            value = str(tmp_path / Path(value).name)
        monkeypatch.setenv(variable, value)
    assert Settings().s3_secret.get_secret_value() == "secret"


@pytest.mark.parametrize("name", compose()["services"])
def test_no_secret_is_written_in_clear(name: str) -> None:
    service = compose()["services"][name]
    variables = service.get("environment", {})
    secret = re.compile(r"PASSWORD|SECRET|TOKEN")
    assert all(key.endswith("_FILE") for key in variables if secret.search(key))
    assert not [value for value in variables.values() if re.search(r"//[^/@]*:[^/@]*@", value)]
    files = [value for key, value in variables.items() if key.endswith("_FILE")]
    assert set(files) <= {f"/run/secrets/{secret}" for secret in service.get("secrets", [])}


def test_every_secret_is_one_that_is_made() -> None:
    made = {f"deploy/secrets/{name}" for name in SECRETS}
    assert {one["file"] for one in compose()["secrets"].values()} == made
    assert all(Path(one["file"]).name == name for name, one in compose()["secrets"].items())
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().split()


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_has_no_more_rights_than_it_needs(name: str) -> None:
    service = services(ours=True)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True
    assert not {"privileged", "user", "cap_add", "network_mode", "pid"} & set(service)


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_can_be_run_without_a_container(name: str) -> None:
    """Tests do: so its only absolute paths are those that they replace, and nothing is left to a shell."""
    service = services(ours=True)[name]
    assert isinstance(service["command"], list)
    assert "entrypoint" not in service
    words = [*service["command"], *service["environment"].values()]
    paths = {path for word in words for path in re.findall(r"(?<![:/\w])/[\w./-]+", word)}
    assert {re.sub(r"^/run/secrets/\w+$", "", path) for path in paths} <= {"", "/data"}


def test_our_ports_differ() -> None:
    ports = [port_of(service) for service in lasting().values()]
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_service_of_ours_is_kept_up_and_watched(name: str) -> None:
    service = lasting()[name]
    assert service["restart"] == "unless-stopped"
    assert service["stop_grace_period"] == "30s"
    assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    health = service["healthcheck"]
    assert health["test"][:3] == ["CMD", "python", "-c"]
    compile(health["test"][3], name, "exec")
    assert health["interval"] == "15s"


def test_the_gateway_is_healthy_when_it_is_ready_and_the_others_when_they_work() -> None:
    checks = {name: one["healthcheck"]["test"][3] for name, one in lasting().items()}
    assert f"http://127.0.0.1:{port_of(lasting()['gateway'])}/readyz" in checks.pop("gateway")
    assert all("{environ['CUPEL_METRICS_PORT']}/healthz" in check for check in checks.values())


def test_the_tables_and_the_bucket_come_first_and_once() -> None:
    migrate = services(ours=True)["migrate"]
    assert migrate["command"] == ["cupel", "admin", "migrate"]
    assert migrate["restart"] == "no"
    assert set(migrate["depends_on"]) == {"postgres", "s3"}


# The others.


def test_every_lasting_service_of_others_is_kept_up_and_watched() -> None:
    for name, service in services(ours=False).items():
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"][0].startswith("CMD"), name
        assert service["cap_drop"] == ["ALL"], name


def test_images_are_named_by_version() -> None:
    images = [one["image"] for one in services(ours=False).values()]
    assert [image for image in images if not re.search(r":v?\d+\.\d+", image)] == []


def test_who_is_named_in_an_address_is_there_and_listens() -> None:
    means = services(ours=True)["gateway"]["environment"]
    hosts = {name: re.search(r"//(?:\w+@)?([\w-]+):(\d+)", value) for name, value in means.items()}
    addresses = {found.groups() for found in hosts.values() if found}
    assert addresses == {("postgres", "5432"), ("redis", "6379"), ("s3", "8333")}
    assert "-s3.port=8333" in compose()["services"]["s3"]["entrypoint"][-1]


def test_what_is_stored_is_in_volumes_with_names() -> None:
    used = {
        volume.partition(":")[0]
        for service in services(ours=False).values()
        for volume in service["volumes"]
        if not volume.startswith("./")
    }
    assert used == set(compose()["volumes"])


def test_published_ports_are_open_to_this_machine_alone() -> None:
    published = {name: one["ports"] for name, one in compose()["services"].items() if "ports" in one}
    assert set(published) == {"gateway", "prometheus"}
    assert all(port.startswith(LOOPBACK) for ports in published.values() for port in ports)


def test_postgresql_allows_all_the_connections_of_four_workers_that_score() -> None:
    most = 0
    for name, service in services(ours=True).items():
        settings = service["environment"]
        processes = int(settings.get("CUPEL_WORKERS", 0)) + 1  # one more answers /metrics
        connections = int(settings.get("CUPEL_CONNECTIONS", Settings.model_fields["connections"].default))
        most += processes * connections * (4 if name == "worker-score" else 1)
    (allowed,) = re.findall(
        r"max_connections=(\d+)", shlex.join(compose()["services"]["postgres"]["command"])
    )
    assert most < int(allowed) - 3  # that many are kept for the superuser


# The image.


def test_the_image_runs_as_a_user_of_no_rights_with_a_fixed_number() -> None:
    assert instructions("USER") == ["10001:10001"]


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)
    for sources in (shlex.split(one)[:-1] for one in instructions("COPY") if "--from" not in one):
        for source in sources:
            assert (ROOT / source).exists()
            assert source in sent


def test_the_image_is_labelled_with_the_version_of_the_packages() -> None:
    assert f'org.opencontainers.image.version="{__version__}"' in instructions("LABEL")[0]


def test_the_image_installs_every_package() -> None:
    packages = {path.parent.relative_to(ROOT) for path in ROOT.glob("*/*/pyproject.toml")}
    copied = {source for one in instructions("COPY") for source in shlex.split(one)[:-1]}
    assert {package.parts[0] for package in packages} <= copied


def test_what_speaks_to_database_broker_and_bucket_is_declared() -> None:
    """The image gets what the packages declare; two of these are never imported by name."""
    project = tomllib.loads((ROOT / "libs/backend/pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=~ ]", one)[0] for one in project["dependencies"]}
    assert {"psycopg[binary]", "celery[redis]", "boto3"} <= declared


# Monitoring.


def test_prometheus_looks_at_every_service_of_ours_and_at_nothing_else() -> None:
    (config,) = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    found = {tuple(one["names"]): one["port"] for one in config["dns_sd_configs"]}
    assert found == {(name,): port_of(service) for name, service in lasting().items()}


def test_a_service_that_is_gone_altogether_is_told() -> None:
    (down,) = [rule["expr"] for rule in rules() if rule["alert"] == "CupelTargetDown"]
    assert set(re.findall(r'absent\(up{job="cupel", service="([\w-]+)"}\)', down)) == set(LASTING)


def test_rules_ask_for_metrics_that_exist() -> None:
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    exposed = {one.name + end for one in METRICS.values() for end in suffixes[one.kind]}
    asked = {name for rule in rules() for name in re.findall(r"\bcupel_\w+", rule["expr"])}
    assert asked <= exposed


def test_every_alert_is_seen_to_fire_and_to_be_silent() -> None:
    cases = yaml.safe_load((PROMETHEUS / "rules.test.yml").read_text())["tests"]
    looks = [look for case in cases for look in case["alert_rule_test"]]
    alerts = {rule["alert"] for rule in rules()}
    assert {look["alertname"] for look in looks if look.get("exp_alerts")} == alerts
    assert {look["alertname"] for look in looks if not look.get("exp_alerts")} == alerts


def test_every_alert_has_a_severity_and_is_explained() -> None:
    manual = (DEPLOY / "README.md").read_text()
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert {"summary", "description"} <= set(rule["annotations"])
        assert f"| {rule['alert']} |" in manual


# Secrets, and the commands of the Makefile.


def made_in(folder: Path) -> dict[str, str]:
    subprocess.run([sys.executable, DEPLOY / "make_secrets.py", folder], check=True, capture_output=True)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_secrets_are_made_for_all_services_to_read_and_for_nobody_else(tmp_path: Path) -> None:
    made = made_in(tmp_path / "secrets")
    assert set(made) == set(SECRETS)
    assert len(set(made.values())) == len(made)
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in made.values())
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secrets").iterdir()} == {0o444}


def test_secrets_that_are_there_are_kept(tmp_path: Path) -> None:
    (tmp_path / "broker_password").write_text("mine")
    first = made_in(tmp_path)
    assert first["broker_password"] == "mine"
    assert made_in(tmp_path) == first


@pytest.mark.parametrize("target", ["up", "down"])
def test_make_says_what_it_needs_where_there_are_no_containers(target: str) -> None:
    done = subprocess.run(["make", target, "COMPOSE=false"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "This needs Docker with Compose, but 'false version' fails" in done.stdout

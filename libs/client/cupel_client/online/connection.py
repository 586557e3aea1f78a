"""The connection of the command line to a service.

The module handles stored credentials, --url and --token, and reports of refused requests.
"""

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from cupel_client.api.client import Client, ServiceError
from cupel_client.environment import configuration_folder
from cupel_client.main import NEGATIVE, SERVICE_FAILED, USAGE
from cupel_client.offline.presentation import finding_lines
from cupel_client.online.online_output import print_line
from cupel_client.output import printable
from cupel_contract.problem_resources import ErrorItem
from cupel_measures.findings import KINDS, Finding, Findings, Severity, declare

_Command = TypeVar("_Command", bound=Callable[..., Any])

INVALID_FILE_CODES = (
    "run-invalid",
    "qrels-invalid",
    "qrels-file-name",
    "check-ended",
    "upload-too-large",
    "body-too-large",
)
"""Codes of refusals that are verdicts on a file: the command exits with 1, not with 2."""

LISTED = 10
"""Findings of one code that are listed; `cupel validate --all` lists all of them."""


def credentials_file() -> Path:
    """Return the path of the file that stores the tokens."""
    return configuration_folder() / "cupel" / "credentials.json"


def read_credentials() -> dict[str, Any]:
    """Return the stored credentials.

    `default` is the default URL; `services` has a token per URL.
    """
    try:
        credentials: dict[str, Any] = json.loads(credentials_file().read_text())
    except FileNotFoundError:
        return {"default": None, "services": {}}
    except ValueError:
        raise click.UsageError(
            f"{credentials_file()} is not valid JSON; remove the file and log in again"
        ) from None
    return credentials


def save_credentials(url: str, token: str) -> None:
    """Store a token, and make its service the default.

    Only the owner of the file can read it.
    """
    credentials = {"default": url, "services": read_credentials()["services"] | {url: token}}
    path = credentials_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)  # os.open sets the mode of new files only
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(credentials, file, indent=2)
    new.replace(path)


def with_client(command: _Command) -> _Command:
    """Add --url and --token to a command, and pass it a Client as the first argument.

    An error of the service ends the command with a message and an exit code.
    """

    @click.option(
        "--url",
        envvar="CUPEL_URL",
        help="URL of the service (default: CUPEL_URL, or the service of the last `cupel login`).",
    )
    @click.option(
        "--token",
        envvar="CUPEL_TOKEN",
        help="Token (default: CUPEL_TOKEN, or the token that `cupel login` stored for the service).",
    )
    @functools.wraps(command)
    def call(*arguments: Any, url: str | None, token: str | None, **options: Any) -> Any:
        with open_client(url, token) as client, exit_on_service_error():
            return command(client, *arguments, **options)

    return call  # type: ignore[return-value]


@contextmanager
def open_client(url: str | None, token: str | None) -> Iterator[Client]:
    """Open a client of the service at `url`, by default the service of the last login."""
    credentials = read_credentials()
    address = (url or credentials["default"] or "").rstrip("/")
    if not address:
        raise click.UsageError("no service is selected; run `cupel login URL`, or set --url or CUPEL_URL")
    with Client(address, token or credentials["services"].get(address)) as client:
        yield client


@contextmanager
def exit_on_service_error() -> Iterator[None]:
    """End the command if the service refuses a request or fails.

    It ends with a message and an exit code.
    """
    try:
        yield
    except ServiceError as problem:
        print_problem(problem)
        click.get_current_context().exit(exit_code(problem))


def exit_code(problem: ServiceError) -> int:
    """Return the exit code for an error of a request.

    It is 1 for an invalid file, 2 for any other invalid request, 3 for a failure of the service.
    """
    if problem.code in INVALID_FILE_CODES:
        return NEGATIVE
    is_invalid_request = 400 <= problem.status < 500 and problem.status != 408 and not problem.is_temporary
    return USAGE if is_invalid_request else SERVICE_FAILED


def print_problem(problem: ServiceError, *, file: str = "") -> None:
    """Print on standard error what the service refused, where, and what to do."""
    if problem.code in INVALID_FILE_CODES and problem.totals:
        findings = findings_of(problem.errors, problem.totals)
        print_findings(file or "cupel", f"refused ({problem.code})", findings)
        return
    print_line(f"{file or 'cupel'}: {problem.detail} ({problem.code})", err=True)
    for item in problem.errors:
        print_line(f"  {item.field or item.code}: {item.message}", err=True)
    if problem.remedy:
        print_line(f"  -> {problem.remedy}", err=True, dim=True)
    if problem.status >= 500 and problem.request_id:
        print_line(f"  quote this request id in a report: {problem.request_id}", err=True)


def print_findings(file: str, outcome: str, findings: Findings) -> None:
    """Print the outcome and the findings for a file on standard error.

    The form is that of `cupel validate`.
    """
    colour = "red" if findings.refused else "green"
    click.echo(
        f"{click.style(printable(file), bold=True)}: {click.style(printable(outcome), fg=colour)}", err=True
    )
    for line in finding_lines.lines_of(findings, file=Path(file).name, at_most=LISTED):
        click.echo(f"  {finding_lines.coloured(line)}", err=True)
    for line in finding_lines.remedies(findings):
        print_line(f"  -> {line}", err=True, dim=True)


def findings_of(
    items: Iterable[ErrorItem], totals: Mapping[str, int], severity: Severity = "error"
) -> Findings:
    """Convert findings of the service. Declare codes that this client does not know."""
    listed = []
    for item in items:
        if item.code not in KINDS:
            declare(item.code, severity, item.message, item.remedy or "")
        finding = Finding(
            code=item.code,
            message=item.message,
            file=item.file,
            line=item.line,
            column=item.column,
            topic=item.topic,
            sample=item.sample,
        )
        listed.append(finding)
    return Findings(listed, {code: total for code, total in totals.items() if code in KINDS})

"""Which service, with which token: what `cupel login` keeps, and the options that every online verb has."""

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from cupel_client.api.client import Client, ServiceError
from cupel_client.main import NEGATIVE, SERVICE_FAILED, USAGE
from cupel_client.offline.presentation import finding_lines
from cupel_client.online.online_output import say
from cupel_client.output import printable
from cupel_contract.problem_resources import ErrorItem
from cupel_measures.findings import KINDS, Finding, Findings, Severity, declare

_Command = TypeVar("_Command", bound=Callable[..., Any])

VERDICTS = (
    "run-invalid",
    "qrels-invalid",
    "qrels-file-name",
    "check-ended",
    "upload-too-large",
    "body-too-large",
)
"""Refusals that are a verdict on a file, not on the command."""

LISTED = 10
"""Findings of a code that are told; `cupel validate` can tell all."""


def credentials_file() -> Path:
    return Path.home() / ".config" / "cupel" / "credentials.json"


def known() -> dict[str, Any]:
    """What `cupel login` kept: `default`, a URL, and `services`, a token by URL."""
    try:
        kept: dict[str, Any] = json.loads(credentials_file().read_text())
    except FileNotFoundError:
        return {"default": None, "services": {}}
    except ValueError:
        raise click.UsageError(f"{credentials_file()} can't be read: remove it, and log in again") from None
    return kept


def remember(url: str, token: str) -> None:
    """Keep a token for its owner's eyes only, and make its service the default one."""
    kept = known()
    kept = {"default": url, "services": kept["services"] | {url: token}}
    path = credentials_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)  # so that the mode below is the mode of the file
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(kept, file, indent=2)
    new.replace(path)


def service(command: _Command) -> _Command:
    """Give a verb the options --url and --token, and as its first argument a Client; tell its failures."""

    @click.option(
        "--url", envvar="CUPEL_URL", help="The service [default: the last `cupel login`; CUPEL_URL]."
    )
    @click.option("--token", envvar="CUPEL_TOKEN", help="The token [default: as logged in; CUPEL_TOKEN].")
    @functools.wraps(command)
    def connected(*arguments: Any, url: str | None, token: str | None, **options: Any) -> Any:
        with connection(url, token) as client, failing():
            return command(client, *arguments, **options)

    return connected  # type: ignore[return-value]


@contextmanager
def connection(url: str | None, token: str | None) -> Iterator[Client]:
    """A client of the service that was named, or of the one last logged in to."""
    kept = known()
    where = (url or kept["default"] or "").rstrip("/")
    if not where:
        raise click.UsageError("no service: `cupel login URL` first, or say --url, or set CUPEL_URL")
    with Client(where, token or kept["services"].get(where)) as client:
        yield client


@contextmanager
def failing() -> Iterator[None]:
    """End the command with what the service says, where it refuses or fails."""
    try:
        yield
    except ServiceError as problem:
        refused(problem)


def refused(problem: ServiceError) -> NoReturn:
    """Tell a refusal and end: 1 for a verdict on a file, 2 for a wrong request, 3 for a failing service."""
    tell(problem)
    click.get_current_context().exit(exit_code(problem))


def exit_code(problem: ServiceError) -> int:
    if problem.code in VERDICTS:
        return NEGATIVE
    ours = 400 <= problem.status < 500 and problem.status != 408 and not problem.is_temporary
    return USAGE if ours else SERVICE_FAILED


def tell(problem: ServiceError, *, file: str = "") -> None:
    """What was refused, where, and what would be right, on standard error."""
    if problem.code in VERDICTS and problem.totals:
        verdict(file or "cupel", f"refused ({problem.code})", findings(problem.errors, problem.totals))
        return
    say(f"{file or 'cupel'}: {problem.detail} ({problem.code})", err=True)
    for item in problem.errors:
        say(f"  {item.field or item.code}: {item.message}", err=True)
    if problem.remedy:
        say(f"  -> {problem.remedy}", err=True, dim=True)
    if problem.status >= 500 and problem.request_id:
        say(f"  name the request when you report this: {problem.request_id}", err=True)


def verdict(file: str, outcome: str, found: Findings) -> None:
    """What was found in a file, on standard error, as `cupel validate` says it."""
    colour = "red" if found.refused else "green"
    click.echo(
        f"{click.style(printable(file), bold=True)}: {click.style(printable(outcome), fg=colour)}", err=True
    )
    for line in finding_lines.lines_of(found, file=Path(file).name, at_most=LISTED):
        click.echo(f"  {finding_lines.coloured(line)}", err=True)
    for line in finding_lines.remedies(found):
        say(f"  -> {line}", err=True, dim=True)


def findings(items: Iterable[ErrorItem], totals: Mapping[str, int], severity: Severity = "error") -> Findings:
    """What the service found, as our own readers tell it; codes unknown here are declared as told."""
    listed = []
    for item in items:
        if item.code not in KINDS:
            declare(item.code, severity, item.message, item.remedy or "")
        place = (item.file, item.line, item.column, item.topic, item.sample)
        listed.append(Finding(item.code, item.message, *place))
    counted = {code: total for code, total in totals.items() if code in KINDS}
    return Findings(listed, counted)

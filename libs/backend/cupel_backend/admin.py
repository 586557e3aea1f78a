"""`cupel admin`: what whoever has a shell on the service's machine may do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from cupel_backend import access, jobs
from cupel_backend.errors import Problem
from cupel_backend.settings import Settings
from cupel_backend.system import System, open_system

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The data folder of the service; default: CUPEL_DATA, else cupel-data here.",
)


@click.group()
def admin() -> None:
    """Look after a service from its own machine: tables, tokens, jobs."""


@admin.command()
@data_option
def migrate(data: Path | None) -> None:
    """Bring the tables of the database up to date.

    \b
    Example: cupel admin migrate --data cupel-data
    """
    with _system(data, migrated=False) as system:
        system.migrate()
    click.echo("the tables are up to date")


@admin.command()
@click.option("--team", required=True, help="The team that the token acts for.")
@click.option("--scope", type=click.Choice(access.SCOPES), default="participant", show_default=True)
@click.option("--label", default="", help="What the token is for.")
@data_option
def token(team: str, scope: str, label: str, data: Path | None) -> None:
    """Issue a token and print it, once: only its digest is kept.

    \b
    Example: cupel admin token --team organisers --scope organiser
    """
    with _system(data) as system:
        text, _ = access.issue(system, access.OPERATOR, team=team, scope=scope, label=label)
    click.echo(text)


@admin.command()
@click.argument("prefix")
@data_option
def revoke(prefix: str, data: Path | None) -> None:
    """End a token, named by its PREFIX: the eight characters after `cupel_`.

    \b
    Example: cupel admin revoke 1a2b3c4d
    """
    with _system(data) as system:
        access.revoke(system, access.OPERATOR, prefix)
    click.echo(f"{prefix} is revoked")


@admin.command("jobs")
@click.option(
    "--state", type=click.Choice(["queued", "running", "done", "dead"]), default="dead", show_default=True
)
@click.option("--revive", is_flag=True, help="Queue the dead ones again.")
@data_option
def list_jobs(state: str, revive: bool, data: Path | None) -> None:
    """List jobs, newest first: id, queue, attempts, submission, error.

    \b
    Example: cupel admin jobs --state dead --revive
    """
    with _system(data) as system:
        for job in _all_jobs(system, "dead" if revive else state):
            if revive:
                jobs.revive(system, access.OPERATOR, job.id)
            error = (job.error or "").partition("\n")[0]
            click.echo(f"{job.id}  {job.queue}  {job.attempts}  {job.submission or '-'}  {error}")


def _all_jobs(system: System, state: str) -> list[jobs.Job]:
    found: list[jobs.Job] = []
    cursor: str | None = None
    while True:
        page = jobs.list_(system, access.OPERATOR, state=state, limit=500, cursor=cursor)
        found += page.items
        cursor = page.next
        if cursor is None:
            return found


@contextmanager
def _system(data: Path | None, *, migrated: bool = True) -> Iterator[System]:
    """The system of a data folder, its tables up to date; a problem ends the command with its sentence."""
    given: dict[str, Any] = {} if data is None else {"data": data}
    system = open_system(Settings(**given))
    try:
        if migrated:
            system.ready()
        yield system
    except Problem as problem:
        raise click.ClickException(f"{problem.detail}\n{problem.declared.remedy}") from None
    finally:
        system.close()

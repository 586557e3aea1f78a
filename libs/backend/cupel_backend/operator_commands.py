"""`cupel admin`: what whoever has a shell on the service's machine may do."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import click
from sqlalchemy.exc import SQLAlchemyError

from cupel_backend import access, jobs
from cupel_backend.infrastructure.database import ListPage
from cupel_backend.infrastructure.errors import Problem, Unavailable
from cupel_backend.infrastructure.settings import WrongSetting, read_settings
from cupel_backend.infrastructure.system import System, open_system

T = TypeVar("T")

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The data folder of the service; default: CUPEL_DATA, else cupel-data here.",
)


USAGE, SERVICE_FAILED = 2, 3
"""Exit codes, as those of the other verbs."""

REMEDIES = {
    "token-unknown": "list the tokens with `cupel admin tokens`",
    "job-unknown": "list the jobs with `cupel admin jobs`",
    "database-busy": "see whether the database runs, and whether CUPEL_DATABASE names it",
    "storage-failed": "see whether the store runs, and whether CUPEL_BLOBS and CUPEL_S3_... name it",
}
"""What would be right on a command line, where it is not what would be right over HTTP."""


class Ended(click.ClickException):
    """The command ends with a message and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click declares it once for all


@click.group()
@click.pass_context
def admin(context: click.Context) -> None:
    """Look after a service from its own machine: tables, tokens, jobs.

    \b
    Example:
      cupel admin token --team organisers --scope organiser --data cupel-data
    """
    before = os.umask(0o077)  # judgments may be secret: what is made here is its owner's alone
    context.call_on_close(lambda: os.umask(before))


@admin.command()
@data_option
def migrate(data: Path | None) -> None:
    """Bring the tables of the database up to date.

    \b
    Example: cupel admin migrate --data cupel-data
    """
    with _system(data, new=True) as system:
        system.migrate()
    click.echo("the tables are up to date")


@admin.command()
@click.option("--team", required=True, help="The team that the token acts for.")
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in access.SCOPES]),
    default="participant",
    show_default=True,
)
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


@admin.command("tokens")
@data_option
def list_tokens(data: Path | None) -> None:
    """List tokens, newest first: prefix, team, scope, whether in force, label.

    \b
    Example: cupel admin tokens --data cupel-data
    """
    with _system(data) as system:
        now = system.now()
        for one in _all(lambda cursor: access.list_(system, access.OPERATOR, limit=500, cursor=cursor)):
            expired = one.expires_at is not None and one.expires_at <= now
            state = "revoked" if one.revoked_at else "expired" if expired else "in force"
            click.echo(f"{one.prefix}  {one.team}  {one.scope}  {state}  {one.label!r}")


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
        wanted = "dead" if revive else state
        for job in _all(lambda at: jobs.list_(system, access.OPERATOR, state=wanted, limit=500, cursor=at)):
            if revive:
                jobs.revive(system, access.OPERATOR, job.id)
            error = (job.error or "").partition("\n")[0]
            click.echo(f"{job.id}  {job.queue}  {job.attempts}  {job.submission or '-'}  {error}")


def _all(read: Callable[[str | None], ListPage[T]]) -> list[T]:
    """Every item of a list, page after page."""
    page = read(None)
    found = list(page.items)
    while page.next is not None:
        page = read(page.next)
        found += page.items
    return found


@contextmanager
def _system(data: Path | None, *, new: bool = False) -> Iterator[System]:
    """The system of a data folder, its tables up to date; a problem ends the command with its sentence.

    new: there need not be anything yet.
    """
    try:
        settings = read_settings(data=data)
        if not new and not settings.in_use():
            raise WrongSetting(
                f"there is no data folder of a service at {settings.data}: say --data or CUPEL_DATA; "
                "`cupel serve` and `cupel admin migrate` make a new one"
            )
        with closing(open_system(settings)) as system:
            if not new:
                system.ready()
            yield system
    except WrongSetting as wrong:
        raise Ended(str(wrong), USAGE) from None
    except Problem as problem:
        remedy = REMEDIES.get(problem.code, problem.declared.remedy)
        code = SERVICE_FAILED if isinstance(problem, Unavailable) else USAGE
        raise Ended(f"{problem.detail}\n{remedy}", code) from None
    except SQLAlchemyError as error:
        reason = str(error).partition("\n")[0]
        raise Ended(f"the database can't be used: {reason}", SERVICE_FAILED) from None

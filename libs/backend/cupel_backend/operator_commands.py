"""The commands `cupel admin`, for the operator of a service on its machine."""

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
from cupel_contract.states import JobState

T = TypeVar("T")

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Data folder of the service (default: CUPEL_DATA or ./cupel-data).",
)


USAGE, SERVICE_FAILED = 2, 3
"""Exit codes, which are the same for all commands."""

REMEDIES = {
    "token-unknown": "list the tokens with `cupel admin tokens`",
    "job-unknown": "list the jobs with `cupel admin jobs`",
    "database-busy": "check that the database runs and that CUPEL_DATABASE is its URL",
    "storage-failed": "check that the object store runs and that CUPEL_BLOBS and CUPEL_S3_... are correct",
}
"""Error code -> remedy, for errors whose remedy on the command line differs from the remedy of the API."""


class AdminError(click.ClickException):
    """An error with a message and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click declares a class variable


@click.group()
@click.pass_context
def admin(context: click.Context) -> None:
    """Administer a service on its machine: tables, tokens and jobs.

    \b
    Example:
      cupel admin token --team organisers --scope organiser --data cupel-data
    """
    before = os.umask(0o077)  # judgments may be secret, so other users must not read new files
    context.call_on_close(lambda: os.umask(before))


@admin.command()
@data_option
def migrate(data: Path | None) -> None:
    """Bring the database tables up to date.

    \b
    Example: cupel admin migrate --data cupel-data
    """
    with _open(data, new=True) as system:
        system.migrate()
    click.echo("the tables are up to date")


@admin.command("token")
@click.option("--team", required=True, help="Team that the token acts for.")
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in access.SCOPES]),
    default="participant",
    show_default=True,
    help="Rights of the token.",
)
@click.option("--label", default="", help="Description of the token.")
@data_option
def issue_token(team: str, scope: str, label: str, data: Path | None) -> None:
    """Issue a token and print it.

    Only its digest is stored, so it cannot be shown again.

    \b
    Example: cupel admin token --team organisers --scope organiser
    """
    with _open(data) as system:
        text, _ = access.issue(system, access.OPERATOR, team=team, scope=scope, label=label)
    click.echo(text)


@admin.command("tokens", short_help="List tokens, newest first.")
@data_option
def list_tokens(data: Path | None) -> None:
    """List tokens, newest first, with prefix, team, scope, state and label.

    \b
    Example: cupel admin tokens --data cupel-data
    """
    with _open(data) as system:
        now = system.now()
        for token in _read_all(
            lambda cursor: access.list_(system, access.OPERATOR, limit=500, cursor=cursor)
        ):
            expired = token.expires_at is not None and token.expires_at <= now
            state = "revoked" if token.revoked_at else "expired" if expired else "in force"
            click.echo(f"{token.prefix}  {token.team}  {token.scope}  {state}  {token.label!r}")


@admin.command(short_help="Revoke a token.")
@click.argument("prefix")
@data_option
def revoke(prefix: str, data: Path | None) -> None:
    """Revoke the token with PREFIX, the eight characters after `cupel_`.

    \b
    Example: cupel admin revoke 1a2b3c4d
    """
    with _open(data) as system:
        access.revoke(system, access.OPERATOR, prefix)
    click.echo(f"{prefix} is revoked")


@admin.command("jobs", short_help="List jobs, newest first.")
@click.option(
    "--state",
    type=click.Choice([state.value for state in JobState]),
    default="dead",
    show_default=True,
    help="State of the listed jobs.",
)
@click.option("--revive", is_flag=True, help="Queue all dead jobs again.")
@data_option
def list_jobs(state: str, revive: bool, data: Path | None) -> None:
    """List jobs, newest first, with id, queue, attempts, submission and error.

    \b
    Example: cupel admin jobs --state dead --revive
    """
    with _open(data) as system:
        listed = "dead" if revive else state
        for job in _read_all(
            lambda at: jobs.list_(system, access.OPERATOR, state=listed, limit=500, cursor=at)
        ):
            if revive:
                jobs.revive(system, access.OPERATOR, job.id)
            error = (job.error or "").partition("\n")[0]
            click.echo(f"{job.id}  {job.queue}  {job.attempts}  {job.submission or '-'}  {error}")


def _read_all(read: Callable[[str | None], ListPage[T]]) -> list[T]:
    """Return the items of all pages of a list."""
    page = read(None)
    items = list(page.items)
    while page.next is not None:
        page = read(page.next)
        items += page.items
    return items


@contextmanager
def _open(data: Path | None, *, new: bool = False) -> Iterator[System]:
    """Open the system of a data folder, and turn errors into messages.

    new: whether to create the folder if it does not exist. If False, the folder must have up-to-date tables.
    """
    try:
        settings = read_settings(data=data)
        if not new and not settings.in_use():
            raise WrongSetting(
                f"there is no data folder of a service at {settings.data}; name one with --data or "
                "CUPEL_DATA, or create one with `cupel serve` or `cupel admin migrate`"
            )
        with closing(open_system(settings)) as system:
            if not new:
                system.ready()
            yield system
    except WrongSetting as wrong:
        raise AdminError(str(wrong), USAGE) from None
    except Problem as problem:
        remedy = REMEDIES.get(problem.code, problem.declared.remedy)
        code = SERVICE_FAILED if isinstance(problem, Unavailable) else USAGE
        raise AdminError(f"{problem.detail}\n{remedy}", code) from None
    except SQLAlchemyError as error:
        reason = str(error).partition("\n")[0]
        raise AdminError(f"the database cannot be used: {reason}", SERVICE_FAILED) from None

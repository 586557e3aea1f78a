"""The `cupel` command: its verbs, each imported only when it is used."""

import contextlib
import difflib
import os
import sys
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

import click

from cupel_client import __version__
from cupel_client.output import give_up, prepare

VERBS: dict[str, tuple[str, str]] = {
    "evaluate": ("cupel_client.offline.evaluate_command:evaluate", "Score runs against qrels."),
    "validate": (
        "cupel_client.offline.validate_command:validate",
        "Say everything that is wrong with files.",
    ),
    "compare": (
        "cupel_client.offline.compare_command:compare",
        "Tell which runs differ, and what that is worth.",
    ),
    "audit": (
        "cupel_client.offline.audit_command:audit",
        "Tell how far a collection and its board can be trusted.",
    ),
    "measures": ("cupel_client.offline.measures_command:measures", "List the measures, or explain one."),
    "simulate": (
        "cupel_client.offline.simulate_command:simulate",
        "Show what measures make of simulated runs.",
    ),
    "login": ("cupel_client.online.login_command:login", "Keep a token for a service."),
    "track": ("cupel_client.online.track_commands:track", "Make, list, show and change tracks."),
    "qrels": ("cupel_client.online.qrels_commands:qrels", "Upload judgments, publish them, see what moved."),
    "submit": ("cupel_client.online.submission_commands:submit", "Hand in runs."),
    "watch": ("cupel_client.online.submission_commands:watch", "Follow what is being scored."),
    "runs": ("cupel_client.online.submission_commands:list_runs", "List what was handed in."),
    "scores": ("cupel_client.online.board_commands:scores", "Print the scores of a submission."),
    "explain": ("cupel_client.online.explain_command:explain", "Tell what scores don't tell by themselves."),
    "audits": (
        "cupel_client.online.audits_commands:audits",
        "Have a track audited, watch it, read what came out.",
    ),
    "leaderboard": ("cupel_client.online.board_commands:leaderboard", "Print the leaderboard of a track."),
}
"""Verb -> where its command is, and one line for `cupel --help`. Other packages contribute verbs through the
entry-point group `cupel.verbs`."""

CONTRIBUTED = {
    "serve": "Run the whole service on this machine.",
    "example": "Copy the example collection to a folder.",
    "admin": "Look after a service from its own machine.",
}
"""One line each for verbs that our own packages contribute, so that `cupel --help` need not import them."""

NEGATIVE, USAGE, SERVICE_FAILED, INTERRUPTED = 1, 2, 3, 130
"""Exit codes besides 0: the verdict is negative, the command is wrong, the service failed, Ctrl-C."""


class Verbs(click.Group):
    """A group that knows its commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS, *sorted(set(_contributed()) - set(VERBS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command | None = None
        if cmd_name in VERBS:
            module, _, name = VERBS[cmd_name][0].partition(":")
            command = getattr(import_module(module), name)
        elif (found := _contributed().get(cmd_name)) is not None:
            command = found.load()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], names, 1)
            hint = f" Did you mean {close[0]}?" if close else f" There are {', '.join(names)}."
            ctx.fail(f"there is no verb {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line per verb; those of the table above are not imported for it."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, self._short_help(ctx, name)) for name in self.list_commands(ctx)])

    def _short_help(self, ctx: click.Context, name: str) -> str:
        if name in VERBS:
            return VERBS[name][1]
        if name in CONTRIBUTED:
            return CONTRIBUTED[name]
        command = self.get_command(ctx, name)
        return command.get_short_help_str(80) if command is not None else ""


def _contributed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="cupel.verbs")}


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="cupel")
def cli() -> None:
    """Evaluate ranked retrieval: score runs against qrels, by relevance and by any other judged aspect.

    \b
    Example:
      cupel evaluate qrels.txt run-a.txt run-b.txt.gz -m "nDCG@10 AP"

    Exit codes: 0 fine; 1 the verdict is negative (a file is refused, say); 2 wrong usage; 3 the service
    failed.
    """


def _end_at_once() -> NoReturn:
    """End as Ctrl-C asks, without waiting for threads that wait for processes that were killed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


def main() -> NoReturn:
    """The console script."""
    try:
        prepare()
        code = cli.main(prog_name="cupel", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except (click.Abort, KeyboardInterrupt):
        _end_at_once()
    except BrokenPipeError:
        give_up()
        code = NEGATIVE  # as click ends where a reader went away (`cupel ... | head`)
    except OSError as problem:
        give_up()
        click.echo(f"cupel: {problem.strerror or problem}: {problem.filename or ''}".rstrip(": "), err=True)
        code = USAGE
    sys.exit(code if isinstance(code, int) else 0)

"""The `cupel` command: a group of verbs, each imported on first use."""

import contextlib
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cupel_client import __version__
from cupel_client.environment import colours_allowed
from cupel_client.output import discard_output, prepare

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERBS: dict[str, tuple[str, str]] = {
    "evaluate": ("cupel_client.offline.evaluate_command:evaluate", "Score runs against qrels."),
    "validate": (
        "cupel_client.offline.validate_command:validate",
        "Report all errors of runs, qrels and collection files.",
    ),
    "compare": (
        "cupel_client.offline.compare_command:compare",
        "Compare runs: differences, intervals and significance tests.",
    ),
    "gate": (
        "cupel_client.offline.gates.gate_command:gate",
        "Pass or fail a run against a baseline.",
    ),
    "audit": (
        "cupel_client.offline.audit_command:audit",
        "Audit how reliable a collection and its ranking of runs are.",
    ),
    "measures": (
        "cupel_client.offline.measures_command:measures",
        "List all measures, or show the reference page of one.",
    ),
    "simulate": (
        "cupel_client.offline.simulate_command:simulate",
        "Score simulated runs with measures of understandability.",
    ),
    "convert": (
        "cupel_client.offline.convert_command:convert",
        "Convert a published data set to a collection.",
    ),
    "login": ("cupel_client.online.login_command:login", "Store a token for a service."),
    "track": ("cupel_client.online.track_commands:track", "Create, list, show and change tracks."),
    "qrels": (
        "cupel_client.online.qrels_commands:qrels",
        "Upload, publish and compare versions of the judgments.",
    ),
    "submit": ("cupel_client.online.submission_commands:submit", "Submit runs to a track."),
    "watch": ("cupel_client.online.submission_commands:watch", "Watch submissions until they are scored."),
    "runs": ("cupel_client.online.submission_commands:list_runs", "List the submissions of a track."),
    "scores": ("cupel_client.online.board_commands:scores", "Print the scores of a submission."),
    "explain": (
        "cupel_client.online.explain_command:explain",
        "Explain scores: ties, unjudged documents, scale, aspects.",
    ),
    "audits": (
        "cupel_client.online.audits_commands:audits",
        "Request, watch and read audits of a track.",
    ),
    "leaderboard": ("cupel_client.online.board_commands:leaderboard", "Print the leaderboard of a track."),
}
"""For each verb, the location of its command and its line in `cupel --help`.

Other packages add verbs through the entry-point group `cupel.verbs`.
"""

CONTRIBUTED = {
    "serve": "Run the service on this machine.",
    "example": "Copy the example collection to a folder.",
    "admin": "Administer a service from its own machine.",
}
"""Lines in `cupel --help` for verbs of other Cupel packages. Printing them imports no package."""

NEGATIVE, USAGE, SERVICE_FAILED, INTERRUPTED = 1, 2, 3, 130
"""Exit codes besides 0: negative verdict, wrong usage, failure of the service, Ctrl-C."""


class Verbs(click.Group):
    """A group that imports a command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS, *sorted(set(_contributed()) - set(VERBS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command | None = None
        if cmd_name in VERBS:
            module, _, name = VERBS[cmd_name][0].partition(":")
            command = getattr(import_module(module), name)
        elif (entry := _contributed().get(cmd_name)) is not None:
            command = entry.load()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_known = not args or args[0] in VERBS or args[0].startswith("-") or ctx.resilient_parsing
        if not is_known and args[0] not in (names := self.list_commands(ctx)):
            from difflib import get_close_matches

            close = get_close_matches(args[0], names, 1)
            hint = f" Did you mean {close[0]}?" if close else f" Use one of {', '.join(names)}."
            ctx.fail(f"unknown verb {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        """Return the verbs and options that complete a word, without importing the verbs."""
        from click.shell_completion import CompletionItem  # imported late, because only completion needs it

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self._short_help(ctx, name)) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per verb, without importing the verbs."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, self._short_help(ctx, name)) for name in self.list_commands(ctx)])

    def _short_help(self, ctx: click.Context, name: str) -> str:
        if name in VERBS:
            return VERBS[name][1]
        if name in CONTRIBUTED:
            return CONTRIBUTED[name]
        command = self.get_command(ctx, name)
        return command.get_short_help_str(80) if command is not None else ""


def _contributed() -> dict[str, Any]:
    """Return the entry points of verbs of other packages. Reading them takes long."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group="cupel.verbs")}


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="cupel")
def cli() -> None:
    """Evaluate ranked retrieval: score runs against qrels.

    Scores are by relevance and any other judged aspect.

    \b
    Example:
      cupel evaluate qrels.txt run-a.txt run-b.txt.gz -m "nDCG@10 AP"

    Exit codes: 0 success; 1 negative verdict, such as a refused file; 2 wrong usage; 3 failure of the
    service, or an undecided gate.
    """
    if not colours_allowed():
        click.get_current_context().color = False


def _exit_at_once() -> NoReturn:
    """Exit after Ctrl-C without joining threads.

    The threads may wait for killed processes.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


def main() -> NoReturn:
    """Run the console script."""
    try:
        prepare()
        code = cli.main(prog_name="cupel", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except (click.Abort, KeyboardInterrupt):
        _exit_at_once()
    except BrokenPipeError:
        discard_output()
        code = NEGATIVE  # like click, if the reader of a pipe has ended (`cupel ... | head`)
    except OSError as problem:
        discard_output()
        click.echo(f"cupel: {problem.strerror or problem}: {problem.filename or ''}".rstrip(": "), err=True)
        code = USAGE
    sys.exit(code if isinstance(code, int) else 0)

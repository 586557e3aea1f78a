"""Teams of runs, from a file or from the names of the runs."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from cupel_client.offline.input_files import shown_name
from cupel_client.output import printable

NAMED = 3
"""Number of runs or errors that a message lists before it counts the rest."""


def teams_of(
    names: Sequence[str], file: Path | None, pattern: str | None, *, by_folder: bool = False
) -> dict[str, str] | None:
    """Return the team of each run by name.

    Without `file` and `pattern`, the team is the first folder in the name if `by_folder` is true and all
    names have a folder. If not, return None.

    file: two columns, run and team. pattern: a regular expression that is searched in the name of a run; its
    first group is the team. Raise click.UsageError, with all errors, if the file is invalid or a run has no
    team.
    """
    if file is not None and pattern is not None:
        raise click.UsageError("give either --teams or --team-pattern, not both")
    if file is not None:
        return _by_file(names, file)
    if pattern is None and by_folder and all("/" in name for name in names):
        return {name: name.partition("/")[0] for name in names}
    return None if pattern is None else _by_pattern(names, pattern)


def _by_file(names: Sequence[str], file: Path) -> dict[str, str]:
    teams = _read(file)
    if lacking := [name for name in names if name not in teams]:
        raise click.UsageError(f"{shown_name(file.name)} has no team for {_listed(lacking)}")
    return {name: teams[name] for name in names}


def _read(file: Path) -> Mapping[str, str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise click.UsageError(
            f"{shown_name(file.name)} is not UTF-8 text; expected a line per run with its team"
        ) from None
    teams: dict[str, str] = {}
    errors = []
    for number, line in enumerate(lines, 1):
        words = _words(line)
        if not words or line.startswith("#"):
            continue
        if len(words) != 2:
            errors.append(
                f"{shown_name(file.name)}:{number}: expected two columns, run and team, got {len(words)}"
            )
        elif teams.setdefault(words[0], words[1]) != words[1]:
            errors.append(f"{shown_name(file.name)}:{number}: {printable(words[0])} already has another team")
    if errors:
        more = [f"and {len(errors) - NAMED} more errors"] if len(errors) > NAMED else []
        raise click.UsageError("\n".join([*errors[:NAMED], *more]))
    return teams


def _words(line: str) -> list[str]:
    """Split a line at tabs if it has any, otherwise at spaces.

    Tabs come first because names may contain spaces.
    """
    if "\t" not in line.strip():
        return line.split()
    return [word.strip() for word in line.split("\t") if word.strip()]


def _by_pattern(names: Sequence[str], pattern: str) -> dict[str, str]:
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise click.UsageError(
            f"--team-pattern {pattern!r} is not a valid regular expression: {problem}"
        ) from None
    if not compiled.groups:
        raise click.UsageError(
            f"--team-pattern {pattern!r} has no group; put the team in parentheses, for example '^([a-z]+)-'"
        )
    matches = {name: compiled.search(name) for name in names}
    teams = {name: match.group(1) for name, match in matches.items() if match is not None and match.group(1)}
    if lacking := [name for name in names if name not in teams]:
        raise click.UsageError(f"--team-pattern {pattern!r} finds no team in {_listed(lacking)}")
    return teams


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return printable(", ".join(names[:NAMED])) + more

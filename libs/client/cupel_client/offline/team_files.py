"""Whose runs they are: by a file, or by what runs are called."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from cupel_client.output import printable

NAMED = 3
"""So many runs are named, then how many more there are."""


def teams_of(names: Sequence[str], file: Path | None, pattern: str | None) -> dict[str, str] | None:
    """The team of each run, by its name; None where nothing tells.

    file: two columns, run and team. pattern: its first group, found in a run's name, is the team. Ends the
    command where a run has no team, and says all that is wrong.
    """
    if file is not None and pattern is not None:
        raise click.UsageError("--teams and --team-pattern both say whose runs they are: give one of them")
    if file is not None:
        return _by_file(names, file)
    return None if pattern is None else _by_pattern(names, pattern)


def _by_file(names: Sequence[str], file: Path) -> dict[str, str]:
    teams = _read(file)
    if lacking := [name for name in names if name not in teams]:
        raise click.UsageError(f"{file.name} gives no team to {_listed(lacking)}")
    return {name: teams[name] for name in names}


def _read(file: Path) -> Mapping[str, str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise click.UsageError(
            f"{file.name} is no text in UTF-8: expected a line per run, its team after it"
        ) from None
    teams: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(lines, 1):
        words = _words(line)
        if not words or line.startswith("#"):
            continue
        if len(words) != 2:
            wrong.append(f"{file.name}:{number}: expected two columns, run and team, found {len(words)}")
        elif teams.setdefault(words[0], words[1]) != words[1]:
            wrong.append(f"{file.name}:{number}: {printable(words[0])} has another team already")
    if wrong:
        more = [f"and {len(wrong) - NAMED} more like these"] if len(wrong) > NAMED else []
        raise click.UsageError("\n".join([*wrong[:NAMED], *more]))
    return teams


def _words(line: str) -> list[str]:
    """Those of a line: between tabs, where there are some within it, as names may hold blanks."""
    if "\t" not in line.strip():
        return line.split()
    return [word.strip() for word in line.split("\t") if word.strip()]


def _by_pattern(names: Sequence[str], pattern: str) -> dict[str, str]:
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise click.UsageError(f"--team-pattern {pattern!r} is no regular expression: {problem}") from None
    if not compiled.groups:
        raise click.UsageError(
            f"--team-pattern {pattern!r} has no group: put the part that is the team in brackets, as in "
            "'^([a-z]+)-'"
        )
    found = {name: compiled.search(name) for name in names}
    teams = {name: match.group(1) for name, match in found.items() if match is not None and match.group(1)}
    if lacking := [name for name in names if name not in teams]:
        raise click.UsageError(f"--team-pattern {pattern!r} finds no team in {_listed(lacking)}")
    return teams


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return printable(", ".join(names[:NAMED])) + more

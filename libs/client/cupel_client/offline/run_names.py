"""What runs are called in results: the base name of the file, less a compression's ending."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

COMPRESSIONS = (".gz", ".bz2", ".zst", ".zip")


def names_of(paths: Sequence[Path]) -> list[str]:
    """A different name for each path: base names, with as much of the folders as tells equal ones apart.

    Where only a compression's ending tells two files apart, all keep theirs.
    Raises click.UsageError where a file is given twice.
    """
    whole = [path.absolute() for path in paths]
    if again := [path for path, times in Counter(whole).items() if times > 1]:
        raise click.UsageError(f"{again[0]} is given twice")
    parts = [(*path.parts[:-1], _plain(path.name)) for path in whole]
    if len(set(parts)) < len(parts):  # run.txt and run.txt.gz: the endings tell them apart
        parts = [path.parts for path in whole]
    names = ["/".join(one[-1:]) for one in parts]
    depth = 1
    while len(set(names)) < len(names):
        depth += 1
        shared = {name for name, times in Counter(names).items() if times > 1}
        names = [
            "/".join(one[-depth:]) if name in shared else name for name, one in zip(names, parts, strict=True)
        ]
    return names


def _plain(name: str) -> str:
    for ending in COMPRESSIONS:
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name

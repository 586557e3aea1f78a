"""Names of runs in results.

A name is the base name of the file without a compression suffix.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cupel_measures.reading.compression import plain_name


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return a distinct name for each path.

    It is the base name, with parent folders where base names are equal.

    If two files differ only in a compression suffix, all files keep their suffixes.
    Raise ValueError if a file is given twice.
    """
    absolute = [path.absolute() for path in paths]
    if repeated := [path for path, times in Counter(absolute).items() if times > 1]:
        raise ValueError(f"run {repeated[0]} is given twice")
    parts = [(*path.parts[:-1], plain_name(path.name)) for path in absolute]
    if len(set(parts)) < len(parts):  # run.txt and run.txt.gz: only the suffixes differ
        parts = [path.parts for path in absolute]
    names = ["/".join(part[-1:]) for part in parts]
    depth = 1
    while len(set(names)) < len(names):
        depth += 1
        shared = {name for name, times in Counter(names).items() if times > 1}
        names = [
            "/".join(part[-depth:]) if name in shared else name
            for name, part in zip(names, parts, strict=True)
        ]
    return names

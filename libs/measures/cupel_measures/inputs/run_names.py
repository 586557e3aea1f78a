"""Names of runs in results.

A name is the base name of the file without a compression suffix.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cupel_measures.reading.compression import plain_name

STANDARD_INPUT = "-"
STDIN = "stdin"
"""Name of standard input in results and findings."""


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


def named_files(paths: Sequence[Path]) -> dict[str, Path]:
    """Return files by distinct names.

    A folder stands for all files in it, except hidden ones. The name of a file in a folder is its path in
    this folder, such as team/run, so its first part can be the team. Raise ValueError if a file is given
    twice.
    """
    pairs = [pair for path in paths for pair in (_in_folder(path) if path.is_dir() else [(None, path)])]
    files = [file for _, file in pairs]
    names = names_of(files)
    chosen = [inner or name for (inner, _), name in zip(pairs, names, strict=True)]
    if len(set(chosen)) < len(chosen):
        chosen = names
    return dict(zip(chosen, files, strict=True))


def _in_folder(folder: Path) -> list[tuple[str | None, Path]]:
    """Return the files in a folder and its subfolders, with their relative paths.

    Return the folder itself if there is no file, so that the reader refuses it.
    """
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    inner = [(path.relative_to(folder), path) for path in found]
    listed: list[tuple[str | None, Path]] = [
        (str(name.with_name(plain_name(name.name)).as_posix()), path)
        for name, path in inner
        if not any(part.startswith(".") for part in name.parts)
    ]
    return listed or [(None, folder)]

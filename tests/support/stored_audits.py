"""Audits of the extended example by every kind, with the results that a release stores.

    PYTHONPATH=<path of the folder tests> python tests/support/stored_audits.py FILE [KIND...]

This command writes the audits of all kinds to FILE, or replaces only the audits of the named kinds in FILE.
Run it with the Python of the release that should store the results. The script uses only the command `cupel`,
so it also works with releases whose modules have other names.
"""

import gzip
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.extended_example import describe_extended_example, write_extended_example
from support.record_values import list_numbers, run_cupel

SEED = 3
MEASURES = "nDCG@10 CAM(of=nDCG@10) alpha_nDCG@10"
OTHER_MEASURES: Mapping[str, str] = {
    "desiderata": "NLRE(aspects=[relevance,credibility]) CAM(of=nDCG@10)",
    # Scores of RBTO@400 are too large for statistical tests, so undefined results are stored, too.
    **dict.fromkeys(
        ("discriminative_power", "qrels_versions", "reliability", "scales", "topics"), "nDCG@10 RBTO@400"
    ),
}
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "aspects": (),
    "content": ("--percents", "60,20", "--repeats", "2", "--reference", "alpha_nDCG@10"),
    "correlation": ("--tau-ap",),
    "desiderata": ("--instances", "20", "--length", "4"),
    "discriminative_power": ("--replicates", "200", "--alpha", "0.05"),
    "downsampling": ("--ratios", "50,20", "--repeats", "2", "--tau-ap"),
    "incomplete": ("--percents", "60,20", "--repeats", "2"),
    "label_selection": ("--batch", "50", "--repeats", "1", "--reference", "alpha_nDCG@10"),
    "leave_one_run_out": ("--depths", "5,10"),
    "leave_one_team_out": ("--depths", "5,10"),
    "pool_depth": ("--deepest", "5"),
    "qrels_versions": ("--replicates", "200"),
    "reliability": ("--sizes", "5,50"),
    "scales": (),
    "topic_selection": ("--number", "3", "--repeats", "2", "--reference", "alpha_nDCG@10"),
    "topics": ("--draws", "2", "--subset", "4"),
    "unjudged": ("--tried", "3"),
    "unlabelled_systems": ("--percents", "20,60", "--repeats", "2"),
}


def record_audit(kind: str, folder: Path, out: Path) -> dict[str, Any]:
    """Run an audit of the extended example in `folder`; return its printed and stored results."""
    subject = describe_extended_example(folder)
    options = (
        "-m",
        OTHER_MEASURES.get(kind, MEASURES),
        "--jobs",
        "1",
        "--seed",
        str(SEED),
        *subject.options,
        "--out",
        str(out),
    )
    printed = run_cupel("audit", kind, subject.collection, *subject.runs, *options, *OPTIONS[kind])
    parts = [json.loads(path.read_text()) for path in sorted((out / "parts").glob("[0-9]*.json"))]
    return {
        "parameters": printed["parameters"],
        "seed": SEED,
        "about": printed["about"],
        "trials": {number: trial for part in parts for number, trial in part.items()},
        "tables": [list(list_numbers(table["rows"])) for table in printed["report"]["tables"]],
    }


def record_audits(kinds: Iterable[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_extended_example(folder / "example")
        return {kind: record_audit(kind, folder / "example", folder / kind) for kind in kinds}


def write_recording(file: Path, kinds: Sequence[str]) -> None:
    """Record all kinds, or only `kinds`; keep the recordings of other kinds in the file."""
    kept = json.loads(gzip.decompress(file.read_bytes())) if kinds else {}
    text = json.dumps(kept | record_audits(kinds or OPTIONS), separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    write_recording(Path(sys.argv[1]), sys.argv[2:])

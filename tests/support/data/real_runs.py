"""Collections with runs that the service tests submit and score offline."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from cupel_client.api.client import Client
from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.reading.collection_files import Collection, parse_collection
from cupel_measures.reading.run_files import join, read_run
from cupel_measures.scoring.evaluator import Scores, evaluate
from cupel_standalone.serve_commands import EXAMPLE

DEPTH = 1000
"""The default depth of a track, in documents per topic."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A track and the runs that are submitted to it.

    files: name -> path of the qrels files. runs: paths, in the order of submission.
    """

    track: str
    aspects: Mapping[str, Any]
    files: Mapping[str, Path]
    runs: Sequence[Path]
    measures: Sequence[str]

    @property
    def text(self) -> str:
        """The collection file in JSON, with a qrels file per aspect, in the order of the aspects."""
        listed = [
            {"file": name, "aspect": aspect} for name, aspect in zip(self.files, self.aspects, strict=True)
        ]
        return json.dumps({"aspects": self.aspects, "qrels": listed})

    @cached_property
    def content(self) -> dict[str, bytes]:
        return {name: path.read_bytes() for name, path in self.files.items()}

    @cached_property
    def collection(self) -> Collection:
        return parse_collection(self.text, self.content)

    @cached_property
    def bound(self) -> list[Measure]:
        return [parse(text).bound(self.collection.aspects) for text in self.measures]

    def upload(self, client: Client) -> int:
        """Create the track, upload its judgments as a draft, and return the version number."""
        client.create_track(
            self.track, title=self.track, aspects=self.aspects, measures=self.measures, depth=DEPTH
        )
        return client.upload_qrels(self.track, self.text.encode(), self.content).number

    def offline(self, run: Path) -> Scores:
        """Return the scores of a run, computed by the library."""
        ranking = read_run(run).ranking
        return evaluate(self.collection.qrels, join(ranking, self.collection.qrels, depth=DEPTH), self.bound)


PLAN = ("AP", "GMAP", "Bpref", "nDCG@10", "P@10", "R@1000", "SetF", "RBP(p=0.8)")
"""One measure of each kind of aggregation. They are few, because every leaderboard is analysed."""
ALL_ASPECTS = ("CAM(of=nDCG@10)", "TOMA(of=nDCG@10)")


def example() -> Load:
    """Return the example collection."""
    declared = yaml.safe_load((EXAMPLE / "collection.yaml").read_text())
    names = [entry["file"] for entry in declared["qrels"]]
    files = {name: EXAMPLE / name for name in names}
    runs = sorted((EXAMPLE / "runs").glob("*.gz"))
    return Load(
        track="example", aspects=declared["aspects"], files=files, runs=runs, measures=(*PLAN, *ALL_ASPECTS)
    )


def clef(shared: Path) -> list[Load]:
    """Return CLEF eHealth 2014 and 2015, with 30 and 24 real runs."""
    first, second = shared / "data/clef-ehealth-2014-task3", shared / "data/clef-ehealth-2015-task2"
    relevance = {"labels": [0, 1, 2]}
    return [
        Load(
            track="clef-2014",
            aspects={"relevance": {"labels": [0, 1, 2, 3]}},
            files={"relevance.gz": first / "qrels/qrels.clef2014.test.graded.txt.gz"},
            runs=sorted((first / "runs").iterdir()),
            measures=PLAN,
        ),
        Load(
            track="clef-2015",
            aspects={"relevance": relevance, "readability": {"labels": [0, 1, 2, 3]}},
            files={
                "relevance.gz": second / "qrels/qrels.eng.clef2015.qtest.graded.txt.gz",
                "readability.gz": second / "qrels/qread.eng.clef2015.qtest.graded.txt.gz",
            },
            runs=sorted((second / "runs").iterdir()),
            measures=(*PLAN, *ALL_ASPECTS),
        ),
    ]


def clef_or_example(request: pytest.FixtureRequest) -> list[Load]:
    """Return the 54 CLEF runs if they are available, otherwise the 30 runs of the example."""
    try:
        return clef(request.getfixturevalue("shared"))
    except pytest.skip.Exception:
        return [example()]


def touche(shared: Path, measures: Sequence[str]) -> Load:
    """Return Touché 2022 task 2: relevance and rhetorical quality, 21 real runs of 8 teams."""
    folder = shared / "data/touche22-task2"
    scale = {"labels": [0, 1, 2]}
    return Load(
        track="touche",
        aspects={"relevance": scale, "quality": scale},
        files={
            f"{aspect}.txt": folder / f"qrels/touche-task2-2022-{aspect}.qrels"
            for aspect in ("relevance", "quality")
        },
        runs=sorted((folder / "runs").rglob("*.gz")),
        measures=measures,
    )

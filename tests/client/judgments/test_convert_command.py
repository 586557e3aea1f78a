"""`cupel convert a66`: the assessments of Lioma, Simonsen and Larsen, ICTIR 2017."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli

MEANS = {
    "nDCG": 0.970982,
    "AP": 0.891958,
    "SetF(aspect=credibility)": 0.480238,
    "SetG(aspect=credibility)": 0.526368,
    "NLRE": 0.933397,
    "NGRE": 0.850272,
    "NWCS": 0.962545,
    "CAM(of={relevance:nDCG,credibility:SetF})": 0.725610,
    "WHAM(of={relevance:AP,credibility:SetG})": 0.572000,
}
"""Means over the 100 lists of the published file, from an independent implementation."""
LINES = '1,1,1,7,4,1,<NA>\n1,1,2,7,1,3,"a, b"\n2,1,1,9,2,2,\n'


def cupel(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_means_of_the_published_assessments(shared: Path, tmp_path: Path) -> None:
    file = shared / "data" / "a66" / "data"
    if not file.is_file():
        pytest.skip(f"the data set is missing: {file}")
    cupel("convert", "a66", file, tmp_path / "a66")
    done = cupel(
        "evaluate", tmp_path / "a66" / "collection.yaml", tmp_path / "a66" / "run.txt",
        "-m", " ".join(MEANS), "--format", "json",
    )  # fmt: skip
    data = json.loads(done.stdout)
    scores = list(data["runs"][0]["scores"].values())
    assert scores == pytest.approx(list(MEANS.values()), abs=1e-6)


def test_topics_are_assessors_with_queries_and_a_url_can_be_listed_twice(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(LINES)
    cupel("convert", "a66", tmp_path / "data", tmp_path / "out")
    assert (tmp_path / "out" / "qrels.txt").read_text() == "1-1 0 1-7 4 1\n1-1 0 2-7 1 3\n2-1 0 1-9 2 2\n"
    assert (tmp_path / "out" / "run.txt").read_text() == (
        "1-1 Q0 1-7 1 -1 a66\n1-1 Q0 2-7 2 -2 a66\n2-1 Q0 1-9 1 -1 a66\n"
    )
    again = cupel("convert", "a66", tmp_path / "data", tmp_path / "out", code=2)
    assert "cannot write" in again.stderr


@pytest.mark.parametrize(
    "line",
    ["1,1,1,7,5,1,x", "1,1,1,7,4", "1,1,0,7,4,1,x", "1,1,x,7,4,1,x", "1,1,2,8,4,1,again", "1,1,3,7,0,1,"],
)
def test_invalid_lines_are_refused_with_their_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "data").write_text(LINES + line + "\n")
    done = cupel("convert", "a66", tmp_path / "data", tmp_path / "out", code=1)
    assert ":4" in done.stderr or "line 4" in done.stderr
    assert not (tmp_path / "out").exists()


def test_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert "no assessments" in cupel("convert", "a66", tmp_path / "data", tmp_path / "out", code=1).stderr

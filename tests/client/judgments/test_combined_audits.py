"""`cupel audit combine`: sums of finished audits over collections."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli

COLLECTION = """\
aspects: {relevance: {labels: [0, 1, 2]}, quality: {labels: [0, 1]}}
qrels: [{file: q.txt, columns: [topic, _, document, relevance, quality]}]
"""
SIZES = {"first": (8, 4), "second": (8, 5)}
"""Collection -> numbers of topics and of runs."""
ASPECT_MEASURES = {"first": "nDCG@5 AP P@2", "second": "P@2 nDCG@5"}
"""Collection -> measures of the audit `aspects`. AP is left out of sums, because the second lacks it."""


def cupel(*arguments: Any, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def write_collection(folder: Path, topics: int, runs: int, seed: int) -> None:
    """Write random judgments of 12 documents by topic, and runs of decreasing quality."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    grades = rng.integers(0, 3, (topics, 12))
    lines = [f"{t} 0 d{d} {grades[t, d]} {(t + d) % 2}" for t in range(topics) for d in range(12)]
    (folder / "q.txt").write_text("\n".join(lines) + "\n")
    (folder / "c.yaml").write_text(COLLECTION)
    for run in range(runs):
        scores = grades + rng.normal(0, 0.3 + run, grades.shape)
        ranked = [f"{t} Q0 d{d} 1 {scores[t, d]} r" for t in range(topics) for d in range(12)]
        (folder / f"run{run}.txt").write_text("\n".join(ranked) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two collections, and finished audits of two kinds of each."""
    top = tmp_path_factory.mktemp("combined")
    for seed, (name, (topics, runs)) in enumerate(SIZES.items()):
        write_collection(top / name, topics, runs, seed)
        files = [top / name / "c.yaml", *sorted((top / name).glob("run*.txt")), "--jobs", 1]
        power = ("--replicates", 300, "--alpha", 0.1, "-m", "P@2 nDCG@5 AP")
        cupel("audit", "discriminative_power", *files, *power, "--out", top / "power" / name)
        cupel("audit", "aspects", *files, "-m", ASPECT_MEASURES[name], "--out", top / "aspects" / name)
    return top


def report_of(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / "report.json").read_text())
    tables = {table["name"]: table for table in data["report"]["tables"]}
    return {
        name: [
            dict(zip((column["name"] for column in table["columns"]), row, strict=True))
            for row in table["rows"]
        ]
        for name, table in tables.items()
    }


def combined(folder: Path, kind: str, out: Path) -> dict[str, Any]:
    cupel("audit", "combine", folder / kind / "first", folder / kind / "second", "--out", out)
    return report_of(out)


def report_in(folder: Path) -> Any:
    return json.loads((folder / "report.json").read_text())["report"]


def test_powers_are_sums_of_pairs_of_the_same_collection(folder: Path, tmp_path: Path) -> None:
    """4 and 5 runs have 6 and 10 pairs. P@2 and AP are tied on the first collection."""
    told = {"P@2": (1, 0), "nDCG@5": (3, 6), "AP": (1, 5)}
    parts = [report_of(folder / "power" / name)["measures"] for name in SIZES]
    assert told == {
        text: tuple(row["significant"] for part in parts for row in part if row["measure"] == text)
        for text in told
    }
    whole = combined(folder, "power", tmp_path / "both")
    assert [tuple(row.values()) for row in whole["measures"]] == [
        ("P@2", 100 * 1 / 16, 1, 16, 0, 2),
        ("nDCG@5", 100 * 9 / 16, 9, 16, 2, 0),
        ("AP", 100 * 6 / 16, 6, 16, 0, 1),
    ]
    assert [tuple(row.values()) for row in whole["collections"]] == [
        (text, name, pytest.approx(100 * significant / pairs), significant, pairs)
        for text, counts in told.items()
        for name, significant, pairs in zip(SIZES, counts, (6, 10), strict=True)
    ]
    assert [(row["first"], row["second"], row["difference"]) for row in whole["differences"]] == [
        ("P@2", "nDCG@5", -50.0),
        ("P@2", "AP", -31.25),
        ("nDCG@5", "AP", 18.75),
    ]


def test_verdict_states_each_power_and_the_interval_of_the_largest_difference(
    folder: Path, tmp_path: Path
) -> None:
    whole = combined(folder, "power", tmp_path / "both")
    low, high = (-whole["differences"][0][end] for end in ("high", "low"))  # P@2 is the first measure
    by_test = "differ significantly by the paired bootstrap test at alpha 0.1, uncorrected."
    report = report_in(tmp_path / "both")
    assert report["verdict"] == [
        "Of 16 pairs of runs of 2 collections, 9 (56.25%) differ significantly (paired bootstrap test, "
        "alpha 0.1, uncorrected) by nDCG@5, the highest number, and 1 (6.25%) by P@2, the lowest. The "
        "difference of nDCG@5 and P@2 is 50.00 percentage points; its 95 per cent interval over samples of "
        f"topics is {low:.2f} to {high:.2f}. It holds only for measures chosen beforehand.",
        f"nDCG@5: 9 of 16 pairs of runs (56.25%) {by_test} On 2 of 2 collections, no measure has a higher "
        "power.",
        f"AP: 6 of 16 pairs of runs (37.50%) {by_test} On 0 of 2 collections, no measure has a higher power.",
        f"P@2: 1 of 16 pairs of runs (6.25%) {by_test} On 0 of 2 collections, no measure has a higher power.",
    ]
    assert report["numbers"] == {"power(P@2)": 6.25, "power(nDCG@5)": 56.25, "power(AP)": 37.5}
    assert (report["actions"], report["warnings"], report["undefined"]) == ([], [], [])
    # The bootstrap samples are shuffled in the same way in each run.
    assert [round(row[end], 2) for row in whole["differences"] for end in ("low", "high")] == [
        -84.26, -21.76, -57.16, -7.16, 2.09, 33.34,
    ]  # fmt: skip


def test_interval_adds_the_variances_of_independent_collections(folder: Path, tmp_path: Path) -> None:
    """Two equal collections have twice the variance of one, and not four times as with shared samples."""
    first = folder / "power" / "first"
    shutil.copytree(first, tmp_path / "copy")
    cupel("audit", "combine", first, tmp_path / "copy", "--out", tmp_path / "both")
    [row] = [
        r
        for r in report_of(tmp_path / "both")["differences"]
        if {r["first"], r["second"]} == {"nDCG@5", "P@2"}
    ]
    trials: dict[str, Any] = {}
    for part in (first / "parts").glob("[0-9]*.json"):
        trials |= json.loads(part.read_text())
    samples = {trial["measure"]: np.array(trial["by_sample"]) for trial in trials.values()}
    variance = 2 * float(np.var(100 * (samples[row["first"]] - samples[row["second"]]) / 12))
    assert row["low"] <= row["difference"] <= row["high"]
    differences = report_of(tmp_path / "both")["differences"]
    report = report_in(tmp_path / "both")
    assert bool(report["actions"]) == any(r["low"] <= 0 <= r["high"] for r in differences)
    assert report["verdict"][0].endswith(
        "and 2 (16.67%) by P@2 and AP, the lowest. Intervals of the differences are in the table "
        "`differences`."
    )
    assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * variance**0.5, rel=0.15)


def test_verdict_does_not_compare_equal_powers(folder: Path, tmp_path: Path) -> None:
    """A topic has 12 documents, so AP and AP@12 are equal. P@2 is a measure of one collection only."""
    for seed, (name, measures) in enumerate({"first": "AP P@2 AP@12", "second": "AP AP@12"}.items()):
        files = [folder / name / "c.yaml", *sorted((folder / name).glob("run*.txt")), "--jobs", 1]
        power = ("--replicates", 300, "-m", measures, "--seed", seed, "--out", tmp_path / "power" / name)
        cupel("audit", "discriminative_power", *files, *power)
    whole, report = combined(tmp_path, "power", tmp_path / "both"), report_in(tmp_path / "both")
    assert json.loads((tmp_path / "both" / "report.json").read_text())["seed"] == 0
    assert [sentence.partition(":")[0] for sentence in report["verdict"]] == ["AP", "AP@12"]
    for sentence in report["verdict"]:
        assert sentence.endswith(" On 2 of 2 collections, no measure has a higher power.")
    assert [tuple(row.values()) for row in whole["differences"]] == [("AP", "AP@12", 0, 0, 0)]
    assert report["undefined"] == ["power of P@2: it is undefined on a collection"]
    assert report["actions"] == [
        "Do not choose between measures by power alone. Where the interval of a difference includes 0, the "
        "difference is not established. A measure with high power may still measure the wrong thing."
    ]


def test_tied_measures_are_named_together(folder: Path, tmp_path: Path) -> None:
    """AP and AP@80 of rankings of 12 documents are equal, so they have the same power."""
    for name in SIZES:
        files = [folder / name / "c.yaml", *sorted((folder / name).glob("run*.txt")), "--jobs", 1]
        power = (
            "--replicates",
            300,
            "--alpha",
            0.1,
            "-m",
            "P@2 AP AP@80",
            "--out",
            tmp_path / "power" / name,
        )
        cupel("audit", "discriminative_power", *files, *power)
    rows = {
        row["measure"]: row["significant"]
        for row in combined(tmp_path, "power", tmp_path / "both")["measures"]
    }
    assert rows["AP"] == rows["AP@80"] > rows["P@2"]
    report = json.loads((tmp_path / "both" / "report.json").read_text())["report"]
    high, low = (f"{100 * rows[name] / 16:.2f}%" for name in ("AP", "P@2"))
    assert report["verdict"][0].startswith(
        f"Of 16 pairs of runs of 2 collections, {rows['AP']} ({high}) differ significantly (paired bootstrap "
        f"test, alpha 0.1, uncorrected) by AP and AP@80, the highest number, and {rows['P@2']} ({low}) by "
        "P@2, the lowest."
    )
    assert report["verdict"][0].endswith(" Intervals of the differences are in the table `differences`.")
    [plot] = report["plots"]
    assert plot["title"] == (
        f"Over 2 collections, {100 * rows['AP'] / 16:.1f}% of the pairs differ significantly by AP@80 and "
        f"AP, {100 * rows['P@2'] / 16:.1f}% by P@2 (paired bootstrap test, alpha 0.1, uncorrected)"
    )


def test_audits_by_different_profiles_or_depths_are_refused(folder: Path, tmp_path: Path) -> None:
    name = "second"
    files = [folder / name / "c.yaml", *sorted((folder / name).glob("run*.txt")), "--jobs", 1]
    other = ("--profile", "trec_eval-9", "--depth", 5)
    cupel("audit", "aspects", *files, "-m", "nDCG@5", *other, "--out", tmp_path / name)
    refused = cupel("audit", "combine", folder / "aspects" / "first", tmp_path / name, code=2).output
    assert "second differs from first in scoring profile: repeat it with the same scoring profile" in refused
    assert "in depth: repeat it with the same depth" in refused.replace("\n", " ")


def test_documents_and_topics_of_aspects_are_summed(folder: Path, tmp_path: Path) -> None:
    whole = combined(folder, "aspects", tmp_path / "both")
    parts = [report_of(folder / "aspects" / name) for name in SIZES]
    bounded = [f"{kind}(of={component})" for component in ("nDCG@5", "P@2") for kind in ("CAM", "MM")]
    assert [row["measure"] for row in whole["bounds"]] == bounded
    zero = [row for row in whole["zero"] if not row["measure"].startswith("all ")]
    assert [row["measure"] for row in zero[::5]] == ["CAM(of=nDCG@5)", "CAM(of=P@5)"]
    for row in zero:
        of_parts = [next(r for r in part["zero"] if r["measure"] == row["measure"]) for part in parts]
        for name in ("count", "documents"):
            assert row[name] == sum(part[name] for part in of_parts)
    for row in whole["bounds"]:
        of_parts = [next(r for r in part["bounds"] if r["measure"] == row["measure"]) for part in parts]
        assert row["topics"] == 16
        assert row["full"] == pytest.approx(sum(part["full"] for part in of_parts) / 2)
        assert row["least"] == min(part["least"] for part in of_parts)
        assert row["topic"].split("/")[0] in SIZES
    assert next(iter(whole)) == "bounds"
    assert len(whole["zero"]) == len(parts[1]["zero"]) > len(zero) == 10
    assert len(whole["strategies"]) == sum(
        row["measure"] in bounded for part in parts for row in part["strategies"]
    )


def test_result_does_not_depend_on_where_it_is_computed(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        combined(folder, "power", tmp_path / name)
    first, second = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("one", "two"))
    assert first["digest"] == second["digest"]
    assert set(first["provenance"]["combined"]) == set(SIZES)


def test_audit_by_an_earlier_release_without_samples_is_refused(folder: Path, tmp_path: Path) -> None:
    old = shutil.copytree(folder / "power" / "second", tmp_path / "old")
    for part in (old / "parts").glob("[0-9]*.json"):
        trials = json.loads(part.read_text())
        for trial in trials.values():
            del trial["by_sample"]
        part.write_text(json.dumps(trials))
    message = cupel("audit", "combine", folder / "power" / "first", old, code=2).stderr
    assert "old: an earlier release of Cupel made this audit, without the bootstrap samples" in message
    assert "repeat its command with --restart" in message
    assert "first:" not in message


def test_what_cannot_be_combined_is_a_usage_error(folder: Path, tmp_path: Path) -> None:
    power, aspects = folder / "power", folder / "aspects"
    assert "two or more" in cupel("audit", "combine", power / "first", code=2).stderr
    assert "another name" in cupel("audit", "combine", power / "first", power / "first", code=2).stderr
    mixed = cupel("audit", "combine", power / "first", aspects / "second", code=2).stderr
    assert "second differs from first in kind" in mixed.replace("\n", " ")
    assert "finished audit" in cupel("audit", "combine", folder / "first", tmp_path, code=2).stderr
    files = [folder / "first" / "c.yaml", *sorted((folder / "first").glob("run*.txt"))]
    for name in ("x", "y"):
        cupel("audit", "scales", *files, "-m", "AP", "--jobs", 1, "--out", tmp_path / name)
    scales = cupel("audit", "combine", tmp_path / "x", tmp_path / "y", code=2).stderr
    assert "audits of kind scales cannot be combined" in scales
    combined(folder, "power", tmp_path / "new")
    again = cupel("audit", "combine", power / "first", power / "second", "--out", tmp_path / "new", code=2)
    assert "name a new folder" in again.stderr

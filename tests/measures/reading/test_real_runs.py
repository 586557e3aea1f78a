"""Tests of real runs: every reader gives the same rows, and known defects give the right warnings.

The notes of the shared data list the defects.
"""

from pathlib import Path

import pytest

from cupel_measures.findings import Refused
from cupel_measures.model import Joined, Run
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading import joins
from cupel_measures.reading.compression import open_plain
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import check_against, digest, join, join_run, profile_effects, read_run

IN_2014, IN_2015, TOUCHE, WEB, TREC_EVAL = (
    "clef-ehealth-2014-task3",
    "clef-ehealth-2015-task2",
    "touche22-task2",
    "trec-web-diversity",
    "trec-eval-tests",
)
QRELS = {
    IN_2014: "qrels/qrels.clef2014.test.graded.txt.gz",
    IN_2015: "qrels/qrels.eng.clef2015.qtest.graded.txt.gz",
    TOUCHE: "qrels/touche-task2-2022-relevance.qrels",
    WEB: "2012/qrels.adhoc.txt.gz",
    TREC_EVAL: "qrels.test",
}
RUNS = [
    *((IN_2014, "runs/*"), (IN_2015, "runs/*"), (TOUCHE, "runs/*/*/*"), (WEB, "2012/runs/**/*.gz")),
    (TREC_EVAL, "results.t[er]*"),
]


def read(shared: Path, collection: str, run: str) -> Run:
    return read_run(shared / "data" / collection / run, depth=1000)


def totals(shared: Path, collection: str, run: str) -> dict[str, int]:
    """Return the number of findings by code, without the codes that almost every run has."""
    counts = read(shared, collection, run).findings.totals
    return {code: total for code, total in counts.items() if code not in ("run-tag", "run-ties")}


def values(joined: Joined) -> list[bytes]:
    parts = (joined.retrieved, joined.offsets, joined.document, joined.rank, joined.first, joined.last)
    return [part.tobytes() for part in parts]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(("collection", "pattern"), RUNS)
def test_readers_agree_on_real_runs(
    shared: Path, collection: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared / "data" / collection
    qrels, implementations = read_qrels(folder / QRELS[collection]), {joins.extension, None}
    runs = sorted(folder.glob(pattern))
    assert runs
    for path in runs:
        with open_plain(path) as stream:
            text = stream.read()
        ranking = read_run(text).ranking
        for profile in (PROFILES["cupel"], PROFILES["trec_eval-9"]):
            results = []
            for implementation in implementations:
                monkeypatch.setattr(joins, "extension", implementation)
                results.append(values(join_run(text, qrels, profile=profile, depth=1000)))
                results.append(values(join(ranking, qrels, profile=profile, depth=1000)))
            assert all(result == results[0] for result in results), path.name


@pytest.mark.parametrize(
    ("collection", "run", "expected"),
    [
        (IN_2015, "runs/ECNU_EN_Run.3.dat.gz", {"run-ranks-zero": 66}),
        (IN_2015, "runs/FDUSGInfo_EN_Run.3.dat.gz", {}),
        (IN_2015, "runs/TeamHCMUS_EN_Run.1.dat.gz", {"run-ranks-zero": 66}),
        (IN_2015, "runs/KISTI_EN_RUN.1.dat.gz", {"run-ranks-equal": 66}),
        (IN_2015, "runs/KUCS_EN_Run.3.dat.gz", {"run-ranks-contradict": 66}),
        (IN_2015, "runs/ECNU_EN_Run.8.dat.gz", {"run-ranks-contradict": 7, "run-ranks-zero": 66}),
        (IN_2015, "runs/ECNU_EN_Run.10.dat.gz", {"run-ranks-contradict": 1, "run-ranks-zero": 66}),
        (IN_2015, "runs/UBML_EN_Run.7.dat.gz", {"run-ranks-zero": 66}),
        (IN_2014, "runs/KISTI_EN_Run.1.dat.gz", {"run-ranks-equal": 50}),
        (IN_2014, "runs/CUNI_EN_RUN.1.dat.gz", {"run-ranks-zero": 50}),
        (IN_2014, "runs/DEMIR_EN_Run.1.dat.gz", {"run-ranks-zero": 50}),
        (IN_2014, "runs/YORKU_EN_Run.6.txt.gz", {}),
        (IN_2014, "runs/UHU_EN_Run.1.dat.gz", {"run-second-column": 50_000}),
        (TOUCHE, "runs/Grimjack/output/run1.txt.gz", {"run-second-column": 5000}),
        (TOUCHE, "runs/Asuna/output/run1.txt.gz", {"run-second-column": 2956}),
        (WEB, "2012/runs/ql/results-catb-filtered.txt.gz", {}),
        (WEB, "2010/runs/wt2010.txt.gz", {}),
        (TREC_EVAL, "results.test", {}),
    ],
)
def test_known_defect_gives_a_warning(
    shared: Path, collection: str, run: str, expected: dict[str, int]
) -> None:
    assert totals(shared, collection, run) == expected


@pytest.mark.parametrize(
    ("run", "tag"),
    [
        ("Katana/output/run1.txt.gz", '"Colbert fine tune on touche data"'),
        ("Katana/output/run2.txt.gz", '"Colbert trained by me"'),
        ("Katana/output/run3.txt.gz", '"Colbert edinburg"'),
    ],
)
def test_tag_may_have_spaces_and_quotes(shared: Path, run: str, tag: str) -> None:
    assert read(shared, TOUCHE, f"runs/{run}").tag == tag


def test_words_after_the_tag_are_part_of_it(shared: Path) -> None:
    run = read(shared, TREC_EVAL, "results.trunc")
    assert run.tag.startswith("STANDARD ")
    qrels = read_qrels(shared / "data" / TREC_EVAL / "qrels.test")
    assert check_against(run, qrels.topics).totals == {"run-topics-missing": 1}


def test_document_id_may_contain_a_hash_sign(shared: Path) -> None:
    run = read(shared, TREC_EVAL, "results.comment.test.gz")
    assert any(b"#" in document for document in run.ranking.documents.to_list())
    qrels = read_qrels(shared / "data" / TREC_EVAL / "qrels.comment.test.gz")
    assert check_against(run, qrels.topics).totals == {"run-topics-extra": 270}


@pytest.mark.parametrize("run", ["COMPL_EN_Run.1", "RePaLi_EN_Run.1", "SNUMEDINFO_CZ_Run.1"])
def test_missing_topic_gives_a_warning(shared: Path, run: str) -> None:
    qrels = read_qrels(shared / "data" / IN_2014 / QRELS[IN_2014])
    assert check_against(read(shared, IN_2014, f"runs/{run}.dat.gz"), qrels.topics).totals == {
        "run-topics-missing": 1
    }


def test_unjudged_topic_gives_a_warning(shared: Path) -> None:
    qrels = read_qrels(shared / "data" / IN_2015 / QRELS[IN_2015])
    run = read(shared, IN_2015, "runs/FDUSGInfo_EN_Run.1.dat.gz")
    assert check_against(run, qrels.topics).totals == {"run-topics-extra": 1}


def test_equal_runs_with_different_names_have_the_same_digest(shared: Path) -> None:
    def digest_of(collection: str, run: str) -> str:
        return digest(read(shared, collection, run).ranking)

    assert digest_of(IN_2015, "runs/FDUSGInfo_EN_Run.6.dat.gz") == digest_of(
        IN_2015, "runs/FDUSGInfo_EN_Run.7.dat.gz"
    )
    assert digest_of(IN_2015, "runs/LIMSI_EN_run.4.dat.gz") == digest_of(
        IN_2015, "runs/LIMSI_EN_run.5.dat.gz"
    )
    assert digest_of(IN_2015, "runs/LIMSI_EN_run.1.dat.gz") != digest_of(
        IN_2015, "runs/LIMSI_EN_run.5.dat.gz"
    )


def test_run_with_other_topic_ids_is_rejected_with_a_hint(shared: Path) -> None:
    qrels = read_qrels(shared / "data" / IN_2015 / "qrels/qrels.eng.clef2015.test.graded.txt.gz")
    with pytest.raises(Refused, match=r"prefix: only ids of the run have 'qtest\.'"):
        join_run(shared / "data" / IN_2015 / "runs/KUCS_EN_Run.2.dat.gz", qrels)


def test_file_that_is_not_a_run_is_rejected(shared: Path) -> None:
    with pytest.raises(Refused) as refused:
        read(shared, IN_2015, QRELS[IN_2015])
    assert refused.value.findings.totals == {"file-kind": 1}
    with pytest.raises(Refused):
        read(shared, TOUCHE, "topics/topics-task2.xml.gz")


def test_single_precision_changes_every_topic_of_close_scores(shared: Path) -> None:
    assert len(profile_effects(read(shared, IN_2014, "runs/YORKU_EN_Run.6.txt.gz")).precision) == 50
    assert profile_effects(read(shared, IN_2014, "runs/COMPL_EN_Run.1.dat.gz")).precision == ()


def test_topics_with_contradicting_ranks_are_counted(shared: Path) -> None:
    assert len(profile_effects(read(shared, IN_2015, "runs/KUCS_EN_Run.3.dat.gz")).ranks) == 66
    assert profile_effects(read(shared, IN_2015, "runs/KISTI_EN_RUN.1.dat.gz")).ranks == ()

"""Tests that means are over judged topics, whether or not the collection lists other topics."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import parse_many
from cupel_measures.findings import Findings, Refused
from cupel_measures.model import Aspect, Joined, Qrels
from cupel_measures.reading import joins
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.reading.joins import join
from cupel_measures.reading.qrels_blobs import pack_qrels, qrels_digest, unpack_qrels
from cupel_measures.reading.qrels_files import SUBTOPICS, QrelsFile, build_qrels
from cupel_measures.reading.run_files import check_against, join_run, read_run
from cupel_measures.scoring.evaluator import evaluate, exact_means

RELEVANCE = Aspect(name="relevance", labels=(0, 1, 2), unjudged=(-1,), lowest=(-2,))
QUALITY = Aspect(name="quality", labels=(0, 1))
MEASURES = parse_many("nDCG@3 AP P@2 infAP Bpref NLRE(aspects=[relevance,quality]) NumQ NumRet NumRel GMAP")
RUN = b"".join(
    f"{topic} Q0 {document} {rank} {9 - rank} tag\n".encode()
    for topic in ("1", "2", "3", "4", "x")
    for rank, document in enumerate("abc", 1)
)


def qrels_with(
    lines: str, *, quality: str = "", subtopics: str = "", topics: list[str] | None = None
) -> Qrels:
    """Return qrels of two aspects from the text of their files."""
    files = [QrelsFile.plain("r", lines.encode(), "relevance")]
    if quality:
        files.append(QrelsFile.plain("q", quality.encode(), "quality"))
    if subtopics:
        files.append(QrelsFile("d", subtopics.encode(), SUBTOPICS))
    return build_qrels([RELEVANCE, QUALITY], files, topics=topics)


JUDGED = "1 0 a 1\n1 0 b 0\n2 0 c 2\n"


def as_arrays(joined: Joined) -> list[list[int]]:
    columns = (joined.retrieved, joined.offsets, joined.document, joined.rank, joined.first, joined.last)
    return [[joined.unknown_topics], *(column.tolist() for column in columns)]


class TestJudgedTopics:
    """Topics without any judgment are not scored; all other topics are."""

    def test_listed_topic_without_judgments_is_unjudged(self) -> None:
        qrels = qrels_with(JUDGED, topics=["4", "2", "1", "3"])
        assert (qrels.topics, qrels.unjudged_topics) == (("1", "2"), ("3", "4"))
        assert qrels.listed_topics == ("1", "2", "3", "4")

    def test_topic_with_unjudged_labels_only_is_unjudged(self) -> None:
        qrels = qrels_with("1 0 a -1\n1 0 b -1\n2 0 c 2\n2 0 d -1\n")
        assert (qrels.topics, qrels.unjudged_topics) == (("2",), ("1",))
        assert qrels.documents.to_list() == [b"c", b"d"]
        assert qrels.offsets.tolist() == [0, 2]

    @pytest.mark.parametrize("label", ["0", "-2"])
    def test_topic_without_relevant_documents_scores_0(self, label: str) -> None:
        qrels = qrels_with(f"{JUDGED}3 0 a {label}\n")
        scores = evaluate(qrels, join(read_run(RUN).ranking, qrels), parse_many("P@1 NumQ"))
        assert list(scores.aggregates().values()) == [pytest.approx(1 / 3), 3]

    def test_topic_is_judged_by_another_aspect_or_by_subtopic(self) -> None:
        qrels = qrels_with(
            JUDGED, quality="3 0 a 0\n", subtopics="4 s a 0\n", topics=["1", "2", "3", "4", "5"]
        )
        assert (qrels.topics, qrels.unjudged_topics) == (("1", "2", "3", "4"), ("5",))
        assert qrels.subtopics is not None
        assert qrels.topic_of[qrels.subtopics.document].tolist() == [3]

    def test_documents_judged_by_subtopic_only_are_kept(self) -> None:
        qrels = qrels_with("0 0 a -1\n1 0 a 1\n", subtopics="2 s b 1\n2 s c 0\n")
        assert (qrels.topics, qrels.unjudged_topics) == (("1", "2"), ("0",))
        assert qrels.subtopics is not None
        assert [qrels.documents[int(d)] for d in qrels.subtopics.document] == ["b", "c"]

    def test_collection_without_any_judgment_is_refused(self) -> None:
        with pytest.raises(Refused) as refused:
            qrels_with("1 0 a -1\n")
        assert refused.value.findings.totals == {"qrels-topic-without-judgments": 1, "qrels-empty": 1}

    def test_restricting_judgments_keeps_the_topics(self) -> None:
        qrels = qrels_with(JUDGED, topics=["1", "2", "3"])
        restricted = qrels.restricted_to(np.zeros(len(qrels.documents), bool))
        assert (restricted.topics, restricted.unjudged_topics) == (("1", "2"), ("3",))

    def test_warning_names_topics_that_are_in_no_mean(self) -> None:
        findings = Findings()
        build_qrels(
            [RELEVANCE],
            [QrelsFile.plain("r", b"1 0 a 1\n", "relevance")],
            topics=["1", "7"],
            findings=findings,
        )
        (finding,) = findings
        assert finding.code == "qrels-topic-without-judgments"
        assert finding.message == "1 topic without judgments, so not in any mean: 7"


class TestUnjudgedTopicsChangeNothing:
    """Scores, joined runs and aggregates equal those of a collection without the unjudged topics."""

    @given(
        st.sets(st.sampled_from(["0", "1a", "3", "4", "x", "zz"])),
        st.sampled_from([None, 1, 2]),
        st.booleans(),
    )
    @settings(max_examples=60, deadline=None)
    def test_scores_and_joined_runs_are_equal(
        self, others: set[str], depth: int | None, with_pool: bool
    ) -> None:
        pools = "".join(
            f"{topic} 0 {document} -1\n" for topic in sorted(others) for document in "ab" if with_pool
        )
        listed = qrels_with(JUDGED + pools, topics=["1", "2", *others])
        plain = qrels_with(JUDGED)
        assert listed.unjudged_topics == tuple(sorted(others))
        ranking = read_run(RUN).ranking
        expected = join(ranking, plain, depth=depth)
        known = len(others & {"3", "4", "x"})
        arrays = as_arrays(expected)
        arrays[0] = [3 - known]
        for joined in (join(ranking, listed, depth=depth), join_run(RUN, listed, depth=depth)):
            assert as_arrays(joined) == arrays
            ours, theirs = evaluate(listed, joined, MEASURES), evaluate(plain, expected, MEASURES)
            assert ours.aggregates() == theirs.aggregates()
            assert all(np.array_equal(ours.values[m], theirs.values[m]) for m in MEASURES)
            exact = parse_many("P@2 NumQ")
            assert exact_means(listed, joined, exact, depth=3) == exact_means(plain, expected, exact, depth=3)

    def test_compiled_and_numpy_joins_agree_on_unjudged_topics(self, monkeypatch: pytest.MonkeyPatch) -> None:
        listed = qrels_with(JUDGED, topics=["1", "2", "3", "5"])
        compiled = as_arrays(join_run(RUN, listed)), as_arrays(join(read_run(RUN).ranking, listed))
        monkeypatch.setattr(joins, "extension", None)
        assert compiled == (as_arrays(join_run(RUN, listed)), as_arrays(join(read_run(RUN).ranking, listed)))
        assert compiled[0][0] == [2]

    def test_listed_topic_without_judgments_is_not_an_extra_topic(self) -> None:
        qrels = qrels_with(JUDGED, topics=["1", "2", "3", "4", "5"])
        findings = check_against(read_run(RUN), qrels.listed_topics)
        assert {finding.code: finding.sample for finding in findings} == {
            "run-topics-missing": "5",
            "run-topics-extra": "x",
        }


class TestStoredQrels:
    """The digest and the blob contain all topics of the collection, as in earlier releases."""

    def test_digest_has_listed_topics_in_byte_order(self) -> None:
        qrels = build_qrels(
            [Aspect(name="r", labels=(0, 1))],
            [QrelsFile.plain("r", b"2 0 a 1\n", "r")],
            topics=["1", "2", "3"],
        )
        aspect = (
            '{"embedding":null,"gains":null,"inferred":false,"labels":{"range":[0,1]},"lowest":[],"name":"r",'
            '"threshold":1,"unjudged":[]}'
        )
        text = f"cupel-qrels 1\naspect\t{aspect}\ntopic\t1\ntopic\t2\ndocument\ta\t1\ntopic\t3\n"
        assert qrels_digest(qrels) == sha256(text.encode()).hexdigest()

    def test_blobs_keep_unjudged_topics(self) -> None:
        qrels = qrels_with(JUDGED, topics=["0", "1", "2", "5"])
        again = unpack_qrels(pack_qrels(qrels))
        assert (again.topics, again.unjudged_topics) == (("1", "2"), ("0", "5"))
        assert qrels_digest(again) == qrels_digest(qrels)
        assert pack_qrels(again) == pack_qrels(qrels)

    def test_blobs_of_earlier_releases_are_read(self) -> None:
        """An earlier release kept unjudged topics among the scored topics, with an empty pool."""
        qrels = qrels_with(JUDGED, topics=["1", "15", "2"])
        earlier = Qrels(
            aspects=qrels.aspects,
            topics=("1", "15", "2"),
            offsets=np.array([0, 2, 2, 3]),
            documents=qrels.documents,
            labels=qrels.labels,
        )
        assert (pack_qrels(earlier), qrels_digest(earlier)) == (pack_qrels(qrels), qrels_digest(qrels))
        again = unpack_qrels(pack_qrels(earlier))
        assert (again.topics, again.unjudged_topics) == (("1", "2"), ("15",))


def test_alpha_ndcg_of_the_web_track_2010_equals_ndeval(shared: Path) -> None:
    """pyndeval 0.0.8 (ndeval 4.5) prints a mean of 0.2938 over the 48 judged of 50 topics."""
    folder = shared / "data/trec-web-diversity/2010"
    files = {
        "d.gz": (folder / "10.diversity-qrels.final.txt.gz").read_bytes(),
        "t": "\n".join(map(str, range(51, 101))).encode(),
    }
    text = "aspects: {r: {labels: [0, 1]}}\nqrels: [{file: d.gz, layout: subtopics}]\ntopics: t\n"
    qrels = parse_collection(text, files).qrels
    assert (len(qrels.topics), qrels.unjudged_topics) == (48, ("100", "95"))
    joined = join_run(folder / "runs/wt2010.txt.gz", qrels)
    (mean,) = evaluate(qrels, joined, parse_many("alpha_nDCG@20")).aggregates().values()
    assert f"{mean:.4f}" == "0.2938"

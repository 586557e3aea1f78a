"""Tests of stored rankings: packing is lossless, and the digest depends on the content only."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from cupel_measures.reading import joins
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import digest, join, join_run, pack, read_run, unpack
from support.data.small_collections import qrels_of

RUN = "2 Q0 b 1 1e-3 t\n2 Q0 \u00e9 1 1e-3 t\n10 Q0 a 1 3 t\n10 Q0 c 1 -0.0 t\n".encode()
LINES = "10\ta\t3.0\n10\tc\t-0.0\n2\t\u00e9\t0.001\n2\tb\t0.001\n"


def test_digest_is_the_sha_256_of_the_ordered_lines() -> None:
    assert digest(read_run(RUN).ranking) == hashlib.sha256(LINES.encode()).hexdigest()


def test_digest_ignores_tag_ranks_layout_and_line_order() -> None:
    other = b"# x\n" + b"\r\n".join(
        reversed(RUN.replace(b" t\n", b"\tu v\n").replace(b" 1 ", b"  9 ").splitlines())
    )
    assert digest(read_run(other).ranking) == digest(read_run(RUN).ranking)


def test_digest_depends_on_every_topic_document_and_score() -> None:
    changed = [
        RUN.replace(b"c", b"d"),
        RUN.replace(b"1e-3 t", b"2e-3 t", 1),
        RUN.replace(b"10 Q0 a", b"11 Q0 a"),
    ]
    assert len({digest(read_run(text).ranking) for text in (RUN, *changed)}) == 4


def test_packing_a_ranking_is_lossless() -> None:
    run = read_run(RUN)
    ranking = unpack(pack(run))
    assert ranking.topics == run.ranking.topics
    assert ranking.documents.to_list() == run.ranking.documents.to_list()
    assert np.array_equal(ranking.scores, run.ranking.scores)
    assert ranking.offsets.tolist() == run.ranking.offsets.tolist()


@pytest.mark.parametrize("documents", [1, 2, 3])
def test_columns_of_an_unpacked_ranking_are_aligned(documents: int) -> None:
    text = b"".join(f"1 Q0 {i} 1 {i} t\n".encode() for i in range(documents))
    ranking = unpack(pack(read_run(text)))
    assert all(part.flags.aligned for part in (ranking.scores, ranking.offsets, ranking.documents.starts))


def test_unaligned_ranking_is_joined() -> None:
    ranking, qrels = read_run(RUN).ranking, read_qrels(b"10 0 c 1\n")
    raw = b"1234" + ranking.scores.tobytes()
    skewed = replace(ranking, scores=np.frombuffer(raw, "<f8", offset=4))
    assert not skewed.scores.flags.aligned
    assert join(skewed, qrels).rank.tolist() == join(ranking, qrels).rank.tolist() == [2]


@pytest.mark.skipif(joins.extension is None, reason="the extension was not compiled")
def test_compiled_join_rejects_unaligned_columns() -> None:
    skewed = memoryview(b"1234" + bytes(8))[4:]
    qrels = read_qrels(b"1 0 c 1\n")
    join(read_run(b"1 Q0 c 1 1 t\n").ranking, qrels)
    index = qrels.cache["reading.index"]
    starts, rows = np.array([0, 1]), np.array([0])
    with pytest.raises(ValueError, match="aligned"):
        joins.extension.join(index, b"c", starts, rows, starts, skewed, False, -1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: b"",
        lambda blob: b"rubbish!" * 10,
        lambda blob: blob[:30],
        lambda blob: blob[:-3],
        lambda blob: blob[:8] + b"\xff" * 8 + blob[16:],
        lambda blob: blob[:8] + b"\x01" + blob[9:],
        lambda blob: blob[:50] + b"\xff" * 8 + blob[58:],
    ],
    ids=["empty", "garbage", "header only", "truncated", "huge sizes", "wrong sizes", "damaged"],
)
def test_unpacking_a_damaged_blob_raises_value_error(damage: object) -> None:
    with pytest.raises(ValueError, match="packed ranking"):
        unpack(damage(pack(read_run(RUN))))  # type: ignore[operator]


@pytest.mark.parametrize("compiled", [True, False])
def test_every_reader_counts_topics_missing_from_the_qrels(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(joins, "extension", None)
    qrels = qrels_of({"1": {"a": 1}})
    text = b"1 Q0 a 1 2 run\n8 Q0 a 1 2 run\n9 Q0 a 1 2 run\n"
    assert join_run(text, qrels).unknown_topics == 2
    assert join(read_run(text).ranking, qrels).unknown_topics == 2

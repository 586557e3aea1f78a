"""Tests that the line, compiled and numpy readers of runs agree on random runs, valid or not."""

import math
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.findings import Refused
from cupel_measures.model import Joined, Ranking
from cupel_measures.model.profiles import PROFILES, Profile
from cupel_measures.reading import joins
from cupel_measures.reading.lines.decimal_columns import NUMBER, numbers
from cupel_measures.reading.lines.text_columns import Text
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import Limits, digest, join, join_run, pack, read_run, unpack

IMPLEMENTATIONS = [joins.extension, None] if joins.extension else [None]
LIMITS = Limits(line=300, lines=60, topics=5, depth=20)

DOCUMENTS = [
    "a",
    "ab",
    "b",
    "\u00e9",
    "clueweb12-0001wb-72-30848___31",
    "clueweb12-0001wb-72-30848",
    "x" * 70,
]
TOPICS = ["1", "10", "2", "qtest.46", "a-topic-with-a-long-name-1", "a-topic-with-a-long-name-2"]
QRELS = read_qrels("".join(f"{t} 0 {d} 1\n" for t in TOPICS[:4] for d in DOCUMENTS[::2]).encode())

separators = st.sampled_from([" ", " ", " ", "\t", "  ", " \t", "\x0b"])
endings = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r\n", "\r", " \n", "\n\n", "\n# a comment\n"])
valid_numbers = st.one_of(
    st.integers(0, 5).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(0, 40, allow_nan=False).map("{:.4f}".format),
    st.sampled_from(["1e5", "-0.0", "+3.50", ".5", "1E-400", "9" * 30, "0.1", "0.100000001"]),
)
any_numbers = st.one_of(
    valid_numbers,
    valid_numbers,
    valid_numbers,
    st.sampled_from(["nan", "1.", "x", "0x1", "1_0", "1e400", "9" * 310]),
)
clean_lines = st.tuples(
    st.sampled_from(TOPICS),
    st.just("Q0"),
    st.sampled_from(DOCUMENTS),
    st.integers(0, 1000).map(str),
    valid_numbers,
    st.just("tag"),
)
messy_lines = st.one_of(
    clean_lines,
    clean_lines,
    st.tuples(
        *(st.sampled_from(["1", "#", "\u00a0", "Q0", "\x00", "\x1f", "a b", "y" * 200]) for _ in range(6))
    ),
    st.tuples(st.sampled_from(TOPICS), st.just("0"), st.sampled_from(DOCUMENTS), any_numbers, any_numbers),
)


@st.composite
def runs(draw: st.DrawFn, lines: st.SearchStrategy[tuple[str, ...]]) -> bytes:
    """Draw lines with various separators and endings.

    Half of the runs are sorted by topic, and some have damaged bytes.
    """
    rows = draw(st.lists(lines, max_size=40))
    if draw(st.booleans()):
        rows = [row for _, row in sorted({(row[0], row[2]): row for row in rows if len(row) > 2}.items())]
    plain = draw(st.booleans())
    text = "".join(
        (" " if plain else draw(separators)).join(row) + ("\n" if plain else draw(endings)) for row in rows
    ).encode()
    if text and draw(st.integers(0, 5)) == 0:
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.binary(max_size=3)) + text[at + 1 :]
    return text[: len(text) - draw(st.integers(0, 1))]


def with_implementation(implementation: object, call: Callable[[], Joined]) -> Joined:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins, "extension", implementation)
        return call()


def read_fast(
    text: bytes, profile: Profile, depth: int | None, implementation: object
) -> Joined | dict[str, int]:
    """Return the rows that a fast reader returns, or the number of errors of each kind."""
    try:
        return with_implementation(
            implementation, lambda: join_run(text, QRELS, profile=profile, depth=depth, limits=LIMITS)
        )
    except Refused as refused:
        return refused.findings.totals


def read_by_line(text: bytes) -> Ranking | None:
    """Return the ranking that the line reader returns, or None if it rejects the run."""
    try:
        ranking = read_run(text, limits=LIMITS).ranking
    except Refused:
        return None
    return None if set(ranking.topics).isdisjoint(QRELS.topics) else ranking


def array_bytes(joined: Joined | dict[str, int]) -> object:
    """Return a value that is equal only if all arrays are bit-identical and have equal types."""
    if isinstance(joined, dict):
        return joined
    parts = (joined.retrieved, joined.offsets, joined.document, joined.rank, joined.first, joined.last)
    return [(part.dtype, part.tobytes()) for part in parts]


@settings(max_examples=400, deadline=None)
@given(
    text=st.one_of(runs(clean_lines), runs(messy_lines)),
    profile=st.sampled_from(sorted(PROFILES.values(), key=lambda profile: profile.name)),
    depth=st.sampled_from([None, 1, 3, 1000]),
)
def test_readers_agree_on_random_runs(text: bytes, profile: Profile, depth: int | None) -> None:
    results = [
        array_bytes(read_fast(text, profile, depth, implementation)) for implementation in IMPLEMENTATIONS
    ]
    assert all(result == results[0] for result in results)
    ranking = read_by_line(text)
    assert isinstance(results[0], dict) == (ranking is None)
    if ranking is not None:
        again = unpack(pack(read_run(text, limits=LIMITS)))
        assert digest(again) == digest(ranking)
        for implementation in IMPLEMENTATIONS:
            joined = with_implementation(
                implementation, lambda: join(again, QRELS, profile=profile, depth=depth)
            )
            assert array_bytes(joined) == results[0]


def expected_ranking(text: bytes) -> dict[str, list[tuple[float, bytes]]]:
    """Return the ranking of a valid run, computed in the simplest way."""
    topics: dict[str, list[tuple[float, bytes]]] = {}
    for line in text.decode().splitlines():
        topic, _, document, _, score, _ = line.split(" ")
        topics.setdefault(topic, []).append((float(score), document.encode()))
    return {topic: sorted(documents, reverse=True) for topic, documents in sorted(topics.items())}


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(clean_lines, min_size=1, max_size=60, unique_by=lambda row: (row[0], row[2])))
def test_ranking_is_sorted_by_score_then_id_descending(rows: list[tuple[str, ...]]) -> None:
    text = "".join(" ".join(row) + "\n" for row in rows).encode()
    ranking = read_run(text).ranking
    offsets = ranking.offsets.tolist()
    pairs = list(zip(ranking.scores.tolist(), ranking.documents.to_list(), strict=True))
    topics = {topic: pairs[a:b] for topic, a, b in zip(ranking.topics, offsets, offsets[1:], strict=False)}
    assert topics == expected_ranking(text)
    assert list(topics) == list(expected_ranking(text))


def large_run(seed: int, *, ties: bool, shuffled: bool) -> bytes:
    """Return a run of several read blocks, with topics of unequal depth."""
    rng = random.Random(seed)
    lines = []
    for topic in rng.sample(range(100), 60):
        for rank, document in enumerate(rng.sample(range(5000), rng.choice([1, 10, 900, 3000])), 1):
            score = float(rng.randrange(40)) if ties else 9000 - rank + rng.random()
            lines.append(f"q{topic} Q0 document-{document:07} {rank} {score!r} tag\n")
    if shuffled:
        rng.shuffle(lines)
    return "".join(lines).encode()


@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "tied"])
@pytest.mark.parametrize("shuffled", [False, True], ids=["grouped", "shuffled"])
def test_readers_agree_on_runs_of_several_blocks(ties: bool, shuffled: bool) -> None:
    text = large_run(1, ties=ties, shuffled=shuffled)
    qrels = read_qrels(
        "".join(f"q{t} 0 document-{d:07} 1\n" for t in range(90) for d in range(t, 5000, 7)).encode()
    )
    ranking = read_run(text).ranking
    for profile, depth in ((PROFILES["cupel"], None), (PROFILES["trec_eval-9"], 100)):
        direct = partial(join_run, text, qrels, profile=profile, depth=depth)
        stored = partial(join, ranking, qrels, profile=profile, depth=depth)
        results = [
            array_bytes(with_implementation(extension, call))
            for extension in IMPLEMENTATIONS
            for call in (direct, stored)
        ]
        assert all(result == results[0] for result in results)


# ------------------------------------------------------------------------------------------- numbers


def number_texts(seed: int, count: int) -> list[str]:
    """Return numbers in many notations, among them numbers that are hard to round."""
    rng = random.Random(seed)
    texts: list[str] = []
    while len(texts) < count:
        bit_pattern = struct.unpack("<d", rng.randbytes(8))[0]
        value = rng.choice([rng.random(), rng.uniform(-50, 50), rng.lognormvariate(0, 20), bit_pattern])
        if value != value or abs(value) == float("inf"):
            continue
        digits = "".join(rng.choices("0123456789", k=rng.randint(1, 25)))
        point = rng.randint(0, len(digits) - 1)
        halfway = Decimal(value) + (Decimal(float(np.nextafter(value, np.inf))) - Decimal(value)) / 2
        texts += [
            repr(value), f"{value:.{rng.randint(1, 20)}f}"[:300], f"{value:.{rng.randint(0, 20)}e}",
            f"{digits[:point]}.{digits[point:]}", f"-{digits}", f"+{digits}E{rng.randint(-30, 30)}",
            str(rng.randrange(1 << 64)), f"{halfway:.17g}", f"{halfway:f}"[:300].rstrip("."),
            f"{9007199254740993 * rng.choice([1, 10, 100])}e-{rng.randint(0, 3)}",
            f"0.{rng.randrange(10**19):019}", f"{rng.randrange(1 << 54) | 1}.5",
        ]  # fmt: skip
    return [text for text in texts if NUMBER.fullmatch(text.encode())]


def test_numbers_are_parsed_exactly_as_by_python() -> None:
    words = number_texts(2, 60_000)
    blob = "\n".join([" " * 8, *words, ""]).encode()
    ends = np.cumsum([len(word) + 1 for word in words]) + 8
    starts = ends - [len(word) for word in words]
    values, wrong = numbers(Text.of(blob), starts, ends)
    assert not wrong.size
    assert values.tobytes() == np.array([float(word) for word in words]).tobytes()


@pytest.mark.skipif(joins.extension is None, reason="the extension was not compiled")
def test_compiled_reader_compares_numbers_exactly_as_python() -> None:
    """Each number is tied with its repr, and ranks between its two adjacent doubles."""
    words = number_texts(3, 12_000)
    qrels = read_qrels("".join(f"{i} 0 m 1\n" for i in range(len(words))).encode())
    lines = []
    for i, word in enumerate(words):
        value = float(word)
        above, below = float(np.nextafter(value, np.inf)), float(np.nextafter(value, -np.inf))
        scores = {"m": word, "n": repr(value), "a": repr(above), "z": repr(below)}
        lines += [f"{i} Q0 {name} 1 {score} t\n" for name, score in scores.items() if "inf" not in score]
    joined = join_run("".join(lines).encode(), qrels, limits=Limits(depth=5))
    upper = np.array([float(np.nextafter(float(word), np.inf)) < np.inf for word in words])
    assert (joined.first == 1 + upper).all()
    assert (joined.rank == 2 + upper).all()
    assert (joined.last == 2 + upper).all()


@settings(max_examples=300, deadline=None)
@given(
    st.text(alphabet="0123456789+-.eE_x \u0661", min_size=1, max_size=12).filter(lambda text: " " not in text)
)
def test_every_reader_rejects_invalid_numbers(word: str) -> None:
    text = f"1 Q0 a 1 {word} tag\n".encode()
    is_valid = NUMBER.fullmatch(word.encode()) is not None and math.isfinite(float(word))
    for implementation in IMPLEMENTATIONS:
        assert isinstance(read_fast(text, PROFILES["cupel"], None, implementation), Joined) == is_valid

"""Why LMD has the defaults that it has: how well it orders systems as judgments become few (spec 7.3, 7.5).

Two real collections with texts: short Turkish descriptions with subtopics (odp-tr30) and English abstracts
(cranfield), where relevance is the only subtopic. A lexical ranker and degraded variants of it are the
systems. Each measure is correlated (tau-b) with alpha_nDCG@20 under all judgments, and with itself.
"""

import gzip
import itertools
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from cupel_measures.comparing.correlation import tau_b
from cupel_measures.evaluating import evaluate
from cupel_measures.grammar import parse
from cupel_measures.model import Content, Joined, Qrels, Subtopics
from cupel_measures.reading.texts import read_texts, words_of
from making import content_of, diverse, joined_of, ranked

DEPTH = 60
REPEATS = 5
CLASSIC, PLAIN, STOP, TERMS = "alpha_nDCG@20", "LMD", "LMD(stop=50)", "LMD(terms=100)"
SMOOTHED, WEIGHTED = "LMD(smoothing=0.2)", "LMD(weights=documents)"
SOFT, SOFT_STOP = "soft_alpha_nDCG@20", "soft_alpha_nDCG(stop=50)@20"
SHARES = (100, 30, 10)
SEED = 7


@dataclass(frozen=True)
class Collection:
    """texts: by document. queries: by topic, each a list of parts that a diverse system takes in turn.
    judged: topic -> document -> subtopic -> judgment."""

    texts: Mapping[str, str]
    queries: Mapping[str, Sequence[str]]
    judged: Mapping[str, Mapping[str, Mapping[str, int]]]


def odp(data: Path) -> Collection:
    rows = gzip.decompress((data / "odp-tr30/results.txt.gz").read_bytes()).decode().splitlines()[1:]
    fields = [row.split("\t") for row in rows]
    named = [line.split("\t") for line in (data / "odp-tr30/subTopics.txt").read_text().splitlines()[1:]]
    queries: dict[str, list[str]] = {}
    for subtopic, description, *_ in named:
        *_, topic, own = description.split(">")
        queries.setdefault(subtopic.split(".")[0], [topic]).append(own)
    judged: dict[str, dict[str, dict[str, int]]] = {}
    for line in (data / "odp-tr30/STRel.txt").read_text().splitlines()[1:]:
        subtopic, document = line.split()
        judged.setdefault(subtopic.split(".")[0], {}).setdefault(document, {})[subtopic] = 1
    return Collection({one[0]: " ".join(one[2:]) for one in fields}, queries, judged)


def cranfield(data: Path) -> Collection:
    """Every fifth query. Query n of the file is topic n of the qrels."""
    documents = gzip.decompress((data / "cranfield/cran.all.1400.xml.gz").read_bytes()).decode(
        errors="replace"
    )
    asked = gzip.decompress((data / "cranfield/cran.qry.xml.gz").read_bytes()).decode()
    queries = {str(n): [text] for n, text in enumerate(re.findall("<title>(.*?)</title>", asked, re.S), 1)}
    judged: dict[str, dict[str, dict[str, int]]] = {}
    for line in (data / "cranfield/cranqrel.trec.txt").read_text().splitlines():
        topic, _, document, label = line.split()
        if int(topic) % 5 == 0:
            judged.setdefault(topic, {})[document] = {"1": int(label)}
    found = re.findall("<docno>(.*?)</docno>.*?<text>(.*?)</text>", documents, re.S)
    return Collection({one.strip(): text for one, text in found}, {t: queries[t] for t in judged}, judged)


class Ranker:
    """BM25 and two simpler rankers over an inverted file."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.ids = sorted(texts)
        self.counts = [Counter(words_of(texts[document])) for document in self.ids]
        self.lengths = [counts.total() for counts in self.counts]
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, counts in enumerate(self.counts):
            for word, count in counts.items():
                self.postings[word].append((place, count))

    def search(self, words: Sequence[str], *, k: float = 1.2, b: float = 0.75, idf: bool = True) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        mean = fmean(self.lengths)
        for word in words:
            postings = self.postings.get(word, [])
            weight = math.log(1 + len(self.ids) / (len(postings) + 0.5)) if idf else 1.0
            for place, count in postings:
                length = 1 - b + b * self.lengths[place] / mean
                scores[place] += weight * count * (k + 1) / (count + k * length)
        best = sorted(scores, key=lambda place: (-scores[place], place))[:DEPTH]
        return [self.ids[place] for place in best]

    def like(self, document: str) -> list[str]:
        """The document and the three that are most like it."""
        return [document, *self.search(list(self.counts[self.ids.index(document)]))[:3]]


def systems(ranker: Ranker, parts: Sequence[str], draw: random.Random) -> dict[str, list[str]]:
    """What each system gives for a query: BM25, other parameters, fewer words, and orders made worse."""
    words = words_of(" ".join(parts))
    whole = ranker.search(words)
    lists = [ranker.search(words_of(f"{parts[0]} {part}")) for part in parts[1:]]
    found = {
        "bm25": whole,
        "short": ranker.search(words, k=0.2, b=0),
        "long": ranker.search(words, k=5, b=1),
        "coordination": ranker.search(words, k=0, idf=False),
        "half": ranker.search(words[::2]),
        "third": ranker.search(words[::3]),
        "first": ranker.search(words[:2]),
        "shuffled 20": draw.sample(whole[:20], len(whole[:20])) + whole[20:],
        "shuffled": draw.sample(whole, len(whole)),
        "reversed": whole[19::-1],
        "duplicates": [one for document in whole[:8] for one in ranker.like(document)],
        "in turn": [one for tier in itertools.zip_longest(*lists) for one in tier if one],
        "grouped": [one for of in lists for one in of[:10]],
    }
    for percent in (10, 30, 50, 70):
        found[f"noise {percent}"] = _noisy(whole, ranker.ids, percent, draw)
    found["in turn, noise"] = _noisy(found["in turn"], ranker.ids, 40, draw)
    return {name: list(dict.fromkeys(order))[:DEPTH] for name, order in found.items()}


def _noisy(order: Sequence[str], ids: Sequence[str], percent: int, draw: random.Random) -> list[str]:
    return [draw.choice(ids) if draw.random() < percent / 100 else document for document in order]


def sampled(qrels: Qrels, share: int, draw: random.Random) -> Qrels:
    """Of each topic `share` percent of the relevant documents, at least 1, and of the others, at least 10."""
    judged = qrels.subtopics
    assert judged is not None
    relevant = set(judged.document[judged.judgment > 0].tolist())
    strata: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for document in sorted(set(judged.document.tolist())):
        strata[int(qrels.topic_of[document]), document in relevant].append(document)
    kept: set[int] = set()
    for (_, good), documents in strata.items():
        number = max(1 if good else 10, share * len(documents) // 100)
        kept.update(draw.sample(documents, len(documents))[:number])
    rows = np.array([document in kept for document in judged.document.tolist()])
    columns = (one[rows] for one in (judged.document, judged.subtopic, judged.judgment))
    return replace(qrels, subtopics=Subtopics(judged.names, *columns), cache={})


Curves = dict[tuple[str, int], tuple[float, float]]
"""(measure, percent) -> mean tau-b against alpha_nDCG@20 under all judgments, and against itself."""


def curves(collection: Collection) -> Curves:
    ranker, draw = Ranker(collection.texts), random.Random(SEED)
    found = {topic: systems(ranker, parts, draw) for topic, parts in collection.queries.items()}
    names = [name for name in next(iter(found.values())) if any(of[name] for of in found.values())]
    runs = [{topic: ranked(*of[name]) for topic, of in found.items()} for name in names]
    lines = [json.dumps({"id": document, "text": text}) for document, text in collection.texts.items()]
    texts, qrels = read_texts("\n".join(lines).encode()), diverse(collection.judged)
    joined = Joined.stack([joined_of(run, qrels) for run in runs])
    content = Content.stack([content_of(run, qrels, texts) for run in runs])

    def means(judged: Qrels, *others: str) -> dict[str, np.ndarray]:
        measures = [parse(text) for text in (CLASSIC, PLAIN, STOP, TERMS, *others)]
        scores = evaluate(judged, joined, measures, content=content)
        each = [scores.of_run(place).aggregates() for place in range(len(runs))]
        return {str(measure): np.array([one[measure] for one in each]) for measure in measures}

    full = means(qrels, SMOOTHED, WEIGHTED, SOFT, SOFT_STOP)
    few = {share: [means(sampled(qrels, share, draw)) for _ in range(REPEATS)] for share in SHARES[1:]}
    return {
        (name, share): tuple(fmean(_tau(one[name], of) for one in some) for of in (full[CLASSIC], full[name]))
        for share, some in {100: [full], **few}.items()
        for name in some[0]
    }


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    tau = tau_b(x, y).value
    assert tau is not None
    return tau


@pytest.fixture(scope="module", params=[odp, cranfield])
def found(request: pytest.FixtureRequest, shared: Path) -> Curves:
    """The curves of a collection; printed with -s."""
    make: Callable[[Path], Collection] = request.param
    values = curves(make(shared / "data"))
    for name, share in values:
        print(
            f"{make.__name__} {name:<28} {share:>3}%  " + "  ".join(f"{v:.3f}" for v in values[name, share])
        )
    return values


def test_lmd_keeps_its_order_of_systems_better_than_alpha_ndcg_as_judgments_become_few(found: Curves) -> None:
    for share in SHARES[1:]:
        assert found[PLAIN, share][1] > found[CLASSIC, share][1] + 0.03
        assert found[PLAIN, share][1] > 0.75


def test_lmd_agrees_with_alpha_ndcg_in_part_and_loses_little_of_it(found: Curves) -> None:
    for share in SHARES:
        assert 0.45 < found[PLAIN, share][0] < 0.9
    assert found[PLAIN, 100][0] - found[PLAIN, 10][0] < found[CLASSIC, 100][0] - found[CLASSIC, 10][0] - 0.03


def test_leaving_out_stop_words_brings_lmd_nearer_to_alpha_ndcg(found: Curves) -> None:
    assert fmean(found[STOP, share][0] - found[PLAIN, share][0] for share in SHARES) > 0.005
    assert found[STOP, 10][1] > found[PLAIN, 10][1] - 0.05


def test_keeping_few_terms_takes_lmd_away_from_alpha_ndcg(found: Curves) -> None:
    assert found[TERMS, 100][0] < found[PLAIN, 100][0] - 0.05
    assert found[TERMS, 30][0] < found[PLAIN, 30][0] - 0.05


def test_smoothing_and_weights_bring_lmd_no_nearer(found: Curves) -> None:
    assert found[SMOOTHED, 100][0] < found[PLAIN, 100][0] - 0.02
    assert found[WEIGHTED, 100][0] <= found[PLAIN, 100][0]


def test_stop_words_matter_more_where_labels_are_soft(found: Curves) -> None:
    assert found[SOFT_STOP, 100][0] - found[SOFT, 100][0] > found[STOP, 100][0] - found[PLAIN, 100][0] + 0.02

"""Two real collections with texts and subtopics, and lexical systems that search them.

odp-tr30 has short Turkish descriptions and subtopics. cranfield has English abstracts, with relevance as the
only subtopic. The systems are a ranker and degraded variants of it.
"""

import gzip
import itertools
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from cupel_measures.model import Texts
from cupel_measures.reading.text_files import read_texts, words_of
from support.data.small_collections import Scored, ranked

DEPTH = 60


@dataclass(frozen=True)
class Collection:
    """A collection with texts.

    texts: document -> text. queries: topic -> parts of the query; a diverse system alternates between the
    parts. judged: topic -> document -> subtopic -> judgment.
    """

    texts: Mapping[str, str]
    queries: Mapping[str, Sequence[str]]
    judged: Mapping[str, Mapping[str, Mapping[str, int]]]


def odp(data: Path) -> Collection:
    """Read odp-tr30."""
    rows = gzip.decompress((data / "odp-tr30/results.txt.gz").read_bytes()).decode().splitlines()[1:]
    fields = [row.split("\t") for row in rows]
    named = [line.split("\t") for line in (data / "odp-tr30/subTopics.txt").read_text().splitlines()[1:]]
    queries: dict[str, list[str]] = {}
    for subtopic, description, *_ in named:
        *_, topic, part = description.split(">")
        queries.setdefault(subtopic.split(".")[0], [topic]).append(part)
    judged: dict[str, dict[str, dict[str, int]]] = {}
    for line in (data / "odp-tr30/STRel.txt").read_text().splitlines()[1:]:
        subtopic, document = line.split()
        judged.setdefault(subtopic.split(".")[0], {}).setdefault(document, {})[subtopic] = 1
    return Collection({row[0]: " ".join(row[2:]) for row in fields}, queries, judged)


def cranfield(data: Path) -> Collection:
    """Read every fifth query of cranfield. Query n of the file is topic n of the qrels."""
    documents = gzip.decompress((data / "cranfield/cran.all.1400.xml.gz").read_bytes()).decode(
        errors="replace"
    )
    query_file = gzip.decompress((data / "cranfield/cran.qry.xml.gz").read_bytes()).decode()
    queries = {
        str(n): [text] for n, text in enumerate(re.findall("<title>(.*?)</title>", query_file, re.S), 1)
    }
    judged: dict[str, dict[str, dict[str, int]]] = {}
    for line in (data / "cranfield/cranqrel.trec.txt").read_text().splitlines():
        topic, _, document, label = line.split()
        if int(topic) % 5 == 0:
            judged.setdefault(topic, {})[document] = {"1": int(label)}
    abstracts = re.findall("<docno>(.*?)</docno>.*?<text>(.*?)</text>", documents, re.S)
    return Collection(
        {docno.strip(): text for docno, text in abstracts}, {t: queries[t] for t in judged}, judged
    )


def texts_in(collection: Collection) -> Texts:
    """Return the texts as the library reads them."""
    lines = [json.dumps({"id": document, "text": text}) for document, text in collection.texts.items()]
    return read_texts("\n".join(lines).encode())


def runs_over(collection: Collection, rng: random.Random) -> dict[str, Scored]:
    """Return name -> run for each system that retrieves at least one document."""
    ranker = Ranker(collection.texts)
    topic_systems = {topic: systems(ranker, parts, rng) for topic, parts in collection.queries.items()}
    names = [
        name
        for name in next(iter(topic_systems.values()))
        if any(lists[name] for lists in topic_systems.values())
    ]
    return {name: {topic: ranked(*lists[name]) for topic, lists in topic_systems.items()} for name in names}


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

    def most_similar(self, document: str) -> list[str]:
        """Return the document and the three most similar ones."""
        return [document, *self.search(list(self.counts[self.ids.index(document)]))[:3]]


def systems(ranker: Ranker, parts: Sequence[str], rng: random.Random) -> dict[str, list[str]]:
    """Return the ranking of each system for a query.

    The systems are BM25, BM25 with other parameters or fewer words, and degraded rankings.
    """
    words = words_of(" ".join(parts))
    bm25 = ranker.search(words)
    lists = [ranker.search(words_of(f"{parts[0]} {part}")) for part in parts[1:]]
    rankings = {
        "bm25": bm25,
        "short": ranker.search(words, k=0.2, b=0),
        "long": ranker.search(words, k=5, b=1),
        "coordination": ranker.search(words, k=0, idf=False),
        "half": ranker.search(words[::2]),
        "third": ranker.search(words[::3]),
        "first": ranker.search(words[:2]),
        "shuffled 20": rng.sample(bm25[:20], len(bm25[:20])) + bm25[20:],
        "shuffled": rng.sample(bm25, len(bm25)),
        "reversed": bm25[19::-1],
        "duplicates": [similar for document in bm25[:8] for similar in ranker.most_similar(document)],
        "in turn": [document for tier in itertools.zip_longest(*lists) for document in tier if document],
        "grouped": [document for ranking in lists for document in ranking[:10]],
    }
    for percent in (10, 30, 50, 70):
        rankings[f"noise {percent}"] = _noisy(bm25, ranker.ids, percent, rng)
    rankings["in turn, noise"] = _noisy(rankings["in turn"], ranker.ids, 40, rng)
    return {name: list(dict.fromkeys(order))[:DEPTH] for name, order in rankings.items()}


def _noisy(order: Sequence[str], ids: Sequence[str], percent: int, rng: random.Random) -> list[str]:
    return [rng.choice(ids) if rng.random() < percent / 100 else document for document in order]

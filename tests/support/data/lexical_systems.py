"""Two real collections with texts and judgments by subtopic, and lexical systems over them: a ranker and
degraded variants of it. Short Turkish descriptions with subtopics (odp-tr30), and English abstracts
(cranfield), where relevance is the only subtopic."""

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


def texts_in(collection: Collection) -> Texts:
    lines = [json.dumps({"id": document, "text": text}) for document, text in collection.texts.items()]
    return read_texts("\n".join(lines).encode())


def runs_over(collection: Collection, draw: random.Random) -> dict[str, Scored]:
    """Return the run of each system that retrieves anything, by name."""
    ranker = Ranker(collection.texts)
    found = {topic: systems(ranker, parts, draw) for topic, parts in collection.queries.items()}
    names = [name for name in next(iter(found.values())) if any(of[name] for of in found.values())]
    return {name: {topic: ranked(*of[name]) for topic, of in found.items()} for name in names}


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
        """Return the document and the three most similar ones."""
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

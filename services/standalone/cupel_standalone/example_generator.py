"""Invents the example collection: health search with three aspects, 50 topics and 30 runs of 10 teams.

    python -m cupel_standalone.example_generator FOLDER

Everything follows from one seed, and only from additions, products and comparisons of uniform numbers, so
that every machine writes the same bytes. The model, topic by topic:

1. Each candidate document has a latent relevance; its credibility and readability lean on it a little.
2. A system scores a candidate by what it sees of the three (its team's skill, its own mix), plus noise that
   it shares with its team and noise of its own, and hands in its first 100.
3. The pool is the first 20 of two runs of eight teams; the rest is unjudged. Assessors grade the pool.
   One assessor was careless; in the corrected judgments her topics are judged again and her labels replaced.
"""

import gzip
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

SEED = "cupel example collection 1"
CANDIDATES = 320
DEPTH = 100
POOL_DEPTH = 20
CARELESS = range(27, 36)
"""Numbers of the topics whose assessor was careless."""

SUBJECTS = (
    "ibuprofen and blood pressure", "sore throat in small children", "vitamin D in winter", "a stiff neck",
    "sleep and shift work", "migraine and weather", "zinc against a cold", "knee pain on stairs",
    "salt and heart failure", "iron tablets and tea", "hearing loss at forty", "grass pollen in May",
    "tick bites", "eczema and swimming", "fasting with diabetes", "asthma and running", "dizziness on rising",
    "coffee in pregnancy", "statins and muscle pain", "night cramps", "dry eyes at a screen",
    "heartburn at night", "a rash after antibiotics", "gout and cherries", "tinnitus and stress",
)  # fmt: skip
QUESTIONS = ("what helps with {}", "is it worth worrying about {}")

PLAN = (
    "nDCG@10",
    "AP",
    "P@10",
    "nDCG(aspect=credibility)@10",
    "CAM(of=nDCG@10)",
    "TOMA(of=nDCG@10,aspects=[relevance,credibility])",
)


@dataclass(frozen=True)
class Team:
    """A participant: what its systems see of a document, and the manner in which it writes its files."""

    name: str
    skill: float
    credibility: float
    readability: float
    systems: tuple[str, str, str]
    decimals: int = 3
    first_rank: int = 1
    separator: str = " "
    newline: str = "\n"


TEAMS = (
    Team("aster", 1.00, 0.10, 0.00, ("bm25", "rm3", "monot5")),
    Team("basalt", 0.92, 0.30, 0.10, ("bm25", "splade", "listwise")),
    Team("cobalt", 0.78, 0.00, 0.00, ("tfidf", "bm25", "bm25f"), decimals=1),
    Team("delta", 0.70, 0.05, 0.25, ("dense", "plain", "mixed"), first_rank=0),
    Team("ember", 0.88, 0.55, 0.05, ("bm25", "trust", "fused"), separator="\t"),
    Team("fjord", 0.55, 0.00, 0.10, ("lm", "dirichlet", "axiom"), decimals=2),
    Team("garnet", 0.84, 0.15, 0.45, ("bm25", "simple", "colbert")),
    Team("harbor", 0.40, 0.10, 0.10, ("boolean", "coord", "bm25"), decimals=0),
    Team("indigo", 0.95, 0.20, 0.20, ("dense", "hybrid", "rerank"), newline="\r\n"),
    Team("juniper", 0.62, 0.35, 0.00, ("bm25", "mesh", "expert")),
)
OUTSIDE_THE_POOL = {"harbor", "juniper"}
"""Teams that came too late to contribute to the pool."""

SYSTEM_SKILL = (0.85, 1.0, 1.15)
MISSED = {("fjord-axiom", "h17"), ("harbor-boolean", "h17"), ("harbor-boolean", "h42")}
"""(run, topic) pairs for which a system returned nothing."""


@dataclass(frozen=True)
class Candidate:
    """A document as it really is for one topic: three latent values, roughly from -2 to 2."""

    document: str
    relevance: float
    credibility: float
    readability: float


Rankings = dict[str, dict[str, list[tuple[str, float]]]]
"""Run name -> topic -> (document, score), best first."""


def noise(random: Random) -> float:
    """A draw from a bell-shaped distribution: mean 0, standard deviation 1, at most 3.5 away."""
    return (random.random() + random.random() + random.random() + random.random() - 2.0) * 1.7320508


def topics() -> dict[str, str]:
    """Topic id -> title."""
    titles = [question.format(subject) for question in QUESTIONS for subject in SUBJECTS]
    return {f"h{number:02d}": title for number, title in enumerate(titles, 1)}


def candidates(topic: str) -> list[Candidate]:
    """The documents that any system could find for a topic; topics differ in how much there is to find."""
    random = Random(f"{SEED}/candidates/{topic}")
    ease = 0.35 * noise(random)
    numbers = sorted({int(random.random() * 10_000) for _ in range(CANDIDATES)})
    return [candidate(f"web{number:04d}", ease, random) for number in numbers]


def candidate(document: str, ease: float, random: Random) -> Candidate:
    relevance = noise(random) + ease - 0.5
    credibility = 0.35 * relevance + 0.9 * noise(random)
    readability = 0.1 * relevance - 0.25 * credibility + 0.9 * noise(random)
    return Candidate(document, relevance, credibility, readability)


def rank(team: Team, system: int, topic: str, documents: list[Candidate]) -> list[tuple[str, float]]:
    """What one system returns for one topic. Scores are rounded as the team writes them: there are ties."""
    shared, own = Random(f"{SEED}/{team.name}/{topic}"), Random(f"{SEED}/{team.name}/{system}/{topic}")
    skill = team.skill * SYSTEM_SKILL[system]
    scored = []
    for one in documents:
        seen = skill * one.relevance + team.credibility * one.credibility + team.readability * one.readability
        blurred = seen + 0.6 * noise(shared) + 0.5 * noise(own)
        scored.append((one.document, round(12 + 2.5 * blurred, team.decimals)))
    return sorted(scored, key=lambda pair: (pair[1], pair[0]), reverse=True)[:DEPTH]


def rankings(collection: dict[str, list[Candidate]]) -> Rankings:
    """All 30 runs."""
    return {
        f"{team.name}-{name}": {
            topic: rank(team, system, topic, documents)
            for topic, documents in collection.items()
            if (f"{team.name}-{name}", topic) not in MISSED
        }
        for team in TEAMS
        for system, name in enumerate(team.systems)
    }


def pool(runs: Rankings, topic: str) -> set[str]:
    """The documents to be judged: the first 20 of the second and third run of the teams that contributed."""
    contributed = [
        f"{team.name}-{name}"
        for team in TEAMS
        if team.name not in OUTSIDE_THE_POOL
        for name in team.systems[1:]
    ]
    return {document for run in contributed for document, _ in runs[run].get(topic, [])[:POOL_DEPTH]}


def judge(topic: str, one: Candidate, *, careless: bool) -> tuple[str, str, str]:
    """The labels of an assessor for relevance, credibility and readability.

    Relevance -2 is junk, -1 "could not judge"; credibility -1 likewise.
    """
    random = Random(f"{SEED}/assessor/{topic}/{one.document}/{careless}")
    blur = 1.1 if careless else 0.25
    relevance = one.relevance + blur * noise(random)
    credibility = one.credibility + blur * noise(random)
    readability = 50 + 18 * (one.readability + 0.2 * noise(random))
    grade = sum(relevance > bound for bound in (0.1, 0.9, 1.7))
    chance = random.random()
    if chance < 0.01:
        return "-1", "-1", str(int(readability))
    label = "-2" if grade == 0 and chance > 0.97 else str(grade)
    word = "-1" if chance > 0.985 else ("nc", "pc", "c")[sum(credibility > bound for bound in (-0.3, 0.7))]
    return label, word, str(min(100, max(0, int(readability))))


def judgments(collection: dict[str, list[Candidate]], runs: Rankings, *, corrected: bool) -> dict[str, str]:
    """The qrels file of each aspect as text; the corrected ones judge the careless assessor's topics anew."""
    files: dict[str, list[str]] = {"relevance": [], "credibility": [], "readability": []}
    for number, (topic, documents) in enumerate(collection.items(), 1):
        pooled = pool(runs, topic)
        for one in documents:
            if one.document in pooled:
                labels = judge(topic, one, careless=number in CARELESS and not corrected)
                for lines, label in zip(files.values(), labels, strict=True):
                    lines.append(f"{topic} 0 {one.document} {label}\n")
    return {aspect: "".join(lines) for aspect, lines in files.items()}


def run_text(team: Team, name: str, ranked: dict[str, list[tuple[str, float]]]) -> str:
    """A run file as the team writes it."""
    return "".join(
        team.separator.join((topic, "Q0", document, str(place), f"{score:.{team.decimals}f}", name))
        + team.newline
        for topic, pairs in ranked.items()
        for place, (document, score) in enumerate(pairs, team.first_rank)
    )


def malformed(text: str) -> str:
    """A good run spoilt in five places, as happens to files that were merged or edited by hand."""
    lines = text.splitlines()[: 10 * DEPTH]
    lines[6] = " ".join(lines[6].split()[:5])  # the tag is lost
    lines[40] = lines[40].replace(lines[40].split()[4], "n/a")  # no score
    lines[152] = lines[151]  # a document twice in a topic
    lines[301] = lines[301].replace(lines[301].split()[4], lines[301].split()[4].replace(".", ","))
    lines[477] = lines[477].replace(f" {lines[477].split()[3]} ", " first ")
    return "\n".join(lines) + "\n"


def description(version: str) -> str:
    """The collection file that describes one version of the judgments."""
    plan = ", ".join(f'"{measure}"' for measure in PLAN)
    return f"""\
aspects:
  relevance: {{labels: [0, 1, 2, 3], lowest: [-2], unjudged: [-1]}}
  credibility: {{labels: [nc, pc, c], unjudged: [-1]}}
  readability: {{labels: {{range: [0, 100]}}, threshold: 50}}
qrels:
  - {{file: {version}/relevance.txt, aspect: relevance}}
  - {{file: {version}/credibility.txt, aspect: credibility}}
  - {{file: {version}/readability.txt, aspect: readability}}
topics: topics.txt
measures: [{plan}]
"""


def files() -> Iterator[tuple[str, str]]:
    """Every file of the collection: its name and its text. Names that end in `.gz` are to be compressed."""
    titles = topics()
    collection = {topic: candidates(topic) for topic in titles}
    runs = rankings(collection)
    yield "topics.txt", "".join(f"{topic} {title}\n" for topic, title in titles.items())
    for version, corrected in (("qrels", False), ("qrels-corrected", True)):
        yield f"{version.replace('qrels', 'collection')}.yaml", description(version)
        for aspect, text in judgments(collection, runs, corrected=corrected).items():
            yield f"{version}/{aspect}.txt", text
    for team in TEAMS:
        for system in team.systems:
            name = f"{team.name}-{system}"
            yield f"runs/{name}.gz", run_text(team, name, runs[name])
    name = "aster-merged"
    yield f"{name}.txt", malformed(run_text(TEAMS[0], name, runs["aster-rm3"]))


def write(folder: Path) -> None:
    """Write the whole collection into `folder`; gzip members carry no time, so bytes are reproducible."""
    for name, text in files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode()
        path.write_bytes(gzip.compress(content, 9, mtime=0) if name.endswith(".gz") else content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))

"""A generator of the example collection.

The collection is about health search. It has three aspects, 50 topics, and 30 runs of 10 teams.

    python -m cupel_standalone.example_generator FOLDER

The collection is generated from one random seed. Only uniform random numbers, additions, products and
comparisons are used, so every machine writes the same bytes. The model of a topic:

1. Each candidate document has a latent relevance. Its credibility and readability correlate weakly with it.
2. A system scores a candidate by a weighted sum of the three values, with weights of its team. It adds noise
   that the team's systems share, and noise of its own. It returns the first 100 documents.
3. The pool consists of the first 20 documents of two runs of each of eight teams. Assessors judge the pool;
   all other documents are unjudged. One assessor was careless; the corrected judgments replace her labels.
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
CARELESS_TOPICS = range(27, 36)
"""Numbers of the topics of the careless assessor."""

SUBJECTS = (
    "ibuprofen and blood pressure", "sore throat in small children", "vitamin D in winter", "a stiff neck",
    "sleep and shift work", "migraine and weather", "zinc against a cold", "knee pain on stairs",
    "salt and heart failure", "iron tablets and tea", "hearing loss at forty", "grass pollen in May",
    "tick bites", "eczema and swimming", "fasting with diabetes", "asthma and running", "dizziness on rising",
    "coffee in pregnancy", "statins and muscle pain", "night cramps", "dry eyes at a screen",
    "heartburn at night", "a rash after antibiotics", "gout and cherries", "tinnitus and stress",
)  # fmt: skip
QUESTIONS = ("what helps with {}", "is it worth worrying about {}")

MEASURES = (
    "nDCG@10",
    "AP",
    "P@10",
    "nDCG(aspect=credibility)@10",
    "CAM(of=nDCG@10)",
    "TOMA(of=nDCG@10,aspects=[relevance,credibility])",
)


@dataclass(frozen=True, kw_only=True)
class Team:
    """A participant.

    skill, credibility, readability: weights of the three latent values in the scores of its systems.
    decimals, first_rank, separator, newline: format of its run files.
    """

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
    Team(name="aster", skill=1.00, credibility=0.10, readability=0.00, systems=("bm25", "rm3", "monot5")),
    Team(
        name="basalt", skill=0.92, credibility=0.30, readability=0.10, systems=("bm25", "splade", "listwise")
    ),
    Team(
        name="cobalt",
        skill=0.78,
        credibility=0.00,
        readability=0.00,
        systems=("tfidf", "bm25", "bm25f"),
        decimals=1,
    ),
    Team(
        name="delta",
        skill=0.70,
        credibility=0.05,
        readability=0.25,
        systems=("dense", "plain", "mixed"),
        first_rank=0,
    ),
    Team(
        name="ember",
        skill=0.88,
        credibility=0.55,
        readability=0.05,
        systems=("bm25", "trust", "fused"),
        separator="\t",
    ),
    Team(
        name="fjord",
        skill=0.55,
        credibility=0.00,
        readability=0.10,
        systems=("lm", "dirichlet", "axiom"),
        decimals=2,
    ),
    Team(
        name="garnet", skill=0.84, credibility=0.15, readability=0.45, systems=("bm25", "simple", "colbert")
    ),
    Team(
        name="harbor",
        skill=0.40,
        credibility=0.10,
        readability=0.10,
        systems=("boolean", "coord", "bm25"),
        decimals=0,
    ),
    Team(
        name="indigo",
        skill=0.95,
        credibility=0.20,
        readability=0.20,
        systems=("dense", "hybrid", "rerank"),
        newline="\r\n",
    ),
    Team(name="juniper", skill=0.62, credibility=0.35, readability=0.00, systems=("bm25", "mesh", "expert")),
)
OUTSIDE_THE_POOL = {"harbor", "juniper"}
"""Teams whose runs do not contribute to the pool."""

SYSTEM_SKILL = (0.85, 1.0, 1.15)
MISSED = {("fjord-axiom", "h17"), ("harbor-boolean", "h17"), ("harbor-boolean", "h42")}
"""Pairs (run, topic) of topics that are missing from a run."""


@dataclass(frozen=True)
class Candidate:
    """A document and its three latent values for one topic, roughly from -2 to 2."""

    document: str
    relevance: float
    credibility: float
    readability: float


Rankings = dict[str, dict[str, list[tuple[str, float]]]]
"""Run name -> topic -> (document, score), best first."""


def draw_noise(random: Random) -> float:
    """Draw from an approximately normal distribution.

    Its mean is 0 and its standard deviation 1. All values are within ±3.5.
    """
    return (random.random() + random.random() + random.random() + random.random() - 2.0) * 1.7320508


def make_topics() -> dict[str, str]:
    """Return a mapping of topic ids to titles."""
    titles = [question.format(subject) for question in QUESTIONS for subject in SUBJECTS]
    return {f"h{number:02d}": title for number, title in enumerate(titles, 1)}


def make_candidates(topic: str) -> list[Candidate]:
    """Return the documents that systems can retrieve for a topic.

    Topics differ in difficulty.
    """
    random = Random(f"{SEED}/candidates/{topic}")
    ease = 0.35 * draw_noise(random)
    numbers = sorted({int(random.random() * 10_000) for _ in range(CANDIDATES)})
    return [make_candidate(f"web{number:04d}", ease, random) for number in numbers]


def make_candidate(document: str, ease: float, random: Random) -> Candidate:
    """Draw the latent values of a document. ease: shift of its relevance."""
    relevance = draw_noise(random) + ease - 0.5
    credibility = 0.35 * relevance + 0.9 * draw_noise(random)
    readability = 0.1 * relevance - 0.25 * credibility + 0.9 * draw_noise(random)
    return Candidate(document, relevance, credibility, readability)


def rank(team: Team, system: int, topic: str, documents: list[Candidate]) -> list[tuple[str, float]]:
    """Return the ranking of one system for one topic.

    The scores are rounded as in the run file.
    """
    team_random = Random(f"{SEED}/{team.name}/{topic}")
    system_random = Random(f"{SEED}/{team.name}/{system}/{topic}")
    skill = team.skill * SYSTEM_SKILL[system]
    scored = []
    for candidate in documents:
        signal = (
            skill * candidate.relevance
            + team.credibility * candidate.credibility
            + team.readability * candidate.readability
        )
        noisy = signal + 0.6 * draw_noise(team_random) + 0.5 * draw_noise(system_random)
        scored.append((candidate.document, round(12 + 2.5 * noisy, team.decimals)))
    return sorted(scored, key=lambda pair: (pair[1], pair[0]), reverse=True)[:DEPTH]


def make_rankings(collection: dict[str, list[Candidate]]) -> Rankings:
    """Return the rankings of all 30 runs."""
    return {
        f"{team.name}-{name}": {
            topic: rank(team, system, topic, documents)
            for topic, documents in collection.items()
            if (f"{team.name}-{name}", topic) not in MISSED
        }
        for team in TEAMS
        for system, name in enumerate(team.systems)
    }


def make_pool(runs: Rankings, topic: str) -> set[str]:
    """Return the pool of a topic.

    It has the first 20 documents of the second and third run of each contributing team.
    """
    contributing_runs = [
        f"{team.name}-{name}"
        for team in TEAMS
        if team.name not in OUTSIDE_THE_POOL
        for name in team.systems[1:]
    ]
    return {document for run in contributing_runs for document, _ in runs[run].get(topic, [])[:POOL_DEPTH]}


def judge(topic: str, candidate: Candidate, *, is_careless: bool) -> tuple[str, str, str]:
    """Return the labels of an assessor for relevance, credibility and readability.

    Relevance -2 means junk. Relevance or credibility -1 means "could not judge".
    """
    random = Random(f"{SEED}/assessor/{topic}/{candidate.document}/{is_careless}")
    spread = 1.1 if is_careless else 0.25
    relevance = candidate.relevance + spread * draw_noise(random)
    credibility = candidate.credibility + spread * draw_noise(random)
    readability = 50 + 18 * (candidate.readability + 0.2 * draw_noise(random))
    grade = sum(relevance > bound for bound in (0.1, 0.9, 1.7))
    draw = random.random()
    if draw < 0.01:
        return "-1", "-1", str(int(readability))
    label = "-2" if grade == 0 and draw > 0.97 else str(grade)
    word = "-1" if draw > 0.985 else ("nc", "pc", "c")[sum(credibility > bound for bound in (-0.3, 0.7))]
    return label, word, str(min(100, max(0, int(readability))))


def make_judgments(
    collection: dict[str, list[Candidate]], runs: Rankings, *, corrected: bool
) -> dict[str, str]:
    """Return the qrels file of each aspect as text.

    corrected: whether to use the corrected labels for the topics of the careless assessor.
    """
    files: dict[str, list[str]] = {"relevance": [], "credibility": [], "readability": []}
    for number, (topic, documents) in enumerate(collection.items(), 1):
        pooled = make_pool(runs, topic)
        for candidate in documents:
            if candidate.document in pooled:
                labels = judge(topic, candidate, is_careless=number in CARELESS_TOPICS and not corrected)
                for lines, label in zip(files.values(), labels, strict=True):
                    lines.append(f"{topic} 0 {candidate.document} {label}\n")
    return {aspect: "".join(lines) for aspect, lines in files.items()}


def format_run(team: Team, name: str, ranked: dict[str, list[tuple[str, float]]]) -> str:
    """Return a run file in the format of the team."""
    return "".join(
        team.separator.join((topic, "Q0", document, str(place), f"{score:.{team.decimals}f}", name))
        + team.newline
        for topic, pairs in ranked.items()
        for place, (document, score) in enumerate(pairs, team.first_rank)
    )


def corrupt(text: str) -> str:
    """Return the run file with five errors.

    Such errors occur in files that were merged or edited by hand.
    """
    lines = text.splitlines()[: 10 * DEPTH]
    lines[6] = " ".join(lines[6].split()[:5])  # The tag is missing.
    lines[40] = lines[40].replace(lines[40].split()[4], "n/a")  # The score is not a number.
    lines[152] = lines[151]  # A document is repeated in a topic.
    lines[301] = lines[301].replace(lines[301].split()[4], lines[301].split()[4].replace(".", ","))
    lines[477] = lines[477].replace(f" {lines[477].split()[3]} ", " first ")
    return "\n".join(lines) + "\n"


def describe_collection(version: str) -> str:
    """Return the collection file of one version of the judgments."""
    measures = ", ".join(f'"{measure}"' for measure in MEASURES)
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
measures: [{measures}]
"""


def generate_files() -> Iterator[tuple[str, str]]:
    """Yield (name, text) for each file of the collection.

    Files named `*.gz` must be compressed.
    """
    titles = make_topics()
    collection = {topic: make_candidates(topic) for topic in titles}
    runs = make_rankings(collection)
    yield "topics.txt", "".join(f"{topic} {title}\n" for topic, title in titles.items())
    for version, corrected in (("qrels", False), ("qrels-corrected", True)):
        yield f"{version.replace('qrels', 'collection')}.yaml", describe_collection(version)
        for aspect, text in make_judgments(collection, runs, corrected=corrected).items():
            yield f"{version}/{aspect}.txt", text
    for team in TEAMS:
        for system in team.systems:
            name = f"{team.name}-{system}"
            yield f"runs/{name}.gz", format_run(team, name, runs[name])
    name = "aster-merged"
    yield f"{name}.txt", corrupt(format_run(TEAMS[0], name, runs["aster-rm3"]))


def write_example(folder: Path) -> None:
    """Write the collection to `folder`.

    Gzip headers have no timestamp, so the bytes are reproducible.
    """
    for name, text in generate_files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode()
        path.write_bytes(gzip.compress(content, 9, mtime=0) if name.endswith(".gz") else content)


if __name__ == "__main__":
    write_example(Path(sys.argv[1]))

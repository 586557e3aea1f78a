"""Family-wise error rates on real score matrices whose means are made equal.

The matrices come from the collections in the folder that CUPEL_SHARED names. The rates are printed, but they
are not part of the page.
"""

import csv
import gzip
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from calibration.promises import ERROR, Rate, Row
from calibration.score_models import Rng, make_rng
from calibration.simultaneous_rates import FALSE_FINDING, REPLICATES
from cupel_measures.comparing.simultaneous.max_t import max_t
from cupel_measures.model import Floats

ROOT = Path(__file__).resolve().parents[2]
MEASURES = ("map", "ndcg_cut_10", "P_10", "recip_rank")
TOPICS = (25, 50)
NEIGHBOURS = 5
OUTSIDE = "shifted scores: the differences are skewed and in part constant"


def _symmetric(scores: Floats, rng: Rng, topics: int) -> Floats:
    """Return centred rows of random topics with random signs, so that every difference is symmetric."""
    rows = _shifted(scores, rng, topics)
    return np.asarray(rows * rng.choice([-1.0, 1.0], size=(topics, 1)))


def _normal(scores: Floats, rng: Rng, topics: int) -> Floats:
    """Return normal scores with the spreads and correlations of the systems."""
    centred = scores - scores.mean(axis=0)
    return np.asarray(rng.normal(size=(topics, len(scores))) @ centred / len(scores) ** 0.5)


def _shifted(scores: Floats, rng: Rng, topics: int) -> Floats:
    """Return the centred rows of random topics."""
    centred: Floats = scores - scores.mean(axis=0)
    return centred[rng.integers(len(scores), size=topics)]


def _shifted_neighbours(scores: Floats, rng: Rng, topics: int) -> Floats:
    """Return rows of random topics, after each five neighbours by mean got the same mean."""
    means = scores.mean(axis=0)
    shifted = scores - means + _neighbour_means(means)
    return np.asarray(shifted[rng.integers(len(scores), size=topics)])


def _neighbour_means(means: Floats) -> Floats:
    """Return for each system the mean of the group of five neighbours that contains it."""
    results, order = np.empty_like(means), np.argsort(means, kind="stable")
    for begin in range(0, len(means), NEIGHBOURS):
        group = order[begin : begin + NEIGHBOURS]
        results[group] = means[group].mean()
    return results


Sampler = Callable[[Floats, Rng, int], Floats]
SAMPLERS: Mapping[str, tuple[Sampler, bool, str]] = {
    "random signs": (_symmetric, True, ""),
    "normal, real covariance": (_normal, True, ""),
    "shifted": (_shifted, True, OUTSIDE),
    "shifted within five neighbours": (_shifted_neighbours, False, OUTSIDE),
}
"""Ways of making means equal: the function, whether all means are equal, and the violated assumption."""


def shared_folder() -> Path | None:
    folder = Path(os.environ.get("CUPEL_SHARED", ROOT.parent / "shared")) / "data"
    return folder if folder.is_dir() else None


def matrices(folder: Path) -> Iterator[tuple[str, Floats]]:
    """Yield the name of a measure and float64[topics, systems] for every official table of scores."""
    for number, path in enumerate(sorted(folder.glob("*/official/per_topic.csv.gz")), 1):
        values: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
        with gzip.open(path, "rt", newline="") as lines:
            for row in csv.DictReader(lines):
                if row["measure"] in MEASURES and row["topic"] != "all":
                    values[row["measure"]][row["topic"], row["run_file"]] = float(row["value"])
        for measure in sorted(values):
            scores = values[measure]
            topics, runs = (sorted({key[place] for key in scores}) for place in (0, 1))
            yield (
                f"collection {number}, {measure}",
                np.array([[scores.get((topic, run), 0.0) for run in runs] for topic in topics]),
            )


def real_rows(trials: int, seed: int) -> Iterator[Row]:
    """Yield the rates of every matrix; nothing without the shared data."""
    folder = shared_folder()
    for name, scores in matrices(folder) if folder else ():
        for model in SAMPLERS:
            for topics in TOPICS:
                yield real_row(name, scores, model, topics, trials, seed)


def real_row(name: str, scores: Floats, model: str, topics: int, trials: int, seed: int) -> Row:
    sample, all_equal, outside = SAMPLERS[model]
    rng = make_rng(seed, name, model, topics)
    means = np.zeros(scores.shape[1]) if all_equal else _neighbour_means(scores.mean(axis=0))
    wrong = 0
    for trial in range(trials):
        test = max_t(sample(scores, rng, topics), replicates=REPLICATES, seed=trial, with_p=False)
        true = means[test.first] - means[test.second]
        wrong += bool((test.differs & (np.sign(test.difference) * true <= 0)).any())
    rate = Rate(events=wrong, trials=trials, promise=ERROR)
    cells = name, model, str(scores.shape[1]), str(topics)
    return Row(cells=cells, rates={FALSE_FINDING: rate}, outside=outside)

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
from calibration.score_models import make_rng
from calibration.simultaneous_rates import FALSE_FINDING, REPLICATES
from cupel_measures.comparing.resampling import DECIMALS
from cupel_measures.comparing.simultaneous.max_t import max_t
from cupel_measures.model import Floats

ROOT = Path(__file__).resolve().parents[2]
MEASURES = ("map", "ndcg_cut_10", "P_10", "recip_rank")
TOPICS = (25, 50)
NEIGHBOURS = 5
STRONG = 1.0
"""Absolute skewness above which the differences of two systems are strongly skewed."""
OUTSIDE = "some differences are strongly skewed"


def _symmetric(scores: Floats) -> Floats:
    """Return the centred row of every topic with both signs, so that every difference is symmetric about 0.

    A random row is that of a random topic with a random sign. Spreads and correlations are those of `scores`.
    """
    centred = _shifted(scores)
    return np.concatenate([centred, -centred])


def _shifted(scores: Floats) -> Floats:
    """Return the rows of all topics, after all systems got the mean 0."""
    return np.asarray(scores - scores.mean(axis=0))


def _shifted_neighbours(scores: Floats) -> Floats:
    """Return the rows of all topics, after each five neighbours by mean got the same mean."""
    return np.asarray(_shifted(scores) + _neighbour_means(scores.mean(axis=0)))


def _neighbour_means(means: Floats) -> Floats:
    """Return for each system the mean of the group of five neighbours that contains it."""
    results, order = np.empty_like(means), np.argsort(means, kind="stable")
    for begin in range(0, len(means), NEIGHBOURS):
        group = order[begin : begin + NEIGHBOURS]
        results[group] = means[group].mean()
    return results


POPULATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "symmetric residuals": _symmetric,
    "shifted": _shifted,
    "shifted within five neighbours": _shifted_neighbours,
}
"""Ways of making means equal: the function returns the rows from which topics are drawn with replacement."""


def largest_skewness(rows: Floats) -> float:
    """Return the largest absolute skewness of the differences of two systems; constant ones count as 0."""
    first, second = np.triu_indices(rows.shape[1], 1)
    differences = rows[:, first] - rows[:, second]
    differences = differences - differences.mean(axis=0)
    spreads = np.sqrt((differences**2).mean(axis=0))
    varied = spreads > 1e-9
    cubes = (differences[:, varied] ** 3).mean(axis=0) / spreads[varied] ** 3
    return float(np.abs(cubes).max(initial=0.0))


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
        for model in POPULATIONS:
            for topics in TOPICS:
                yield real_row(name, scores, model, topics, trials, seed)


def real_row(name: str, scores: Floats, model: str, topics: int, trials: int, seed: int) -> Row:
    rows, rng, wrong = POPULATIONS[model](scores), make_rng(seed, name, model, topics), 0
    means = rows.mean(axis=0)
    for trial in range(trials):
        drawn = rows[rng.integers(len(rows), size=topics)]
        test = max_t(drawn, replicates=REPLICATES, seed=trial, with_p=False)
        true = np.round(means[test.first] - means[test.second], DECIMALS)
        wrong += bool((test.differs & (np.sign(test.difference) * true <= 0)).any())
    rate = Rate(events=wrong, trials=trials, promise=ERROR)
    cells = name, model, str(scores.shape[1]), str(topics)
    outside = OUTSIDE if largest_skewness(rows) > STRONG else ""
    return Row(cells=cells, rates={FALSE_FINDING: rate}, outside=outside)

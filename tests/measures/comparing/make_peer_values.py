"""Script that writes peer_values.json: values of statistical packages for the tests.

    pip install krippendorff==0.9.0 pandas==3.1.1 scikit-learn==1.9.1 statsmodels==0.15.0
    python tests/measures/comparing/make_peer_values.py

These packages are not dependencies of Cupel, because four tests do not justify 200 MB.
"""

import importlib
import json
import math
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("krippendorff", "pandas", "scikit-learn", "statsmodels")


def two_way_analysis_of_variance(rng: np.random.Generator) -> dict[str, Any]:
    """Return F, p and residual degrees of freedom by statsmodels, without interaction."""
    ols = importlib.import_module("statsmodels.formula.api").ols
    anova_lm = importlib.import_module("statsmodels.stats.anova").anova_lm
    scores = rng.random((12, 4)) + np.array([0, 0.1, 0.2, 0.5])
    cells = [(score, str(t), str(r)) for t, row in enumerate(scores) for r, score in enumerate(row)]
    table = importlib.import_module("pandas").DataFrame(cells, columns=["score", "topic", "run"])
    fitted = anova_lm(ols("score ~ C(topic) + C(run)", table).fit())
    return {
        "scores": scores.tolist(),
        "statistic": fitted.loc["C(run)", "F"],
        "p": fitted.loc["C(run)", "PR(>F)"],
        "df": fitted.loc["Residual", "df"],
    }


def corrections(rng: np.random.Generator) -> list[dict[str, list[float]]]:
    """Return corrected p values of several families by statsmodels, with ties, zeros and ones."""
    multipletests = importlib.import_module("statsmodels.stats.multitest").multipletests
    families = [rng.random(n) ** rng.integers(1, 6) for n in (*range(1, 21), 50, 200)]
    families += [rng.integers(0, 5, n) / 4 for n in range(2, 20, 2)]
    families += [np.array(p) for p in ([0.0], [1.0], [0.0, 0.0, 1.0], [0.05] * 7, [1e-300, 0.5, 5e-324])]
    return [
        {
            "p": p.tolist(),
            "holm": multipletests(p, method="holm")[1].tolist(),
            "benjamini_hochberg": multipletests(p, method="fdr_bh")[1].tolist(),
        }
        for p in families
    ]


def powers(rng: np.random.Generator) -> list[dict[str, float]]:
    """Return the power of the paired t-test at level 0.05 by statsmodels, where it is defined."""
    peer = importlib.import_module("statsmodels.stats.power").TTestPower()
    drawn = zip(rng.uniform(0.1, 2.0, 150).tolist(), rng.integers(3, 201, 150).tolist(), strict=True)
    values = [
        {"effect": effect, "topics": topics, "power": float(peer.power(effect, topics, 0.05))}
        for effect, topics in [*drawn, (0.1, 3), (0.1, 200), (2.0, 3), (0.5, 34), (0.2, 199), (0.8, 15)]
    ]
    return [value for value in values if not math.isnan(value["power"])]


def agreements(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return kappa with linear weights by scikit-learn, and ordinal alpha by krippendorff."""
    kappa = importlib.import_module("sklearn.metrics").cohen_kappa_score
    alpha = importlib.import_module("krippendorff").alpha
    values = []
    for pairs in [2, 2, 2, 3, 3, 3, 4, 4, *range(2, 41), *range(5, 41, 3)]:
        first = rng.integers(0, 4, pairs)
        changed = rng.integers(0, 4, pairs)
        second = np.where(rng.random(pairs) < rng.random(), first, changed)
        if len({*first, *second}) < 2:
            continue
        values.append(
            {
                "first": first.tolist(),
                "second": second.tolist(),
                "kappa": kappa(first, second, weights="linear", labels=[0, 1, 2, 3]),
                "alpha": alpha([first, second], level_of_measurement="ordinal", value_domain=[0, 1, 2, 3]),
            }
        )
    return values


def main() -> None:
    rng = np.random.default_rng(3)
    values = {
        "made_by": {package: version(package) for package in PACKAGES},
        "two_way_analysis_of_variance": two_way_analysis_of_variance(rng),
        "corrections": corrections(rng),
        "powers": powers(rng),
        "agreements": agreements(rng),
    }
    text = json.dumps(values, allow_nan=False, default=float)
    Path(__file__).with_name("peer_values.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

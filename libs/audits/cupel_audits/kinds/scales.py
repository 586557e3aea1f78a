"""`scales`: which runs differ under tests that need an interval scale, and under those that do not.

Ferrante, Ferro, Losiouk 2019, section 5.3 (spec 4.4, 4.5, 10.5).
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis.sample_curves import MEASURE
from cupel_audits.analysis.score_matrices import Compared, OverTopics, compared, warned
from cupel_audits.declarations import audit, setting
from cupel_audits.report import AuditReport, Column, Plot, ReportTable, digest
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.all_pairs import AllPairs, anova, kruskal_wallis
from cupel_measures.comparing.correlation import levels
from cupel_measures.grammar.parameters import Number, Word
from cupel_measures.model import Floats
from cupel_measures.scoring.exact import floats

Alpha = Annotated[float, Number("a chance between 0 and 1, both excluded", 0, 1, (0, 1))]
Design = Annotated[str, Word("two_way or one_way", ("two_way", "one_way"))]

QUANTILES = 3e7
"""Documents that could be scored while the quantiles of a test are computed, about."""
TESTS = {"kw": "Kruskal-Wallis", "anova": "ANOVA"}

READING = (
    "Kruskal-Wallis goes by the order of scores and may be used with any measure. ANOVA computes means and "
    "squares, which say something only on an interval scale: equal differences of scores then mean the same "
    "everywhere. Its pairs are not to be trusted for a measure that is ordinal or neither.",
    "Both tests hold the chance of any false finding among all pairs below alpha, by Tukey's criterion.",
    "Ferrante et al. (2019, Tables 3 and 4) found 1.3 to 3 times as many pairs by ANOVA as by "
    "Kruskal-Wallis, which fits a two-way design: it takes the differences between topics out, and "
    "Kruskal-Wallis, which pools the topics, does not. With a one-way ANOVA both find about as many. The "
    "ratio tells the two apart, and is no measure of error.",
)


@audit(
    "scales",
    title="Multiple comparisons and scale types",
    answers="How many pairs of runs differ by a test that needs an interval scale, and by one that does not?",
    source="Ferrante, Ferro, Losiouk 2019, section 5.3 (spec 4.2, 4.4, 4.5)",
)
class Scales(OverTopics):
    """Compares all pairs of runs by every measure, by ranks and by means, and names its scale type.

    Kruskal-Wallis: mid-ranks over the scores of all runs and topics; two runs differ where their mean ranks
    are further apart than (q / sqrt 2) sqrt(2 V / T), q being the upper alpha quantile of the studentised
    range with infinite degrees of freedom. ANOVA: two runs differ where their means are further apart than q
    sqrt(MSE / T), with the degrees of freedom of the error; `two_way` takes topics out, `one_way` does not.

    Ranks are those of exact scores where the measure has them: RBP with p = 1/5 and RBTO then find the same
    pairs, as they must, although a float can't hold what they differ by. ANOVA goes by floats, which are
    scaled down where they are too large for their squares: no verdict depends on the unit.
    """

    alpha: Alpha = setting(0.05, "the chance of any false finding among all pairs")
    design: Design = setting("two_way", "of the ANOVA: two_way (topics and runs), or one_way (runs)")

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures)

    def steps(self, subject: AuditSubject) -> float:
        return 1 + QUANTILES / max(1, int(subject.joined.offsets[-1])) / max(1, len(subject.measures))

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        for trial in trials:
            yield self._trial(compared(subject, subject.measures[trial]))

    def _trial(self, scores: Compared) -> dict[str, Any]:
        """What both tests find by a measure."""
        by_rank = kruskal_wallis(_ranked(scores), alpha=self.alpha)
        by_mean = anova(_small(scores), design=self.design, alpha=self.alpha, scale=scores.scale)  # type: ignore[arg-type]
        both = by_rank.differs & by_mean.differs
        return {
            "measure": scores.measure,
            "scale": scores.scale,
            "exact": scores.exact,
            "pairs": len(by_rank.first),
            "kw": _found(by_rank),
            "anova": _found(by_mean),
            "both": int(np.count_nonzero(both)),
            "notes": [*by_mean.warnings, *scores.notes],
        }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        done = list(found.values())
        return AuditReport(
            verdict=(*_verdict(done), *_same(done)),
            numbers=_numbers(done),
            tables=(_table(done),),
            plots=PLOTS,
            reading=READING,
            undefined=tuple(_undefined(done)),
            warnings=warned(done),
        )


def _ranked(scores: Compared) -> Floats:
    """float64[topics, runs]: the order of all scores."""
    if not scores.exact and scores.undefined is not None:
        return scores.values  # which the test then refuses, with its reason
    return levels(_flat(scores)).astype(np.float64).reshape(scores.values.shape)


def _small(scores: Compared) -> Floats:
    """float64[topics, runs]: the values, or where they are too large shares of the greatest exact score."""
    if scores.undefined is None or not scores.exact:
        return scores.values
    flat = [int(value) for value in _flat(scores)]
    greatest = max(1, *map(abs, flat))
    return floats(Fraction(value, greatest) for value in flat).reshape(scores.values.shape)


def _flat(scores: Compared) -> list[Any]:
    return [value for row in scores.orders for value in row]


def _found(test: AllPairs) -> dict[str, Any]:
    """What a test says, as JSON. same: told of two tests that find the same pairs. An infinite F is None."""
    found = np.flatnonzero(test.differs).tolist()
    finite = test.statistic is not None and np.isfinite(test.statistic)
    return {
        "undefined": test.undefined,
        "pairs": None if test.undefined is not None else len(found),
        "percent": None if test.undefined is not None else test.percent,
        "statistic": test.statistic if finite else None,
        "p": test.p,
        "same": digest(found),
    }


def _undefined(done: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in done:
        for test, name in TESTS.items():
            if one[test]["undefined"] is not None:
                yield f"{name} of {one['measure']}: {one[test]['undefined']}"
        if one["kw"]["pairs"] == 0:
            yield f"ratio({one['measure']}): Kruskal-Wallis tells no pair apart"


def _ratio(one: Mapping[str, Any]) -> float | None:
    """Pairs by ANOVA over pairs by Kruskal-Wallis."""
    by_rank, by_mean = one["kw"]["pairs"], one["anova"]["pairs"]
    return by_mean / by_rank if by_rank and by_mean is not None else None


def _verdict(done: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in done:
        by_rank, by_mean = one["kw"], one["anova"]
        if by_rank["pairs"] is None or by_mean["pairs"] is None:
            yield f"{one['measure']}: undefined."
            continue
        ratio = _ratio(one)
        times = "" if ratio is None else f", {ratio:.2f} times as many"
        interval = one["scale"] in ("interval", "count")
        caution = "" if interval else f" Its scale is {_kind(one['scale'])}: go by Kruskal-Wallis."
        yield (
            f"{one['measure']}: of {one['pairs']} pairs of runs {by_rank['pairs']} differ by Kruskal-Wallis "
            f"({by_rank['percent']:.2f} per cent) and {by_mean['pairs']} by ANOVA "
            f"({by_mean['percent']:.2f} per cent{times}).{caution}"
        )


def _kind(scale: str) -> str:
    return "ordinal" if scale == "ordinal" else "neither interval nor ordinal"


def _same(done: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which measures find the very same pairs, of those that find any."""
    for test, name in TESTS.items():
        alike: dict[str, list[str]] = {}
        for one in done:
            if one[test]["pairs"]:
                alike.setdefault(one[test]["same"], []).append(one["measure"])
        for measures in alike.values():
            if len(measures) > 1:
                yield f"By {name} {', '.join(measures)} find the very same pairs."


def _numbers(done: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """kw(MEASURE), anova(MEASURE) in pairs, each_percent(MEASURE), and ratio(MEASURE)."""
    found: dict[str, float | int | None] = {}
    for one in done:
        measure = one["measure"]
        for test in TESTS:
            found[f"{test}({measure})"] = one[test]["pairs"]
            found[f"{test}_percent({measure})"] = one[test]["percent"]
        found[f"ratio({measure})"] = _ratio(one)
        found["pairs"] = one["pairs"]
    return found


def _table(done: Sequence[Mapping[str, Any]]) -> ReportTable:
    columns = (
        MEASURE,
        Column("scale", "scale type", "interval, ordinal, neither, or a count"),
        Column("pairs", "pairs", "S (S - 1) / 2 of S runs"),
        Column("kw", "differ by Kruskal-Wallis", "pairs"),
        Column("kw_percent", "by Kruskal-Wallis, in per cent"),
        Column("anova", "differ by ANOVA", "pairs"),
        Column("anova_percent", "by ANOVA, in per cent"),
        Column("ratio", "ratio", "pairs by ANOVA over pairs by Kruskal-Wallis"),
        Column("both", "by both", "pairs"),
        Column("h", "H", "of Kruskal-Wallis"),
        Column("h_p", "p of H"),
        Column("f", "F", "of the ANOVA; none where it is infinite"),
        Column("f_p", "p of F"),
        Column("exact", "exact", "whether ranks are those of exact scores"),
    )
    rows = []
    for one in done:
        by_rank, by_mean = one["kw"], one["anova"]
        rows.append((
            *(one[name] for name in ("measure", "scale", "pairs")),
            by_rank["pairs"], _rounded(by_rank["percent"]), by_mean["pairs"], _rounded(by_mean["percent"]),
            _ratio(one), one["both"], by_rank["statistic"], by_rank["p"], by_mean["statistic"], by_mean["p"],
            one["exact"],
        ))  # fmt: skip
    return ReportTable("measures", "Pairs of runs that differ", columns, tuple(rows))


def _rounded(percent: float | None) -> float | None:
    """With 2 decimals (spec 4.5)."""
    return None if percent is None else round(percent, 2)


PLOTS = tuple(
    Plot(
        test,
        f"Pairs of runs that differ by {name}",
        "In per cent of all pairs, for each measure in the colour of its scale type.",
        "bars",
        "measures",
        "measure",
        f"{test}_percent",
        series="scale",
        domain=(0, 100),
    )
    for test, name in TESTS.items()
)

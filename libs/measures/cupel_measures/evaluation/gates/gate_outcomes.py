"""The outcome of a gate: its verdict, with the reasons and the numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cupel_measures.comparing.closeness.margins import MarginOutcome
from cupel_measures.comparing.differences.topic_differences import TopicDifference
from cupel_measures.evaluation.gates.gate_rules import PASSING, GateRule, GateVerdict


@dataclass(frozen=True, kw_only=True)
class UnjudgedEffect:
    """The effect of unjudged documents among the first ten on a verdict.

    A document counts if it is unjudged and only one of the two runs has it among its first ten.

    run, baseline: their share among the first ten documents of each. documents: of both, as pairs of topic
    and document. against_run: the verdict if the documents of the run had the lowest label and those of
    the baseline the highest. for_run: the verdict if it were the other way round. Both are None if there are
    no such documents. problem: why these verdicts cannot be computed, or None.
    """

    run: float
    baseline: float
    documents: tuple[tuple[str, str], ...] = ()
    against_run: GateVerdict | None = None
    for_run: GateVerdict | None = None
    problem: str | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the effect as JSON-serialisable data."""
        return {
            "run": self.run,
            "baseline": self.baseline,
            "against_run": self.against_run,
            "for_run": self.for_run,
            "problem": self.problem,
            "to_judge": [{"topic": topic, "document": document} for topic, document in self.documents],
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class GateOutcome:
    """The outcome of one gate.

    reasons: sentences about the verdict. notes: sentences about its interpretation. topics: number of
    compared topics. baseline_mean, run_mean: over these topics. test: difference, interval and p-values.
    unjudged: None if the gate was decided without it. largest_drops: the topics that lose most, if the run
    scores lower.
    """

    rule: GateRule
    verdict: GateVerdict
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    topics: int
    baseline_mean: float | None = None
    run_mean: float | None = None
    test: MarginOutcome | None = None
    unjudged: UnjudgedEffect | None = None
    largest_drops: tuple[TopicDifference, ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict in PASSING

    @property
    def title(self) -> str:
        """Return the measure, with the name of the gate if it has one."""
        return self.rule.measure if self.rule.name is None else f"{self.rule.name}: {self.rule.measure}"

    @property
    def difference(self) -> float | None:
        """Return the mean difference over topics, run - baseline."""
        return None if self.test is None else self.test.estimate

    @property
    def confidence(self) -> float:
        """Return the confidence level at which the interval agrees with the tests."""
        return round(1 - 2 * self.rule.alpha, 12)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the interval of the difference.

        It is None if the differences are undefined, or have no variance.
        """
        if self.test is None or self.test.tests is None or self.test.posterior is None:
            return None
        return self.test.tests.interval

    def as_data(self) -> dict[str, Any]:
        """Return the outcome as JSON-serialisable data."""
        low, high = self.interval or (None, None)
        return {
            "name": self.rule.name,
            "measure": self.rule.measure,
            "verdict": self.verdict,
            "passed": self.passed,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "max_drop": self.rule.max_drop,
            "alpha": self.rule.alpha,
            "test": self.rule.test if self.test is None else self.test.test,
            "min_topics": self.rule.min_topics,
            "max_unjudged": self.rule.max_unjudged,
            "topics": self.topics,
            "baseline_mean": self.baseline_mean,
            "run_mean": self.run_mean,
            "difference": self.difference,
            "confidence": self.confidence,
            "low": low if low is None or math.isfinite(low) else None,
            "high": high if high is None or math.isfinite(high) else None,
            **self._p_values(),
            "unjudged": None if self.unjudged is None else self.unjudged.as_data(),
            "largest_drops": [
                {"topic": item.topic, "difference": item.difference} for item in self.largest_drops
            ],
        }

    def _p_values(self) -> Mapping[str, float | None]:
        tests = None if self.test is None else self.test.tests
        return {
            name: None if tests is None else getattr(tests, name)
            for name in ("p_better", "p_no_worse", "p_worse")
        }

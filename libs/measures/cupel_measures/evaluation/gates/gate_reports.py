"""The report of one or several gates about a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cupel_measures.evaluation.gates.gate_formats import (
    format_gates_html,
    format_gates_markdown,
    format_gates_text,
    format_junit,
)
from cupel_measures.evaluation.gates.gate_outcomes import GateOutcome
from cupel_measures.evaluation.gates.gate_rules import EXIT_CODES, PASSING, VERDICTS, GateVerdict
from cupel_measures.findings import Findings
from cupel_measures.scoring.evaluator import SCORING_VERSION


@dataclass(frozen=True, eq=False, kw_only=True)
class GateReport:
    """The outcomes of the gates of a run.

    `report["nDCG@10"]` is the outcome of the first gate with this title or measure.

    run: name of the run. baselines: name of the baseline of each outcome. findings: warnings about the runs,
    by name.
    """

    run: str
    baselines: tuple[str, ...]
    outcomes: tuple[GateOutcome, ...]
    findings: Mapping[str, Findings]

    def __getitem__(self, title: str) -> GateOutcome:
        for outcome in self.outcomes:
            if title in (outcome.title, outcome.rule.name, outcome.rule.measure):
                return outcome
        raise KeyError(title)

    def __iter__(self) -> Iterator[GateOutcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __repr__(self) -> str:
        return format_gates_text(self)

    def _repr_html_(self) -> str:
        return format_gates_html(self)

    @cached_property
    def verdict(self) -> GateVerdict:
        """Return the least favourable verdict of the gates."""
        return min((outcome.verdict for outcome in self.outcomes), key=VERDICTS.index)

    @property
    def passed(self) -> bool:
        """Return whether every gate has the verdict "better" or "no worse"."""
        return self.verdict in PASSING

    @property
    def exit_code(self) -> int:
        """Return the exit code of `cupel gate`: 0 passed, 1 worse, 3 undecided."""
        return EXIT_CODES[self.verdict]

    @property
    def title(self) -> str:
        """Return the run, its baselines and the verdict in one line."""
        return f"{self.run} vs. {', '.join(dict.fromkeys(self.baselines))}: {self.verdict}"

    def note(self) -> str | None:
        """Return how several verdicts relate to alpha, or None for one gate."""
        if len(self.outcomes) < 2:
            return None
        alphas = sorted({outcome.rule.alpha for outcome in self.outcomes})
        level = f"{alphas[-1]:g}" if len(alphas) == 1 else f"its alpha (at most {alphas[-1]:g})"
        rate = sum(outcome.rule.alpha for outcome in self.outcomes)
        return (
            f"Each of {len(self.outcomes)} gates is tested at {level}. A run passes only if all gates pass, "
            "so passing needs no correction for several tests. Without a true drop, the probability that any "
            f"gate says 'worse' is at most {min(rate, 1):.2g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable data."""
        return {
            "scoring_version": SCORING_VERSION,
            "run": self.run,
            "verdict": self.verdict,
            "passed": self.passed,
            "exit_code": self.exit_code,
            "gates": [
                {"baseline": baseline, **outcome.as_data()}
                for baseline, outcome in zip(self.baselines, self.outcomes, strict=True)
            ],
        }

    def to_markdown(self) -> str:
        """Return a heading, a table of the gates and the reasons in Markdown."""
        return format_gates_markdown(self)

    def to_junit(self) -> str:
        """Return the report as JUnit XML.

        A gate is a test case: "worse" is a failure, and "undecided" is an error.
        """
        return format_junit(self)

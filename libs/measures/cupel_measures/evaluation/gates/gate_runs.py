"""Runs of gates, each read once, with their errors and warnings."""

from dataclasses import dataclass, field

from cupel_measures.findings import Findings, Refused
from cupel_measures.inputs.run_inputs import RunInput
from cupel_measures.model import Ranking, Run
from cupel_measures.reading.collection_files import Collection
from cupel_measures.reading.lines.topic_checks import NONE_IN_COMMON, check_against


@dataclass
class GatedRuns:
    """The runs of gates.

    depth: cut of rankings. errors: of all runs. warnings: by name of the run.
    """

    depth: int | None
    errors: Findings = field(default_factory=Findings)
    warnings: dict[str, Findings] = field(default_factory=dict)
    runs: dict[int, Run | None] = field(default_factory=dict)

    def read(self, source: RunInput, name: str) -> None:
        """Read a run if it was not read before."""
        if id(source) in self.runs:
            return
        self.runs[id(source)] = None
        try:
            run = source.read(self.depth)
        except Refused as refused:
            self.errors.extend(refused.findings)
            return
        self.runs[id(source)] = run
        self.warnings[name] = run.findings

    def check(self, source: RunInput, collection: Collection, *, is_baseline: bool) -> None:
        """Compare the topics of a run with those of the judgments.

        A baseline without any of these topics is no error, because its gate is undecided.
        """
        run = self.runs[id(source)]
        if run is None:
            return
        findings = check_against(run, collection.qrels.listed_topics, file=source.name)
        if findings.refused and not (is_baseline and set(findings.totals) == {NONE_IN_COMMON}):
            self.errors.extend(findings)

    def ranking(self, source: RunInput) -> Ranking:
        """Return the documents of a run that has no errors."""
        run = self.runs[id(source)]
        assert run is not None
        return run.ranking

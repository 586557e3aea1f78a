"""Result of scoring several runs, independent of the output format."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.evaluation.exports.page_library import page_library
from cupel_measures.evaluation.exports.result_files import beir_result, mteb_result, tira_result
from cupel_measures.evaluation.run_checks import warnings_of
from cupel_measures.evaluation.run_scoring import Scored, ScoringTask
from cupel_measures.evaluation.score_formats import (
    ResultTable,
    format_html,
    format_latex,
    format_markdown,
    format_text,
    highest,
)
from cupel_measures.families.diversity import OVER_GREEDY, above_ideal
from cupel_measures.inputs.run_inputs import RunInput
from cupel_measures.model import Floats
from cupel_measures.reading.collection_files import Collection
from cupel_measures.reading.qrels_files import qrels_digest
from cupel_measures.scoring.evaluator import has_exact_values

if TYPE_CHECKING:  # not needed at run time, and slow to import
    from cupel_measures.evaluation.measure_names import MeasureText

ALL = "all"
"""Topic name of aggregates over all topics."""


@dataclass(frozen=True, eq=False)
class MeasureScores(Mapping[str, float]):
    """The scores of one run by measure.

    Any text of a measure is a key, as in `scores["nDCG@10"]` and `scores["ndcg_cut.10"]`.

    means: by the canonical text of each measure. by_topic: by measure, the value of each topic, or None for
    a topic that does not enter the mean.
    """

    means: Mapping[str, float]
    by_topic: Mapping[str, Mapping[str, float | None]]

    def __getitem__(self, measure: str | Measure) -> float:
        text = str(measure)
        return self.means[text if text in self.means else str(parse(text))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name}: {value:.4f}" for name, value in self.means.items()) + "}"


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationReport(Mapping[str, MeasureScores]):
    """Scores by the name of the run: a ranked table.

    job: the task that scored the runs. shows_topics: whether printed formats have the values by topic.
    runs: scored and refused runs by name. sources: the runs as given, by name. name: of the judgments.
    Iteration is over the scored runs, in the given order.
    """

    collection: Collection
    job: ScoringTask
    runs: Mapping[str, Scored]
    sources: Mapping[str, RunInput] = field(default_factory=dict)
    name: str = "judgments"
    shows_topics: bool = False
    official: bool = False
    """True if trec_eval's `official` measures were requested. trec_eval then prints the run id too."""

    def __getitem__(self, name: str) -> MeasureScores:
        run = self.scored[name]
        texts = [str(measure) for measure in self.measures]
        # A comparison scores further measures after those of the report.
        by_topic = {
            text: self.by_topic(run, values) for text, values in zip(texts, run.values or (), strict=False)
        }
        return MeasureScores(dict(zip(texts, run.means, strict=False)), by_topic)

    def __iter__(self) -> Iterator[str]:
        return iter(self.scored)

    def __len__(self) -> int:
        return len(self.scored)

    def __repr__(self) -> str:
        return format_text(self.table())

    def _repr_html_(self) -> str:
        return self.to_html()

    def table(self) -> ResultTable:
        """Return the scores as a table, best run first by the first measure."""
        ranked = [(name, run.means) for _, name, run in self.best_first()]
        return ResultTable(
            columns=("run", *map(str, self.measures)),
            rows=tuple((name, *(f"{value:.4f}" for value in means)) for name, means in ranked),
            best=highest(zip(*(means for _, means in ranked), strict=True)),
            caption=self.caption(),
            notes=tuple(self.remarks()),
        )

    def caption(self) -> str:
        """Return the number of topics, the profile, and which scales are inferred."""
        inferred = [aspect.name for aspect in self.collection.aspects if aspect.inferred]
        scale = f", scale of {', '.join(inferred)} inferred" if inferred else ""
        return f"{len(self.topics)} topics, profile {self.job.profile}{scale}"

    def per_topic(self) -> dict[str, dict[str, dict[str, float | None]]]:
        """Return the value by run, measure and topic.

        A topic that enters no mean has None.
        """
        return {name: {text: {**values} for text, values in self[name].by_topic.items()} for name in self}

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the score by run and measure."""
        return {name: dict(self[name].means) for name in self}

    def records(self, *, per_topic: bool = False) -> Iterator[dict[str, str | float | None]]:
        """Yield a row per run and measure, or per run, measure and topic.

        The keys are run, measure, topic (if `per_topic`) and value.
        """
        for name, run in ((name, self[name]) for name in self):
            for text, mean in run.items():
                if not per_topic:
                    yield {"run": name, "measure": text, "value": mean}
                    continue
                for topic, value in run.by_topic[text].items():
                    yield {"run": name, "measure": text, "topic": topic, "value": value}

    def to_pandas(self, *, per_topic: bool = False) -> Any:
        """Return a pandas data frame.

        It has a row per run and a column per measure, or the rows of `records` by topic.
        """
        import pandas  # type: ignore[import-untyped]

        if per_topic:
            return pandas.DataFrame.from_records(list(self.records(per_topic=True)))
        return pandas.DataFrame.from_dict(self.to_dict(), orient="index").rename_axis("run")

    def to_polars(self, *, per_topic: bool = False) -> Any:
        """Return a polars data frame.

        It has a row per run and a column per measure, or the rows of `records` by topic.
        """
        import polars  # type: ignore[import-not-found]

        if per_topic:
            return polars.DataFrame(list(self.records(per_topic=True)))
        return polars.DataFrame([{"run": name, **scores} for name, scores in self.to_dict().items()])

    def to_markdown(self) -> str:
        """Return the ranked table in Markdown."""
        return format_markdown(self.table())

    def to_html(self) -> str:
        """Return the ranked table in HTML, as a fragment to put in a page."""
        return format_html(self.table())

    def to_latex(self) -> str:
        """Return the ranked table in LaTeX (package booktabs), the best values in bold."""
        return format_latex(self.table())

    def to_beir(self, run: str | None = None) -> dict[str, dict[str, float]]:
        """Return the result of a run as BEIR reports it.

        An example is {"ndcg": {"NDCG@10": 0.3}}. run: may be omitted if there is only one. Raise ValueError
        if BEIR has no name for a measure; it has nDCG, AP, R, P and RR with a cutoff.
        """
        return beir_result(self._only(run).means)

    def to_mteb(
        self, run: str | None = None, *, task: str = "unnamed", split: str = "test"
    ) -> dict[str, Any]:
        """Return the result of a run as a task result of MTEB.

        It has fields such as ndcg_at_10. run, ValueError: as in `to_beir`. task: name of the task. main_score
        is nDCG@10, or the first measure. The revision of the data set is the digest of the judgments.
        """
        digest = qrels_digest(self.job.qrels)
        return mteb_result(self._only(run).means, task=task, revision=digest, split=split)

    def to_tira(self, run: str | None = None) -> str:
        """Return the result of a run as an evaluation.prototext of TIRA.

        run: may be omitted if there is only one.
        """
        return tira_result(self._only(run).means)

    def plot(self, measure: "MeasureText | None" = None) -> Any:
        """Draw the scores of the runs by one measure, with 95% intervals.

        measure: default: the first one. Notebooks show the result; `save(path)` writes it as SVG. Raise
        ImportError, with what to install, if cupel-reports is missing.
        """
        pages = page_library("score_pages")
        return pages.plot(self, self.canonical(measure))

    def page(self, path: str | Path) -> None:
        """Write a page with the ranked table, bars, and the values by topic.

        It is one HTML file that loads nothing from the network. ImportError: as in `plot`.
        """
        text = page_library("score_pages").page(self)
        Path(path).write_text(text, encoding="utf-8")

    def canonical(self, measure: "MeasureText | None") -> str | None:
        """Return the text of one of the measures. Raise KeyError if it is not among them."""
        text = None if measure is None else str(measure)
        known = [str(item) for item in self.measures]
        if text is None or text in known:
            return text
        if (canonical := str(parse(text))) not in known:
            raise KeyError(f"{canonical} is not among the measures: {', '.join(known)}")
        return canonical

    def _only(self, run: str | None) -> MeasureScores:
        """Return the scores of a run, by default of the only run."""
        if run is None and len(self) != 1:
            raise ValueError(f"the format describes one run; choose one of {', '.join(self)}")
        return self[next(iter(self)) if run is None else run]

    @cached_property
    def scored(self) -> dict[str, Scored]:
        """Return the scored runs by name."""
        return {name: run for name, run in self.runs.items() if run.values is not None}

    @cached_property
    def refused(self) -> dict[str, Scored]:
        """Return the refused runs by name."""
        return {name: run for name, run in self.runs.items() if run.values is None}

    @property
    def measures(self) -> tuple[Measure, ...]:
        return self.job.parsed

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the judged topics, in the order of the values of a run."""
        return self.job.qrels.topics

    def by_topic(self, run: Scored, values: Floats) -> dict[str, float | None]:
        """Return the value of each topic of the collection, in byte order.

        A value is None if it does not enter the mean.

        values: float64[T], the values of `run`, one per topic of the qrels.
        """
        counted = [True] * len(self.topics) if run.over is None else run.over
        by_topic = dict(compress(zip(self.topics, values.tolist(), strict=True), counted))
        return {topic: by_topic.get(topic) for topic in self.job.qrels.listed_topics}

    def best_first(self) -> list[tuple[int, str, Scored]]:
        """Return (rank, name, run) of the scored runs, ordered by the first measure.

        Equal scores share a rank. Exact scores are compared if all runs have them.
        """
        first = str(self.measures[0])
        exact = all(first in run.exact for run in self.scored.values())
        scores = {name: run.exact[first] if exact else run.means[0] for name, run in self.scored.items()}
        order = sorted(self.scored, key=lambda name: (-scores[name], name))
        ranked = [scores[name] for name in order]
        return [(ranked.index(scores[name]) + 1, name, self.scored[name]) for name in order]

    def without_relevant(self, aspect: int = 0) -> int:
        """Return the number of topics without relevant documents for an aspect."""
        qrels = self.job.qrels
        relevant = qrels.topic_of[qrels.labels[aspect] >= qrels.aspects[aspect].threshold]
        return len(qrels.topics) - len(np.unique(relevant))

    def remarks(self) -> Iterator[str]:
        """Yield notes on the interpretation of the scores."""
        checks = {name: run.checks for name, run in self.scored.items() if run.checks is not None}
        yield from warnings_of(checks, self.measures)
        missing = [run.missing for run in self.scored.values() if run.missing]
        if missing:
            runs = "1 run lacks" if len(missing) == 1 else f"{len(missing)} runs lack"
            most = f"up to {max(missing)} of {len(self.topics)}"
            effect = (
                "are left out of the means, so compare runs only if they have the same topics"
                if self.job.over_run
                else "score as empty rankings"
            )
            yield f"{runs} topics of the qrels ({most}); these topics {effect}."
        inferred = [aspect.name for aspect in self.collection.aspects if aspect.inferred]
        scaled = [str(measure) for measure in self.measures if measure.by_scale]
        if inferred and scaled:
            aspects = ", ".join(inferred)
            yield f"{', '.join(scaled)}: values depend on the scale, which is inferred for {aspects}."
        if self.job.exact and len(self.scored) > 1 and (rounded := self._rounded()):
            texts = ", ".join(rounded)
            yield f"{texts}: exact values would be too long, so runs are compared by floating-point values."
        for measure, number in self._above_ideal().items():
            values = f"{number} value{'s' * (number != 1)} above 1"
            reason = "because the greedy ideal is not always optimal; cap=True limits them to 1"
            yield f"{measure}: {values}, {reason}."

    def _rounded(self) -> list[str]:
        """Return the measures without an exact value for some run.

        The reason is that its rankings are too deep.
        """
        texts = [str(measure) for measure in self.measures[: self.job.exact] if has_exact_values(measure)]
        return [text for text in texts if any(text not in run.exact for run in self.scored.values())]

    def _above_ideal(self) -> dict[Measure, int]:
        """Return the number of values above 1 by measure.

        The measures are those with a greedy ideal ranking.
        """
        counts = Counter(
            {
                measure: sum(
                    int(above_ideal(run.values[place]).sum()) for run in self.scored.values() if run.values
                )
                for place, measure in enumerate(self.measures)
                if measure.declaration.bounds == OVER_GREEDY
            }
        )
        return dict(+counts)

"""`cupel compare --same`: comparison of an original run with its reproduction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from cupel_client.offline.closeness.same_system_output import SAME_PRINTERS, SameSystemResult
from cupel_client.offline.evaluate_command import finish
from cupel_client.offline.input_files import InputFile, run_names
from cupel_client.offline.parallel import map_in_parallel
from cupel_measures.comparing.closeness.document_lists import DocumentList, lists_by_topic
from cupel_measures.comparing.closeness.same_system import (
    compare_document_lists,
    compare_scores_of_same_system,
)
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.run_scoring import ScoringTask, score
from cupel_measures.grammar.scale_types import scale_type
from cupel_measures.inputs.run_inputs import FileRun
from cupel_measures.reading.collection_files import Collection

_Command = TypeVar("_Command", bound=Callable[..., Any])
PERSISTENCE = click.FloatRange(0, 1, min_open=True, max_open=True)


@dataclass(frozen=True, kw_only=True)
class SameSystemChoices:
    """Options of the comparison of an original run with its reproduction.

    baselines: the original baseline and the reproduced baseline, or None. rbo_p: persistence of rank-biased
    overlap.
    """

    baselines: tuple[Path, Path] | None
    rbo_p: float
    alpha: float
    confidence: float
    jobs: int | None

    def check(self, runs: Sequence[Path], form: str) -> None:
        """Raise click.UsageError unless there are two runs and the format is available."""
        if len(runs) != 2:
            raise click.UsageError(
                f"--same compares two runs, the original and its reproduction; {len(runs)} are given"
            )
        if form not in SAME_PRINTERS:
            raise click.UsageError(f"--same requires --format {', '.join(SAME_PRINTERS)}, not {form}")


def same_system_options(command: _Command) -> _Command:
    """Add --same, --baselines and --rbo-p."""
    for option in (
        click.option(
            "--rbo-p",
            type=PERSISTENCE,
            default=0.9,
            show_default=True,
            help="Persistence p of rank-biased overlap, for --same.",
        ),
        click.option(
            "--baselines",
            nargs=2,
            type=InputFile(),
            default=None,
            metavar="ORIGINAL REPRODUCED",
            help="Baselines of both runs of --same, for effect ratio and DeltaRI.",
        ),
        click.option(
            "--same",
            is_flag=True,
            help="Compare an original run with its reproduction: document lists, scores and, with "
            "--baselines, improvements.",
        ),
    ):
        command = option(command)
    return command


def compare_same_system(
    runs: Sequence[Path], collection: Collection, job: ScoringTask, choices: SameSystemChoices, form: str
) -> None:
    """Compare an original run with its reproduction, and print the result."""
    paths = (*runs, *(choices.baselines or ()))
    names = run_names(paths)
    scored = map_in_parallel(
        partial(score, job=job), [*map(FileRun, paths)], doing="scoring", jobs=choices.jobs
    )
    by_name = {name: run for name, run in zip(names, scored, strict=True) if run is not None}
    report = EvaluationReport(collection=collection, job=job, runs=by_name)
    if len(report.scored) == len(paths):
        SAME_PRINTERS[form](_result(report, paths, names, choices))
    else:
        click.echo("no comparison: a run was not scored", err=True)
    finish(report, names)


def _result(
    report: EvaluationReport, paths: Sequence[Path], names: Sequence[str], choices: SameSystemChoices
) -> SameSystemResult:
    values = [report.scored[name].values or () for name in names]
    return SameSystemResult(
        scored=report,
        runs=tuple(names),
        alpha=choices.alpha,
        confidence=choices.confidence,
        lists=compare_document_lists(*(_lists(path, report) for path in paths[:2]), p=choices.rbo_p),
        measures={
            str(measure): compare_scores_of_same_system(
                values[0][place],
                values[1][place],
                (values[2][place], values[3][place]) if choices.baselines else None,
                confidence=choices.confidence,
                scale=scale_type(measure, report.job.qrels.aspects),
            )
            for place, measure in enumerate(report.measures)
        },
    )


def _lists(path: Path, report: EvaluationReport) -> list[DocumentList]:
    run = FileRun(path).read(report.job.depth)
    return lists_by_topic(run.ranking, report.topics, report.job.depth)

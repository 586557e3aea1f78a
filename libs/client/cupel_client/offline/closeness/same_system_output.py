"""Comparison of an original run with its reproduction, as tables and as data."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import click

from cupel_client import __version__
from cupel_client.offline.presentation.column_blocks import Column, show_blocks
from cupel_client.output import decimal, printable, write_csv, write_json, write_jsonl
from cupel_measures.comparing.closeness.same_system import Improvements, ListAgreements, SameSystemScores
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.scoring.evaluator import SCORING_VERSION

UNDEFINED = "undefined"


@dataclass(frozen=True, eq=False, kw_only=True)
class SameSystemResult:
    """The agreement of two runs.

    runs: names of the original run and its reproduction, then of their baselines if these are given.
    """

    scored: EvaluationReport
    runs: tuple[str, ...]
    alpha: float
    confidence: float
    lists: ListAgreements
    measures: Mapping[str, SameSystemScores]

    @property
    def has_baselines(self) -> bool:
        return len(self.runs) > 2


def print_same_system_json(result: SameSystemResult) -> None:
    """Print the whole comparison as one JSON object."""
    lists = result.lists
    write_json(
        {
            "cupel": __version__,
            "scoring_version": SCORING_VERSION,
            "original": result.runs[0],
            "reproduction": result.runs[1],
            "baselines": list(result.runs[2:]),
            "alpha": result.alpha,
            "confidence": result.confidence,
            "documents": {
                "rbo_p": lists.p,
                "tau": lists.tau,
                "tau_union": lists.tau_union,
                "rbo": lists.rbo,
                "shared": lists.shared,
                "topics": [
                    {"topic": topic, **asdict(agreement)}
                    for topic, agreement in zip(result.scored.topics, lists.topics, strict=True)
                ],
            },
            "measures": list(_rows(result)),
        }
    )


def _rows(result: SameSystemResult) -> Iterator[dict[str, Any]]:
    for measure, scores in result.measures.items():
        test, improvements = scores.test, scores.improvements
        low, high = test.interval or (None, None)
        yield {
            "measure": measure,
            "original_mean": scores.original_mean,
            "reproduced_mean": scores.reproduced_mean,
            "difference": test.estimate,
            "low": low,
            "high": high,
            "rmse": scores.rmse,
            "p": test.p,
            "p_undefined": test.undefined,
            **({name: getattr(improvements, name, None) for name in Improvements.__dataclass_fields__}),
        }


def print_same_system_csv(result: SameSystemResult) -> None:
    """Print a row per measure as CSV."""
    rows = list(_rows(result))
    write_csv(list(rows[0]), rows)


def print_same_system_tables(result: SameSystemResult) -> None:
    """Print the agreement of document lists, of scores, and of improvements."""
    _print_lists(result)
    _print_scores(result)
    if result.has_baselines:
        _print_improvements(result)
    click.echo(f"Statistics of Breuer et al., SIGIR 2020, over {len(result.scored.topics)} topics.")


def _print_lists(result: SameSystemResult) -> None:
    lists = result.lists
    undefined = sum(topic.tau is None for topic in lists.topics)
    columns: list[Column] = [
        ("shared documents", [UNDEFINED if lists.shared is None else f"{100 * lists.shared:.1f}%"]),
        ("tau of shared", [_format(lists.tau)]),
        ("tau union", [_format(lists.tau_union)]),
        (f"RBO (p = {lists.p:g})", [_format(lists.rbo)]),
    ]
    caption = (
        "Means over topics. tau: Kendall's tau-b of the documents in both runs. tau union: as defined by "
        "Breuer et al.; it can be high for lists that share few documents. RBO: extrapolated rank-biased "
        "overlap."
    )
    if undefined:
        caption += f"\ntau is undefined on {undefined} of {len(lists.topics)} topics."
    show_blocks(
        ["original", "reproduction"],
        [list(result.runs[:2])],
        columns,
        title="document lists",
        caption=caption,
    )


def _print_scores(result: SameSystemResult) -> None:
    scores = list(result.measures.values())
    columns: list[Column] = [
        ("original", [_format(item.original_mean) for item in scores]),
        ("reproduction", [_format(item.reproduced_mean) for item in scores]),
        ("difference", [_format(item.test.estimate, "+") for item in scores]),
        (f"{100 * result.confidence:g}% interval", [_format_interval(item) for item in scores]),
        ("RMSE", [_format(item.rmse) for item in scores]),
        ("p", [_format_p(item.test.p) for item in scores]),
    ]
    show_blocks(
        ["measure"],
        [[measure] for measure in result.measures],
        columns,
        title="scores",
        caption="\n".join(map(printable, _score_notes(result))),
    )


def _score_notes(result: SameSystemResult) -> Iterator[str]:
    yield "RMSE: root mean square error of the scores by topic. p: paired t-test, two-sided, uncorrected."
    significant = [text for text, item in result.measures.items() if _is_significant(item, result.alpha)]
    if significant:
        yield (
            f"The means of {', '.join(significant)} differ significantly at alpha {result.alpha:g} "
            "(paired t-test, uncorrected)."
        )
    elif any(item.test.p is not None for item in result.measures.values()):
        yield (
            f"The means do not differ significantly at alpha {result.alpha:g} (paired t-test, uncorrected). "
            "This does not establish that the systems are the same: cupel compare --margin tests whether the "
            "means are equal within a margin."
        )
    for text, item in result.measures.items():
        if item.test.undefined is not None:
            yield f"{text}: p is undefined: {item.test.undefined}"


def _is_significant(scores: SameSystemScores, alpha: float) -> bool:
    return scores.test.p is not None and scores.test.p <= alpha


def _print_improvements(result: SameSystemResult) -> None:
    improvements = [item.improvements for item in result.measures.values()]
    columns: list[Column] = [
        (title, [UNDEFINED if item is None else _format(getattr(item, name), "+") for item in improvements])
        for title, name in (
            ("original improvement", "original"),
            ("reproduced improvement", "reproduced"),
            ("effect ratio", "effect_ratio"),
            ("DeltaRI", "delta_ri"),
        )
    ]
    caption = (
        f"Improvements over {printable(result.runs[2])} and {printable(result.runs[3])}. Effect ratio: "
        "reproduced / original improvement (1: the improvements are equal). DeltaRI: difference of the "
        "relative improvements (0: they are equal). A value is undefined where the divisor is 0."
    )
    worse = [
        text
        for text, item in result.measures.items()
        if item.improvements is not None and item.improvements.original <= 0
    ]
    if worse:
        caption += (
            f"\nBy {', '.join(map(printable, worse))}, the original does not improve on its baseline, so the "
            "effect ratio and DeltaRI do not show whether an improvement was reproduced."
        )
    show_blocks(
        ["measure"],
        [[measure] for measure in result.measures],
        columns,
        title="improvements",
        caption=caption,
    )


def _format(value: float | None, sign: str = "") -> str:
    return UNDEFINED if value is None else decimal(value, sign)


def _format_p(p: float | None) -> str:
    return "<0.0001" if p is not None and p < 0.0001 else _format(p)


def _format_interval(scores: SameSystemScores) -> str:
    if scores.test.interval is None:
        return UNDEFINED
    low, high = scores.test.interval
    return f"[{decimal(low, '+')}, {decimal(high, '+')}]"


SAME_PRINTERS: dict[str, Callable[[SameSystemResult], None]] = {
    "table": print_same_system_tables,
    "json": print_same_system_json,
    "jsonl": lambda result: write_jsonl(_rows(result)),
    "csv": print_same_system_csv,
}

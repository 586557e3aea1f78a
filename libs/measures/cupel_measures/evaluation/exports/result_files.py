"""Result files of BEIR, MTEB and TIRA; each one describes one run."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

GROUPS = {
    "nDCG": ("ndcg", "NDCG"),
    "AP": ("map", "MAP"),
    "R": ("recall", "Recall"),
    "P": ("precision", "P"),
    "RR": ("mrr", "MRR"),
}
"""Measure with a cutoff: its group in results of BEIR and MTEB, and its name in that group of BEIR."""
MTEB_FORMAT = "1.25.1"
"""A release of MTEB that writes the format of `mteb_result`."""
MAIN = "nDCG@10"
"""Measure that ranks models on the retrieval tasks of MTEB."""


def _plan(cutoffs: Iterable[int]) -> str:
    return " ".join(f"{name}@{cutoff}" for name in GROUPS for cutoff in cutoffs)


PLANS = {"beir": _plan((1, 3, 5, 10, 100, 1000)), "mteb": _plan((1, 3, 5, 10, 20, 100, 1000))}
"""The measures that BEIR and MTEB report, by format."""


def check_names(measures: Iterable[object]) -> None:
    """Raise ValueError if BEIR and MTEB have no name for a measure."""
    unknown = [str(measure) for measure in measures if _split(str(measure)) is None]
    if unknown:
        known = ", ".join(f"{name}@k" for name in GROUPS)
        raise ValueError(f"results of BEIR and MTEB have no name for {', '.join(unknown)}; they have {known}")


def _split(measure: str) -> tuple[str, str] | None:
    """Return name and cutoff of a measure, or None if BEIR does not have it."""
    match = re.fullmatch(rf"({'|'.join(GROUPS)})@(\d+)", measure)
    return (match[1], match[2]) if match else None


def beir_result(means: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the scores of a run as BEIR reports them.

    There is a mapping for each kind of measure, such as {"ndcg": {"NDCG@10": 0.3}, "map": {"MAP@100": 0.2}}.
    The names are those of `EvaluateRetrieval.evaluate` and `evaluate_custom` in beir/retrieval/evaluation.py
    (https://github.com/beir-cellar/beir), and the groups those of `save_results` in its module util. Values
    are not rounded; BEIR rounds them to five decimals.
    """
    check_names(means)
    result: dict[str, dict[str, float]] = {}
    for measure, value in means.items():
        name, cutoff = _split(measure) or ("", "")
        group, written = GROUPS[name]
        result.setdefault(group, {})[f"{written}@{cutoff}"] = value
    return result


def mteb_result(
    means: Mapping[str, float],
    *,
    task: str,
    revision: str,
    split: str = "test",
    main: str | None = None,
    languages: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the scores of a run as a task result of MTEB.

    It has the fields of `TaskResult` in mteb/load_results/task_results.py
    (https://github.com/embeddings-benchmark/mteb), which reads it: the scores, such as ndcg_at_10, are in
    scores[split][0]. revision: identifies the data set. main: the measure of `main_score` (default: nDCG@10,
    or the first). languages: such as "eng-Latn". Times and emissions are None.
    """
    check_names(means)
    scores = {}
    for measure, value in means.items():
        name, cutoff = _split(measure) or ("", "")
        scores[f"{GROUPS[name][0]}_at_{cutoff}"] = value
    chosen = main or (MAIN if MAIN in means else next(iter(means)))
    if chosen not in means:
        raise ValueError(f"the main measure {chosen} is not among the scores: {', '.join(means)}")
    entry = {"hf_subset": "default", "languages": list(languages), "main_score": means[chosen], **scores}
    return {
        "dataset_revision": revision,
        "task_name": task,
        "mteb_version": MTEB_FORMAT,
        "scores": {split: [entry]},
        "evaluation_time": None,
        "kg_co2_emissions": None,
    }


def tira_result(means: Mapping[str, float]) -> str:
    """Return the scores of a run as an `evaluation.prototext` of TIRA.

    Each score is a block `measure { key: "..." value: "..." }`, a field `measure` of the message Evaluation
    in protocol/src/tira_messages.proto (https://github.com/tira-io/tira).
    """
    # JSON escapes quotes, backslashes and control characters as the text format of Protocol Buffers does.
    blocks = (
        f"measure {{\n  key: {json.dumps(name, ensure_ascii=False)}\n  value: {json.dumps(repr(value))}\n}}\n"
        for name, value in means.items()
    )
    return "".join(blocks)

"""Properties that hold for every declared kind of audit."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

import numpy as np
import pytest

from cupel_audits import KINDS, AuditError, read_audit
from cupel_audits.declarations import Audit
from cupel_audits.execution import parts, result
from cupel_audits.report import AuditReport, digest
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.model import Qrels, Texts
from support.data import recorded_reports
from support.data.audit_subjects import SEED, subject_of, trials_of
from support.data.small_collections import Scored, qrels_of, ranked, scale, texts_of

QUICK: Mapping[str, Any] = {"repeats": 3, "replicates": 200, "draws": 3}
"""Parameters that make an audit quick, for the kinds that have them."""
MEASURES = "AP nDCG@5 P@5 alpha_nDCG@10 CAM(of=AP)"
TOPICS = ("a", "b", "c", "d")
RELEVANCE, TRUST = scale(2, "relevance"), scale(1, "trust")
RECORDED = recorded_reports.read()
every_kind = pytest.mark.parametrize("kind", KINDS)


def quick_parameters(kind: str) -> dict[str, Any]:
    return {name: value for name, value in QUICK.items() if name in KINDS[kind].settings}


def document_names(count: int = 40) -> list[str]:
    return [f"d{number:02}" for number in range(count)]


def judgments(seed: int, *, best: int = 2) -> Qrels:
    """Return random judgments of two aspects and by subtopic.

    Some grades are negative. The second aspect is judged for half of the documents only.
    best: the greatest grade.
    """
    rng = np.random.default_rng(seed)
    by_aspect: dict[Any, dict[str, dict[str, int]]] = {RELEVANCE: {}, TRUST: {}}
    subtopics: dict[str, dict[str, dict[str, int]]] = {}
    for topic in TOPICS:
        judged = sorted(rng.choice(document_names(), 25, replace=False).tolist())
        grades = np.minimum(rng.integers(-1, 3, len(judged)), best)
        by_aspect[RELEVANCE][topic] = dict(zip(judged, grades.tolist(), strict=True))
        by_aspect[TRUST][topic] = {
            document: int(rng.integers(0, min(best, 1) + 1)) for document in judged[::2]
        }
        subtopics[topic] = {
            document: {str(rng.integers(1, 4)): int(grade > 0)}
            for document, grade in by_aspect[RELEVANCE][topic].items()
        }
    return qrels_of(by_aspect, subtopics=subtopics)


def runs(seed: int, number: int = 6) -> dict[str, Scored]:
    """Return random runs of different lengths; the last run lacks a topic."""
    rng = np.random.default_rng(seed)
    rankings: dict[str, Mapping[str, Mapping[str, float]]] = {
        f"run{run}": {
            topic: ranked(*rng.permutation(document_names())[: 15 + 3 * run].tolist()) for topic in TOPICS
        }
        for run in range(number)
    }
    last = f"run{number - 1}"
    return rankings | {last: {topic: ranking for topic, ranking in rankings[last].items() if topic != "b"}}


def texts() -> Texts:
    rng = np.random.default_rng(9)
    return texts_of(
        {name: " ".join(f"w{word}" for word in rng.integers(0, 30, 8)) for name in document_names()}
    )


def subject_for(
    audit: Audit, qrels: Qrels, submitted: Mapping[str, Scored], measures: str = MEASURES
) -> AuditSubject:
    return subject_of(
        qrels,
        submitted,
        measures,
        teams=[f"team{number // 2}" for number in range(len(submitted))],
        top=audit.ranking_depth(),
        other=judgments(99),
        texts=texts(),
    )


@lru_cache(maxsize=4)
def random_subject(kind: str, seed: int) -> AuditSubject:
    return subject_for(read_audit(kind, quick_parameters(kind)), judgments(seed), runs(seed))


def numbers_in(data: Any) -> Iterator[float]:
    if isinstance(data, Mapping):
        data = [*data.values()]
    if isinstance(data, list | tuple):
        for part in data:
            yield from numbers_in(part)
    elif isinstance(data, float):
        yield data


def check_report(report: AuditReport) -> None:
    """Assert that a report is consistent, unchanged by JSON, without NaN, and explains undefined numbers."""
    data = json.loads(json.dumps(report.as_data(), allow_nan=False))
    assert AuditReport.of(data) == report
    assert all(map(math.isfinite, numbers_in(data)))
    tables = {table.name: [column.name for column in table.columns] for table in report.tables}
    assert len(tables) == len(report.tables)
    assert all(len(row) == len(table.columns) for table in report.tables for row in table.rows)
    assert len({plot.name for plot in report.plots}) == len(report.plots)
    for plot in report.plots:
        columns = (plot.x, plot.y, plot.series, plot.low, plot.high, plot.value, plot.label, plot.facet)
        assert {column for column in columns if column is not None} <= set(tables[plot.table]), plot.name
    if any(value is None for value in report.numbers.values()):
        assert report.undefined
    titles = {table.title for table in report.tables}
    for plot in report.plots:
        assert plot.title not in titles, "the title of a plot states what it shows"
        assert not plot.title.endswith("."), plot.title
        assert plot.reference is None or plot.reference_label, plot.name
    assert report.actions
    for sentence in (*report.verdict, *report.actions):
        assert sentence.endswith("."), sentence
    for sentence in (
        *report.verdict,
        *report.actions,
        *(plot.title for plot in report.plots),
        *report.undefined,
        *report.warnings,
        *report.reading,
    ):
        assert sentence
        assert "nan" not in sentence.split()


@every_kind
def test_every_kind_describes_its_question_and_parameters(kind: str) -> None:
    declared = KINDS[kind]
    assert declared.title
    assert declared.source
    assert declared.answers.endswith("?")
    assert len(declared.__doc__ or "") > 200
    assert all(setting.about for setting in KINDS[kind].settings.values())
    assert json.loads(json.dumps(read_audit(kind).values)) == read_audit(kind).values
    assert read_audit(kind, read_audit(kind).values) == read_audit(kind)


@every_kind
def test_unknown_parameter_is_refused(kind: str) -> None:
    with pytest.raises(AuditError) as refused:
        read_audit(kind, {"colour": "blue"})
    known = ", ".join(KINDS[kind].settings)
    assert refused.value.sentences == (f"{kind} has no parameter 'colour'; it takes {known}",)


@every_kind
def test_parameters_are_set_once_by_name(kind: str) -> None:
    audit = read_audit(kind)
    name, constructor = next(iter(KINDS[kind].settings)), cast("Callable[..., Audit]", KINDS[kind])
    with pytest.raises(FrozenInstanceError):
        setattr(audit, name, None)
    with pytest.raises(TypeError, match="positional argument"):
        constructor(getattr(audit, name))


def test_random_numbers_depend_on_kind_seed_and_trial() -> None:
    number = int(sha256(b"downsampling").hexdigest()[:16], 16)
    expected = np.random.Generator(np.random.PCG64([3, number, 5]))
    assert read_audit("downsampling").generator(3, 5).random() == expected.random()


def test_kinds_need_two_runs_one_trial_and_no_documents_by_default() -> None:
    audit, subject = Audit(), random_subject("correlation", 1)
    for names, problems in {
        (): ["the audit compares runs, but none is given: give two or more"],
        ("a",): ["the audit compares runs, but only one is given: give two or more"],
        ("a", "b"): [],
    }.items():
        assert [*audit.problems(replace(subject, about=replace(subject.about, runs=names)))] == problems
    assert (audit.trials(subject), audit.steps(subject), audit.ranking_depth()) == (1, 1.0, 0)


UNBOUNDED = {"length", "batch"}
"""Integer parameters whose large values are harmless, or which the kind itself bounds."""


@every_kind
def test_parameters_that_multiply_the_work_have_upper_bounds(kind: str) -> None:
    for name, setting in KINDS[kind].settings.items():
        default = setting.parameter.default
        if isinstance(default, int) and not isinstance(default, bool) and name not in UNBOUNDED:
            with pytest.raises(AuditError, match=f"{name}: expected .* from [01]0* to 100,000, got"):
                read_audit(kind, {name: 2**31})
        if isinstance(default, tuple) and isinstance(default[0], int | float):  # not names
            with pytest.raises(
                AuditError, match=f"{name}: expected a list of at most 1,000 numbers, got 2,000"
            ):
                read_audit(kind, {name: [default[0]] * 2000})


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("seed", [1, 2])
@every_kind
def test_result_is_independent_of_the_order_of_trials(kind: str, seed: int) -> None:
    audit, subject = read_audit(kind, quick_parameters(kind)), random_subject(kind, seed)
    results = trials_of(kind, subject, quick_parameters(kind))
    trials = range(audit.trials(subject))
    assert [*results] == [*trials] == [trial for part in parts(audit, subject) for trial in part]
    sample = [*reversed(trials)][:: max(1, len(trials) // 5)]
    for trial in sample:
        assert trials_of(kind, subject, quick_parameters(kind), only=[trial]) == {trial: results[trial]}
    expected = result(audit, subject.about, SEED, len(trials), results)
    from_reversed = result(audit, subject.about, SEED, len(trials), dict(reversed(results.items())))
    assert expected.complete
    assert expected.as_data() == from_reversed.as_data()
    assert expected.report is not None
    assert expected.report.verdict
    assert expected.report.numbers
    check_report(expected.report)


@every_kind
def test_report_is_the_same_from_the_stored_subject_summary(kind: str) -> None:
    audit, subject = read_audit(kind, quick_parameters(kind)), random_subject(kind, 1)
    results = trials_of(kind, subject, quick_parameters(kind))
    about = SubjectSummary.of(json.loads(json.dumps(subject.about.as_data())))
    original, restored = audit.report(subject.about, results), audit.report(about, results)
    assert digest(original.as_data()) == digest(restored.as_data())
    assert recorded_reports.describe(original) == RECORDED[f"{kind}: random runs"]


@every_kind
def test_some_of_the_trials_give_a_partial_report(kind: str) -> None:
    audit, subject = read_audit(kind, quick_parameters(kind)), random_subject(kind, 1)
    results = trials_of(kind, subject, quick_parameters(kind))
    for some in [*([trial] for trial in [*results][:6]), [*results][::2], [*results][1:]]:
        if some:
            partial = result(
                audit, subject.about, SEED, len(results), {trial: results[trial] for trial in some}
            )
            assert partial.report is not None
            check_report(partial.report)


DEGENERATE_SUBJECTS = {
    "one run": (judgments(1), runs(1, 1)),
    "equal runs": (judgments(1), dict.fromkeys(("one", "two", "three"), runs(1)["run0"])),
    "runs without a judged document": (
        judgments(1),
        {n: {"a": ranked("x")} for n in ("one", "two", "three")},
    ),
    "runs of no topic": (judgments(1), {n: {"z": ranked("d00")} for n in ("one", "two", "three")}),
    "nothing relevant": (judgments(1, best=0), runs(1)),
    "two runs": (judgments(1), runs(1, 2)),
    "a swap": (
        qrels_of(
            {
                RELEVANCE: {"a": {"d00": 2, "d01": 1, "d02": 0}, "b": {"d00": 1, "d02": 2}, "c": {"d02": 1}},
                TRUST: {"a": {"d00": 0, "d01": 1}, "b": {"d00": 1, "d02": 1}, "c": {"d02": 0}},
            },
            subtopics={"a": {"d00": {"1": 1}, "d01": {"2": 1}}, "b": {"d00": {"1": 1}, "d02": {"1": 1}}},
        ),
        {
            "first": {"a": ranked("d00", "d03"), "b": ranked("d02", "d04"), "c": ranked("d02")},
            "second": {"a": ranked("d01", "d05"), "b": ranked("d02", "d00"), "c": ranked("d06", "d02")},
            "third": {"a": ranked("d02", "d01"), "b": ranked("d05", "d00"), "c": ranked("d07", "d08")},
        },
    ),
    "one topic": (
        qrels_of(
            {RELEVANCE: {"a": {"d00": 2, "d01": 1, "d02": 0}}, TRUST: {"a": {"d00": 0, "d01": 1}}},
            subtopics={"a": {"d00": {"1": 1}, "d01": {"2": 1}, "d02": {"1": 0}}},
        ),
        runs(1),
    ),
}


@every_kind
@pytest.mark.parametrize("name", DEGENERATE_SUBJECTS)
def test_degenerate_subject_is_refused_or_reported_with_reasons(kind: str, name: str) -> None:
    audit, (qrels, submitted) = read_audit(kind, quick_parameters(kind)), DEGENERATE_SUBJECTS[name]
    subject = subject_for(audit, qrels, submitted)
    if sentences := list(audit.problems(subject)):
        assert all(len(sentence) > 20 for sentence in sentences)
        assert sentences == RECORDED[f"{kind}: {name}"]
        return
    results = trials_of(kind, subject, quick_parameters(kind))
    expected = result(audit, subject.about, SEED, len(results), results)
    assert expected.report is not None
    check_report(expected.report)
    assert recorded_reports.describe(expected.report) == RECORDED[f"{kind}: {name}"]


OTHER_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "aspects": {"count_unjudged": True, "exclude": True, "first": 3, "depth": 10, "width": 5},
    "content": {"curve": "pool_depth", "deepest": 1, "reference": "AP"},
    "correlation": {"aspects": False, "tau_ap": True, "rbo": True},
    "desiderata": {"instances": 20, "length": 4},
    "discriminative_power": {"replicates": 200, "alpha": 0.3, "power": 0.5, "sizes": [3]},
    "downsampling": {
        "ratios": [30],
        "repeats": 1,
        "method": "uniform",
        "aspect": "trust",
        "tau_ap": True,
    },
    "incomplete": {"percents": [30], "repeats": 1},
    "label_selection": {"measure": "soft_alpha_nDCG@5", "reference": "AP", "depth": 1, "repeats": 1},
    "leave_one_run_out": {"depths": [3], "depth": 2},
    "leave_one_team_out": {"depths": [2], "depth": 5},
    "pool_depth": {"deepest": 1},
    "qrels_versions": {"alpha": 0.5, "replicates": 200},
    "reliability": {"target": 0.5, "sizes": [2], "confidence": 0.8},
    "scales": {"alpha": 0.4, "rank_test": "kw", "mean_test": "anova", "design": "one_way"},
    "topic_selection": {"reference": "AP", "number": 1, "repeats": 1},
    "topics": {"draws": 1, "sizes": [1], "error": 0.3, "subset": 2, "difference": 0.3, "alpha": 0.3},
    "unjudged": {"depth": 3, "look": 5, "cutoffs": [4], "tried": 3, "budget": 2, "most": 4},
    "unlabelled_systems": {"percents": [50], "repeats": 1, "depth": 5, "systems": "removed"},
}


def describe_work(kind: str) -> list[str]:
    """Return the numbers of trials and steps, and the depth, by quick and by other parameters."""
    lines = []
    for parameters in (quick_parameters(kind), OTHER_PARAMETERS[kind]):
        audit, subject = read_audit(kind, parameters), random_subject(kind, 1)
        depth = audit.ranking_depth()
        lines.append(f"{audit.trials(subject)} trials of {audit.steps(subject):.6g} steps, depth {depth}")
    return lines


@every_kind
def test_work_is_as_recorded(kind: str) -> None:
    assert describe_work(kind) == RECORDED[f"{kind}: work"]


def report_by_other_parameters(kind: str) -> AuditReport:
    """Return a report on two topics, two measures, and four runs, of which two are equal."""
    audit = read_audit(kind, OTHER_PARAMETERS[kind])
    submitted = {
        run: {topic: rankings[topic] for topic in ("a", "c")} for run, rankings in runs(3, 3).items()
    }
    subject = subject_for(audit, judgments(3), submitted | {"copy": submitted["run1"]}, "nDCG@5 CAM(of=AP)")
    report = audit.report(subject.about, trials_of(kind, subject, OTHER_PARAMETERS[kind]))
    check_report(report)
    return report


@every_kind
def test_other_parameters_give_the_recorded_report(kind: str) -> None:
    report = report_by_other_parameters(kind)
    assert recorded_reports.describe(report) == RECORDED[f"{kind}: other parameters"]


def record_reports() -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of the reports that these tests compare with the recording."""
    for kind in KINDS:
        audit, parameters = read_audit(kind, quick_parameters(kind)), quick_parameters(kind)
        subjects = {"random runs": random_subject(kind, 1)} | {
            name: subject_for(audit, *degenerate) for name, degenerate in DEGENERATE_SUBJECTS.items()
        }
        for name, subject in subjects.items():
            sentences = list(audit.problems(subject))
            results = {} if sentences else trials_of(kind, subject, parameters)
            yield (
                f"{kind}: {name}",
                sentences or recorded_reports.describe(audit.report(subject.about, results)),
            )
        yield f"{kind}: work", describe_work(kind)
        yield f"{kind}: other parameters", recorded_reports.describe(report_by_other_parameters(kind))


if __name__ == "__main__":
    recorded_reports.write(dict(record_reports()))

"""Tests that the replacement of pytrec_eval has the values and exceptions of pytrec_eval-terrier 0.5.11."""

import os
import re
import runpy
import subprocess
import sys
import unittest
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.inputs import table_runs
from cupel_measures.interop import pytrec_eval as ours

theirs = pytest.importorskip("pytrec_eval")

SUITE = "PYTREC_EVAL_TESTS"
"""Environment variable: path of the test suite of pytrec_eval, tests/pytrec_eval_tests.py of its repository.

Beside its folder is trec_eval 9.0.8, with its folder `test`. In trec_eval 10, expected values differ.
"""

documents = st.sampled_from([f"d{i}" for i in range(14)])
topics = st.sampled_from(["1", "10", "2", "é"])
grades = st.integers(-2, 4)
judgments = st.dictionaries(topics, st.dictionaries(documents, grades, max_size=14)).map(
    lambda judged: {t: of for t, of in judged.items() if not of or max(of.values()) >= 0}
)  # pytrec_eval reads outside its memory if all grades of a topic are negative
scores = st.sampled_from([0.0, -0.0, 1, -1.0, 0.5, 1e-305, 0.1, 0.100000001, 1e300, float("inf"), True, -7])
runs = st.dictionaries(topics, st.dictionaries(documents, scores, max_size=14), max_size=4)
requests = st.lists(
    st.sampled_from(
        [
            *sorted(theirs.supported_measures),
            *("official", "set", "all_trec"),
            *(
                "P.3,1",
                "P_2",
                "P_10.7",
                "ndcg_cut_2",
                "ndcg_cut.10,20",
                "map_cut.3",
                "recall_4",
                "success_2,3",
            ),
            *("iprec_at_recall_0.25,0.5", "iprec_at_recall.0.3", "Rprec_mult.0.3", "11pt_avg.0.1,0.5"),
            *("set_F.2", "set_F.0.5,3", "relative_P_7x"),
        ]
    ),
    max_size=6,
)


@pytest.fixture(params=["compiled", "numpy"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(table_runs, "extension", None)
    elif table_runs.extension is None:
        pytest.skip("the extension was not built")


def both(judged: Any, requested: Any, run: Any, **options: Any) -> list[dict[str, dict[str, float]]]:
    return [
        module.RelevanceEvaluator(judged, requested, **options).evaluate(run) for module in (theirs, ours)
    ]


@pytest.mark.usefixtures("reader")
def test_values_keys_and_order_are_those_of_pytrec_eval() -> None:
    @settings(max_examples=120, deadline=None)
    @given(judgments, runs, requests, st.sampled_from([1, 2, 3, 9]), st.booleans())
    def check(judged: Any, run: Any, requested: list[str], level: int, judged_only: bool) -> None:
        options = {"relevance_level": level, "judged_docs_only_flag": judged_only}
        expected, actual = both(judged, requested, run, **options)
        assert [*actual] == [*expected]
        for topic, values in expected.items():
            values |= dict.fromkeys(values.keys() & {"runid", "relstring"}, 0.0)  # parts of an address there
            assert [*actual[topic]] == [*values]
            # Of an empty ranking, pytrec_eval divides 0 by 0 or not, as its memory happens to be.
            undefined = {} if run[topic] else {n: 0.0 for n in values if isnan(values[n] + actual[topic][n])}
            expected_values = pytest.approx(values | undefined, rel=1e-12, abs=1e-12, nan_ok=True)
            assert actual[topic] | undefined == expected_values
            assert {*map(type, actual[topic].values())} <= {float}

    check()


@pytest.mark.usefixtures("reader")
def test_values_of_deep_runs_with_many_ties_are_those_of_pytrec_eval() -> None:
    """Deep enough for the sorting of the compiled reader, in any order of the dictionary."""
    judged: Any = {str(t): {f"d{(i * 7 + t) % 2000}": i % 4 - 1 for i in range(300)} for t in range(3)}
    run = {
        str(t): {f"d{(i * 613 + t) % 2000}": ((i * 7919) % 997) / 31 - 9 for i in range(1000)}
        for t in range(3)
    }
    expected, actual = both(judged, {"all_trec"}, run)
    for topic, values in expected.items():
        values |= dict.fromkeys(["runid", "relstring"], 0.0)
        assert actual[topic] == pytest.approx(values, rel=1e-12, abs=1e-12)


def test_supported_names_are_those_of_pytrec_eval() -> None:
    assert ours.supported_measures == theirs.supported_measures
    assert ours.supported_nicknames == theirs.supported_nicknames
    assert {*theirs.__all__} <= {*ours.__all__}


GOOD: dict[str, Any] = {
    "query_relevance": {"1": {"a": 1}},
    "measures": {"map"},
    "relevance_level": 1,
    "judged_docs_only_flag": False,
}
WRONG_JUDGMENTS: list[Any] = [None, [], {"1": 5}, {"1": ["a"]}, {1: {"a": 1}}]
WRONG_ARGUMENTS = [
    *({"measures": measures} for measures in (["nap"], ["P@5"], "mm", [7], [["map"]], 5, {"prefs"}, [""])),
    *({"query_relevance": judged} for judged in WRONG_JUDGMENTS),
    *(
        {"query_relevance": {"1": of}}
        for of in ({5: 1}, {"a": 1.0}, {"a": "1"}, {"a": None}, {"a": 1, b"b": 1})
    ),
    *({"relevance_level": level} for level in (0, 1.0, "1", None)),
    *({"judged_docs_only_flag": flag} for flag in (None, "yes", 0.5)),
]


CALL = """
import pytrec_eval
try:
    pytrec_eval.RelevanceEvaluator(**{arguments!r})
except Exception as problem:
    print(type(problem).__name__, problem, sep=": ", flush=True)
"""


@pytest.mark.parametrize("wrong", WRONG_ARGUMENTS, ids=str)
def test_wrong_arguments_raise_the_exception_of_pytrec_eval(wrong: dict[str, Any]) -> None:
    """Call pytrec_eval in another process, because it frees invalid judgments twice."""
    arguments = {**GOOD, **wrong}
    code = [sys.executable, "-c", CALL.format(arguments=arguments)]
    expected = subprocess.run(code, capture_output=True, text=True).stdout.removesuffix("\n")
    with pytest.raises(Exception) as actual:
        ours.RelevanceEvaluator(**arguments)
    if wrong.get("measures") == {"prefs"}:  # pytrec_eval names any of several measures
        expected = re.sub(r"measure \w+$", "measure prefs_simp", expected)
    assert f"{actual.type.__name__}: {actual.value}" == expected


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    "run",
    [
        *([1], "run", 5, {"1": 5}, {"1": [("a", 1.0)]}, {1: {"a": 1.0}}, {"1": {5: 1.0}}, {"1": {b"a": 1.0}}),
        *({"1": {"a": "1"}}, {"1": {"a": None}}, {"unknown": {"a": "1"}}, {"1": {"a": 1.0, "b": [1]}}),
    ],
    ids=str,
)
def test_wrong_runs_raise_the_exception_of_pytrec_eval(run: Any) -> None:
    with pytest.raises(TypeError) as expected:
        theirs.RelevanceEvaluator(**GOOD).evaluate(run)
    with pytest.raises(TypeError) as actual:
        ours.RelevanceEvaluator(**GOOD).evaluate(run)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("run", [{}, None, [], {"1": {}}, {"unknown": {"a": 1.0}}], ids=str)
def test_empty_runs_have_the_values_of_pytrec_eval(run: Any) -> None:
    expected, actual = both({"1": {"a": 1}, "empty": {}}, {"map", "P.5"}, run)
    assert actual == expected


def test_judgments_are_copied() -> None:
    judged = {"1": {"a": 1}}
    evaluator = ours.RelevanceEvaluator(judged, ["map"])
    judged["1"]["a"] = 0
    assert evaluator.evaluate({"1": {"a": 1.0}}) == {"1": {"map": 1.0}}


LINES = ["1 Q0 a 1 2.5 tag\n", "\t1  Q0 b 2 1e-3 tag", "2 Q0 a 1 -1 tag\r\n"]


def test_parsers_return_what_those_of_pytrec_eval_return() -> None:
    qrels = ["1 0 a 1\n", "1 0 b -2", "\t2  0 é 3\r\n"]
    assert (ours.parse_run(LINES), ours.parse_qrel(qrels)) == (
        theirs.parse_run(LINES),
        theirs.parse_qrel(qrels),
    )
    assert ours.parse_qrel([])["new"] == {}


@pytest.mark.parametrize(
    ("parser", "lines"),
    [
        ("parse_run", [LINES[0], LINES[0]]),
        ("parse_run", ["1 Q0 a 1 x tag"]),
        ("parse_run", ["1 Q0 a 1 2"]),
        ("parse_run", [""]),
        ("parse_qrel", ["1 0 a 1", "1 0 a 2"]),
        ("parse_qrel", ["1 0 a 1.5"]),
        ("parse_qrel", ["1 0 a 1 x"]),
    ],
)
def test_parsers_raise_the_exceptions_of_those_of_pytrec_eval(parser: str, lines: list[str]) -> None:
    with pytest.raises((AssertionError, ValueError)) as expected:
        getattr(theirs, parser)(lines)
    with pytest.raises(expected.type):
        getattr(ours, parser)(lines)


@pytest.mark.parametrize("measure", ["num_q", "num_rel_ret", "gm_map", "gm_bpref", "map", "P_5"])
def test_aggregates_are_those_of_pytrec_eval(measure: str) -> None:
    for values in ([0.1, 0.2, 0.7], [-11.5, 0.0], [3]):
        assert ours.compute_aggregated_measure(measure, values) == theirs.compute_aggregated_measure(
            measure, values
        )


class TestDeliberateDifferences:
    """Deliberate differences from pytrec_eval."""

    @pytest.mark.parametrize(
        ("measure", "reason"),
        [
            ("ndcg_10", "it takes no cutoff; use ndcg_cut"),
            ("P_0", "expected a rank cutoff: a whole number from 1"),
            ("P.5,05", "a cutoff is given twice"),
            ("iprec_at_recall.1.5", "expected a number from 0 to 1"),
            ("utility.1,2,3,4", "its weights lose their order"),
        ],
    )
    def test_impossible_parameters_are_refused(self, measure: str, reason: str) -> None:
        """pytrec_eval ends the process for the first three, and returns meaningless values for the others."""
        with pytest.raises(ValueError, match="unsupported measure") as problem:
            ours.RelevanceEvaluator({"1": {"a": 1}}, [measure])
        assert reason in str(problem.value)

    def test_ignored_parameters_are_reported(self) -> None:
        """pytrec_eval ignores them silently."""
        judged, run = {"1": {"b": 1}}, {"1": {"a": 2.0, "b": 1.0}}
        with pytest.warns(
            UserWarning, match="recip_rank takes no parameters; as in pytrec_eval, 1 is ignored"
        ):
            evaluator = ours.RelevanceEvaluator(judged, ["recip_rank_1"])
        assert evaluator.evaluate(run) == theirs.RelevanceEvaluator(judged, ["recip_rank_1"]).evaluate(run)

    @pytest.mark.usefixtures("reader")
    def test_scores_that_are_nan_are_refused(self) -> None:
        """pytrec_eval ranks them in an undefined order."""
        evaluator = ours.RelevanceEvaluator({"1": {"a": 1}}, ["map"])
        with pytest.raises(ValueError, match="the score of document 'b' of topic '1' is NaN"):
            evaluator.evaluate({"1": {"a": 1.0, "b": float("nan")}})

    def test_negative_levels_are_refused(self) -> None:
        """pytrec_eval reads -1 as 4294967295."""
        assert theirs.RelevanceEvaluator({"1": {"a": 1}}, ["num_rel"], relevance_level=-1)
        with pytest.raises(TypeError, match="relevance_level should be positive"):
            ours.RelevanceEvaluator({"1": {"a": 1}}, ["num_rel"], relevance_level=-1)

    def test_topics_with_only_negative_grades_have_values(self) -> None:
        """pytrec_eval reads outside its memory."""
        evaluator = ours.RelevanceEvaluator({"1": {"a": -1}}, ["map", "ndcg", "num_ret"])
        assert evaluator.evaluate({"1": {"a": 1.0}}) == {"1": {"num_ret": 1.0, "map": 0.0, "ndcg": 0.0}}


if SUITE in os.environ:  # the path of pytrec_eval_tests.py

    def test_suite_of_pytrec_eval_passes(monkeypatch: pytest.MonkeyPatch) -> None:
        path = Path(os.environ[SUITE])
        monkeypatch.setitem(sys.modules, "pytrec_eval", ours)
        suite = runpy.run_path(str(path), run_name="suite")
        files = [case[:3] for case in suite["TRADITIONAL_TREC_EVAL_TEST_CASES"]]
        assert all((Path(suite["TREC_EVAL_TEST_DIR"]) / name).is_file() for names in files for name in names)
        for number, (*names, options) in enumerate(suite["TRADITIONAL_TREC_EVAL_TEST_CASES"]):
            test = suite["generate_traditional_test"](*names, **options)
            setattr(suite["PyTrecEvalIntegrationTest"], f"test_{number}", test)
        load = unittest.defaultTestLoader.loadTestsFromTestCase
        cases = unittest.TestSuite(
            load(suite[name]) for name in ("PyTrecEvalUnitTest", "PyTrecEvalIntegrationTest")
        )
        result = unittest.TextTestRunner(stream=sys.stderr).run(cases)
        assert result.testsRun >= 7
        assert result.wasSuccessful()

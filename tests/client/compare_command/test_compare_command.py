"""Tests of `cupel compare`: results, special input and usage."""

import csv
import io
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from cupel_client.main import cli
from support.compared_files import RANKS, TOPICS, check_latex, cupel, json_of, run_text


def reciprocal_ranks(name: str) -> np.ndarray:  # type: ignore[type-arg]
    return np.array([1 / rank if rank else 0.0 for rank in RANKS[name]])


pytestmark = pytest.mark.usefixtures("folder")


def pairs(*arguments: str) -> list[dict[str, Any]]:
    """Return the differences by the first measure."""
    data: list[dict[str, Any]] = json_of(*arguments)["measures"][0]["differences"]
    return data


def exact_p(differences: np.ndarray) -> float:  # type: ignore[type-arg]
    """Return p of the randomisation test, from all assignments of signs."""
    sums = np.array(list(itertools.product([1, -1], repeat=len(differences)))) @ differences
    return float(np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9))


class TestNumbers:
    def test_first_run_is_the_baseline_of_all_other_runs(self) -> None:
        data = pairs("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR")
        assert [(pair["baseline"], pair["run"]) for pair in data] == [
            ("base.txt", "best.txt"),
            ("base.txt", "near.txt"),
        ]
        for pair in data:
            apart = reciprocal_ranks(pair["run"]) - reciprocal_ranks("base.txt")
            assert pair["baseline_mean"] == math.fsum(reciprocal_ranks("base.txt")) / 12
            assert pair["run_mean"] == math.fsum(reciprocal_ranks(pair["run"])) / 12
            assert pair["difference"] == pytest.approx(apart.mean())
            assert pair["p"] == pytest.approx(exact_p(apart))
            assert pair["effect_size"] == pytest.approx(apart.mean() / apart.std(ddof=1))
            counts = [(apart > 0).sum(), (apart == 0).sum(), (apart < 0).sum()]
            assert [pair["higher"], pair["same"], pair["lower"]] == counts
            assert pair["low"] < pair["difference"] < pair["high"]

    def test_holm_correction_covers_all_pairs_and_measures(self) -> None:
        data = json_of("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR P@1", "--test", "t")
        p = [row["p"] for measure in data["measures"] for row in measure["differences"]]
        corrected = [row["corrected_p"] for measure in data["measures"] for row in measure["differences"]]
        assert data["tests"] == 4
        smallest = int(np.argmin(p))
        assert p[smallest] == pytest.approx(
            stats.ttest_rel(reciprocal_ranks("best.txt"), reciprocal_ranks("base.txt")).pvalue
        )
        assert corrected[smallest] == pytest.approx(4 * p[smallest])
        assert all(after >= before for before, after in zip(p, corrected, strict=True))

    @pytest.mark.parametrize(
        ("test", "expected"),
        [
            ("t", lambda x, y: stats.ttest_rel(x, y).pvalue),
            ("wilcoxon", lambda x, y: stats.wilcoxon(x - y, zero_method="pratt").pvalue),
            ("sign", lambda x, y: stats.binomtest(int((x > y).sum()), int((x != y).sum())).pvalue),
        ],
    )
    def test_other_tests_equal_scipy(self, test: str, expected: Any) -> None:
        [data] = pairs("qrels.txt", "base.txt", "best.txt", "-m", "RR", "--test", test)
        assert data["p"] == pytest.approx(
            expected(reciprocal_ranks("best.txt"), reciprocal_ranks("base.txt")), abs=1e-12
        )
        assert data["significant"] == (data["p"] <= 0.05)

    def test_significance_depends_on_alpha_and_correction(self) -> None:
        arguments = ("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR")
        assert pairs(*arguments)[0]["significant"]
        assert not pairs(*arguments, "--alpha", "0.001")[0]["significant"]
        [first, second] = pairs(*arguments, "--correction", "none")
        assert (first["corrected_p"], second["corrected_p"]) == (first["p"], second["p"])

    def test_all_pairs_compares_every_two_runs(self) -> None:
        data = json_of("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR", "--all-pairs")
        compared = [(row["baseline"], row["run"]) for row in data["measures"][0]["differences"]]
        assert compared == list(itertools.combinations(["base.txt", "best.txt", "near.txt"], 2))
        assert data["baseline"] is None

    def test_summary_of_pairs_explains_no_interval_that_it_does_not_show(self, tmp_path: Path) -> None:
        (tmp_path / "one.txt").write_text("1 0 a 1\n")
        names = [f"r{number}.txt" for number in range(6)]
        for name in names:
            (tmp_path / name).write_text("1 Q0 a 1 2 r\n")
        summary = cupel("one.txt", *names, "-m", "RR", "--all-pairs").stdout
        every_pair = cupel("one.txt", *names, "-m", "RR", "--all-pairs", "--pairs").stdout
        for printed in (summary, every_pair):
            assert "p is undefined: there is only one topic" in printed
        assert "the interval of the difference is" not in summary
        assert "the interval of the difference is undefined: there is only one topic" in every_pair

    def test_swings_are_the_topics_with_the_largest_differences(self) -> None:
        [data] = pairs("qrels.txt", "base.txt", "near.txt", "-m", "RR")
        assert [(swing["topic"], round(swing["difference"], 6)) for swing in data["swings"]] == [
            ("q08", 1.0),
            ("q12", round(1 / 3 - 1 / 2, 6)),
        ]

    def test_means_are_bit_equal_to_evaluate(self) -> None:
        data = json_of("c.yaml", "base.txt", "best.txt", "-m", "nDCG@3 TOMA(of=nDCG@3)")
        scored = CliRunner().invoke(
            cli, ["evaluate", "c.yaml", "best.txt", "-m", "nDCG@3 TOMA(of=nDCG@3)", "--format", "jsonl"]
        )
        values = [json.loads(line)["value"] for line in scored.stdout.splitlines()]
        assert [measure["differences"][0]["run_mean"] for measure in data["measures"]] == values

    @pytest.mark.parametrize("form", ["jsonl", "csv"])
    def test_geometric_means_equal_evaluate(self, form: str) -> None:
        done = cupel("qrels.txt", "base.txt", "best.txt", "-m", "GMAP", "--format", form)
        lines = done.stdout.splitlines()
        [row] = map(json.loads, lines) if form == "jsonl" else csv.DictReader(lines)
        for run, column in (("base.txt", "baseline_mean"), ("best.txt", "run_mean")):
            scored = CliRunner().invoke(cli, ["evaluate", "qrels.txt", run, "-m", "GMAP", "--format", "json"])
            assert repr(float(row[column])) in scored.stdout
        apart = math.log(float(row["run_mean"])) - math.log(float(row["baseline_mean"]))
        # The difference of the logarithms, which the note explains.
        assert float(row["difference"]) == pytest.approx(apart)
        assert "compared by the mean of the logarithms" in done.stderr


class TestAdditionalResults:
    def test_multi_aspect_measure_is_also_compared_by_aspect(self) -> None:
        data = json_of("c.yaml", "base.txt", "best.txt", "-m", "CAM(of=nDCG@3) nDCG@3")["by_aspect"]
        assert [(row["aspect"], row["measure"]) for row in data] == [
            ("relevance", "nDCG@3"),
            ("quality", "nDCG(aspect=quality)@3"),
        ]
        direct = pairs("c.yaml", "base.txt", "best.txt", "-m", "nDCG(aspect=quality)@3")
        assert data[1]["difference"] == direct[0]["difference"]
        assert json_of("qrels.txt", "base.txt", "best.txt", "-m", "nDCG@3")["by_aspect"] == []

    def test_unequal_shares_of_unjudged_documents_give_a_warning(self, folder: Path) -> None:
        data = json_of("qrels.txt", "best.txt", "unseen.txt", "base.txt", "-m", "RR@5 P@5", "--all-pairs")
        # unseen.txt has the unjudged documents u3, u4 and u5 at ranks 3, 4 and 5
        assert data["unjudged"] == {
            "Unjudged@5": {"best.txt": 0.0, "base.txt": 0.0, "unseen.txt": pytest.approx(0.6)}
        }
        assert not [warning for warning in data["warnings"] if "is 60.0% for unseen.txt" in warning]
        (folder / "unseen.txt").write_text(run_text(RANKS["base.txt"], judged=2))
        data = json_of("qrels.txt", "best.txt", "unseen.txt", "-m", "RR@5")
        [warning] = [text for text in data["warnings"] if "Unjudged@5 is" in text]
        assert warning.endswith(
            "for best.txt; unseen.txt may score lower by RR@5 because more of its documents are unjudged"
        )
        judged = json_of("qrels.txt", "base.txt", "best.txt", "-m", "RR@5")
        assert not any("Unjudged" in warning for warning in judged["warnings"])

    def test_groups_and_orders_need_three_runs(self) -> None:
        three = json_of("qrels.txt", "base.txt", "best.txt", "twin.txt", "-m", "RR P@1")
        means = {mean["run"]: mean["groups"] for mean in three["measures"][0]["means"]}
        assert means["base.txt"] == means["twin.txt"] == ["b"]
        assert means["best.txt"] == ["a"]
        assert three["orders"][0]["measures"] == ["RR", "P@1"]
        assert three["orders"][0]["tau_b"] == 1.0
        assert three["orders"][0]["rbo"] == pytest.approx(1.0)
        two = json_of("qrels.txt", "base.txt", "best.txt", "-m", "RR P@1")
        assert (two["orders"], two["measures"][0]["means"][0]["groups"]) == ([], None)

    def test_scale_types_of_measures_and_their_warnings(self) -> None:
        data = json_of("qrels.txt", "base.txt", "best.txt", "-m", "P@5 AP RBTO@3")
        assert [measure["scale"] for measure in data["measures"]] == ["interval", "neither", "interval"]
        assert [warning.partition(":")[0] for warning in data["warnings"]] == ["AP", "AP"]

    @pytest.mark.parametrize("form", ["table", "latex", "csv", "jsonl"])
    def test_scale_notes_are_printed_on_request_only(self, form: str) -> None:
        command = ("qrels.txt", "base.txt", "best.txt", "-m", "RR", "--format", form)
        assert "interval scale" not in cupel(*command).output
        noted = cupel(*command, "--scale-notes").output
        assert "RR: a mean needs an interval scale" in noted
        assert "RR: the randomisation test needs an interval scale" in noted


class TestRankTests:
    """Friedman's, Nemenyi's and Conover's tests, with ranks and statistics of scipy."""

    @staticmethod
    def mean_ranks(*names: str) -> np.ndarray:  # type: ignore[type-arg]
        return stats.rankdata(-np.column_stack([reciprocal_ranks(name) for name in names]), axis=1).mean(
            axis=0
        )

    @pytest.mark.parametrize("test", ["nemenyi", "conover"])
    def test_json_has_friedman_and_mean_ranks(self, test: str) -> None:
        names = ("base.txt", "best.txt", "near.txt")
        found = json_of("qrels.txt", *names, "-m", "RR", "--test", test, "--all-pairs")
        [measure] = found["measures"]
        expected = stats.friedmanchisquare(*(reciprocal_ranks(name) for name in names))
        assert measure["friedman"]["statistic"] == pytest.approx(expected.statistic)
        assert (measure["friedman"]["p"], measure["friedman"]["df"]) == (pytest.approx(expected.pvalue), 2)
        ranks = self.mean_ranks(*names)
        assert [run["mean_rank"] for run in measure["means"]] == pytest.approx(list(ranks))
        statistics = [pair["statistic"] for pair in measure["differences"]]
        assert statistics == pytest.approx([ranks[0] - ranks[1], ranks[0] - ranks[2], ranks[1] - ranks[2]])
        assert (found["test"], found["correction"], found["tests"]) == (test, test, 3)

    def test_table_states_friedman_and_the_critical_difference(self) -> None:
        arguments = ("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR", "--test")
        printed = cupel(*arguments, "nemenyi").stdout
        for part in (
            "By Friedman's test of ranks within topics, the runs differ significantly (chi-squared ",
            # Demšar 2006, table 5a: 2.343 for 3 systems; sqrt(3 * 4 / (6 * 12))
            f"the critical difference of mean ranks is {2.343 / 6**0.5:.2f}",
            "Runs that share a letter are not significantly different (Nemenyi's test of mean ranks, alpha",
            "It assumes that all systems have equal spreads.",
            "Best set: multiple comparisons with the best (alpha 0.05) from the step-down max-T test",
            "mean rank",
        ):
            assert part in printed, part
        assert "Friedman's test of aligned ranks" in cupel(*arguments, "aligned-ranks").stdout
        assert "critical difference" not in cupel(*arguments, "conover").stdout

    @pytest.mark.parametrize(
        ("test", "named"),
        [("nemenyi", "Nemenyi's test compares mean ranks"), ("sign", "The sign test compares signs")],
    )
    def test_tables_show_no_intervals_that_a_test_of_ranks_may_contradict(
        self, test: str, named: str
    ) -> None:
        arguments = ("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR", "--test", test)
        printed = cupel(*arguments).stdout
        assert f"{named}, so intervals of differences of means are not shown." in printed
        assert "simultaneous interval" not in printed
        assert "contradict" not in printed
        assert not re.search(r"[+-]\d\.\d+ \[", printed)
        assert pairs(*arguments)[0]["low"] is not None

    def test_latex_and_csv_have_the_rank_test(self) -> None:
        arguments = ("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "RR", "--test", "conover")
        printed = cupel(*arguments, "--format", "latex").stdout
        assert "Conover's test of mean ranks with Holm's correction" in printed
        assert r"best.txt & $\mathbf{0.8750}^{+}$" in printed
        check_latex(printed)
        rows = list(csv.DictReader(io.StringIO(cupel(*arguments, "--format", "csv").stdout)))
        assert [row["significant"] for row in rows] == ["True", "False"]

    def test_correction_is_refused(self) -> None:
        result = cupel("qrels.txt", "base.txt", "best.txt", "--test", "nemenyi", "--correction", "holm")
        assert result.exit_code == 2
        assert "the nemenyi test corrects p itself" in result.stderr


class TestIndependence:
    def test_results_are_independent_of_processes_and_run_order(self) -> None:
        arguments = ("-m", "RR nDCG@3", "--seed", "3")
        serial = json_of("c.yaml", "base.txt", "best.txt", "near.txt", "twin.txt", *arguments, "--jobs", "1")
        parallel = json_of(
            "c.yaml", "base.txt", "best.txt", "near.txt", "twin.txt", *arguments, "--jobs", "2"
        )
        reordered = json_of("c.yaml", "base.txt", "twin.txt", "near.txt", "best.txt", *arguments)
        assert serial == parallel

        def by_run(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return sorted(rows, key=lambda row: (row.get("measure", ""), row["run"]))

        assert by_run(serial["by_aspect"]) == by_run(reordered["by_aspect"])
        for measure, again in zip(serial["measures"], reordered["measures"], strict=True):
            for part in ("means", "differences"):
                assert by_run(measure[part]) == by_run(again[part])
            assert measure["detectable"] == again["detectable"]
        assert serial["orders"] == reordered["orders"]


class TestDegenerateInput:
    def test_identical_runs_have_undefined_effect_sizes(self) -> None:
        for test, undefined in (
            ("randomisation", None),
            ("t", "the difference is the same on every topic, so its variance is zero"),
            ("wilcoxon", "the systems score the same on every topic"),
            ("sign", "the systems score the same on every topic"),
        ):
            arguments = ("qrels.txt", "base.txt", "twin.txt", "-m", "RR", "--test", test)
            [data] = pairs(*arguments)
            assert (data["p"], data["p_undefined"]) == (1.0 if undefined is None else None, undefined)
            assert (data["difference"], data["low"], data["high"]) == (0.0, None, None)
            assert (data["effect_size"], data["effect_undefined"]) == (
                None,
                "the differences have no variance",
            )
            printed = cupel(*arguments).stdout
            assert "the effect size is undefined: the differences have no variance" in printed
            assert undefined is None or f"p is undefined: {undefined}" in printed
            assert ("The difference is not significant" in printed) == (undefined is None)
            assert "nan" not in printed.lower()

    def test_identical_runs_have_no_interval_with_a_margin(self) -> None:
        arguments = ("qrels.txt", "base.txt", "twin.txt", "-m", "RR", "--margin", "0.1")
        [data] = pairs(*arguments)
        assert (data["low"], data["margin_low"], data["margin_high"]) == (None, None, None)
        [line] = re.findall(r"^.* twin\.txt .* 0\.1 .*$", cupel(*arguments).stdout, re.M)
        assert "undefined" in line

    def test_single_topic_gives_undefined_intervals_and_groups(self, folder: Path) -> None:
        (folder / "one.txt").write_text("q02 0 a 1\nq02 0 n1 0\n")
        arguments = ("one.txt", "base.txt", "best.txt", "near.txt", "-m", "RR P@1")
        printed = cupel(*arguments).stdout
        for part in (
            "the interval of the mean is undefined: there is only one topic",
            "groups are undefined: there is only one topic",
            "the interval of the difference is undefined: there is only one topic",
            "with 1 topic p of the randomisation test is at least 1",
            "exact: all 2 assignments of signs",
        ):
            assert part in printed, part
        assert json_of(*arguments)["measures"][0]["means"][0]["mean"] == 0.5
        assert "nan" not in printed.lower()

    def test_constant_scores_are_not_significantly_different(self) -> None:
        data = json_of("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "NumRel RR")
        counts = data["measures"][0]
        assert [mean["mean"] for mean in counts["means"]] == [1.0, 1.0, 1.0]
        assert [row["p"] for row in counts["differences"]] == [1.0, 1.0]
        assert {tuple(mean["groups"]) for mean in counts["means"]} == {("a",)}
        assert counts["warnings"] == ["compared by its mean over topics instead of its sum"]
        assert data["orders"][0]["undefined"] == "all systems score the same under one of the two measures"
        assert (
            "by means undefined: all systems score the same under one of the two measures"
            in cupel("qrels.txt", "base.txt", "best.txt", "near.txt", "-m", "NumRel RR").stdout
        )

    def test_scores_whose_squares_overflow_are_undefined(self, folder: Path) -> None:
        """RBTO is up to 2^900 in this test, and its square exceeds the largest float."""
        deep = "".join(f"q01 Q0 {'a' if i == 1 else f'd{i}'} {i} {2000 - i} r\n" for i in range(1, 1500))
        (folder / "deep.txt").write_text(deep)
        (folder / "other.txt").write_text(deep.replace(" a ", " n1 "))
        arguments = ("qrels.txt", "deep.txt", "other.txt", "-m", "RBTO@900 RR")
        [counted, _] = json_of(*arguments)["measures"]
        reason = "a score exceeds 1e+150, so its square overflows"
        assert (counted["means"][0]["mean"], counted["means"][0]["undefined"]) == (None, reason)
        assert (counted["differences"][0]["p"], counted["differences"][0]["p_undefined"]) == (None, reason)
        assert (counted["detectable"], counted["means"][1]["mean"]) == (None, 0.0)
        printed = cupel(*arguments).stdout
        assert f"p is undefined: {reason}" in printed
        assert f"the interval of the mean is undefined (deep.txt): {reason}" in printed
        assert not re.search(r"\b(nan|inf)\b", printed)
        assert "deep.txt & undefined" in cupel(*arguments, "--format", "latex").stdout

    def test_latex_marks_numbers_with_exponents(self, folder: Path) -> None:
        (folder / "last.txt").write_text("".join(f"{topic} Q0 n1 1 1 r\n" for topic in TOPICS))
        printed = cupel("qrels.txt", "last.txt", "best.txt", "-m", "RBTO@20", "--format", "latex").stdout
        assert re.search(r"best\.txt & \$\\mathbf\{\{\d\.\d{4} \\cdot 10\^\{5\}\}\}\^\{\+\}\$ ", printed)
        check_latex(printed)


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["qrels.txt"], "a comparison needs at least two runs"),
            (["qrels.txt", "base.txt"], "a comparison needs at least two runs"),
            (["--aspect", "relevance=qrels.txt", "base.txt"], "a comparison needs at least two runs"),
            (["qrels.txt", "base.txt", "base.txt"], "given twice"),
            (["qrels.txt", "base.txt", "best.txt", "-m", "nDGC"], "did you mean nDCG?"),
            (["qrels.txt", "base.txt", "best.txt", "--test", "z"], "randomisation"),
            (["qrels.txt", "base.txt", "best.txt", "--correction", "bonferroni"], "holm"),
            (["qrels.txt", "base.txt", "best.txt", "--alpha", "0"], "alpha"),
            (["qrels.txt", "base.txt", "best.txt", "--confidence", "95"], "confidence"),
            (["qrels.txt", "base.txt", "best.txt", "--seed", "-1"], "seed"),
            (["qrels.txt", "base.txt", "best.txt", "--format", "trec_eval"], "latex"),
        ],
    )
    def test_wrong_usage_fails_with_a_message(self, arguments: list[str], message: str) -> None:
        result = cupel(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr

    def test_invalid_run_is_reported_and_left_out(self) -> None:
        result = cupel("qrels.txt", "base.txt", "bad.txt", "best.txt", "-m", "RR", "--format", "json")
        assert result.exit_code == 1
        data = json.loads(result.stdout)
        assert data["runs"] == ["base.txt", "best.txt"]
        assert data["tests"] == 1
        assert data["refused"][0]["run"] == "bad.txt"
        assert "bad.txt is refused" in result.stderr

    def test_comparison_needs_the_baseline_and_a_second_run(self) -> None:
        no_baseline = cupel("qrels.txt", "bad.txt", "base.txt", "best.txt", "-m", "RR")
        assert (no_baseline.exit_code, no_baseline.stdout) == (1, "")
        assert "no comparison: the baseline bad.txt was not scored" in no_baseline.stderr
        assert "bad.txt:1" in no_baseline.stderr
        all_pairs = cupel("qrels.txt", "bad.txt", "base.txt", "best.txt", "-m", "RR", "--all-pairs")
        assert all_pairs.exit_code == 1
        assert "best.txt" in all_pairs.stdout
        single = cupel("qrels.txt", "base.txt", "bad.txt", "-m", "RR")
        assert (single.exit_code, single.stdout) == (1, "")
        assert "no comparison: fewer than two runs were scored" in single.stderr

    def test_control_characters_and_markup_in_names_are_escaped(self, folder: Path) -> None:
        (folder / "[red]\x1b[31m.txt").write_text((folder / "best.txt").read_text())
        for form in ("table", "csv", "latex"):
            for runs in (("base.txt", "[red]\x1b[31m.txt"), ("[red]\x1b[31m.txt", "base.txt")):
                printed = cupel("qrels.txt", *runs, "-m", "RR", "--format", form).output
                assert "\x1b" not in printed
                assert "31m" in printed


@pytest.mark.parametrize("name", ["clef-ehealth-2015-task2", "touche22-task2"])
def test_comparison_of_real_runs(shared: Path, name: str) -> None:
    folder = shared / "data" / name
    qrels_by_aspect = {
        "clef-ehealth-2015-task2": {
            "relevance": "qrels/qrels.eng.clef2015.qtest.graded.txt.gz",
            "readability": "qrels/qread.eng.clef2015.qtest.graded.txt.gz",
        },
        "touche22-task2": {
            "relevance": "qrels/touche-task2-2022-relevance.qrels",
            "quality": "qrels/touche-task2-2022-quality.qrels",
        },
    }[name]
    aspects = [f"--aspect={aspect}={folder / file}" for aspect, file in qrels_by_aspect.items()]
    runs = sorted(path for path in (folder / "runs").rglob("*.gz"))[:5]
    data = json_of(*aspects, *map(str, runs), "-m", "nDCG@10 TOMA(of=nDCG@10)", "--all-pairs")
    assert data["tests"] == 10  # for each measure
    for measure in data["measures"]:
        for row in measure["differences"]:
            if row["low"] is None:  # only a later step of the test finds this difference significant
                assert row["significant"]
            else:
                assert row["low"] <= row["difference"] <= row["high"]
            assert 0 < row["p"] <= row["corrected_p"] <= 1
    assert len(data["by_aspect"]) == 20

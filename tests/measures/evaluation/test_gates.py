"""Tests of gates on planted cases, through the front door."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

import cupel_measures as cupel
from cupel_measures.evaluation.gates.gate_rules import GateRule, GateVerdict
from cupel_measures.evaluation.gates.gate_verdicts import common_verdict, margin_outcome, verdict_of
from support.data.gated_runs import (
    Change,
    demote_relevant,
    promote_relevant,
    put_unjudged_first,
    replace_irrelevant,
    replace_most,
    reshuffle,
    swap_neighbours,
    topic_names,
    write_qrels,
    write_runs,
)

FIFTY = topic_names(50)


def judge(
    folder: Path, change: Change, measure: str = "nDCG@10", *, max_drop: float = 0.03, **choices: float
) -> cupel.GateReport:
    """Write the files of a planted case of 50 topics, and return the report."""
    write_qrels(folder / "qrels.txt", FIFTY)
    write_runs(folder, FIFTY, change)
    return report_on(folder, measure, max_drop=max_drop, **choices)


def report_on(folder: Path, measure: str, *, max_drop: float = 0.03, **choices: float) -> cupel.GateReport:
    paths = (str(folder / name) for name in ("qrels.txt", "base.txt", "run.txt"))
    return cupel.gate(*paths, measure, max_drop=max_drop, **choices)


class TestVerdictsOfTests:
    def test_true_drop_is_worse_and_names_topics(self, tmp_path: Path) -> None:
        report = judge(tmp_path, demote_relevant)
        [outcome] = report
        assert (report.verdict, report.passed, report.exit_code) == ("worse", False, 1)
        assert outcome.difference is not None
        assert outcome.difference < -0.03
        worst = outcome.largest_drops[0]
        assert worst.difference == min(item.difference for item in outcome.largest_drops)
        assert f"the largest drops are on the topics {worst.topic}" in "; ".join(outcome.reasons)

    def test_noise_is_no_worse_if_a_drop_is_ruled_out(self, tmp_path: Path) -> None:
        report = judge(tmp_path, swap_neighbours)
        assert (report.verdict, report.passed, report.exit_code) == ("no worse", True, 0)
        assert "a drop of 0.03 or more is ruled out" in report["nDCG@10"].reasons

    def test_much_noise_is_undecided_and_says_how_many_topics_are_needed(self, tmp_path: Path) -> None:
        report = judge(tmp_path, reshuffle)
        assert (report.verdict, report.exit_code) == ("undecided", 3)
        needed = re.search(r"about ([\d,]+) topics", "; ".join(report["nDCG@10"].reasons))
        assert needed is not None
        scores = cupel.evaluate(tmp_path / "qrels.txt", str(tmp_path / "*e.txt"), "nDCG@10")
        run = cupel.evaluate(tmp_path / "qrels.txt", tmp_path / "run.txt", "nDCG@10")
        apart = np.array([*run["run.txt"].by_topic["nDCG@10"].values()], float) - np.array(
            [*scores["base.txt"].by_topic["nDCG@10"].values()], float
        )
        expected = ((1.6449 + 0.8416) * apart.std(ddof=1) / 0.03) ** 2
        assert int(needed.group(1).replace(",", "")) == pytest.approx(expected, rel=0.01)

    def test_true_gain_is_better(self, tmp_path: Path) -> None:
        report = judge(tmp_path, promote_relevant)
        assert (report.verdict, report.exit_code) == ("better", 0)

    def test_equal_runs_are_no_worse(self, tmp_path: Path) -> None:
        report = judge(tmp_path, lambda ranked, _: ranked)
        assert report.verdict == "no worse"
        assert report["nDCG@10"].interval is None
        assert "nan" not in f"{report!r}{report.to_markdown()}{report.to_junit()}".lower()

    def test_interval_is_that_of_the_t_test(self, tmp_path: Path) -> None:
        report = judge(tmp_path, swap_neighbours, alpha=0.01)
        scores = [
            cupel.evaluate(tmp_path / "qrels.txt", tmp_path / f"{name}.txt", "nDCG@10")[f"{name}.txt"]
            for name in ("run", "base")
        ]
        run, base = (np.array([*item.by_topic["nDCG@10"].values()], float) for item in scores)
        expected = stats.ttest_1samp(run - base, 0).confidence_interval(0.98)
        assert report["nDCG@10"].interval == pytest.approx((expected.low, expected.high))
        assert report["nDCG@10"].run_mean == scores[0]["nDCG@10"]

    def test_largest_loss_within_the_drop_is_no_worse_although_significant(self, tmp_path: Path) -> None:
        report = judge(tmp_path, demote_relevant, max_drop=0.9)
        assert report.verdict == "no worse"
        assert judge(tmp_path, demote_relevant, max_drop=0.01).verdict == "worse"


class TestTopics:
    def test_few_topics_are_undecided(self, tmp_path: Path) -> None:
        write_qrels(tmp_path / "qrels.txt", topic_names(5))
        write_runs(tmp_path, topic_names(5), demote_relevant)
        report = report_on(tmp_path, "nDCG@10")
        assert (report.verdict, report.exit_code) == ("undecided", 3)
        assert report["nDCG@10"].reasons == ("too few topics: 5 are compared, and at least 10 are required",)
        assert report_on(tmp_path, "nDCG@10", min_topics=5).verdict == "worse"

    @pytest.mark.parametrize("first", [51, 301])
    def test_baseline_on_other_topics_is_undecided(self, tmp_path: Path, first: int) -> None:
        """The judgments are of the baseline's topics too, or of the run's only."""
        write_qrels(tmp_path / "qrels.txt", topic_names(100))
        write_runs(tmp_path, topic_names(50, first), swap_neighbours)
        (tmp_path / "base.txt").rename(tmp_path / "other.txt")
        write_runs(tmp_path, FIFTY, swap_neighbours)
        (tmp_path / "other.txt").rename(tmp_path / "base.txt")
        report = report_on(tmp_path, "nDCG@10")
        assert report.exit_code == 3
        assert "on other topics" in report["nDCG@10"].reasons[0]

    def test_a_few_topics_without_baseline_are_left_out_with_a_note(self, tmp_path: Path) -> None:
        write_qrels(tmp_path / "qrels.txt", FIFTY)
        write_runs(tmp_path, FIFTY, swap_neighbours)
        lines = (tmp_path / "base.txt").read_text().splitlines(keepends=True)
        (tmp_path / "base.txt").write_text("".join(line for line in lines if line[:4] > "q005"))
        report = report_on(tmp_path, "nDCG@10")
        assert (report.verdict, report["nDCG@10"].topics) == ("no worse", 45)
        assert "5 topics without results of the baseline are not compared" in report["nDCG@10"].notes
        (tmp_path / "base.txt").write_text("".join(line for line in lines if line[:4] > "q006"))
        assert report_on(tmp_path, "nDCG@10").verdict == "undecided"

    def test_topics_that_the_run_lacks_are_empty_rankings(self, tmp_path: Path) -> None:
        write_qrels(tmp_path / "qrels.txt", FIFTY)
        write_runs(tmp_path, FIFTY, swap_neighbours)
        lines = (tmp_path / "run.txt").read_text().splitlines(keepends=True)
        (tmp_path / "run.txt").write_text("".join(line for line in lines if line[:4] > "q020"))
        report = report_on(tmp_path, "nDCG@10")
        assert (report.verdict, report["nDCG@10"].topics) == ("worse", 50)
        assert "the run lacks 20 of the 50 compared topics; they count as empty rankings" in (
            report["nDCG@10"].notes
        )


class TestUnjudgedDocuments:
    def test_gain_of_unjudged_documents_is_undecided_not_worse(self, tmp_path: Path) -> None:
        [outcome] = judge(tmp_path, put_unjudged_first)
        assert outcome.verdict == "undecided"
        effect = outcome.unjudged
        assert effect is not None
        assert (effect.run, effect.against_run, effect.for_run) == (0.3, "worse", "better")
        assert len(effect.documents) == 150
        assert "30.0% of the new top ten is unjudged" in "; ".join(outcome.reasons)
        assert "is established" not in "; ".join(outcome.reasons)

    def test_gain_of_a_judged_only_measure_is_undecided_not_better(self, tmp_path: Path) -> None:
        """Unjudged documents in place of irrelevant ones are a gain for a judged-only measure."""
        [outcome] = judge(tmp_path, replace_most, "nDCG(judged_only=True)@10")
        assert outcome.verdict == "undecided"
        assert "with the present judgments, the verdict is 'better'" in "; ".join(outcome.reasons)

    def test_gain_of_unjudged_documents_that_hide_no_loss_is_no_worse(self, tmp_path: Path) -> None:
        """If the unjudged documents are irrelevant, the run equals the baseline."""
        [outcome] = judge(tmp_path, replace_irrelevant, "nDCG(judged_only=True)@10")
        assert outcome.verdict == "no worse"
        assert outcome.unjudged is not None
        assert (outcome.unjudged.against_run, outcome.unjudged.for_run) == ("no worse", "better")
        assert "a drop of 0.03 or more is ruled out" in outcome.reasons

    def test_unjudged_documents_up_to_the_limit_only_give_a_note(self, tmp_path: Path) -> None:
        report = judge(tmp_path, put_unjudged_first, max_unjudged=0.3)
        [outcome] = report
        assert (outcome.verdict, report.exit_code) == ("worse", 1)
        assert "it would be 'worse' with labels that are worst for the run" in "; ".join(outcome.notes)

    def test_verdict_that_labels_cannot_change_holds(self, tmp_path: Path) -> None:
        """Three unjudged documents at ranks 8 to 10 cannot make up for the loss of all others."""

        def lose_all(ranked: list[str], _: object) -> list[str]:
            return [*[f"d{number}" for number in range(50, 57)], "new1", "new2", "new3"]

        [outcome] = judge(tmp_path, lose_all)
        assert outcome.unjudged is not None
        assert (outcome.unjudged.run, outcome.verdict) == (0.3, "worse")
        assert "the worst and the best labels for the run give this verdict too" in "; ".join(outcome.notes)

    def test_unjudged_documents_of_the_baseline_count_too(self, tmp_path: Path) -> None:
        judge(tmp_path, put_unjudged_first)
        paths = (tmp_path / name for name in ("qrels.txt", "run.txt", "base.txt"))
        [outcome] = cupel.gate(*paths, "nDCG@10", max_drop=0.03)
        assert outcome.unjudged is not None
        assert (outcome.unjudged.run, outcome.unjudged.baseline, outcome.verdict) == (0.0, 0.3, "undecided")

    def test_unjudged_documents_of_both_top_tens_do_not_count(self, tmp_path: Path) -> None:
        write_qrels(tmp_path / "qrels.txt", FIFTY)
        write_runs(tmp_path, FIFTY, put_unjudged_first)
        (tmp_path / "base.txt").write_bytes((tmp_path / "run.txt").read_bytes())
        [outcome] = report_on(tmp_path, "nDCG@10")
        assert outcome.unjudged is not None
        assert (outcome.unjudged.run, outcome.verdict) == (0.0, "no worse")

    def test_assumed_labels_equal_judgments_with_these_labels(self, tmp_path: Path) -> None:
        """The scenario for the run is the gate with judgments that say so."""
        [outcome] = judge(tmp_path, put_unjudged_first)
        text = (tmp_path / "qrels.txt").read_text()
        added = "".join(f"{topic} 0 new{number} 2\n" for topic in FIFTY for number in range(3))
        (tmp_path / "qrels.txt").write_text(text + added)
        [judged] = report_on(tmp_path, "nDCG@10")
        assert outcome.unjudged is not None
        assert judged.verdict == outcome.unjudged.for_run == "better"
        assert judged.unjudged is not None
        assert judged.unjudged.run == 0

    def test_verdict_is_undecided_if_label_sets_exclude_the_assumed_labels(self, tmp_path: Path) -> None:
        """A declared set of label tuples lacks the tuple of the highest labels."""
        write_qrels(tmp_path / "qrels.txt", FIFTY)
        write_runs(tmp_path, FIFTY, put_unjudged_first)
        lines = (tmp_path / "qrels.txt").read_text().split("\n")
        (tmp_path / "quality.txt").write_text("\n".join(re.sub(r"\S+$", "0", line) for line in lines))
        (tmp_path / "c.yaml").write_text(
            "aspects: {relevance: {labels: [0, 1, 2]}, quality: {labels: [0, 1]}}\n"
            "qrels: [{file: qrels.txt, aspect: relevance}, {file: quality.txt, aspect: quality}]\n"
            "label_sets: {known: {aspects: [relevance, quality], tuples: [[0, 0], [1, 0], [2, 0]]}}\n"
        )
        paths = (tmp_path / name for name in ("c.yaml", "base.txt", "run.txt"))
        [outcome] = cupel.gate(*paths, "TOMA(of=nDCG@10,label_set=known)", max_drop=0.03)
        assert outcome.verdict == "undecided"
        assert "the effect of their labels cannot be computed" in "; ".join(outcome.reasons)

    @pytest.mark.parametrize("measure", ["alpha_nDCG@10", "StRecall@10"])
    def test_judgments_by_subtopic_are_counted(self, tmp_path: Path, measure: str) -> None:
        write_runs(tmp_path, FIFTY, put_unjudged_first)
        lines = (
            f"{topic} {subtopic} d{number} {number // 4 == subtopic:d}\n"
            for topic in FIFTY
            for subtopic in range(3)
            for number in range(60)
        )
        (tmp_path / "s.txt").write_text("".join(lines))
        (tmp_path / "qrels.txt").write_text("{qrels: [{file: s.txt, layout: subtopics}]}")
        [outcome] = report_on(tmp_path, measure)
        assert outcome.unjudged is not None
        assert (outcome.unjudged.run, outcome.unjudged.for_run) == (0.3, "better")
        assert outcome.verdict == "undecided"

    @pytest.mark.parametrize(
        ("verdicts", "expected"),
        [
            (["better", "better", "better"], "better"),
            (["better", "no worse", "better"], "no worse"),
            (["better", "worse", "better"], "undecided"),
            (["worse", "worse", "undecided"], "undecided"),
            (["worse", "worse", "worse"], "worse"),
        ],
    )
    def test_common_verdict_claims_only_what_all_claim(
        self, verdicts: list[GateVerdict], expected: GateVerdict
    ) -> None:
        assert common_verdict(verdicts) == expected


class TestErrorRates:
    def test_false_alarms_and_false_passes_keep_alpha(self) -> None:
        """1,000 seeded gates: wrong verdicts at most in 5% + 2 standard errors."""
        rng = np.random.default_rng(3)
        rule = GateRule(measure="nDCG@10", max_drop=0.05)
        equal = [rng.beta(2, 2, (2, 40)) for _ in range(1000)]
        at_zero = [verdict_of(margin_outcome(run, base, rule)) for run, base in equal]
        limit = 0.05 + 2 * (0.05 * 0.95 / 1000) ** 0.5
        assert at_zero.count("worse") / 1000 <= limit
        assert at_zero.count("better") / 1000 <= limit
        shifted = [verdict_of(margin_outcome(run - 0.05, base, rule)) for run, base in equal]
        passed = [verdict in ("better", "no worse") for verdict in shifted]
        assert sum(passed) / 1000 <= limit
        assert at_zero.count("no worse") > 0


class TestSources:
    def test_dictionaries_are_judged_as_files_are(self, tmp_path: Path) -> None:
        report = judge(tmp_path, demote_relevant)
        run: dict[str, dict[str, float]] = {}
        base: dict[str, dict[str, float]] = {}
        qrels: dict[str, dict[str, int]] = {}
        for name, table in (("run", run), ("base", base)):
            for line in (tmp_path / f"{name}.txt").read_text().splitlines():
                topic, _, document, _, score, _ = line.split()
                table.setdefault(topic, {})[document] = float(score)
        for line in (tmp_path / "qrels.txt").read_text().splitlines():
            topic, _, document, label = line.split()
            qrels.setdefault(topic, {})[document] = int(label)
        same = cupel.gate(qrels, base, run, cupel.nDCG @ 10, max_drop=0.03)
        assert same["nDCG@10"].interval == report["nDCG@10"].interval
        assert (same.run, same.baselines) == ("run", ("baseline",))

    def test_measures_are_gates_of_one_report(self, tmp_path: Path) -> None:
        report = judge(tmp_path, promote_relevant, "nDCG@10 AP P@10")
        assert [outcome.rule.measure for outcome in report] == ["nDCG@10", "AP", "P@10"]
        assert "Each of 3 gates is tested at 0.05." in repr(report)
        assert report["AP"].rule.measure == "AP"
        with pytest.raises(KeyError):
            report["RR"]

    @pytest.mark.parametrize(
        ("choices", "message"),
        [
            ({"max_drop": 0}, "max_drop: expected a positive number"),
            ({"max_drop": 0.1, "alpha": 0.5}, "alpha: expected a number between 0 and 0.5, such as 0.05"),
            ({"max_drop": 0.1, "min_topics": 1}, "min_topics: expected a whole number of at least 2, got 1"),
            ({"max_drop": 0.1, "max_unjudged": 1.1}, "max_unjudged: expected a share from 0 to 1"),
            ({"max_drop": 0.1, "test": "z"}, "test: expected one of t, sign-flip, got 'z'"),
        ],
    )
    def test_impossible_rules_are_refused(self, choices: dict[str, float], message: str) -> None:
        qrels, run = {"q": {"d": 1}}, {"q": {"d": 1.0}}
        with pytest.raises(ValueError, match=re.escape(message)):
            cupel.gate(qrels, run, run, "AP", **choices)

    def test_measures_without_quality_and_several_runs_are_refused(self) -> None:
        qrels, run = {"q": {"d": 1}}, {"q": {"d": 1.0}}
        with pytest.raises(cupel.MeasureError, match="a greater Unjudged is not better"):
            cupel.gate(qrels, run, run, "Unjudged@10", max_drop=0.1)
        with pytest.raises(cupel.MeasureError, match="a gate needs a measure"):
            cupel.gate(qrels, run, run, "", max_drop=0.1)
        with pytest.raises(ValueError, match="expected one run, got 2 runs"):
            cupel.gate(qrels, run, {"a": run, "b": run}, "AP", max_drop=0.1)

    def test_errors_of_both_runs_are_reported_at_once(self, tmp_path: Path) -> None:
        judge(tmp_path, swap_neighbours)
        (tmp_path / "base.txt").write_text("q001 Q0 d1 1 x base\n")
        (tmp_path / "run.txt").write_text("q001 Q0 d1 1 nan run\n")
        with pytest.raises(cupel.Refused) as refused:
            report_on(tmp_path, "nDCG@10")
        assert {finding.file for finding in refused.value.findings} == {"base.txt", "run.txt"}


class TestFormats:
    def test_dictionary_is_json_and_has_the_documents_to_judge(self, tmp_path: Path) -> None:
        data = json.loads(json.dumps(judge(tmp_path, put_unjudged_first).to_dict()))
        [item] = data["gates"]
        assert (data["verdict"], data["exit_code"], item["topics"]) == ("undecided", 3, 50)
        assert {"topic": "q001", "document": "new0"} in item["unjudged"]["to_judge"]
        assert item["low"] < item["difference"] < item["high"]

    def test_junit_has_a_case_per_gate(self, tmp_path: Path) -> None:
        report = judge(tmp_path, demote_relevant, "nDCG@10 RR(rel=2)")
        root = ElementTree.fromstring(report.to_junit())
        [suite] = root
        assert suite.attrib["tests"] == "2"
        assert suite.attrib["failures"] == str(len(suite.findall("testcase/failure")))
        [first, _] = suite.findall("testcase")
        failure = first.find("failure")
        assert failure is not None
        assert failure.attrib["type"] == "worse"
        assert failure.attrib["message"].startswith("down 0.")

    def test_undecided_is_an_error_in_junit(self, tmp_path: Path) -> None:
        root = ElementTree.fromstring(judge(tmp_path, reshuffle).to_junit())
        assert root.attrib["errors"] == "1"
        assert root.find("testsuite/testcase/error") is not None

    def test_names_are_escaped(self) -> None:
        topics = {f"q{number}": {"d": 1.0, "e": number / 20} for number in range(12)}
        qrels = {topic: {"d": 1, "e": 0} for topic in topics}
        name = "a|b*<script>\x07&"
        report = cupel.gate(qrels, {"base": topics}, {name: topics}, "AP", max_drop=0.1)
        assert ElementTree.fromstring(report.to_junit())[0].attrib["name"] == "cupel gate a|b*<script>\ufffd&"
        assert r"a\|b\*\<script\>" in report.to_markdown()
        assert "<script>" not in report._repr_html_()

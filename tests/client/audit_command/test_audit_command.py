"""Tests of `cupel audit`."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner

from cupel_audits import KINDS, Audit
from cupel_audits.declarations import audit, setting
from cupel_audits.execution import parts, result, run_trials
from cupel_audits.report import AuditReport, Column, ReportTable
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_audits.subject_files import NamedQrels, RunView, assemble_subject
from cupel_client.main import cli
from cupel_client.offline.presentation.audit_output import print_tables
from cupel_measures.catalogue.parser import parse_many
from cupel_measures.grammar.parameters import OneFlag, Whole, Word
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import join_run
from support.audited_files import DOCUMENTS, RUNS, TOPICS, cupel

pytestmark = pytest.mark.usefixtures("folder")


DOWNSAMPLING = ("downsampling", "qrels.txt", *RUNS, "-m", "AP nDCG@10", "--ratios", "80,40", "--repeats", "4")


def data_of(*arguments: str) -> dict[str, Any]:
    done = cupel(*arguments, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def usage_error(*arguments: str) -> str:
    """Assert that a command fails with exit code 2, and return its message without line breaks."""
    done = cupel(*arguments)
    assert done.exit_code == 2
    assert not done.stdout
    return " ".join(done.stderr.partition("Error: ")[2].split())


class TestResult:
    def test_result_equals_the_library_result(self) -> None:
        qrels = read_qrels(Path("qrels.txt"))
        runs = [(name, RunView(join_run(Path(name), qrels))) for name in RUNS]
        subject = assemble_subject(NamedQrels("qrels.txt", qrels), runs, parse_many("AP nDCG@10"))
        audit = KINDS["downsampling"](ratios=(80.0, 40.0), repeats=4)  # type: ignore[call-arg]
        trial_results = {
            trial: result
            for part in parts(audit, subject)
            for trial, result in run_trials(audit, subject, 3, part)
        }
        expected = result(audit, subject.about, 3, 4, trial_results).as_data()
        data = data_of(*DOWNSAMPLING, "--seed", "3")
        provenance = data.pop("provenance")
        assert data == json.loads(json.dumps(expected))
        assert set(provenance["runs"]) == set(RUNS)

    def test_different_seeds_give_different_results(self) -> None:
        digests = {data_of(*DOWNSAMPLING, "--seed", seed)["digest"] for seed in ("0", "1")}
        assert len(digests) == 2

    def test_common_options_work_as_for_evaluate(self) -> None:
        about = data_of("downsampling", "c.yaml", *RUNS, "--repeats", "1", "--ratios", "50")["about"]
        assert (about["measures"], about["depth"]) == (["nDCG@10", "AP"], None)
        about = data_of(
            "downsampling", "--aspect", "relevance=qrels.txt", "--aspect", "quality=quality.txt", *RUNS,
            "-m", "P@5", "--depth", "7", "--profile", "trec_eval-9", "--repeats", "1", "--ratios", "50",
        )["about"]  # fmt: skip
        assert about["aspects"] == ["relevance", "quality"]
        assert (about["measures"], about["depth"], about["profile"]) == (["P@5"], 7, "trec_eval-9")

    def test_parameter_with_the_name_of_a_common_option_has_a_prefix(self) -> None:
        arguments = ("downsampling", "c.yaml", *RUNS, "--repeats", "1", "--audit-aspect", "quality")
        assert data_of(*arguments)["parameters"]["aspect"] == "quality"
        assert "unknown aspect 'style'; use one of relevance, quality" in usage_error(
            *arguments[:-1], "style"
        )

    def test_texts_are_read_for_measures_that_need_them(self) -> None:
        data = data_of("downsampling", "c.yaml", *RUNS[:2], "-m", "LMD(depth=3)", "--repeats", "1")
        assert data["provenance"]["texts"]
        assert data["report"]["numbers"]["tau(LMD(depth=3))@90"] is not None


class TestOutput:
    def test_output_folder_has_the_report_as_json_and_csv(self) -> None:
        done = cupel(*DOWNSAMPLING, "--out", "out")
        report = json.loads(Path("out/report.json").read_text())
        assert done.exit_code == 0
        assert "out: " in done.stdout
        assert all(name in done.stdout for name in ("report.json", "points.csv", "ranks.csv"))
        assert {**report, "provenance": 0} == {**data_of(*DOWNSAMPLING), "provenance": 0}
        for table in report["report"]["tables"]:
            lines = Path(f"out/{table['name']}.csv").read_text().splitlines()
            assert lines[0] == ",".join(column["name"] for column in table["columns"])
            assert len(lines) == 1 + len(table["rows"])

    @pytest.mark.parametrize("form", ["table", "json", "csv"])
    def test_files_are_written_although_the_output_is_closed(self, form: str) -> None:
        """As by `cupel audit ... | head`, if head has ended before the first line."""
        code = "from cupel_client.main import main; main()"
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(
            [sys.executable, "-u", "-c", code, "audit", *DOWNSAMPLING, "--out", "out", "--format", form],
            stdout=write_end,
            stderr=subprocess.PIPE,
        )
        os.close(write_end)
        assert b"Traceback" not in done.stderr
        assert {"report.json", "points.csv", "ranks.csv"} <= {path.name for path in Path("out").iterdir()}

    @pytest.mark.parametrize("module", ["altair", "vl_convert"])
    def test_missing_figure_package_skips_only_the_page(self, module: str) -> None:
        code = f"import sys; sys.modules[{module!r}] = None; from cupel_client.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, "audit", *DOWNSAMPLING, "--out", "out"],
            capture_output=True,
            text=True,
        )
        package = module.replace("vl_convert", "vl-convert-python")
        assert done.returncode == 0, done.stderr
        warning = f"report.html is not written: the page needs {package}; run `make setup`"
        assert warning in done.stderr.splitlines()
        assert "Traceback" not in done.stderr
        assert "report.html" not in done.stdout
        assert {"report.json", "points.csv", "ranks.csv"} <= {path.name for path in Path("out").iterdir()}
        assert not Path("out/report.html").exists()

    def test_missing_figure_package_is_reported_before_the_runs_are_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "altair", None)
        done = cupel("downsampling", "qrels.txt", "bad.txt", "-m", "AP", "--out", "out")
        assert done.stderr.startswith("report.html is not written: the page needs altair;")

    def test_page_equals_the_page_of_the_reports_library(self) -> None:
        reports = pytest.importorskip("cupel_reports")
        cupel(*DOWNSAMPLING, "--out", "out")
        assert Path("out/report.html").read_text() == reports.page(
            json.loads(Path("out/report.json").read_text())
        )

    def test_default_output_is_the_verdict_and_the_points(self) -> None:
        report = data_of(*DOWNSAMPLING)["report"]
        lines = cupel(*DOWNSAMPLING).stdout.splitlines()
        assert lines[: len(report["verdict"])] == report["verdict"]
        mean = report["numbers"]["tau(AP)@40"]
        [row] = [line.split() for line in lines if line.split()[:2] == ["AP", "40"]]
        assert row[3] == f"{mean:.4f}"

    def test_small_numbers_are_not_printed_as_zero(self, capsys: pytest.CaptureFixture[str]) -> None:
        columns = (Column("run", "run"), Column("p", "p"))
        rows = [("a", 2e-9), ("b", -2e-9), ("c", 0.0), ("d", 0.0001)]
        print_tables(
            {}, AuditReport(verdict=(), numbers={}, tables=(ReportTable("points", "Tests", columns, rows),))
        )
        printed = [line.split() for line in capsys.readouterr().out.splitlines()]
        for row in (["a", "<0.0001"], ["b", ">-0.0001"], ["c", "0"], ["d", "0.0001"]):
            assert row in printed

    def test_default_output_ends_with_the_actions(self) -> None:
        report = data_of(*DOWNSAMPLING)["report"]
        heading, *actions = cupel(*DOWNSAMPLING).stdout.splitlines()[-len(report["actions"]) - 1 :]
        assert heading == "What you can do:"
        assert actions == [f"- {sentence}" for sentence in report["actions"]]
        assert actions

    def test_jsonl_and_csv_output_are_the_points(self) -> None:
        [first, *_] = [
            json.loads(line) for line in cupel(*DOWNSAMPLING, "--format", "jsonl").stdout.splitlines()
        ]
        [head, row, *_] = cupel(*DOWNSAMPLING, "--format", "csv").stdout.splitlines()
        assert head.split(",") == [*first]
        assert row.split(",")[:2] == [first["measure"], repr(first["percent"])]

    def test_no_file_is_written_without_an_output_folder(self, folder: Path) -> None:
        before = sorted(folder.rglob("*"))
        cupel(*DOWNSAMPLING)
        assert sorted(folder.rglob("*")) == before

    def test_output_folder_of_another_audit_is_refused(self) -> None:
        assert cupel(*DOWNSAMPLING, "--out", "out").exit_code == 0
        assert "out contains another audit, which differs in seed" in usage_error(
            *DOWNSAMPLING, "--seed", "9", "--out", "out"
        )
        assert "which differs in parameters" in usage_error(*DOWNSAMPLING, "--nested", "--out", "out")
        original = Path("cat-a.txt").read_text()
        Path("cat-a.txt").write_text(original.replace("d1 ", "e1 "))
        assert "which differs in runs" in usage_error(*DOWNSAMPLING, "--out", "out")
        restarted = cupel(*DOWNSAMPLING, "--out", "out", "--restart")
        assert restarted.exit_code == 0
        assert "done already" not in restarted.stderr

    def test_output_folder_that_is_not_an_audit_folder_is_refused(self) -> None:
        assert "is not the folder of an audit" in usage_error(*DOWNSAMPLING, "--out", ".")
        assert "is not the folder of an audit" in usage_error(
            *DOWNSAMPLING, "--restart", "--out", "qrels.txt"
        )

    def test_rerun_repeats_only_damaged_parts(self) -> None:
        cupel(*DOWNSAMPLING, "--out", "out")
        report = json.loads(Path("out/report.json").read_text())
        saved = sorted(Path("out/parts").glob("0*.json"))
        before = [path.stat().st_mtime_ns for path in saved]
        saved[1].write_text(saved[1].read_text()[:9])
        rerun = cupel(*DOWNSAMPLING, "--out", "out")
        assert f"{len(saved) - 1} of {len(saved)} parts are already done" in rerun.stderr
        assert json.loads(Path("out/report.json").read_text())["digest"] == report["digest"]
        after = [path.stat().st_mtime_ns for path in saved]
        assert [after[i] == before[i] for i in range(len(saved))] == [i != 1 for i in range(len(saved))]

    @pytest.mark.parametrize("damage", ["[]", "3", ""])
    def test_saved_file_with_unexpected_content_is_ignored(self, damage: str) -> None:
        cupel(*DOWNSAMPLING, "--out", "out")
        Path("out/parts/000000.json").write_text(damage)
        assert "3 of 4 parts are already done" in cupel(*DOWNSAMPLING, "--out", "out").stderr
        Path("out/parts/request.json").write_text(damage)
        assert "contains another audit" in usage_error(*DOWNSAMPLING, "--out", "out")


INVALID_COMMANDS = [
    (("downsampling", "qrels.txt"), "no run to audit"),
    (("downsampling", "qrels.txt", RUNS[0]), "only one is given: give two or more"),
    (("downsampling", "none.txt", *RUNS), "no document is judged relevant"),
    ((*DOWNSAMPLING[:-4], "--ratios", "50,0"), "ratios: expected decreasing percentages above 0"),
    ((*DOWNSAMPLING[:-4], "--ratios", "half"), "got half"),
    ((*DOWNSAMPLING, "--repeats", "0"), "repeats: expected a whole number from 1 to 100,000, got 0"),
    ((*DOWNSAMPLING, "--repeats", "1e3"), "got 1000.0"),
    ((*DOWNSAMPLING, "--method", "stratifed"), "did you mean stratified?"),
    ((*DOWNSAMPLING, "--deph", "3"), "No such option"),
    ((*DOWNSAMPLING, "--seed", "-1"), "--seed"),
    ((*DOWNSAMPLING, "-m", "nDCG(aspect=style)@10"), "style"),
    ((*DOWNSAMPLING, "-m", "alpha_nDCG@10"), "alpha_nDCG@10"),
    (
        ("downsampling", "c.yaml", *RUNS, "--team-pattern", "(z)"),
        "finds no team in ant-a.txt, ant-b.txt, bee-a",
    ),
    ((*DOWNSAMPLING, "--team-pattern", "("), "is not a valid regular expression"),
    ((*DOWNSAMPLING, "--team-pattern", "ant"), "has no group"),
    ((*DOWNSAMPLING, "--teams", "qrels.txt"), "qrels.txt:1: expected two columns, run and team, got 4"),
    ((*DOWNSAMPLING, "--teams", "bad.txt", "--team-pattern", "(a)"), "give either --teams or --team-pattern"),
    (("downsamplin", "qrels.txt"), "did you mean downsampling?"),
    (("--format", "csv", *DOWNSAMPLING), "give --format after the kind"),
]


class TestInvalidInput:
    @pytest.mark.parametrize(("arguments", "sentence"), INVALID_COMMANDS)
    def test_invalid_command_fails_with_a_message(self, arguments: Sequence[str], sentence: str) -> None:
        assert sentence in usage_error(*arguments)

    def test_message_lists_all_invalid_parameters(self) -> None:
        error = usage_error(*DOWNSAMPLING, "--ratios", "0", "--repeats", "0", "--method", "best")
        assert all(f"{name}: expected" in error for name in ("ratios", "repeats", "method"))

    def test_identical_runs_give_an_undefined_tau_with_a_reason(self) -> None:
        Path("one.txt").write_text("q01 0 d1 1\nq01 0 d2 0\n")
        Path("twin.txt").write_text(Path("ant-a.txt").read_text())
        data = data_of("downsampling", "one.txt", "ant-a.txt", "twin.txt", "-m", "AP", "--repeats", "2")
        assert data["report"]["verdict"] == [
            "AP: tau is undefined at every step: all runs have the same score under the remaining or under "
            "all judgments."
        ]
        assert data["report"]["numbers"]["tau(AP)@50"] is None
        shown = cupel("downsampling", "one.txt", "ant-a.txt", "twin.txt", "-m", "AP", "--repeats", "2").stdout
        assert shown.count("undefined: tau of AP at step 50 (100.0% of the judgments): all runs") == 1

    def test_invalid_run_is_reported_and_left_out(self) -> None:
        done = cupel(*DOWNSAMPLING, "bad.txt", "--format", "json")
        assert done.exit_code == 1
        assert "bad.txt:1:11: error run-" in done.stderr
        assert "bad.txt is refused" in done.stderr
        assert json.loads(done.stdout)["about"]["runs"] == [*RUNS]
        single = cupel("downsampling", "qrels.txt", RUNS[0], "bad.txt")
        assert (single.exit_code, single.stdout) == (1, "")
        assert "cannot audit: the audit compares runs, but only one is given" in single.stderr


class TestTeams:
    def test_teams_are_read_from_run_names(self) -> None:
        assert data_of(*DOWNSAMPLING)["about"]["teams"] is None
        teams = data_of(*DOWNSAMPLING, "--team-pattern", "^([a-z]+)-")["about"]["teams"]
        assert teams == ["ant", "ant", "bee", "bee", "cat"]

    def test_teams_are_read_from_a_file(self) -> None:
        Path("teams.txt").write_text(
            "# run team\n" + "".join(f"{name}\t{name[-5]}\n" for name in (*RUNS, "x-x.txt"))
        )
        assert data_of(*DOWNSAMPLING, "--teams", "teams.txt")["about"]["teams"] == ["a", "b", "a", "b", "a"]

    def test_names_in_a_teams_file_may_contain_spaces(self) -> None:
        Path("bee a.txt").write_bytes(Path("bee-a.txt").read_bytes())
        Path("teams.txt").write_text("ant-a.txt\tthe ants\nbee a.txt\tthe bees\t\n")
        arguments = "downsampling", "qrels.txt", "ant-a.txt", "bee a.txt", "--repeats", "1"
        assert data_of(*arguments, "--teams", "teams.txt")["about"]["teams"] == ["the ants", "the bees"]

    def test_teams_file_without_some_runs_or_with_contradictions_is_refused(self) -> None:
        Path("teams.txt").write_text("ant-a.txt x\nant-b x\n")
        error = usage_error(*DOWNSAMPLING, "--teams", "teams.txt")
        assert "teams.txt has no team for ant-b.txt, bee-a.txt, bee-b.txt and 1 more" in error
        Path("teams.txt").write_text("ant-a.txt x\nant-a.txt y\n")
        assert "teams.txt:2: ant-a.txt already has another team" in usage_error(
            *DOWNSAMPLING, "--teams", "teams.txt"
        )
        Path("teams.txt").write_bytes(b"\xff\xfe\x00")
        assert "teams.txt is not UTF-8 text" in usage_error(*DOWNSAMPLING, "--teams", "teams.txt")


# Kinds declared by other packages


class Probe(Audit):
    """Reports the data that it receives.

    seen = runs * topics
    """

    depth: Annotated[int, Whole("a whole number from 1")] = setting(3, "number of ranks to read")
    fine: OneFlag = setting(True, "a flag")
    words: Annotated[str, Word("a name")] | None = setting(None, "a name")

    needs_texts = True

    def ranking_depth(self) -> int:
        return self.depth

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        assert subject.tops is not None
        assert subject.content is not None
        for _ in trials:
            yield {
                "depth": int(subject.tops.ranked.shape[2]),
                "unjudged": int((subject.tops.pooled < 0).sum()),
                "texts": len(subject.content.document),
                "other": None
                if subject.other_subject is None
                else float(subject.other_subject.means["AP"][0]),
            }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        rows = tuple((name, value) for name, value in found[0].items())
        columns = (Column("what", "what"), Column("value", "value"))
        return AuditReport(
            verdict=("The data was received.",),
            numbers=dict(rows),
            tables=(ReportTable("points", "Received data", columns, rows),),
        )


@pytest.fixture(scope="class")
def probe() -> Iterator[None]:
    """Declare the kind `probe` while the tests of a class run."""
    audit("probe", title="A probe", answers="What is there?", source="this test")(Probe)
    yield
    del KINDS.loaded["probe"]


@pytest.mark.usefixtures("probe")
class TestOtherKinds:
    def test_other_kind_receives_the_data_that_it_needs(self) -> None:
        data = data_of("probe", "c.yaml", *RUNS, "-m", "AP", "--audit-depth", "4", "--other", "second.txt")
        numbers = data["report"]["numbers"]
        assert numbers["depth"] == 4
        assert numbers["unjudged"] > 0
        assert numbers["texts"] == len(RUNS) * len(TOPICS) * (DOCUMENTS + 5)
        scored = CliRunner().invoke(cli, ["evaluate", "second.txt", RUNS[0], "-m", "AP", "--format", "jsonl"])
        assert math.isclose(numbers["other"], json.loads(scored.stdout)["value"], abs_tol=1e-12)
        assert data["about"]["other"] == "second.txt"

    def test_other_kind_has_options_for_its_parameters(self) -> None:
        assert data_of("probe", "c.yaml", *RUNS)["parameters"] == {"depth": 3, "fine": True, "words": None}
        data = data_of("probe", "c.yaml", *RUNS, "--no-fine", "--words", "two words", "--depth", "9")
        assert data["parameters"] == {"depth": 3, "fine": False, "words": "two words"}
        assert data["about"]["depth"] == 9

    def test_other_kind_is_listed_and_described(self) -> None:
        assert "What is there?" in cupel("--help").stdout
        page = cupel("probe", "--help").stdout
        assert "\n  seen = runs * topics\n" in page
        assert "--audit-depth" in page
        assert "probe" in cupel().stdout
        assert "## probe" in cupel("--format", "markdown").stdout


class TestHelp:
    @pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
    def test_help_has_the_question_every_parameter_and_an_example(self, kind: type[Audit]) -> None:
        page = " ".join(cupel(kind.name, "--help").stdout.split())
        assert kind.answers in page
        assert f"cupel audit {kind.name}" in page
        assert " ".join(kind.source.split()) in page
        for name, declared in kind.settings.items():
            assert " ".join(declared.about.split()).casefold() in page.casefold(), name
            option = name.replace("_", "-")
            assert any(f"--{prefix}{option}" in page for prefix in ("", "no-", "audit-", "no-audit-")), name

    def test_every_format_lists_all_kinds(self) -> None:
        assert [kind["name"] for kind in json.loads(cupel("--format", "json").stdout)] == [*KINDS]
        assert [json.loads(line)["name"] for line in cupel("--format", "jsonl").stdout.splitlines()] == [
            *KINDS
        ]
        assert len(cupel("--format", "csv").stdout.splitlines()) > len(KINDS)
        assert all(kind.answers in " ".join(cupel("--help").stdout.split()) for kind in KINDS.values())

    def test_reference_page_is_generated_from_the_declarations(self, root: Path) -> None:
        generated = cupel("--format", "markdown").stdout
        committed = (root / "libs/audits/AUDITS.md").read_text()
        assert committed == generated, "run: cupel audit --format markdown > libs/audits/AUDITS.md"

"""Test the online commands against a gateway process."""

import csv
import io
import json
import re
import stat
from itertools import count
from pathlib import Path

import pytest

from cupel_client.main import VERBS
from cupel_measures.explaining.explained_parts import ABOUT

names = (f"verbs-{number}" for number in count(1))


@pytest.fixture
def track(organiser, folder: Path, worker: None) -> str:
    """Return the name of a track with published judgments, created by the command."""
    name = next(names)
    assert organiser("track", "create", name, folder / "collection.yaml", "--title", "Steps").exit_code == 0
    done = organiser("qrels", "upload", name, folder / "collection.yaml", "--publish")
    assert done.exit_code == 0, done.output
    return name


@pytest.fixture
def judged(organiser, track: str, folder: Path) -> str:
    """Return the name of a track with three scored runs."""
    done = organiser("submit", track, *sorted(folder.glob("step*.run")), "--wait")
    assert done.exit_code == 0, done.output
    return track


def test_login_stores_token_readable_by_owner_only(server, cupel, tmp_path: Path) -> None:
    done = cupel("login", server.url + "/", "--token-stdin", stdin=server.token("alice") + "\n")
    assert done.exit_code == 0
    assert "team alice, participant" in done.stdout
    credentials = tmp_path / "home" / ".config" / "cupel" / "credentials.json"
    assert stat.S_IMODE(credentials.stat().st_mode) == 0o600
    assert json.loads(credentials.read_text())["default"] == server.url


def test_login_respects_the_xdg_configuration_folder(server, cupel, tmp_path: Path) -> None:
    folder = tmp_path / "configuration"
    token = server.token("alice") + "\n"
    done = cupel("login", server.url, "--token-stdin", stdin=token, XDG_CONFIG_HOME=str(folder))
    assert str(folder / "cupel" / "credentials.json") in done.stdout
    assert stat.S_IMODE((folder / "cupel" / "credentials.json").stat().st_mode) == 0o600
    assert not (tmp_path / "home").exists()
    assert cupel("track", "list", XDG_CONFIG_HOME=str(folder)).exit_code == 0
    assert "no service is selected" in cupel("track", "list", XDG_CONFIG_HOME="relative").stderr


def test_login_reads_token_from_file_or_prompt(server, cupel, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(server.token("alice") + "\n")
    assert cupel("login", server.url, "--token-file", file).exit_code == 0
    done = cupel("login", server.url, stdin=(secret := server.token("bob")) + "\n")
    assert "team bob" in done.stdout
    assert secret not in done.output


def test_login_does_not_store_a_wrong_token(server, cupel, tmp_path: Path) -> None:
    done = cupel("login", server.url, "--token", "cupel_wrong")
    assert (done.exit_code, "token-refused" in done.stderr) == (2, True)
    assert not (tmp_path / "home" / ".config").exists()


def test_commands_without_login_explain_how_to_log_in(cupel) -> None:
    done = cupel("track", "list")
    assert done.exit_code == 2
    assert "cupel login" in done.stderr


def test_environment_selects_service_and_token(server, cupel) -> None:
    environment = {"CUPEL_URL": server.url, "CUPEL_TOKEN": server.token("alice")}
    assert cupel("track", "list", **environment).exit_code == 0
    assert cupel("track", "list", **(environment | {"CUPEL_TOKEN": "cupel_wrong"})).exit_code == 2


def test_unreachable_service_exits_with_3(cupel, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)  # no waiting between attempts
    done = cupel("track", "list", CUPEL_URL=f"http://127.0.0.1:{port}")
    assert done.exit_code == 3
    assert f"cannot reach http://127.0.0.1:{port}" in done.stderr


def test_submitted_runs_appear_on_the_leaderboard(organiser, judged: str) -> None:
    board = organiser("leaderboard", judged)
    assert board.exit_code == 0
    lines = [line.split() for line in board.stdout.splitlines() if "step" in line]
    assert [line[0] for line in lines] == ["1", "2", "3"]
    assert "qrels 1" in board.stdout
    other = organiser("leaderboard", judged, "-m", "CAM(of=nDCG@10)", "--format", "jsonl")
    rows = [json.loads(line) for line in other.stdout.splitlines()]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert {row["exact"] for row in rows} == {None}


def test_leaderboard_reports_significance(organiser, judged: str) -> None:
    shown = organiser("leaderboard", judged, "-m", "AP", "--wait")
    assert shown.exit_code == 0
    assert all(heading in shown.stdout for heading in ("95% interval", "rank interval", "groups", "best set"))
    assert re.search(
        r"of 3 submissions (are not|is) significantly (worse than the best|better)", shown.stdout
    )
    assert (
        "of 2 pairs of adjacent submissions differ significantly. With 5 topics, a paired t-test"
        in shown.stdout
    )
    assert re.search(
        r"a true difference of 0\.\d+ with power 0\.8, and smaller ones less often\.", shown.stdout
    )
    assert "interval scale" not in shown.stderr
    noted = organiser("leaderboard", judged, "-m", "AP", "--scale-notes")
    assert "the max-T test needs an interval scale" in noted.stderr
    (board,) = json.loads(organiser("leaderboard", judged, "-m", "AP", "--format", "json").stdout)
    assert (board["analysis"]["state"], board["analysis"]["neighbours"]) == ("done", 2)
    for row in board["rows"]:
        assert row["interval"][0] <= row["score"] <= row["interval"][1]
        assert row["groups"]
    table = organiser("leaderboard", judged, "-m", "AP", "--format", "csv").stdout
    line = next(csv.DictReader(io.StringIO(table)))
    assert json.loads(line["rank_interval"]) == board["rows"][0]["rank_interval"]
    assert line["in_best_set"] == "True"


def test_leaderboard_of_one_submission_compares_nothing(organiser, track: str, folder: Path) -> None:
    assert organiser("submit", track, folder / "step1.run", "--wait").exit_code == 0
    shown = organiser("leaderboard", track, "--wait").stdout
    assert shown.splitlines()[-1] == "There is only one submission, so there is nothing to compare."
    assert "95% interval" in shown
    assert "rank interval" not in shown
    assert "best set" not in shown


def test_online_scores_equal_offline_scores_exactly(organiser, judged: str, folder: Path) -> None:
    listed = json.loads(organiser("runs", judged, "--format", "json").stdout)
    for submission in listed:
        online = organiser("scores", submission["id"], "--per-topic", "--format", "csv")
        measures = dict.fromkeys(row["measure"] for row in csv.DictReader(io.StringIO(online.stdout)))
        options = [part for measure in measures for part in ("-m", measure)]
        run = folder / submission["name"]
        offline = organiser(
            "evaluate", folder / "collection.yaml", run, "--format", "csv", "--per-topic", *options
        )
        assert online.stdout == offline.stdout
        assert len(online.stdout.splitlines()) == 1 + 3 * 6


def test_scale_notes_tell_that_the_scale_does_not_permit_means(organiser, judged: str) -> None:
    warned = organiser("leaderboard", judged, "-m", "nDCG@10", "--scale-notes").stderr
    assert warned.startswith("nDCG@10: a mean over topics requires an interval scale")
    organiser("track", "change", judged, "-m", "nDCG@10 P@10")
    organiser("watch", judged)
    fine = organiser("leaderboard", judged, "-m", "P@10", "--scale-notes")
    assert "step1.run" in fine.stdout
    assert "interval scale" not in fine.stderr
    other = organiser("leaderboard", judged, "-m", "RR")
    assert "no submission is scored by RR; only the measures of the track are scored" in other.stderr


def test_explain_equals_evaluate_explain(organiser, judged: str, folder: Path) -> None:
    submission = json.loads(organiser("runs", judged, "--format", "json").stdout)[0]
    command = (
        "explain",
        submission["id"],
        "-m",
        "nDCG@10 CAM(of=nDCG@10)",
        "--about",
        "ties",
        "--about",
        "parts",
    )
    shown = organiser(*command)
    assert shown.exit_code == 0, shown.output
    assert "no topic's value depends on the order of documents with equal scores" in shown.stdout
    assert "quality: nDCG@10" in shown.stdout
    assert "profiles" not in shown.stdout
    all_parts = ("-m", "nDCG@10", "--about", "all", "--format", "json")
    response = json.loads(organiser("explain", submission["id"], *all_parts).stdout)
    assert list(response["explanations"][0]["parts"]) == list(ABOUT)
    response = json.loads(organiser(*command, "--format", "json").stdout)
    assert [list(item["parts"]) for item in response["explanations"]] == [["ties", "parts"]] * 2
    assert (response["qrels"], response["submission"]) == (1, submission["id"])
    lines = [json.loads(line) for line in organiser(*command, "--format", "jsonl").stdout.splitlines()]
    assert [(line["measure"].partition("(")[0], line["about"]) for line in lines] == [
        ("nDCG@10", "ties"),
        ("nDCG@10", "parts"),
        ("CAM", "ties"),
        ("CAM", "parts"),
    ]
    measures = " ".join(item["measure"] for item in response["explanations"])
    evaluate = ("evaluate", folder / "collection.yaml", folder / submission["name"], "-m", measures)
    offline = organiser(*evaluate, "--explain", "ties", "--explain", "parts")
    assert (
        shown.stdout.split() == offline.stdout[offline.stdout.index(submission["name"] + "  nDCG") :].split()
    )


def test_explain_refuses_an_unknown_measure(organiser, judged: str) -> None:
    submission = json.loads(organiser("runs", judged, "--format", "json").stdout)[0]
    refused = organiser("explain", submission["id"], "-m", "nDGC@10")
    assert (refused.exit_code, "measure-invalid" in refused.stderr) == (2, True)


def test_submit_reports_a_malformed_run_and_submits_valid_runs(organiser, track: str, folder: Path) -> None:
    done = organiser("submit", track, folder / "broken.run", folder / "step1.run")
    assert done.exit_code == 1
    assert f"{folder}/broken.run: refused" in done.stderr
    assert "broken.run:3:12" in done.stderr
    offline = organiser("validate", folder / "broken.run")
    errors = [line for line in offline.output.splitlines() if ": error " in line]
    assert errors
    assert [line for line in done.stderr.splitlines() if ": error " in line] == errors
    assert "step1.run" in done.stdout
    assert len(organiser("runs", track, "--format", "jsonl").stdout.splitlines()) == 1


def test_submit_prints_warnings_about_accepted_runs(organiser, track: str, folder: Path) -> None:
    (folder / "short.run").write_text((folder / "step1.run").read_text().replace("step1.run", "other"))
    done = organiser("submit", track, folder / "short.run")
    assert done.exit_code == 0
    assert "note run-tag" in done.stderr


def test_submit_to_an_unknown_track_exits_with_2(organiser, folder: Path) -> None:
    done = organiser("submit", "no-such-track", folder / "step1.run", folder / "step3.run")
    assert done.exit_code == 2
    assert done.stderr.count("track-unknown") == 1


def test_qrels_diff_shows_changes_of_a_correction(organiser, judged: str, folder: Path) -> None:
    file = folder / "qrels" / "relevance.txt"
    file.write_text(file.read_text().replace(" 2\n", " 9\n").replace(" 0\n", " 2\n").replace(" 9\n", " 0\n"))
    assert organiser("qrels", "upload", judged, folder / "collection.yaml").exit_code == 0
    assert "draft" in organiser("qrels", "list", judged).stdout
    done = organiser("qrels", "publish", judged, 2)
    assert "Version 2" in done.stdout
    assert "is current" in done.stdout
    changes = json.loads(organiser("qrels", "diff", judged, 2, "-m", "nDCG@10", "--format", "json").stdout)
    assert len(changes) == 3
    assert any(row["old_score"] != row["new_score"] for row in changes)
    assert organiser("qrels", "diff", judged, 2).exit_code == 0
    assert "superseded" in organiser("qrels", "show", judged, 1).stdout
    assert "qrels 1" in organiser("leaderboard", judged, "--qrels", 1).stdout


def test_qrels_upload_reports_invalid_lines(organiser, track: str, folder: Path) -> None:
    (folder / "qrels" / "quality.txt").write_text("t1 0 d1 superb\n")
    done = organiser("qrels", "upload", track, folder / "collection.yaml")
    assert done.exit_code == 1
    assert "qrels/quality.txt:1" in done.stderr
    assert "superb" in done.stderr


def test_qrels_upload_names_missing_files(organiser, track: str, folder: Path) -> None:
    (folder / "qrels" / "quality.txt").unlink()
    done = organiser("qrels", "upload", track, folder / "collection.yaml")
    assert (done.exit_code, "qrels/quality.txt" in done.stderr) == (2, True)


def test_track_commands_list_show_and_change_a_track(organiser, track: str) -> None:
    assert track in organiser("track", "list").stdout
    assert "quality" in organiser("track", "show", track).stdout
    assert organiser("track", "change", track, "-m", "AP RR", "--close").exit_code == 0
    shown = json.loads(organiser("track", "show", track, "--format", "json").stdout)[0]
    assert shown["measures"] == ["AP", "RR"]
    assert shown["closed_at"]
    assert organiser("track", "change", track).exit_code == 2
    assert organiser("track", "change", track, "-m", "nDGC").exit_code == 2


def test_watch_waits_until_all_runs_are_scored(organiser, judged: str) -> None:
    done = organiser("watch", judged)
    assert done.exit_code == 0
    (first, *_) = json.loads(organiser("runs", judged, "--format", "json").stdout)
    assert f"{first['id']}" in organiser("watch", first["id"]).stdout


def test_scores_of_another_team_are_refused(server, organiser, judged: str) -> None:
    (first, *_) = json.loads(organiser("runs", judged, "--format", "json").stdout)
    done = organiser("scores", first["id"], "--token", server.token("bob"))
    assert done.exit_code == 2
    assert "submission-forbidden" in done.stderr


def test_empty_lists_are_reported_in_one_sentence(organiser, folder: Path) -> None:
    name = next(names)
    assert organiser("track", "create", name, folder / "collection.yaml").exit_code == 0
    for verb, sentence in {
        "qrels list": f"{name} has no judgments yet",
        "runs": "There are no submissions yet.",
        "leaderboard": f"The leaderboard of {name} is empty: no judgments are published yet.",
    }.items():
        done = organiser(*verb.split(), name)
        assert (done.exit_code, done.stdout) == (0, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith(sentence)


def test_waiting_ends_at_once_without_published_judgments(organiser, folder: Path) -> None:
    name = next(names)
    assert organiser("track", "create", name, folder / "collection.yaml").exit_code == 0
    done = organiser("submit", name, folder / "step1.run", "--wait")
    assert done.exit_code == 0
    assert f"{name} has no published judgments yet" in done.stderr
    again = organiser("watch", name)
    assert again.exit_code == 0
    assert f"{name} has no published judgments yet" in again.stderr


def test_control_characters_of_the_service_are_escaped(server, organiser, folder: Path, judged: str) -> None:
    from sqlalchemy import update

    from cupel_backend.infrastructure.database import writing
    from cupel_backend.infrastructure.tables import submissions, tracks

    with writing(server.system.engine) as connection:  # a response that an untrusted service could send
        connection.execute(update(tracks).where(tracks.c.name == judged).values(title="a\x1b[2Jb\x9b31m"))
        connection.execute(update(submissions).values(name="c\x1b]0;d\x07\u202ee"))
    verbs = ("track list", "track show {}", "runs {}", "leaderboard {}", "watch {}", "runs {} --format csv")
    for verb in verbs:
        done = organiser(*verb.format(judged).split())
        assert done.exit_code == 0
        assert not set("\x1b\x9b\x07\u202e") & set(done.output), verb
    assert "a\\x1b[2Jb\\x9b31m" in organiser("track", "show", judged).stdout
    assert "c\\x1b]0;d\\x07\\u202ee" in organiser("runs", judged).stdout


@pytest.mark.parametrize(
    "verb", ["track list", "qrels list {}", "runs {}", "leaderboard {}", "track show {}"]
)
def test_every_list_has_every_format(organiser, judged: str, verb: str) -> None:
    def stdout(form: str) -> str:
        done = organiser(*verb.format(judged).split(), "--format", form)
        assert done.exit_code == 0, form
        return str(done.stdout)

    assert json.loads(stdout("json"))
    assert all(json.loads(line) for line in stdout("jsonl").splitlines())
    assert len(list(csv.DictReader(io.StringIO(stdout("csv"))))) >= 1
    assert any(word in stdout("table") for word in (judged, "step", "current"))


@pytest.mark.parametrize(
    "verb",
    [
        *(name for name, (where, _) in VERBS.items() if ".online." in where),
        *(f"track {name}" for name in ("create", "list", "show", "change")),
        *(f"qrels {name}" for name in ("upload", "publish", "list", "show", "diff")),
    ],
)
def test_every_command_has_help_with_an_example(cupel, verb: str) -> None:
    done = cupel(*verb.split(), "--help")
    assert done.exit_code == 0
    assert f"cupel {verb}" in done.stdout.partition("Example:")[2]

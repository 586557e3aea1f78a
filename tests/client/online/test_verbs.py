"""The online verbs of the cupel command, against a gateway process."""

import csv
import io
import json
import re
import stat
from itertools import count
from pathlib import Path

import pytest

from cupel_client.main import VERBS
from cupel_measures.explaining import ABOUT

names = (f"verbs-{number}" for number in count(1))


@pytest.fixture
def track(organiser, folder: Path, worker: None) -> str:
    """A track made and judged by the command."""
    name = next(names)
    assert organiser("track", "create", name, folder / "collection.yaml", "--title", "Steps").exit_code == 0
    done = organiser("qrels", "upload", name, folder / "collection.yaml", "--publish")
    assert done.exit_code == 0, done.output
    return name


@pytest.fixture
def judged(organiser, track: str, folder: Path) -> str:
    """A track with three scored runs."""
    done = organiser("submit", track, *sorted(folder.glob("step*.run")), "--wait")
    assert done.exit_code == 0, done.output
    return track


def test_a_token_is_kept_for_its_owner_alone(server, cupel, tmp_path: Path) -> None:
    done = cupel("login", server.url + "/", "--token-stdin", stdin=server.token("alice") + "\n")
    assert done.exit_code == 0
    assert "team alice, participant" in done.stdout
    kept = tmp_path / "home" / ".config" / "cupel" / "credentials.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["default"] == server.url


def test_a_token_can_come_from_a_file_or_a_prompt(server, cupel, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(server.token("alice") + "\n")
    assert cupel("login", server.url, "--token-file", file).exit_code == 0
    done = cupel("login", server.url, stdin=(secret := server.token("bob")) + "\n")
    assert "team bob" in done.stdout
    assert secret not in done.output


def test_a_wrong_token_is_not_kept(server, cupel, tmp_path: Path) -> None:
    done = cupel("login", server.url, "--token", "cupel_wrong")
    assert (done.exit_code, "token-refused" in done.stderr) == (2, True)
    assert not (tmp_path / "home" / ".config").exists()


def test_without_a_login_the_verbs_say_how(cupel) -> None:
    done = cupel("track", "list")
    assert done.exit_code == 2
    assert "cupel login" in done.stderr


def test_the_environment_says_which_service_and_token(server, cupel) -> None:
    asked = {"CUPEL_URL": server.url, "CUPEL_TOKEN": server.token("alice")}
    assert cupel("track", "list", **asked).exit_code == 0
    assert cupel("track", "list", **(asked | {"CUPEL_TOKEN": "cupel_wrong"})).exit_code == 2


def test_a_service_that_is_away_is_its_own_fault(cupel, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)  # no waiting between attempts
    done = cupel("track", "list", CUPEL_URL=f"http://127.0.0.1:{port}")
    assert done.exit_code == 3
    assert f"cannot reach http://127.0.0.1:{port}" in done.stderr


def test_a_run_goes_from_a_file_to_the_leaderboard(organiser, judged: str) -> None:
    board = organiser("leaderboard", judged)
    assert board.exit_code == 0
    lines = [line.split() for line in board.stdout.splitlines() if "step" in line]
    assert [line[0] for line in lines] == ["1", "2", "3"]
    assert "qrels 1" in board.stdout
    other = organiser("leaderboard", judged, "-m", "CAM(of=nDCG@10)", "--format", "jsonl")
    rows = [json.loads(line) for line in other.stdout.splitlines()]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert {row["exact"] for row in rows} == {None}


def test_a_board_says_what_its_order_is_worth(organiser, judged: str) -> None:
    shown = organiser("leaderboard", judged, "-m", "AP", "--wait")
    assert shown.exit_code == 0
    assert all(heading in shown.stdout for heading in ("95% interval", "ranks", "groups", "for first"))
    assert re.search(r"of 3 submissions (are tied for first|is told apart)", shown.stdout)
    assert "of 2 neighbours are told apart; differences below 0." in shown.stdout
    assert "are easily missed on 5 topics, even where two submissions alone are compared." in shown.stdout
    assert "Tukey's HSD needs an interval scale" in shown.stderr
    (board,) = json.loads(organiser("leaderboard", judged, "-m", "AP", "--format", "json").stdout)
    assert (board["analysis"]["state"], board["analysis"]["neighbours"]) == ("done", 2)
    for row in board["rows"]:
        assert row["interval"][0] <= row["score"] <= row["interval"][1]
        assert row["groups"]
    table = organiser("leaderboard", judged, "-m", "AP", "--format", "csv").stdout
    line = next(csv.DictReader(io.StringIO(table)))
    assert json.loads(line["rank_interval"]) == board["rows"][0]["rank_interval"]
    assert line["tied_for_first"] == "True"


def test_a_board_of_one_says_that_there_is_nothing_to_compare(organiser, track: str, folder: Path) -> None:
    assert organiser("submit", track, folder / "step1.run", "--wait").exit_code == 0
    shown = organiser("leaderboard", track, "--wait").stdout
    assert shown.splitlines()[-1] == "One submission: nothing to compare with."
    assert "95% interval" in shown
    assert " ranks" not in shown
    assert "for first" not in shown


def test_online_scores_are_those_of_the_offline_command_to_the_last_bit(
    organiser, judged: str, folder: Path
) -> None:
    listed = json.loads(organiser("runs", judged, "--format", "json").stdout)
    for one in listed:
        online = organiser("scores", one["id"], "--per-topic", "--format", "csv")
        measures = dict.fromkeys(row["measure"] for row in csv.DictReader(io.StringIO(online.stdout)))
        asked = [part for measure in measures for part in ("-m", measure)]
        here = ("--format", "csv", "--per-topic", *asked)
        offline = organiser("evaluate", folder / "collection.yaml", folder / one["name"], *here)
        assert online.stdout == offline.stdout
        assert len(online.stdout.splitlines()) == 1 + 3 * 6


def test_a_board_says_where_its_scale_does_not_give_a_mean(organiser, judged: str) -> None:
    warned = organiser("leaderboard", judged, "-m", "nDCG@10").stderr
    assert warned.startswith("nDCG@10: a mean over topics requires an interval scale")
    organiser("track", "change", judged, "-m", "nDCG@10 P@10")
    organiser("watch", judged)
    fine = organiser("leaderboard", judged, "-m", "P@10")
    assert "step1.run" in fine.stdout
    assert not fine.stderr
    other = organiser("leaderboard", judged, "-m", "RR")
    assert "nothing is scored by RR yet; a track scores the measures of its plan" in other.stderr


def test_scores_are_explained_as_offline(organiser, judged: str, folder: Path) -> None:
    one = json.loads(organiser("runs", judged, "--format", "json").stdout)[0]
    asked = ("explain", one["id"], "-m", "nDCG@10 CAM(of=nDCG@10)", "--about", "ties", "--about", "parts")
    shown = organiser(*asked)
    assert shown.exit_code == 0, shown.output
    assert "no topic's value depends on the order of documents with equal scores" in shown.stdout
    assert "quality: nDCG@10" in shown.stdout
    assert "profiles" not in shown.stdout
    every = organiser("explain", one["id"], "-m", "nDCG@10", "--about", "all", "--format", "json").stdout
    assert list(json.loads(every)["explanations"][0]["told"]) == list(ABOUT)
    told = json.loads(organiser(*asked, "--format", "json").stdout)
    assert [list(each["told"]) for each in told["explanations"]] == [["ties", "parts"]] * 2
    assert (told["qrels"], told["submission"]) == (1, one["id"])
    lines = [json.loads(line) for line in organiser(*asked, "--format", "jsonl").stdout.splitlines()]
    assert [(line["measure"].partition("(")[0], line["about"]) for line in lines] == [
        ("nDCG@10", "ties"),
        ("nDCG@10", "parts"),
        ("CAM", "ties"),
        ("CAM", "parts"),
    ]
    measures = " ".join(each["measure"] for each in told["explanations"])
    here = ("evaluate", folder / "collection.yaml", folder / one["name"], "-m", measures)
    offline = organiser(*here, "--explain", "ties", "--explain", "parts")
    assert shown.stdout.split() == offline.stdout[offline.stdout.index(one["name"] + "  nDCG") :].split()


def test_what_can_not_be_explained_says_why(organiser, judged: str) -> None:
    one = json.loads(organiser("runs", judged, "--format", "json").stdout)[0]
    refused = organiser("explain", one["id"], "-m", "nDGC@10")
    assert (refused.exit_code, "measure-invalid" in refused.stderr) == (2, True)


def test_a_malformed_run_gets_its_lines_and_the_others_go_on(organiser, track: str, folder: Path) -> None:
    done = organiser("submit", track, folder / "broken.run", folder / "step1.run")
    assert done.exit_code == 1
    assert f"{folder}/broken.run: refused" in done.stderr
    assert "broken.run:3:12" in done.stderr
    offline = organiser("validate", folder / "broken.run")
    told = [line for line in offline.output.splitlines() if ": error " in line]
    assert told
    assert [line for line in done.stderr.splitlines() if ": error " in line] == told
    assert "step1.run" in done.stdout
    assert len(organiser("runs", track, "--format", "jsonl").stdout.splitlines()) == 1


def test_warnings_are_told_on_acceptance(organiser, track: str, folder: Path) -> None:
    (folder / "short.run").write_text((folder / "step1.run").read_text().replace("step1.run", "other"))
    done = organiser("submit", track, folder / "short.run")
    assert done.exit_code == 0
    assert "warning run-tag" in done.stderr


def test_a_run_to_nowhere_is_a_wrong_request(organiser, folder: Path) -> None:
    done = organiser("submit", "no-such-track", folder / "step1.run", folder / "step3.run")
    assert done.exit_code == 2
    assert done.stderr.count("track-unknown") == 1


def test_a_correction_says_what_moved(organiser, judged: str, folder: Path) -> None:
    file = folder / "qrels" / "relevance.txt"
    file.write_text(file.read_text().replace(" 2\n", " 9\n").replace(" 0\n", " 2\n").replace(" 9\n", " 0\n"))
    assert organiser("qrels", "upload", judged, folder / "collection.yaml").exit_code == 0
    assert "draft" in organiser("qrels", "list", judged).stdout
    done = organiser("qrels", "publish", judged, 2)
    assert "Version 2" in done.stdout
    assert "is current" in done.stdout
    moved = json.loads(organiser("qrels", "diff", judged, 2, "-m", "nDCG@10", "--format", "json").stdout)
    assert len(moved) == 3
    assert any(one["old_score"] != one["new_score"] for one in moved)
    assert organiser("qrels", "diff", judged, 2).exit_code == 0
    assert "superseded" in organiser("qrels", "show", judged, 1).stdout
    assert "qrels 1" in organiser("leaderboard", judged, "--qrels", 1).stdout


def test_wrong_judgments_get_their_lines(organiser, track: str, folder: Path) -> None:
    (folder / "qrels" / "quality.txt").write_text("t1 0 d1 superb\n")
    done = organiser("qrels", "upload", track, folder / "collection.yaml")
    assert done.exit_code == 1
    assert "qrels/quality.txt:1" in done.stderr
    assert "superb" in done.stderr


def test_judgments_that_are_not_there_are_named(organiser, track: str, folder: Path) -> None:
    (folder / "qrels" / "quality.txt").unlink()
    done = organiser("qrels", "upload", track, folder / "collection.yaml")
    assert (done.exit_code, "qrels/quality.txt" in done.stderr) == (2, True)


def test_a_track_is_listed_shown_and_changed(organiser, track: str) -> None:
    assert track in organiser("track", "list").stdout
    assert "quality" in organiser("track", "show", track).stdout
    assert organiser("track", "change", track, "-m", "AP RR", "--close").exit_code == 0
    shown = json.loads(organiser("track", "show", track, "--format", "json").stdout)[0]
    assert shown["measures"] == ["AP", "RR"]
    assert shown["closed_at"]
    assert organiser("track", "change", track).exit_code == 2
    assert organiser("track", "change", track, "-m", "nDGC").exit_code == 2


def test_watch_waits_until_everything_is_scored(organiser, judged: str) -> None:
    done = organiser("watch", judged)
    assert done.exit_code == 0
    (first, *_) = json.loads(organiser("runs", judged, "--format", "json").stdout)
    assert f"{first['id']}" in organiser("watch", first["id"]).stdout


def test_a_stranger_sees_no_scores_of_others(server, organiser, judged: str) -> None:
    (first, *_) = json.loads(organiser("runs", judged, "--format", "json").stdout)
    done = organiser("scores", first["id"], "--token", server.token("bob"))
    assert done.exit_code == 2
    assert "submission-forbidden" in done.stderr


def test_where_there_is_nothing_a_sentence_says_so(organiser, folder: Path) -> None:
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


def test_a_run_that_nothing_can_judge_yet_is_not_waited_for(organiser, folder: Path) -> None:
    name = next(names)
    assert organiser("track", "create", name, folder / "collection.yaml").exit_code == 0
    done = organiser("submit", name, folder / "step1.run", "--wait")
    assert done.exit_code == 0
    assert f"{name} has no published judgments yet" in done.stderr
    again = organiser("watch", name)
    assert again.exit_code == 0
    assert f"{name} has no published judgments yet" in again.stderr


def test_text_of_strangers_does_not_command_the_terminal(
    server, organiser, folder: Path, judged: str
) -> None:
    from sqlalchemy import update

    from cupel_backend.infrastructure.database import writing
    from cupel_backend.infrastructure.tables import submissions, tracks

    with writing(server.system.engine) as connection:  # as a service of others might answer
        connection.execute(update(tracks).where(tracks.c.name == judged).values(title="a\x1b[2Jb\x9b31m"))
        connection.execute(update(submissions).values(name="c\x1b]0;d\x07\u202ee"))
    verbs = ("track list", "track show {}", "runs {}", "leaderboard {}", "watch {}", "runs {} --format csv")
    for verb in verbs:
        done = organiser(*verb.format(judged).split())
        assert done.exit_code == 0
        assert not set("\x1b\x9b\x07\u202e") & set(done.output), verb
    assert "a\\x1b[2Jb\\x9b31m" in organiser("track", "show", judged).stdout
    assert "c\\x1b]0;d\\x07\\u202ee" in organiser("runs", judged).stdout


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
@pytest.mark.parametrize(
    "verb", ["track list", "qrels list {}", "runs {}", "leaderboard {}", "track show {}"]
)
def test_every_list_comes_in_every_format(organiser, judged: str, verb: str, form: str) -> None:
    done = organiser(*verb.format(judged).split(), "--format", form)
    assert done.exit_code == 0
    if form == "json":
        assert json.loads(done.stdout)
    elif form == "jsonl":
        assert all(json.loads(line) for line in done.stdout.splitlines())
    elif form == "csv":
        assert len(list(csv.DictReader(io.StringIO(done.stdout)))) >= 1
    else:
        assert judged in done.stdout or "step" in done.stdout or "current" in done.stdout


@pytest.mark.parametrize(
    "verb",
    [
        *(name for name, (where, _) in VERBS.items() if ".online." in where),
        *(f"track {name}" for name in ("create", "list", "show", "change")),
        *(f"qrels {name}" for name in ("upload", "publish", "list", "show", "diff")),
    ],
)
def test_every_verb_has_help_with_an_example(cupel, verb: str) -> None:
    done = cupel(*verb.split(), "--help")
    assert done.exit_code == 0
    assert f"cupel {verb}" in done.stdout.partition("Example:")[2]

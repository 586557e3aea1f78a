"""Tests of tracks: creation, changes and the plan of canonical measures."""

from typing import Any

import pytest

from cupel_backend import submissions, tracks
from cupel_backend.infrastructure.errors import Conflict, Forbidden, Invalid, NotFound, Stale
from cupel_backend.infrastructure.system import System
from cupel_backend.scores import evaluations, leaderboards
from support.backend_cast import (
    ADMIN,
    ALICE,
    ASPECTS,
    ORGANISER,
    STRANGER,
    make_track,
    publish_qrels,
    submit,
    work_off,
)


def test_plan_is_stored_as_canonical_texts_bound_to_aspects(system: System) -> None:
    track = make_track(system, measures=["NDCG@2", "map P_1", "TOMA(of=nDCG@2)", "ndcg_cut.2"])
    assert track.measures == ("nDCG@2", "AP", "P@1", "TOMA(of=nDCG@2,aspects=[relevance,credibility])")
    assert tracks.get(system, ALICE, "track") == track


def test_create_requires_organiser(system: System) -> None:
    with pytest.raises(Forbidden):
        tracks.create(system, ALICE, name="x", title="x", aspects=ASPECTS, measures=["AP"])


def test_create_refuses_measure_with_too_long_canonical_text(system: System) -> None:
    aspects = {"relevance": {"labels": [0, 1]}, "\u4e00" * 400: {"labels": [0, 1]}}
    with pytest.raises(Invalid, match="the limit is 1,000"):
        make_track(system, aspects=aspects, measures=["CAM(of=AP)"])
    assert make_track(system, aspects=aspects, measures=["AP"]).measures == ("AP",)


def test_plan_has_at_most_200_measures(system: System) -> None:
    measures = [f"P@{cutoff}" for cutoff in range(1, 202)]
    with pytest.raises(Invalid) as refusal:
        make_track(system, measures=measures)
    assert refusal.value.code == "measure-invalid"
    assert str(refusal.value) == "the plan has 201 measures; give 1 to 200"
    assert make_track(system, measures=measures[:200]).measures == tuple(measures[:200])


def test_content_measure_is_refused(system: System) -> None:
    words = r"LMD\(stop=50\) requires the document texts, .* does not keep; score it with `cupel evaluate`"
    with pytest.raises(Invalid, match=words):
        make_track(system, measures=["AP", "LMD(stop=50)"])
    make_track(system, measures=["AP"])
    with pytest.raises(Invalid, match="soft_alpha_nDCG@20 requires the document texts"):
        leaderboards.read_board(system, ALICE, "track", measure="soft_alpha_nDCG@20")


def test_create_refuses_existing_name(system: System) -> None:
    make_track(system)
    with pytest.raises(Conflict, match="'track'"):
        make_track(system)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a b"}, "name"),
        ({"name": "../x"}, "name"),
        ({"title": " "}, "title"),
        ({"title": "a\x1b[2Jb"}, "control character"),
        ({"title": "a\0b"}, "control character"),
        ({"measures": []}, "0 measures"),
        ({"measures": ["nDGC@2"]}, "did you mean nDCG"),
        ({"measures": ["AP(aspect=credibilty)"]}, "credibilty"),
        ({"measures": ["TOMA(of=AP,label_set=possible)"]}, "unknown label set 'possible'"),
        ({"profile": "trec"}, "profile"),
        ({"depth": 0}, "depth"),
        ({"aspects": {"relevance": {"labels": []}}}, "aspects"),
        ({"aspects": {}}, "aspects"),
        ({"label_sets": {"s": {"aspects": ["nothing"], "tuples": [[0]]}}}, "aspects"),
    ],
)
def test_create_refuses_invalid_field_and_names_it(
    system: System, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(Invalid, match=words):
        make_track(system, **change)
    assert tracks.list_(system, ADMIN).items == ()


@pytest.mark.parametrize(
    "label",
    [float("nan"), float("inf"), 0.5, True, None, 2**31, -(2**31), 10**5000, "a\0b", "a\x9bb"],
    ids=lambda label: type(label).__name__,
)
@pytest.mark.parametrize("place", ["labels", "lowest", "unjudged", "threshold", "range", "tuples"])
def test_create_refuses_label_that_json_cannot_represent(system: System, label: object, place: str) -> None:
    aspect: dict[str, Any] = {"labels": [0, 1, 2]}
    label_sets: dict[str, Any] = {}
    if place == "range":
        aspect = {"labels": {"range": [0, label]}}
    elif place == "tuples":
        label_sets = {"some": {"aspects": ["relevance"], "tuples": [[0], [label]]}}
    else:
        aspect[place] = label if place == "threshold" else [0, 1, label]
    with pytest.raises(Invalid) as refusal:
        make_track(system, aspects={"relevance": aspect}, measures=["AP"], label_sets=label_sets)
    assert "aspect-labels" in refusal.value.findings.totals


def test_create_refuses_scale_with_a_million_labels(system: System) -> None:
    scale = {"labels": {"range": [0, 1_000_000]}}
    with pytest.raises(Invalid) as refusal:
        make_track(system, aspects={"a": scale, "b": scale}, measures=["TOMA(of=AP)"] * 100)
    assert refusal.value.findings.totals == {"aspect-labels": 2}
    assert "the limit is 10,000" in refusal.value.findings.errors[0].message


def test_change_requires_organiser_of_the_track_or_admin(system: System) -> None:
    make_track(system)
    for stranger in (ALICE, STRANGER):
        with pytest.raises(Forbidden):
            tracks.change(system, stranger, "track", changes={"title": "Mine"})
    assert tracks.change(system, ADMIN, "track", changes={"title": "A"}).title == "A"
    assert tracks.change(system, ORGANISER, "track", changes={"title": "B"}).title == "B"


def test_change_with_outdated_etag_is_refused(system: System) -> None:
    etag = make_track(system).etag
    tracks.change(system, ORGANISER, "track", changes={"title": "B"}, expected=frozenset({etag}))
    with pytest.raises(Stale):
        tracks.change(system, ORGANISER, "track", changes={"title": "C"}, expected=frozenset({etag}))
    assert tracks.get(system, ORGANISER, "track").title == "B"


@pytest.mark.parametrize("changes", [{"name": "x"}, {"closed": "yes"}, {"measures": "AP"}, {"title": None}])
def test_change_refuses_invalid_field_and_names_it(system: System, changes: dict[str, object]) -> None:
    make_track(system)
    with pytest.raises(Invalid, match=next(iter(changes))):
        tracks.change(system, ORGANISER, "track", changes=changes)


def test_closed_track_can_be_reopened(system: System) -> None:
    make_track(system)
    publish_qrels(system)
    tracks.change(system, ORGANISER, "track", changes={"closed": True})
    with pytest.raises(Conflict):
        submit(system)
    tracks.change(system, ORGANISER, "track", changes={"closed": False})
    assert submit(system).state == "queued"


def test_adding_a_measure_scores_only_missing_measures(system: System) -> None:
    make_track(system, measures=["AP"])
    publish_qrels(system)
    received = submit(system)
    work_off(system)
    before = evaluations.read_scores(system, ALICE, received.id)
    tracks.change(system, ORGANISER, "track", changes={"measures": ["P@1", "AP"]})
    assert submissions.get(system, ALICE, received.id).state == "partly"
    assert work_off(system) == 1
    after = evaluations.read_scores(system, ALICE, received.id)
    assert [score.measure for score in after] == ["P@1", "AP"]
    assert after[1:] == before


def test_measures_added_again_in_another_order_are_not_scored_again(system: System) -> None:
    make_track(system, measures=["nDCG@2"])
    publish_qrels(system)
    submit(system)
    work_off(system)
    attempts = []
    for measures in (["nDCG@2", "AP", "P@1"], ["nDCG@2"], ["nDCG@2", "P@1", "AP"]):
        tracks.change(system, ORGANISER, "track", changes={"measures": measures})
        attempts.append(work_off(system))
    assert attempts == [1, 0, 0]


def test_depth_of_the_track_cuts_rankings(system: System) -> None:
    make_track(system, measures=["P@2"], depth=1)
    publish_qrels(system)
    received = submit(system)
    work_off(system)
    [score] = evaluations.read_scores(system, ALICE, received.id)
    assert score.value == 0.5


def test_removing_a_measure_keeps_its_scores(system: System) -> None:
    make_track(system, measures=["AP", "P@1"])
    publish_qrels(system)
    received = submit(system)
    work_off(system)
    before = evaluations.read_scores(system, ALICE, received.id)
    tracks.change(system, ORGANISER, "track", changes={"measures": ["AP"]})
    board = leaderboards.read_board(system, ALICE, "track", measure="P@1")
    assert board is not None
    assert len(board.rows) == 1
    tracks.change(system, ORGANISER, "track", changes={"measures": ["AP", "P@1"]})
    work_off(system)
    assert evaluations.read_scores(system, ALICE, received.id) == before


def test_get_raises_not_found_for_unknown_track(system: System) -> None:
    with pytest.raises(NotFound, match="'nowhere'"):
        tracks.get(system, ADMIN, "nowhere")

"""Tracks: shared tasks with aspects, a plan of measures and a profile."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue

from cupel_contract.resource_base import RequestBody, Resource

MeasureTexts = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=1000)]


class TrackResource(Resource):
    """A track: a shared task that teams submit runs to."""

    name: str = Field(description="name of the track")
    title: str = Field(description="title of the track")
    team: str = Field(description="the team that owns the track")
    aspects: dict[str, Any] = Field(description="declared aspects by name, as in a collection file")
    label_sets: dict[str, Any] | None = Field(
        None, description="declared label sets by name, as in a collection file; null: none"
    )
    profile: str = Field(description="rules for reading and ordering runs")
    measures: tuple[str, ...] = Field(description="the plan: every submission is scored by these measures")
    depth: int = Field(description="rankings are cut at this depth")
    current: int | None = Field(None, description="number of the current qrels version")
    publishing: int | None = Field(None, description="number of the qrels version that is being published")
    created_at: datetime = Field(description="time at which the track was created")
    closed_at: datetime | None = Field(None, description="time at which the track was closed for submissions")

    EXAMPLE = {
        "name": "health-2026",
        "title": "Health answers 2026",
        "team": "organisers",
        "aspects": {"relevance": {"labels": [0, 1, 2]}, "credibility": {"labels": ["poor", "fair", "good"]}},
        "label_sets": None,
        "profile": "cupel",
        "measures": ["nDCG@10", "TOMA(of=nDCG@10)"],
        "depth": 1000,
        "current": 1,
        "publishing": None,
        "created_at": "2026-03-02T09:30:00Z",
        "closed_at": None,
    }


class TrackCreate(RequestBody):
    """A track to create. Aspects and label sets are written as in a collection file."""

    name: str = Field(
        max_length=200,
        description="unique name: 1 to 64 letters, digits, dots, hyphens and underscores, starting "
        "with a letter or digit",
    )
    title: str = Field(max_length=1000, description="title of 1 to 200 characters")
    aspects: dict[str, JsonValue] = Field(
        {"relevance": {"labels": [0, 1]}},
        description="declared aspects by name; default: `relevance` with labels 0 and 1, which also suits a "
        "track whose judgments are all by subtopic",
    )
    label_sets: dict[str, JsonValue] | None = Field(
        None, description="label sets by name, as in a collection file"
    )
    profile: str = Field("cupel", max_length=200, description="rules for reading and ordering runs")
    measures: MeasureTexts = Field(description="the plan: every submission is scored by these measures")
    depth: int = Field(1000, ge=1, description="rankings are cut at this depth")

    EXAMPLE = {
        "name": "health-2026",
        "title": "Health answers 2026",
        "aspects": {"relevance": {"labels": [0, 1, 2]}, "credibility": {"labels": ["poor", "fair", "good"]}},
        "measures": ["nDCG@10", "TOMA(of=nDCG@10)"],
    }


class TrackChange(RequestBody):
    """Changes to a track as a merge patch (RFC 7396): absent fields stay as they are."""

    title: str = Field("", max_length=1000, description="the new title, of 1 to 200 characters")
    measures: MeasureTexts = Field([], description="the new plan")
    closed: bool = Field(False, description="whether the track is closed for submissions")

    EXAMPLE = {"measures": ["nDCG@10", "AP"], "closed": False}

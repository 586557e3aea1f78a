"""`cupel track`: make, list, show and change tracks."""

from pathlib import Path
from typing import Any

import click
import yaml

from cupel_client.api.client import Client
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import service
from cupel_client.online.online_output import fields, plain, rows, say
from cupel_client.output import format_option
from cupel_contract.track_resources import TrackResource

COLUMNS = ("name", "title", "team", "current", "publishing", "measures", "aspects", "created_at", "closed_at")
DESCRIPTION = ("aspects", "label_sets", "profile", "measures")
"""What a collection file says about a track."""


@click.group()
def track() -> None:
    """Make, list, show and change tracks.

    \b
    Example:
      cupel track create health-2026 collection.yaml --title "Health answers 2026"
    """


@track.command()
@click.argument("name")
@click.argument("collection", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--title", help="Its name for people [default: NAME].")
@click.option("-m", "--measures", multiple=True, help="The plan [default: the collection's].")
@click.option("--profile", help="Reading and ordering rules [default: the collection's, else cupel].")
@click.option("--depth", type=click.IntRange(1), help="Rankings are cut here [default: 1000].")
@service
def create(
    client: Client, name: str, collection: Path, title: str | None, measures: tuple[str, ...], **options: Any
) -> None:
    """Make the track NAME with the aspects that the file COLLECTION declares.

    Its judgments are uploaded apart, by `cupel qrels upload`.

    \b
    Example:
      cupel track create health-2026 collection.yaml --title "Health answers 2026" -m "nDCG@10 AP"
    """
    declared = load(collection)
    description = {one: declared[one] for one in DESCRIPTION if one in declared}
    given = {"measures": list(measures) or None, **options}
    description |= {one: value for one, value in given.items() if value is not None}
    if not description.get("measures"):
        raise click.UsageError(f"{collection} names no measures: give the plan with -m")
    made = client.create_track(name, title=title or name, **description)
    say(f"Made the track {made.name} of team {made.team}: {len(made.measures)} measures")


@track.command("list")
@format_option()
@service
def list_(client: Client, form: str) -> None:
    """List all tracks, newest first.

    \b
    Example:
      cupel track list
    """
    found = list(client.tracks())
    if form != "table":
        rows(form, COLUMNS, [_data(one) for one in found])
        return
    if not found:
        say("There are no tracks yet.", err=True)
        return
    keys = [[one.name, one.title, one.team, _state(one)] for one in found]
    show_blocks(
        ["track", "title", "team", "state"], keys, [("measures", [str(len(one.measures)) for one in found])]
    )


@track.command()
@click.argument("name")
@format_option()
@service
def show(client: Client, name: str, form: str) -> None:
    """Show the track NAME.

    \b
    Example:
      cupel track show health-2026
    """
    found = client.track(name)
    if form != "table":
        rows(form, COLUMNS, [_data(found)])
        return
    fields(
        {
            "track": found.name,
            "title": found.title,
            "team": found.team,
            "state": _state(found),
            "aspects": ", ".join(found.aspects),
            "measures": "  ".join(found.measures),
            "profile": found.profile,
            "depth": str(found.depth),
        }
    )


@track.command()
@click.argument("name")
@click.option("--title", help="A new title.")
@click.option("-m", "--measures", multiple=True, help="A new plan of measures.")
@click.option("--close/--open", "closed", default=None, help="Whether it takes submissions.")
@service
def change(
    client: Client, name: str, title: str | None, measures: tuple[str, ...], closed: bool | None
) -> None:
    """Change the title, the plan, or whether the track NAME takes submissions.

    \b
    Example:
      cupel track change health-2026 -m "nDCG@10 AP RBP(p=0.8)"
    """
    given = {"title": title, "measures": list(measures) or None, "closed": closed}
    changes = {one: value for one, value in given.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to change: give --title, -m, --close or --open")
    changed = client.change_track(name, **changes)
    say(f"Changed {changed.name}: {_state(changed)}, {len(changed.measures)} measures")


def load(collection: Path) -> dict[str, Any]:
    """What a collection file (YAML or JSON) says."""
    try:
        said = yaml.safe_load(collection.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise click.UsageError(f"{collection} is no YAML: {problem}") from None
    if not isinstance(said, dict):
        raise click.UsageError(f"{collection} is no collection file: it should say `aspects:`")
    return said


def _state(track: TrackResource) -> str:
    parts = ["closed" if track.closed_at else "open"]
    parts.append(f"qrels {track.current}" if track.current else "no qrels yet")
    if track.publishing:
        parts.append(f"qrels {track.publishing} being published")
    return ", ".join(parts)


def _data(track: TrackResource) -> dict[str, Any]:
    return {name: plain(value) for name, value in track.model_dump().items()}

"""`cupel track`: create, list, show and change tracks."""

from pathlib import Path
from typing import Any

import click
import yaml

from cupel_client.api.client import Client
from cupel_client.command_group import CommandGroup
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import with_client
from cupel_client.online.online_output import json_value, print_fields, print_line, print_rows
from cupel_client.output import format_option
from cupel_contract.track_resources import TrackResource

COLUMNS = ("name", "title", "team", "current", "publishing", "measures", "aspects", "created_at", "closed_at")
DESCRIPTION = ("aspects", "label_sets", "profile", "measures")
"""Keys of a collection file that describe a track."""


@click.group(cls=CommandGroup)
def track() -> None:
    """Create, list, show and change tracks.

    \b
    Example:
      cupel track create health-2026 collection.yaml --title "Health answers 2026"
    """


@track.command()
@click.argument("name")
@click.argument("collection", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--title", help="Title to display (default: NAME).")
@click.option(
    "-m",
    "--measures",
    multiple=True,
    help="Measures, separated by spaces or commas (default: those of COLLECTION).",
)
@click.option(
    "--profile",
    help="Tie-breaking and parsing conventions (default: those of COLLECTION, or else cupel).",
)
@click.option("--depth", type=click.IntRange(1), help="Documents kept per ranking (default: 1000).")
@with_client
def create(
    client: Client, name: str, collection: Path, title: str | None, measures: tuple[str, ...], **options: Any
) -> None:
    """Create the track NAME with the aspects that the file COLLECTION declares.

    `cupel qrels upload` uploads the judgments separately.

    \b
    Example:
      cupel track create health-2026 collection.yaml --title "Health answers 2026" -m "nDCG@10 AP"
    """
    declared = load_collection(collection)
    description = {key: declared[key] for key in DESCRIPTION if key in declared}
    overrides = {"measures": list(measures) or None, **options}
    description |= {key: value for key, value in overrides.items() if value is not None}
    if not description.get("measures"):
        raise click.UsageError(f"{collection} does not name any measures; name them with -m")
    created = client.create_track(name, title=title or name, **description)
    print_line(f"Created track {created.name} of team {created.team}: {len(created.measures)} measures")


@track.command("list")
@format_option()
@with_client
def list_(client: Client, form: str) -> None:
    """List all tracks, newest first.

    \b
    Example:
      cupel track list
    """
    tracks = list(client.tracks())
    if form != "table":
        print_rows(form, COLUMNS, [_row(track) for track in tracks])
        return
    if not tracks:
        print_line("There are no tracks yet.", err=True)
        return
    keys = [[track.name, track.title, track.team, _state(track)] for track in tracks]
    n_measures = [str(len(track.measures)) for track in tracks]
    show_blocks(["track", "title", "team", "state"], keys, [("measures", n_measures)])


@track.command()
@click.argument("name")
@format_option()
@with_client
def show(client: Client, name: str, form: str) -> None:
    """Show the track NAME.

    \b
    Example:
      cupel track show health-2026
    """
    track = client.track(name)
    if form != "table":
        print_rows(form, COLUMNS, [_row(track)])
        return
    print_fields(
        {
            "track": track.name,
            "title": track.title,
            "team": track.team,
            "state": _state(track),
            "aspects": ", ".join(track.aspects),
            "measures": "  ".join(track.measures),
            "profile": track.profile,
            "depth": str(track.depth),
        }
    )


@track.command()
@click.argument("name")
@click.option("--title", help="Set a new title.")
@click.option("-m", "--measures", multiple=True, help="Set new measures, separated by spaces or commas.")
@click.option(
    "--close/--open", "closed", default=None, help="Close the track for submissions, or open it again."
)
@with_client
def change(
    client: Client, name: str, title: str | None, measures: tuple[str, ...], closed: bool | None
) -> None:
    """Change the title or measures of track NAME, or close or open it for submissions.

    \b
    Example:
      cupel track change health-2026 -m "nDCG@10 AP RBP(p=0.8)"
    """
    options = {"title": title, "measures": list(measures) or None, "closed": closed}
    changes = {key: value for key, value in options.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to change; give --title, -m, --close or --open")
    changed = client.change_track(name, **changes)
    print_line(f"Changed {changed.name}: {_state(changed)}, {len(changed.measures)} measures")


def load_collection(path: Path) -> dict[str, Any]:
    """Return the content of a collection file (YAML or JSON)."""
    try:
        content = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise click.UsageError(f"{path} is not valid YAML: {problem}") from None
    if not isinstance(content, dict):
        raise click.UsageError(
            f"{path} is not a collection file; a collection file declares `aspects:` and `qrels:`"
        )
    return content


def _state(track: TrackResource) -> str:
    parts = ["closed" if track.closed_at else "open"]
    parts.append(f"qrels {track.current}" if track.current else "no qrels yet")
    if track.publishing:
        parts.append(f"publishing qrels {track.publishing}")
    return ", ".join(parts)


def _row(track: TrackResource) -> dict[str, Any]:
    return {name: json_value(value) for name, value in track.model_dump().items()}

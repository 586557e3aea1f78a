"""`cupel qrels`: versions of a track's judgments.

The commands upload, publish, list, show and compare them.
"""

from pathlib import Path

import click

from cupel_client.api.client import Client
from cupel_client.command_group import CommandGroup
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import findings_of, print_findings, with_client
from cupel_client.online.online_output import (
    format_change,
    format_number,
    json_value,
    print_line,
    print_rows,
    progress_bar,
)
from cupel_client.online.track_commands import load_collection
from cupel_client.output import format_option
from cupel_contract.qrels_resources import QrelsResource

COLUMNS = (
    "track",
    "number",
    "state",
    "digest",
    "counts",
    "progress",
    "created_at",
    "published_at",
    "current_since",
)
DIFF_COLUMNS = ("submission", "team", "name", "tag", "old_score", "new_score", "old_rank", "new_rank")


@click.group(cls=CommandGroup)
def qrels() -> None:
    """Upload, publish, list, show and compare the judgments of a track.

    \b
    Example:
      cupel qrels upload health-2026 collection.yaml --publish
    """


@qrels.command()
@click.argument("track")
@click.argument("collection", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--publish",
    "publish_after",
    is_flag=True,
    help="Publish the version, and wait until it is the current one.",
)
@with_client
def upload(client: Client, track: str, collection: Path, publish_after: bool) -> None:
    """Upload the judgments of the file COLLECTION as a new qrels version of TRACK.

    \b
    Example:
      cupel qrels upload health-2026 collection.yaml --publish
    """
    version = client.upload_qrels(track, collection.read_bytes(), _read_files(collection))
    warnings = findings_of(version.findings.warnings, version.findings.totals, "warning")
    if warnings.totals:
        print_findings(str(collection), "accepted", warnings)
    print_line(f"Version {version.number} of {track}: {_counts(version)}")
    if publish_after:
        _publish(client, track, version.number, wait=True)


@qrels.command()
@click.argument("track")
@click.argument("number", type=click.IntRange(1))
@click.option(
    "--wait/--no-wait", default=True, help="Wait until the version is the current one (default: --wait)."
)
@with_client
def publish(client: Client, track: str, number: int, wait: bool) -> None:
    """Rescore all submissions to TRACK with version NUMBER.

    NUMBER then becomes the current version.

    \b
    Example:
      cupel qrels publish health-2026 2
    """
    _publish(client, track, number, wait=wait)


@qrels.command("list")
@click.argument("track")
@format_option()
@with_client
def list_(client: Client, track: str, form: str) -> None:
    """List the qrels versions of TRACK, newest first.

    \b
    Example:
      cupel qrels list health-2026
    """
    versions = list(client.qrels_versions(track))
    if form != "table":
        print_rows(form, COLUMNS, [json_value(version.model_dump()) for version in versions])
        return
    if not versions:
        print_line(f"{track} has no judgments yet; upload them with `cupel qrels upload`.", err=True)
        return
    keys = [[str(item.number), item.state, _counts(item), item.digest[:12]] for item in versions]
    scored = [f"{version.progress.scored}/{version.progress.total}" for version in versions]
    show_blocks(["version", "state", "content", "digest"], keys, [("scored", scored)])


@qrels.command()
@click.argument("track")
@click.argument("number", type=click.IntRange(1))
@format_option()
@with_client
def show(client: Client, track: str, number: int, form: str) -> None:
    """Show version NUMBER of the judgments of TRACK.

    The warnings about its files are included.

    \b
    Example:
      cupel qrels show health-2026 1
    """
    version = client.qrels_version(track, number)
    if form != "table":
        print_rows(form, COLUMNS, [json_value(version.model_dump())])
        return
    print_line(
        f"Version {version.number} of {track}, {version.state}: {_counts(version)}; digest {version.digest}"
    )
    print_line(_progress(version))
    warnings = findings_of(version.findings.warnings, version.findings.totals, "warning")
    if warnings.totals:
        print_findings(track, "warnings", warnings)


@qrels.command()
@click.argument("track")
@click.argument("number", type=click.IntRange(1))
@click.option(
    "--from", "base", type=click.IntRange(1), help="Number of the earlier version (default: NUMBER - 1)."
)
@click.option(
    "-m", "--measure", help="Measure that orders the leaderboards (default: the first measure of the track)."
)
@format_option()
@with_client
def diff(client: Client, track: str, number: int, base: int | None, measure: str | None, form: str) -> None:
    """Show how scores and ranks on TRACK change between two versions.

    The change is from an earlier version to version NUMBER.

    \b
    Example:
      cupel qrels diff health-2026 2 -m nDCG@10
    """
    if base is None and number == 1:
        raise click.UsageError("version 1 has no earlier version; name a version with --from")
    measure = measure or client.track(track).measures[0]
    changes = client.qrels_diff(track, number, base=base or number - 1, measure=measure)
    if form != "table":
        print_rows(form, DIFF_COLUMNS, [json_value(row.model_dump()) for row in changes.rows])
        return
    keys = [[_rank_change(row.old_rank, row.new_rank), row.team, row.name or row.tag] for row in changes.rows]
    columns = [
        (f"qrels {changes.base}", [format_number(row.old_score) for row in changes.rows]),
        (f"qrels {changes.number}", [format_number(row.new_score) for row in changes.rows]),
        ("change", [format_change(row.old_score, row.new_score) for row in changes.rows]),
    ]
    show_blocks(["rank", "team", "run"], keys, columns, title=f"{track} by {changes.measure}")


def _publish(client: Client, track: str, number: int, *, wait: bool) -> None:
    version = client.publish_qrels(track, number)
    if wait:
        with progress_bar(f"publishing version {number}") as bar:
            for version in client.watch_qrels(track, number):
                bar.set(version.progress.scored + version.progress.dead, version.progress.total)
    print_line(f"Version {number} of {track} is {version.state}. {_progress(version)}")


def _read_files(collection: Path) -> dict[str, bytes]:
    """Return the content of each file that a collection file names, by name."""
    content = load_collection(collection)
    entries = [entry.get("file") for entry in content.get("qrels") or [] if isinstance(entry, dict)]
    names = [
        name for name in [*entries, content.get("topics"), content.get("texts")] if isinstance(name, str)
    ]
    missing = [name for name in names if not (collection.parent / name).is_file()]
    if missing:
        raise click.UsageError(f"{collection} names files that do not exist: {', '.join(missing)}")
    return {name: (collection.parent / name).read_bytes() for name in names}


def _counts(version: QrelsResource) -> str:
    counts = {name: count for name, count in version.counts.items() if isinstance(count, int)}
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "no counts"


def _progress(version: QrelsResource) -> str:
    progress = version.progress
    failed = f", {progress.dead} failed" if progress.dead else ""
    return f"{progress.scored} of {progress.total} submissions scored{failed}."


def _rank_change(old: int | None, new: int | None) -> str:
    if old == new:
        return str(new)
    return " -> ".join("-" if rank is None else str(rank) for rank in (old, new))

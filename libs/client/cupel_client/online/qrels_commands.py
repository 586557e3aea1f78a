"""`cupel qrels`: upload judgments, publish them, see what moved."""

from pathlib import Path

import click

from cupel_client.api.client import Client
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import findings, service, verdict
from cupel_client.online.online_output import change, decimal, each, plain, progress, rows, say
from cupel_client.online.track_commands import load
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
MOVES = ("submission", "team", "name", "tag", "old_score", "new_score", "old_rank", "new_rank")


@click.group()
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
    "publish_too",
    is_flag=True,
    help="Publish it at once, and wait until the board has switched.",
)
@service
def upload(client: Client, track: str, collection: Path, publish_too: bool) -> None:
    """Upload the judgments that the file COLLECTION names, as the next version of TRACK.

    \b
    Example:
      cupel qrels upload health-2026 collection.yaml --publish
    """
    version = client.upload_qrels(track, collection.read_bytes(), _gathered(collection))
    warnings = findings(version.findings.warnings, version.findings.totals, "warning")
    if warnings.totals:
        verdict(str(collection), "accepted", warnings)
    say(f"Version {version.number} of {track}: {_counts(version)}")
    if publish_too:
        _publish(client, track, version.number, wait=True)


@qrels.command()
@click.argument("track")
@click.argument("number", type=click.IntRange(1))
@click.option("--wait/--no-wait", default=True, help="Wait until the board has switched.")
@service
def publish(client: Client, track: str, number: int, wait: bool) -> None:
    """Rescore every submission to TRACK under version NUMBER, then switch the board to it.

    \b
    Example:
      cupel qrels publish health-2026 2
    """
    _publish(client, track, number, wait=wait)


@qrels.command("list")
@click.argument("track")
@format_option()
@service
def list_(client: Client, track: str, form: str) -> None:
    """List the versions of TRACK, newest first.

    \b
    Example:
      cupel qrels list health-2026
    """
    found = list(client.qrels_versions(track))
    if form != "table":
        rows(form, COLUMNS, [plain(one.model_dump()) for one in found])
        return
    if not found:
        say(f"{track} has no judgments yet: `cupel qrels upload` brings some.", err=True)
        return
    keys = [[str(one.number), one.state, _counts(one), one.digest[:12]] for one in found]
    scored = [f"{one.progress.scored}/{one.progress.total}" for one in found]
    show_blocks(["", "state", "holds", "digest"], keys, [("scored", scored)])


@qrels.command()
@click.argument("track")
@click.argument("number", type=click.IntRange(1))
@format_option()
@service
def show(client: Client, track: str, number: int, form: str) -> None:
    """Show version NUMBER of TRACK, and what was found in its files.

    \b
    Example:
      cupel qrels show health-2026 1
    """
    found = client.qrels_version(track, number)
    if form != "table":
        rows(form, COLUMNS, [plain(found.model_dump())])
        return
    say(f"Version {found.number} of {track}, {found.state}: {_counts(found)}; digest {found.digest}")
    say(_progress(found))
    warnings = findings(found.findings.warnings, found.findings.totals, "warning")
    if warnings.totals:
        verdict(track, "warnings", warnings)


@qrels.command()
@click.argument("track")
@click.argument("number", type=click.IntRange(1))
@click.option("--from", "base", type=click.IntRange(1), help="The earlier version [default: the one before].")
@click.option("-m", "--measure", help="The measure to compare by [default: the first of the plan].")
@format_option()
@service
def diff(client: Client, track: str, number: int, base: int | None, measure: str | None, form: str) -> None:
    """Show what moved on the board of TRACK with version NUMBER.

    \b
    Example:
      cupel qrels diff health-2026 2 -m nDCG@10
    """
    if base is None and number == 1:
        raise click.UsageError("version 1 has none before it: say --from")
    measure = measure or client.track(track).measures[0]
    found = client.qrels_diff(track, number, base=base or number - 1, measure=measure)
    if form != "table":
        rows(form, MOVES, [plain(one.model_dump()) for one in found.rows])
        return
    keys = [[_ranks(one.old_rank, one.new_rank), one.team, one.name or one.tag] for one in found.rows]
    columns = [
        (f"qrels {found.base}", [decimal(one.old_score) for one in found.rows]),
        (f"qrels {found.number}", [decimal(one.new_score) for one in found.rows]),
        ("change", [change(one.old_score, one.new_score) for one in found.rows]),
    ]
    show_blocks(["rank", "team", "run"], keys, columns, title=f"{track} by {found.measure}")


def _publish(client: Client, track: str, number: int, *, wait: bool) -> None:
    version = client.publish_qrels(track, number)
    if wait:
        with progress(f"publishing version {number}") as bar:
            for version in client.watch_qrels(track, number):
                bar.set(version.progress.scored + version.progress.dead, version.progress.total)
    say(f"Version {number} of {track} is {version.state}. {_progress(version)}")


def _gathered(collection: Path) -> dict[str, bytes]:
    """The files that a collection names, by the names it uses."""
    said = load(collection)
    entries = [one.get("file") for one in said.get("qrels") or [] if isinstance(one, dict)]
    names = [name for name in [*entries, said.get("topics"), said.get("texts")] if isinstance(name, str)]
    lacking = [name for name in names if not (collection.parent / name).is_file()]
    if lacking:
        raise click.UsageError(f"{collection} names files that are not there: {', '.join(lacking)}")
    return {name: (collection.parent / name).read_bytes() for name in names}


def _counts(version: QrelsResource) -> str:
    simple = {name: count for name, count in version.counts.items() if isinstance(count, int)}
    return ", ".join(f"{count:,} {name}" for name, count in simple.items()) or "nothing counted"


def _progress(version: QrelsResource) -> str:
    done = version.progress
    failed = f", {done.dead} failed" if done.dead else ""
    return f"{done.scored} of {done.total} submissions scored{failed}."


def _ranks(old: int | None, new: int | None) -> str:
    return " -> ".join(each("-" if one is None else one for one in (old, new))) if old != new else str(new)

"""`cupel validate`: say everything that is wrong with files, and what is worth knowing about them."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from cupel_client.main import NEGATIVE, SERVICE_FAILED
from cupel_client.offline.input_files import InputFile, looks_like_qrels, unreadable
from cupel_client.offline.parallel import each
from cupel_client.offline.presentation import finding_lines
from cupel_client.offline.run_scoring import DEEPEST
from cupel_client.output import format_option, printable, write_csv, write_json, write_jsonl
from cupel_measures.findings import Findings, Refused
from cupel_measures.model import Qrels
from cupel_measures.reading.collection_files import Collection, collection_for, is_collection
from cupel_measures.reading.qrels_files import qrels_digest
from cupel_measures.reading.run_files import check_against, check_judged, digest, profile_effects, read_run

Kind = Literal["run", "qrels", "collection"]
COLUMNS = ("file", "kind", "verdict", "severity", "code", "line", "column", "topic", "message", "sample")


@dataclass(frozen=True)
class Checked:
    """A file, what it was read as, what was found, and facts about it where it could be read."""

    path: Path
    kind: Kind
    findings: Findings
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return "refused" if self.findings.refused else "accepted"

    def data(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "kind": self.kind,
            "verdict": self.verdict,
            **self.facts,
            "findings": [finding_lines.as_data(finding) for finding in self.findings],
            "totals": self.findings.totals,
        }


@click.command()
@click.argument("files", nargs=-1, required=True, type=InputFile())
@click.option(
    "-q",
    "--qrels",
    type=InputFile(),
    help="Qrels or collection file whose topics the runs should have; all FILES are runs then.",
)
@click.option("--depth", type=click.IntRange(1, DEEPEST), help="Depth at which the track cuts rankings.")
@click.option(
    "--all", "everything", is_flag=True, help=f"List more than {finding_lines.LISTED} findings of a kind."
)
@format_option()
def validate(
    files: tuple[Path, ...], qrels: Path | None, depth: int | None, everything: bool, form: str
) -> None:
    """Say everything that is wrong with runs, qrels or collection files, and what is worth knowing.

    A file is a collection by its ending (.yaml, .yml, .json), qrels if its first line has four columns
    (or five that end in labels), else a run. Runs are checked beside the topics of the qrels, if any are
    given. The exit code is 1 if a file is refused.

    \b
    Examples:
      cupel validate run.txt.gz
      cupel validate collection.yaml runs/*.gz
      cupel validate --qrels qrels.txt run.txt --format json
    """
    runs = [path for path in files if _kind(path, qrels is not None) == "run"]
    others = [path for path in files if path not in runs]
    judged, beside = _judgments(others if qrels is None else [qrels, *others])
    results = each(partial(check_run, qrels=beside, depth=depth), runs, doing="checking")
    checked = [*judged, *(one for one in results if one is not None)]
    _PRINTERS[form](checked, everything)
    if lost := [str(path) for path, one in zip(runs, results, strict=True) if one is None]:
        click.echo(
            f"not checked, as a process was killed (short of memory?): {printable(', '.join(lost))}", err=True
        )
        raise click.exceptions.Exit(SERVICE_FAILED)
    if any(one.findings.refused for one in checked):
        raise click.exceptions.Exit(NEGATIVE)


def _kind(path: Path, only_runs: bool) -> Kind:
    with contextlib.suppress(OSError):  # is told when it is read
        if is_collection(path):
            return "collection"
    if only_runs:
        return "run"
    return "qrels" if looks_like_qrels(path) else "run"


def _judgments(paths: Sequence[Path]) -> tuple[list[Checked], Qrels | None]:
    """Check qrels and collection files; the first that can be read is what runs are checked beside."""
    checked: list[Checked] = []
    beside: Qrels | None = None
    for path in paths:
        kind: Kind = "qrels"
        try:
            kind = "collection" if is_collection(path) else "qrels"
            collection = collection_for(path)
        except Refused as refused:
            checked.append(Checked(path, kind, refused.findings))
        except OSError as problem:
            checked.append(Checked(path, kind, unreadable(problem, path)))
        else:
            checked.append(Checked(path, kind, collection.findings, _facts(collection)))
            beside = beside or collection.qrels
    return checked, beside


def _facts(collection: Collection) -> dict[str, Any]:
    qrels = collection.qrels
    aspects = {}
    for aspect in qrels.aspects:
        shown = [str(label) for label in aspect.labels]
        scale = ", ".join(shown) if len(shown) <= 10 else f"{shown[0]} to {shown[-1]}"
        aspects[aspect.name] = scale + (" (inferred)" if aspect.inferred else "")
    topics, documents = len(qrels.topics), len(qrels.documents)
    return {"topics": topics, "documents": documents, "aspects": aspects, "digest": qrels_digest(qrels)}


def check_run(path: Path, *, qrels: Qrels | None, depth: int | None) -> Checked:
    """Check a run, beside `qrels` where there are any."""
    try:
        run = read_run(path, depth=depth)
    except Refused as refused:
        return Checked(path, "run", refused.findings)
    except OSError as problem:
        return Checked(path, "run", unreadable(problem, path))
    findings = run.findings
    if qrels is not None:
        findings.extend(check_against(run, qrels.topics, file=path.name))
        if not findings.refused:
            findings.extend(check_judged(run, qrels))
    effects = profile_effects(run, depth=depth)
    facts = {
        "topics": len(run.ranking.topics),
        "documents": len(run.ranking.documents),
        "tag": run.tag,
        "digest": digest(run.ranking),
        "profile_effects": {"single_precision": list(effects.precision), "rank_column": list(effects.ranks)},
    }
    return Checked(path, "run", findings, facts)


def _print_table(checked: Sequence[Checked], everything: bool) -> None:
    for one in checked:
        _print_file(one, None if everything else finding_lines.LISTED)
    verdict = Counter(one.verdict for one in checked)
    warned = sum(bool(one.findings.warnings) and not one.findings.refused for one in checked)
    parts = [f"{verdict['accepted']} accepted" + (f" ({warned} with warnings)" if warned else "")]
    parts += [f"{verdict['refused']} refused"] if verdict["refused"] else []
    click.echo(f"{len(checked)} file{'s' * (len(checked) != 1)}: {', '.join(parts)}")


def _print_file(one: Checked, at_most: int | None) -> None:
    colour = "red" if one.findings.refused else "green"
    name = click.style(printable(str(one.path)), bold=True)
    click.echo(f"{name}: {one.kind}, {click.style(one.verdict, fg=colour)}")
    for line in _told(one):
        click.echo(f"  {printable(line)}")
    for line in finding_lines.told(one.findings, file=one.path.name, at_most=at_most):
        click.echo(f"  {line}")
    click.echo()


def _told(one: Checked) -> Iterator[str]:
    """Facts in words."""
    if not one.facts:
        return
    topics, documents = one.facts["topics"], one.facts["documents"]
    tag = f", tag {one.facts['tag']}" if one.kind == "run" else ""
    yield f"{topics:,} topics, {documents:,} documents{tag}, digest {one.facts['digest'][:12]}"
    for name, scale in one.facts.get("aspects", {}).items():
        yield f"{name}: {scale}"
    effects = one.facts.get("profile_effects", {})
    for key, said in (
        ("single_precision", "differ in single precision (profile trec_eval-9)"),
        ("rank_column", "would differ by the rank column, which every profile ignores"),
    ):
        if ids := effects.get(key):
            some = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
            yield f"rankings of {len(ids)} topic{'s' * (len(ids) != 1)} {said}: {some}"


def _print_json(checked: Sequence[Checked], everything: bool) -> None:
    write_json([one.data() for one in checked])


def _print_jsonl(checked: Sequence[Checked], everything: bool) -> None:
    write_jsonl(one.data() for one in checked)


def _print_csv(checked: Sequence[Checked], everything: bool) -> None:
    write_csv(COLUMNS, (row for one in checked for row in _rows(one)))


def _rows(one: Checked) -> Iterator[dict[str, Any]]:
    """A row per finding; one without any, for a file without any."""
    same = {"file": str(one.path), "kind": one.kind, "verdict": one.verdict}
    for finding in one.findings:
        yield finding_lines.as_data(finding) | same
    if not one.findings.listed:
        yield same


_PRINTERS = {"table": _print_table, "json": _print_json, "jsonl": _print_jsonl, "csv": _print_csv}

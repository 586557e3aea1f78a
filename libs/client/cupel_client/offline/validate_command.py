"""`cupel validate`: all errors and warnings of runs, qrels and collection files."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from cupel_client.main import NEGATIVE, SERVICE_FAILED
from cupel_client.offline.input_files import (
    InputFile,
    looks_like_qrels,
    named,
    named_runs,
    shown_name,
    shown_path,
)
from cupel_client.offline.parallel import map_in_parallel
from cupel_client.offline.presentation import finding_lines
from cupel_client.output import format_option, printable, write_csv, write_json, write_jsonl
from cupel_measures.evaluation.run_scoring import DEEPEST
from cupel_measures.findings import KINDS, Findings, Refused
from cupel_measures.inputs.judgment_sources import qrels as read_qrels
from cupel_measures.inputs.run_inputs import FileRun
from cupel_measures.model import Qrels
from cupel_measures.reading.collection_files import Collection, is_collection
from cupel_measures.reading.qrels_files import qrels_digest
from cupel_measures.reading.run_files import check_against, check_judged, digest, profile_effects
from cupel_measures.reading.unreadable_files import unreadable

Kind = Literal["run", "qrels", "collection"]
COLUMNS = ("file", "kind", "verdict", "severity", "code", "line", "column", "topic", "message", "sample")


@dataclass(frozen=True)
class Checked:
    """A checked file: its kind, its findings, and facts about it if it is valid."""

    path: Path
    kind: Kind
    findings: Findings
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return "refused" if self.findings.refused else "accepted"

    @property
    def shown(self) -> str:
        """Return the name of the file in findings."""
        return shown_name(self.path.name)

    @property
    def has_warnings(self) -> bool:
        """Return whether there are warnings that are more than notes."""
        return any(KINDS[code].label == "warning" for code in self.findings.totals)

    def data(self) -> dict[str, Any]:
        return {
            "file": shown_path(self.path),
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
    help="Qrels or collection file to compare the topics of the runs with; all FILES are then runs.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, DEEPEST),
    help="Depth of the track, for warnings about rankings with more documents.",
)
@click.option(
    "-v",
    "--verbose",
    "--all",
    "everything",
    is_flag=True,
    help="List all findings of each file. By default, several files get a line each, and a single file gets "
    f"{finding_lines.LISTED} findings of each kind.",
)
@format_option()
def validate(
    files: tuple[Path, ...], qrels: Path | None, depth: int | None, everything: bool, form: str
) -> None:
    """Report all errors and warnings of runs, qrels and collection files.

    A file with the suffix .yaml, .yml or .json is a collection. A file whose first line has four columns, or
    five columns of which the last two are labels, is qrels, and so is a table with a column of grades. Any
    other file is a run. If there are qrels, the topics of the runs are compared with the topics of the qrels.
    The exit code is 1 if a file is refused. Several files get a line each, and each remedy is printed once;
    -v prints all findings.

    \b
    Examples:
      cupel validate run.txt.gz
      cupel validate collection.yaml runs/*.gz
      cupel validate --qrels qrels.txt run.txt --format json
    """
    files = tuple(file for path in files for file in named_runs([path]).values())
    runs = [path for path in files if _kind(path, qrels is not None) == "run"]
    others = [path for path in files if path not in runs]
    judgments, reference = _check_judgments(others if qrels is None else [qrels, *others])
    results = map_in_parallel(partial(check_run, qrels=reference, depth=depth), runs, doing="checking")
    checked = [*judgments, *(result for result in results if result is not None)]
    checked = [replace(result, findings=named(result.findings, result.path.name)) for result in checked]
    if form == "table" and len(files) > 1 and not everything:
        _print_summary(checked)
    else:
        _PRINTERS[form](checked, everything)
    if lost := [shown_path(path) for path, result in zip(runs, results, strict=True) if result is None]:
        click.echo(
            f"not checked, because a process was killed (out of memory?): {printable(', '.join(lost))}",
            err=True,
        )
        raise click.exceptions.Exit(SERVICE_FAILED)
    if any(result.findings.refused for result in checked):
        raise click.exceptions.Exit(NEGATIVE)


def _kind(path: Path, only_runs: bool) -> Kind:
    with contextlib.suppress(OSError):  # reported when the file is read
        if is_collection(path):
            return "collection"
    if only_runs:
        return "run"
    return "qrels" if looks_like_qrels(path) else "run"


def _check_judgments(paths: Sequence[Path]) -> tuple[list[Checked], Qrels | None]:
    """Check qrels and collection files.

    Also return the first valid qrels, to check the runs with.
    """
    checked: list[Checked] = []
    reference: Qrels | None = None
    for path in paths:
        kind: Kind = "qrels"
        try:
            kind = "collection" if is_collection(path) else "qrels"
            collection = read_qrels(path)
        except Refused as refused:
            checked.append(Checked(path, kind, refused.findings))
        except OSError as problem:
            checked.append(Checked(path, kind, unreadable(problem, path)))
        else:
            checked.append(Checked(path, kind, collection.findings, _facts(collection)))
            reference = reference or collection.qrels
    return checked, reference


def _facts(collection: Collection) -> dict[str, Any]:
    qrels = collection.qrels
    aspects = {}
    for aspect in () if qrels.only_by_subtopic else qrels.aspects:
        shown = [str(label) for label in aspect.labels]
        scale = ", ".join(shown) if len(shown) <= 10 else f"{shown[0]} to {shown[-1]}"
        aspects[aspect.name] = scale + (" (inferred)" if aspect.inferred else "")
    return {
        "topics": len(qrels.topics),
        "unjudged_topics": list(qrels.unjudged_topics),
        "documents": len(qrels.documents),
        "aspects": aspects,
        "digest": qrels_digest(qrels),
    }


def check_run(path: Path, *, qrels: Qrels | None, depth: int | None) -> Checked:
    """Check a run, and compare its topics with `qrels` if there are any."""
    try:
        run = FileRun(path).read(depth)
    except Refused as refused:
        return Checked(path, "run", refused.findings)
    findings = run.findings
    if qrels is not None:
        findings.extend(check_against(run, qrels.listed_topics, file=path.name))
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
    for result in checked:
        _print_file(result, None if everything else finding_lines.LISTED)
    _print_totals(checked)


def _print_totals(checked: Sequence[Checked]) -> None:
    verdict = Counter(result.verdict for result in checked)
    warned = sum(result.has_warnings and not result.findings.refused for result in checked)
    parts = [f"{verdict['accepted']} accepted" + (f" ({warned} with warnings)" if warned else "")]
    parts += [f"{verdict['refused']} refused"] if verdict["refused"] else []
    click.echo(f"{len(checked)} file{'s' * (len(checked) != 1)}: {', '.join(parts)}")


def _print_summary(checked: Sequence[Checked]) -> None:
    """Print a line per file, each remedy once, and the totals."""
    for result in checked:
        click.echo(f"{_heading(result)}{_reasons(result)}")
    files = Counter(code for result in checked for code in result.findings.totals)
    for code in sorted(files, key=lambda code: finding_lines.LABELS.index(KINDS[code].label)):
        number = f"{files[code]} file{'s' * (files[code] != 1)}"
        click.echo(click.style(f"-> {KINDS[code].label} {code} ({number}): {KINDS[code].remedy}", dim=True))
    _print_totals(checked)
    if files:
        click.echo("Add -v to list all findings.")


def _heading(result: Checked) -> str:
    colour = "red" if result.findings.refused else "green"
    name = click.style(printable(shown_path(result.path)), bold=True)
    return f"{name}: {result.kind}, {click.style(result.verdict, fg=colour)}"


def _reasons(result: Checked) -> str:
    """Return the codes of errors and warnings, and the first error with its place."""
    totals = result.findings.totals
    codes = [f"{code} ({totals[code]:,})" for code in totals if KINDS[code].label == "error"]
    codes += [code for code in totals if KINDS[code].label == "warning"]
    errors = sorted(result.findings.errors, key=lambda finding: finding.line or 0)
    places = [f"line {finding.line}: " if finding.line else "" for finding in errors[:1]]
    first = [f"; {place}{finding.message}" for place, finding in zip(places, errors, strict=False)]
    return printable("".join([f": {', '.join(codes)}" if codes else "", *first]))


def _print_file(result: Checked, at_most: int | None) -> None:
    click.echo(_heading(result))
    for line in _fact_lines(result):
        click.echo(f"  {printable(line)}")
    for line in finding_lines.coloured_lines_of(result.findings, file=result.shown, at_most=at_most):
        click.echo(f"  {line}")
    click.echo()


def _unjudged(result: Checked) -> list[str]:
    topics: list[str] = result.facts.get("unjudged_topics", [])
    return topics


def _fact_lines(result: Checked) -> Iterator[str]:
    """Yield the facts as sentences."""
    if not result.facts:
        return
    topics, documents = result.facts["topics"], result.facts["documents"]
    tag = f", tag {result.facts['tag']}" if result.kind == "run" else ""
    listed = f"{topics:,} topics"
    if unjudged := _unjudged(result):
        listed = f"{topics:,} judged topics of {topics + len(unjudged):,} listed"
    yield f"{listed}, {documents:,} documents{tag}, digest {result.facts['digest'][:12]}"
    if unjudged:
        yield f"without judgments: {', '.join(unjudged[:5])}{', ...' if len(unjudged) > 5 else ''}"
    for name, scale in result.facts.get("aspects", {}).items():
        yield f"{name}: {scale}"
    effects = result.facts.get("profile_effects", {})
    for key, difference in (
        ("single_precision", "differ in single precision (profile trec_eval-9)"),
        ("rank_column", "would differ if ordered by the rank column, which every profile ignores"),
    ):
        if ids := effects.get(key):
            some = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
            yield f"rankings of {len(ids)} topic{'s' * (len(ids) != 1)} {difference}: {some}"


def _print_json(checked: Sequence[Checked], everything: bool) -> None:
    write_json([result.data() for result in checked])


def _print_jsonl(checked: Sequence[Checked], everything: bool) -> None:
    write_jsonl(result.data() for result in checked)


def _print_csv(checked: Sequence[Checked], everything: bool) -> None:
    write_csv(COLUMNS, (row for result in checked for row in _rows(result)))


def _rows(result: Checked) -> Iterator[dict[str, Any]]:
    """Yield a row per finding, or one row for a file without findings."""
    same = {"file": shown_path(result.path), "kind": result.kind, "verdict": result.verdict}
    for finding in result.findings:
        yield finding_lines.as_data(finding) | same
    if not result.findings.listed:
        yield same


_PRINTERS = {"table": _print_table, "json": _print_json, "jsonl": _print_jsonl, "csv": _print_csv}

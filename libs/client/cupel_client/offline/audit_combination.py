"""`cupel audit combine`: one report on finished audits of several collections."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cupel_audits import AuditError
from cupel_audits.combining.combination import FinishedAudit
from cupel_audits.combining.combination import combine as combined
from cupel_client.offline.audit_work import SavedParts
from cupel_client.offline.presentation.audit_output import PRINTERS, provenance, write_files
from cupel_client.output import format_option, printable


@click.command()
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="New folder for the report.")
@format_option()
def combine(folders: Sequence[Path], out: Path | None, form: str) -> None:
    """Combine finished audits of several collections into one report.

    FOLDERS are the --out folders of audits of one kind with the same parameters, one for each collection. A
    collection is named after its folder. Audits of the kinds discriminative_power and aspects can be
    combined: pairs of runs, documents and topics are summed over the collections.

    \b
    Examples:
      cupel audit discriminative_power web2010.yaml web2010/*.gz -m "AP nDCG" --out web2010
      cupel audit discriminative_power web2012.yaml web2012/*.gz -m "AP nDCG" --out web2012
      cupel audit combine web2010 web2012 --out both
    """
    begin = time.perf_counter()
    audits = [_read(folder) for folder in folders]
    if out is not None and out.exists():
        raise click.UsageError(f"{out} exists: name a new folder")
    try:
        result = combined(audits)
    except AuditError as problem:
        raise click.UsageError("\n".join(map(printable, problem.sentences))) from None
    assert result.report is not None
    sources = {audit.name: audit.data["digest"] for audit in audits}
    request: dict[str, Any] = {"qrels": None, "other": None, "texts": None, "runs": {}}
    made = provenance(time.perf_counter() - begin, request) | {"combined": sources}
    data = {**result.as_data(), "provenance": made}
    names = []
    if out is not None:  # before printing, so that `| head` loses no file
        out.mkdir(parents=True)
        names = write_files(out, data, result.report)
    PRINTERS[form](data, result.report)
    if out is not None:
        click.echo(f"{out}: {', '.join(names)}", err=form != "table")


def _read(folder: Path) -> FinishedAudit:
    """Read a finished audit from its folder."""
    try:
        data = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        trials = SavedParts(folder / "parts").trials()
        return FinishedAudit(name=folder.resolve().name, data=data, trials=dict(sorted(trials.items())))
    except (OSError, ValueError):
        raise click.UsageError(f"{folder} is not the --out folder of a finished audit") from None

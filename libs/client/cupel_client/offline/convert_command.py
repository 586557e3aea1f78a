"""`cupel convert`: published data sets as a collection file, qrels and a run."""

from pathlib import Path

import click

from cupel_client.main import NEGATIVE
from cupel_client.offline.input_files import InputFile, shown_path
from cupel_client.offline.presentation import finding_lines
from cupel_measures.findings import Refused
from cupel_measures.reading.assessed_lists import collection_texts, read_assessments
from cupel_measures.reading.unreadable_files import unreadable


@click.command()
@click.argument("layout", type=click.Choice(["a66"]))
@click.argument("file", type=InputFile())
@click.argument("folder", type=click.Path(path_type=Path))
def convert(layout: str, file: Path, folder: Path) -> None:
    """Convert a published data set to a collection that all commands read.

    LAYOUT a66: the relevance and credibility assessments of Lioma, Simonsen and Larsen (ICTIR 2017), the file
    dataset/data of https://github.com/diku-irlab/A66. A topic is one assessor and query. FOLDER is new; it
    gets collection.yaml, qrels.txt and run.txt, the ranked lists that were judged.

    \b
    Example:
      cupel convert a66 A66/dataset/data a66
      cupel evaluate a66/collection.yaml a66/run.txt -m "nDCG NLRE NGRE NWCS"
    """
    try:
        texts = collection_texts(read_assessments(file))
    except (Refused, OSError) as problem:
        findings = problem.findings if isinstance(problem, Refused) else unreadable(problem, file)
        for line in finding_lines.coloured_lines_of(
            findings, file=shown_path(file), at_most=finding_lines.LISTED
        ):
            click.echo(line, err=True)
        raise click.exceptions.Exit(NEGATIVE) from None
    try:
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise click.UsageError(f"cannot write {folder}: {problem.strerror}") from None
    click.echo(f"{folder}: {', '.join(texts)}")

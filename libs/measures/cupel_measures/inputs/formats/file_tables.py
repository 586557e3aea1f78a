"""Tables in files of any format, recognised from the content."""

from dataclasses import dataclass, field

from cupel_measures.findings import Findings
from cupel_measures.inputs.formats.delimited_tables import delimited_table, ranked_table
from cupel_measures.inputs.formats.json_tables import json_table
from cupel_measures.inputs.formats.parquet_tables import parquet_table
from cupel_measures.inputs.topic_tables import Table
from cupel_measures.reading.column_names import Content
from cupel_measures.reading.compression import Source, open_plain
from cupel_measures.reading.content_formats import format_of, head_of

READERS = {"json": json_table, "delimited": delimited_table, "parquet": parquet_table}


@dataclass(frozen=True)
class FileTable:
    """A table from a file, with warnings about how the file was read."""

    table: Table
    notes: Findings = field(default_factory=Findings)


def table_in(source: Source, content: Content, name: str) -> FileTable | None:
    """Return the table in a file; None for other formats, such as TREC.

    source: a path, or bytes. Raise Refused if the table is invalid, and OSError if the file cannot be read.
    """
    form = format_of(head_of(source))
    if form not in READERS and (form != "three columns" or content != "score"):
        return None
    with open_plain(source) as stream:
        data = stream.read().removeprefix(b"\xef\xbb\xbf")
    if form == "three columns":
        return FileTable(*ranked_table(data, name))
    return FileTable(READERS[form](data, content, name))

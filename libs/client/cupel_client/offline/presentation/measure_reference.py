"""The reference pages of measures as Markdown: one of them, or all in a document with an index."""

from collections.abc import Iterable, Iterator, Sequence

from cupel_measures.catalogue.reference import INDENT, RULES, MeasureFamily, ReferencePage

HEAD = """# Measures

Every measure that Cupel has, by family. This page is made by `cupel measures --format markdown` from what the
measures themselves declare; `cupel measures NAME` prints the same for one of them. Every worked example is
scored by a test.

A measure is named by its text: `nDCG`, with a cutoff `nDCG@10`, with parameters `nDCG(gains={1:1,2:5})@10`. A
measure of one aspect takes `aspect=...`, as in `nDCG(aspect=credibility)@10`; one that combines aspects takes
such a measure in `of`, as in `CAM(of=nDCG@10)`, the cutoff inside.

What holds for every measure, unless its own page says otherwise:
"""
"""What the document begins with."""

READING = """Parameters of many measures: after `@` the cutoff k, how many documents are seen; `rel`, the
smallest label that is relevant; `aspect`, whose labels count; `judged_only=True`, which takes documents out
that are not judged, before anything else; and, where aspects are combined, `aspects` and their `weights`.

In a worked example `judged` lists documents with their grades, or with a label for each aspect in brackets
(`-` is not judged), or with the subtopics they are relevant to in braces; `run` lists documents in order; `|`
separates topics. A value with six decimals is rounded.

Where a paper is ambiguous or wrong, its page says how it is read here, with the row of the specification's
register of readings, and which parameter picks another reading.
"""


def document(families: Sequence[MeasureFamily]) -> str:
    """All families: rules, an index, then every page."""
    parts = [HEAD, "\n".join(f"- {rule}" for rule in RULES) + "\n", READING]
    parts += [_index(family) for family in families]
    parts += [_family(family) for family in families]
    return "\n".join(parts)


def _index(family: MeasureFamily) -> str:
    rows = [
        (f"[`{one.written}`](#{one.declaration.name.lower()})", one.declaration.summary)
        for one in family.pages
    ]
    return f"**{family.title}**\n\n{table(('measure', 'what it is'), rows)}"


def _family(family: MeasureFamily) -> str:
    introduction = "".join(f"{paragraph}\n\n" for paragraph in family.introduction)
    return f"## {family.title}\n\n{introduction}" + "\n".join(map(page, family.pages))


def page(one: ReferencePage) -> str:
    """One measure: documentation, example, parameters, and what its declaration says."""
    parts = [f"### {one.declaration.name}", f"`{one.written}`", *one.paragraphs]
    parts += [f"> **Caveat:** {caveat}" for caveat in one.caveats]
    parts += ["\n".join(INDENT + line for line in example.lines()) for example in one.examples]
    parameters = [(f"`{name}`", text) for name, text in one.parameters]
    parts += [table(("parameter", "what it takes"), parameters).rstrip()] if parameters else []
    parts += [table(("", ""), one.facts).rstrip()]
    return "\n\n".join(parts) + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for line in _lines(headings, rows))


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"

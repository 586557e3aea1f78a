"""Reference pages of the measures as Markdown.

The output is a single page, or a document with an index.
"""

from collections.abc import Iterable, Iterator, Sequence

from cupel_measures.catalogue.reference import INDENT, RULES, MeasureFamily, ReferencePage

HEAD = """# Measures

All measures of Cupel, by family. `cupel measures --format markdown` generates this page from the declarations
of the measures. `cupel measures NAME` prints the page of one measure. A test computes every worked example.

A measure is written as its name, optional parameters and an optional cutoff: `nDCG`, `nDCG@10`,
`nDCG(gains={1:1,2:5})@10`. A measure of one aspect takes `aspect=...`, as in `nDCG(aspect=credibility)@10`. A
measure that combines aspects takes such a measure in `of`, with the cutoff inside, as in `CAM(of=nDCG@10)`.

The following rules hold for every measure, unless its own page says otherwise:
"""
"""Introduction of the document."""

READING = """Many measures have these parameters. `@k` is the cutoff: only the first k documents count. `rel`
is the smallest label that counts as relevant. `aspect` is the aspect whose labels count. `judged_only=True`
removes unjudged documents from the run first. Measures that combine aspects have `aspects` and `weights`.

In a worked example, `judged` lists the judged documents, each with a grade, labels or subtopics. Parentheses
contain one label per aspect (`-` means not judged). Braces contain the subtopics to which the document is
relevant. `aspect` lists the labels of an aspect from worst to best; the threshold is the lowest relevant one.
`run` lists documents in order, and `|` separates topics. A value with six decimals is rounded.

In the table of a measure, a better swap exchanges two adjacent documents, of which the lower one has labels
that are at least as good under every aspect and subtopic.

Where a paper is ambiguous or misprinted, the page of the measure says what Cupel computes and which parameter
selects another reading. [READINGS.md](READINGS.md) lists all readings.
"""


def document(families: Sequence[MeasureFamily]) -> str:
    """Return the document of all families: conventions, index, pages."""
    parts = [HEAD, "\n".join(f"- {rule}" for rule in RULES) + "\n", READING]
    parts += [_index(family) for family in families]
    parts += [_family(family) for family in families]
    return "\n".join(parts)


def _index(family: MeasureFamily) -> str:
    rows = [
        (f"[`{item.written}`](#{item.declaration.name.lower()})", item.declaration.summary)
        for item in family.pages
    ]
    return f"**{family.title}**\n\n{table(('measure', 'what it is'), rows)}"


def _family(family: MeasureFamily) -> str:
    introduction = "".join(f"{paragraph}\n\n" for paragraph in family.introduction)
    return f"## {family.title}\n\n{introduction}" + "\n".join(map(page, family.pages))


def page(reference: ReferencePage) -> str:
    """Return the page of a measure.

    It has documentation, caveats, examples, parameters and facts.
    """
    parts = [f"### {reference.declaration.name}", f"`{reference.written}`", *reference.paragraphs]
    parts += [f"> **Caveat:** {caveat}" for caveat in reference.caveats]
    parts += ["\n".join(INDENT + line for line in example.lines()) for example in reference.examples]
    parameters = [(f"`{name}`", text) for name, text in reference.parameters]
    parts += [table(("parameter", "what it takes"), parameters).rstrip()] if parameters else []
    parts += [table(("", ""), reference.facts).rstrip()]
    return "\n\n".join(parts) + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "".join(f"{line}\n" for line in _lines(headings, rows))


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"

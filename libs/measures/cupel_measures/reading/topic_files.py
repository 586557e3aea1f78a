"""Readers of topics files: lines, TREC topics in SGML, and XML."""

import re
from collections.abc import Iterator, Mapping

from cupel_measures.findings import Finding, Findings, declare
from cupel_measures.reading.lines.text_lines import text_lines
from cupel_measures.reading.qrels_files import NOT_TEXT

TOPICS = declare(
    "collection-topics",
    "error",
    "the topics file does not list distinct topic ids",
    "write a line per topic: the id of the topic, optionally followed by a space and the title",
)
_TOP = re.compile(r"<top>", re.IGNORECASE)
_NUM = re.compile(r"<num>\s*(?:number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:topic\s*:)?([^<]*)", re.IGNORECASE)
_ENTITIES = re.compile(r"<!(doctype|entity)\b", re.IGNORECASE)
ID_NAMES = ("number", "num", "id", "qid", "query_id", "topic_id")
TITLE_NAMES = ("title", "query", "text")


def read_topics(data: bytes, name: str, findings: Findings) -> dict[str, str]:
    """Return the title by topic id, empty if a topic has none.

    The format is recognised from the content. Report topics without an id and repeated ids.
    """
    lines = text_lines(data, name, NOT_TEXT, findings)
    text = b"\n".join(lines).decode()
    found: Iterator[tuple[int | None, str, str]]
    if not text.lstrip().startswith("<"):
        found = _from_lines(text.split("\n"))
    elif _TOP.search(text):
        found = _from_sgml(text)
    else:
        found = _from_xml(text, name, findings)
    titles: dict[str, str] = {}
    for line, topic, title in found:
        if problem := _problem(topic, titles):
            sample = f"{topic} {title}".strip()[:80]
            findings.add(
                Finding(
                    code=TOPICS,
                    message=problem,
                    file=name,
                    line=line,
                    column=1,
                    topic=topic[:80],
                    sample=sample,
                )
            )
        titles[topic] = title
    if not titles and not findings.refused:
        findings.add(Finding(code=TOPICS, message="no topics", file=name))
    return titles


def _problem(topic: str, titles: Mapping[str, str]) -> str | None:
    if topic.split() != [topic]:
        return "a topic has no id, or an id with white space"
    return f"topic {topic} is listed twice" if topic in titles else None


def _from_lines(lines: list[str]) -> Iterator[tuple[int | None, str, str]]:
    """Yield line number, id and title."""
    for number, line in enumerate(lines, 1):
        words = line.split(None, 1)
        if words and not line.startswith("#"):
            yield number, words[0], "".join(words[1:]).strip()


def _from_sgml(text: str) -> Iterator[tuple[int | None, str, str]]:
    starts = [match.start() for match in _TOP.finditer(text)]
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
        number, title = _NUM.search(text, begin, end), _TITLE.search(text, begin, end)
        words = title.group(1).split() if title else []
        yield text.count("\n", 0, begin) + 1, number.group(1) if number else "", " ".join(words)


def _from_xml(text: str, name: str, findings: Findings) -> Iterator[tuple[int | None, str, str]]:
    """Yield ids and titles of the elements that have an id, as attribute or element."""
    from xml.etree import ElementTree  # imported late, because few topics files are in XML

    problem, line = "declarations of document types and entities are not supported", 1
    root = None
    if not _ENTITIES.search(text):
        try:
            root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
        except ElementTree.ParseError as error:
            problem, line = f"invalid XML: {error.msg}", error.position[0]
    if root is None:
        findings.add(Finding(code=TOPICS, message=problem, file=name, line=line))
        return
    for element in root:
        parts = {child.tag.lower(): " ".join("".join(child.itertext()).split()) for child in element}
        known = {key.lower(): value.strip() for key, value in element.attrib.items()} | parts
        topic = next((known[key] for key in ID_NAMES if key in known), "")
        yield None, topic, next((known[key] for key in TITLE_NAMES if key in known), "")

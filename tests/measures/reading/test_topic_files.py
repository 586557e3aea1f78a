"""Tests of topics files: lines, TREC topics in SGML, and XML."""

import pytest

from cupel_measures.findings import Findings
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.reading.topic_files import read_topics

LINES = b"# ids and titles\n301 International Organized Crime\n302\n"
SGML = b"""
<top>
<num> Number: 301
<title> Topic: International
  Organized Crime

<desc> Description:
Identify organizations.
</top>
<top>
<num> Number: 302
</top>
"""
XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<topics task="web">
  <topic number="301"><query>International <b>Organized</b> Crime</query><description>x</description></topic>
  <topic number="302"/>
</topics>
"""
XML_ELEMENTS = b"<topics><topic><num>301</num><title>International Organized Crime</title></topic>" + (
    b"<topic><num> 302 </num></topic></topics>"
)


def titles_and_codes(data: bytes) -> tuple[dict[str, str], list[str]]:
    findings = Findings()
    return read_topics(data, "topics", findings), [str(finding) for finding in findings]


@pytest.mark.parametrize("data", [LINES, SGML, XML, XML_ELEMENTS])
def test_topics_of_every_format_are_equal(data: bytes) -> None:
    assert titles_and_codes(data) == ({"301": "International Organized Crime", "302": ""}, [])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "topics: error collection-topics: no topics"),
        (b"1 x\n1 y\n", "topics:2:1: error collection-topics: topic 1 is listed twice"),
        (
            b"<top>\n<num> 1\n</top>\n<top>\n<title> x\n</top>",
            "topics:4:1: error collection-topics: a topic",
        ),
        (b"<topics>\n<topic number='1'>", "topics:2: error collection-topics: invalid XML: no element found"),
        (
            b"<topics><topic id='a b'/></topics>",
            "topics:1: error collection-topics: a topic has no id",
        ),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><x/>", "error collection-topics: declarations of document types"),
        (b"\xff\xfe1\0", "topics:1:1: error qrels-not-text: the file is UTF-16"),
    ],
)
def test_errors_are_reported(data: bytes, message: str) -> None:
    _, messages = titles_and_codes(data)
    assert len(messages) == 1
    assert message.replace("topics:1: ", "") in messages[0]


def test_topics_of_a_collection_can_be_sgml() -> None:
    text = "{aspects: {relevance: {labels: [0, 1]}}, qrels: [{file: q, aspect: relevance}], topics: t}"
    collection = parse_collection(text, {"q": b"301 0 a 1\n", "t": SGML})
    assert collection.titles == {"301": "International Organized Crime"}
    assert collection.qrels.unjudged_topics == ("302",)

"""Tests of the summary of an audited subject."""

import json

from cupel_audits.subject import ONE_TOPIC, SubjectSummary
from support.data.audit_subjects import board, subject_of

ONE, TWO = (subject_of(*board(runs=2, topics=topics), "AP").about for topics in (1, 2))


def test_summary_equals_its_json_data() -> None:
    assert SubjectSummary.of(json.loads(json.dumps(TWO.as_data()))) == TWO


def test_only_a_single_topic_has_a_caution() -> None:
    assert (ONE.cautions, TWO.cautions) == ((ONE_TOPIC,), ())

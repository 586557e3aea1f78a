"""Fixtures with tracks to audit."""

import pytest

from cupel_backend.infrastructure.system import System
from support.audit_cast import QRELS, run
from support.backend_cast import ALICE, BOB, make_track, publish_qrels, submit, work_off


@pytest.fixture
def sent(system: System) -> list[str]:
    """Return ids of five scored submissions to a judged track."""
    make_track(system)
    publish_qrels(system, relevance=QRELS)
    ids = [
        submit(system, (ALICE, BOB)[number % 2], run(number), name=f"run{number}.txt").id
        for number in range(5)
    ]
    work_off(system)
    return ids


@pytest.fixture
def judged(system: System) -> System:
    """Return a system with a track of three scored submissions."""
    make_track(system)
    publish_qrels(system, relevance=QRELS)
    for number in range(3):
        submit(system, ALICE, run(number), name=f"run{number}")
    work_off(system)
    return system

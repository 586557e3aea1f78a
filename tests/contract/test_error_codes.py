"""Tests of the error codes of the contract, and of the names and limits that their remedies mention."""

from pathlib import Path

import pytest

import cupel_backend
import cupel_gateway
from cupel_backend import access
from cupel_backend.idempotency_keys import MAX_LENGTH
from cupel_backend.infrastructure.errors import Invalid, refusal
from cupel_contract.error_codes import ERROR_CODES, ProblemKind
from cupel_gateway.problem_responses import HTTP_STATUS
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.findings import KINDS
from cupel_measures.model.profiles import PROFILES


def test_codes_are_distinct_from_codes_of_findings() -> None:
    assert not ERROR_CODES.keys() & KINDS.keys()


def test_every_kind_has_a_status() -> None:
    assert HTTP_STATUS.keys() == set(ProblemKind)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("profile-unknown", PROFILES),
        ("about-unknown", ABOUT),
        ("scope-invalid", access.SCOPES),
        ("key-invalid", [str(MAX_LENGTH)]),
    ],
)
def test_remedies_use_the_names_of_the_libraries(code: str, words: list[str]) -> None:
    assert ", ".join(words) in ERROR_CODES[code].remedy


def test_every_code_is_used() -> None:
    folders = [Path(package.__file__ or "").parent for package in (cupel_backend, cupel_gateway)]
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    assert not [code for code in ERROR_CODES if f'"{code}"' not in sources]


def test_refusal_raises_the_exception_of_its_kind() -> None:
    with pytest.raises(Invalid, match="no such thing"):
        raise refusal("cursor-unknown")("no such thing")
    with pytest.raises(KeyError):
        refusal("no-such-code")

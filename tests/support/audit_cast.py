"""A judged track and small audits for the tests of audits."""

from typing import Any

from cupel_backend import jobs
from cupel_backend.audits import audit_requests
from cupel_backend.infrastructure.system import System
from cupel_backend.job_handlers import HANDLERS
from support.backend_cast import BOB, ORGANISER, run_file

TOPICS = 6
LETTERS = "abcdefghijkl"
ORDERS = ("fcebdaghijkl", "cfbeadlkjihg", "adbecfgihlkj", "abcdefghijkl", "lkjihgfedcba")
QRELS = "".join(
    f"t{topic} 0 {d} {(place * (topic + 3)) % 3}\n"
    for topic in range(TOPICS)
    for place, d in enumerate(LETTERS)
).encode()
SMALL = {"repeats": 6, "ratios": [50, 10], "method": "uniform"}


def run(number: int) -> bytes:
    order = ORDERS[number]
    rotated = [order[topic:] + order[:topic] for topic in range(TOPICS)]
    return run_file([(f"t{topic}", ranking) for topic, ranking in enumerate(rotated)], tag=f"r{number}")


def request_audit(system: System, **changes: Any) -> audit_requests.AuditView:
    given: dict[str, Any] = {"kind": "downsampling", "parameters": SMALL, "part_trials": 1}
    return audit_requests.request(system, ORGANISER, "track", **(given | changes))


def prepare_audit(system: System, **changes: Any) -> audit_requests.AuditView:
    """Request an audit and prepare it, so that its parts are queued."""
    audit = request_audit(system, **changes)
    claim = jobs.claim_next(system, audit_requests.QUEUE)
    assert claim is not None
    HANDLERS[claim.kind](system, claim)
    return audit_requests.get(system, BOB, audit.id)

"""The handler of each kind of job."""

from collections.abc import Mapping

from cupel_backend.audits import audit_parts, audit_requests
from cupel_backend.job_execution import Handler
from cupel_backend.scores import board_analyses, evaluations, rescoring, score_explanations

HANDLERS: Mapping[str, Handler] = {
    rescoring.EVALUATE: evaluations.evaluate,
    score_explanations.EXPLAIN: score_explanations.compute,
    board_analyses.ANALYSE: board_analyses.compute,
    audit_requests.PREPARE: audit_parts.prepare_audit,
    audit_requests.PART: audit_parts.run_part,
}

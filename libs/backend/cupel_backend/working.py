"""What each kind of job does."""

from collections.abc import Mapping

from cupel_backend import analyses, auditing, audits, evaluations, explanations, planning
from cupel_backend.jobs import Handler

HANDLERS: Mapping[str, Handler] = {
    planning.EVALUATE: evaluations.evaluate,
    explanations.EXPLAIN: explanations.compute,
    analyses.ANALYSE: analyses.compute,
    audits.GATHER: auditing.gather,
    audits.PART: auditing.do_part,
}

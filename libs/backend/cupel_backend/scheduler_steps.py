"""What has to happen again and again: the scheduler's tick."""

from datetime import timedelta
from typing import TYPE_CHECKING

from cupel_backend import idempotency_keys, jobs
from cupel_backend.audits import audit_alerts, audit_parts, audit_schedules
from cupel_backend.infrastructure.object_store import remove_older
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.scores import board_analyses, rescoring

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System


def tick(system: "System") -> None:
    """Free jobs whose worker died, ring for what waits, do to boards and audits what is due, tidy up.

    Each step is safe to repeat, to skip, and to do in two processes at once.
    """
    swept = jobs.sweep(system)
    system.metrics.count_sweep(expired=swept.expired, died=swept.died)
    for queue in set(QUEUES).difference(swept.waiting_queues):  # so that workers hear something: see pulse.py
        system.wake_ups.send(queue)
    rescoring.settle_all(system)
    board_analyses.request_all(system)
    audit_parts.conclude_all(system)
    audit_alerts.judge_all(system)
    audit_schedules.make_due(system)
    idempotency_keys.remove_expired(system)
    remove_stale_uploads(system)


def remove_stale_uploads(system: "System") -> None:
    """Remove what uploads left behind that died on the way.

    Whoever takes uploads does it as well, for its data folder may not be the scheduler's.
    """
    before = (system.now() - timedelta(hours=system.settings.upload_hours)).timestamp()
    remove_older(system.settings.incoming, before)
    system.blobs.remove_partial_writes(before)

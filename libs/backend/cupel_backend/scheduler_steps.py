"""The steps of the scheduler: recovery, wake-ups, boards, audits and clean-up.

The scheduler repeats them.
"""

from datetime import timedelta

from cupel_backend import idempotency_keys, jobs
from cupel_backend.audits import audit_alerts, audit_parts, audit_schedules
from cupel_backend.infrastructure.object_store import remove_older
from cupel_backend.infrastructure.settings import QUEUES
from cupel_backend.infrastructure.system import System
from cupel_backend.scores import board_analyses, judged_topics, rescoring


def recompute_outdated_scores(system: System) -> None:
    """Recompute the scores that an earlier release computed by other rules.

    Call it once, when a scheduler starts.
    """
    judged_topics.recompute_versions(system)


def tick(system: System) -> None:
    """Run every step once.

    It does no harm if a step is repeated, skipped, or run by two schedulers at the same time.
    """
    swept = jobs.sweep(system)
    system.metrics.count_sweep(expired=swept.expired, died=swept.died)
    # An idle worker updates its liveness file only when it receives a wake-up: see liveness_file.py.
    for queue in set(QUEUES).difference(swept.waiting_queues):
        system.wake_ups.send(queue)
    rescoring.switch_all_versions(system)
    board_analyses.request_all(system)
    audit_parts.conclude_all(system)
    audit_alerts.check_all(system)
    audit_schedules.request_due_audits(system)
    idempotency_keys.remove_expired(system)
    remove_stale_uploads(system)


def remove_stale_uploads(system: System) -> None:
    """Remove the partial files of uploads that never finished.

    The gateway also calls this function, because its data folder may be on a machine without a scheduler.
    """
    before = (system.now() - timedelta(hours=system.settings.upload_hours)).timestamp()
    remove_older(system.settings.incoming, before)
    system.blobs.remove_partial_writes(before)

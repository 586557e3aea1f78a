"""What has to happen again and again: the scheduler's tick."""

from datetime import timedelta
from typing import TYPE_CHECKING

from cupel_backend import alerts, analyses, auditing, jobs, keys, planning, schedules
from cupel_backend.blobs import remove_older
from cupel_backend.settings import QUEUES

if TYPE_CHECKING:
    from cupel_backend.system import System


def tick(system: "System") -> None:
    """Free jobs whose worker died, ring for what waits, do to boards and audits what is due, tidy up.

    Each step is safe to repeat, to skip, and to do in two processes at once.
    """
    swept = jobs.sweep(system)
    system.metrics.swept(expired=swept.expired, died=swept.died)
    for queue in set(QUEUES).difference(swept.rung):  # so that workers hear something: see pulse.py
        system.bell.ring(queue)
    planning.settle_all(system)
    analyses.request_all(system)
    auditing.conclude_all(system)
    alerts.judge_all(system)
    schedules.make_due(system)
    keys.forget(system)
    tidy(system)


def tidy(system: "System") -> None:
    """Remove what uploads left behind that died on the way.

    Whoever takes uploads does it as well, for its data folder may not be the scheduler's.
    """
    before = (system.now() - timedelta(hours=system.settings.upload_hours)).timestamp()
    remove_older(system.settings.incoming, before)
    system.blobs.tidy(before)

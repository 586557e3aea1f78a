"""How tests are shared out among processes: a file goes to one; what starts many processes keeps to a lane.

Two such files at a time are as many as two processors carry: of more, some processes would wait in vain. The
lanes begin first, for they take longest.
"""

from xdist.scheduler import LoadScopeScheduling

LANES = {
    "stack": (
        "tests/deploy/test_stack.py",
        "tests/deploy/test_faults.py",
        "tests/deploy/test_monitoring.py",
        "tests/client/online/test_sdk.py",
    ),
    "processes": (
        "tests/end_to_end/",
        "tests/test_docs.py",
        "tests/backend/test_worker.py",
        "tests/backend/infrastructure/test_metrics.py",
        "tests/client/online/test_audits.py",
    ),
}


def lane_of(nodeid: str) -> str | None:
    """The lane of a test, if it has one."""
    return next((name for name, files in LANES.items() if nodeid.startswith(files)), None)


class Lanes(LoadScopeScheduling):
    """As `--dist loadscope --no-loadscope-reorder`, with lanes."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid) or super()._split_scope(nodeid)

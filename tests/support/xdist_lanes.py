"""Distribution of test files over the pytest-xdist workers.

A lane is a list of test files that run one after another in one worker; any other file runs in any one
worker. Files that start many processes belong to a lane, so that only as many of them run at a time as there
are lanes, because more files at a time cause timeouts on two processors. The lanes start first because they
take longest.
"""

from xdist.scheduler import LoadScopeScheduling

LANES = {
    "stack": (
        "tests/deploy/test_stack.py",
        "tests/deploy/test_faults.py",
        "tests/deploy/test_monitoring.py",
        "tests/client/online/test_sdk.py",
    ),
    "end to end": ("tests/end_to_end/",),
    "processes": (
        "tests/test_docs.py",
        "tests/backend/test_worker.py",
        "tests/backend/infrastructure/test_metrics.py",
        "tests/client/online/test_audits.py",
    ),
}


def lane_of(nodeid: str) -> str | None:
    """Return the lane of a test, or None."""
    return next((name for name, files in LANES.items() if nodeid.startswith(files)), None)


class Lanes(LoadScopeScheduling):
    """A scheduler like `--dist loadscope --no-loadscope-reorder` that keeps each lane in one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid) or super()._split_scope(nodeid)

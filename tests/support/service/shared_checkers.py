"""Checking processes that tests share, because starting one takes longer than most tests."""

from dataclasses import replace
from functools import cache

from cupel_backend.infrastructure.check_processes import Checkers
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_system


class Lasting(Checkers):
    """Checking processes that end with the test process."""

    def close(self) -> None:
        """Do nothing: the next system uses the processes again."""


def open_lasting(settings: Settings) -> System:
    """Open a system like `open_system`; systems with equal limits share their checking processes."""
    limits = {name: value for name, value in settings.model_dump().items() if name.startswith("checker")}
    return replace(open_system(settings), checkers=_lasting(tuple(limits.items())))


@cache
def _lasting(limits: tuple[tuple[str, float], ...]) -> Lasting:
    return Lasting(Settings.model_validate(dict(limits)))

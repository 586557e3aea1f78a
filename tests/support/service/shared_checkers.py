"""Checking processes that outlive the systems of tests: to start one costs more than most tests do."""

from dataclasses import replace
from functools import cache

from cupel_backend.infrastructure.check_processes import Checkers
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_system


class Lasting(Checkers):
    """They end with the test process."""

    def close(self) -> None:
        """Stay for the next system."""


def open_lasting(settings: Settings) -> System:
    """As `open_system`, with checking processes that systems of the same limits share."""
    limits = {name: value for name, value in settings.model_dump().items() if name.startswith("checker")}
    return replace(open_system(settings), checkers=_lasting(tuple(limits.items())))


@cache
def _lasting(limits: tuple[tuple[str, float], ...]) -> Lasting:
    return Lasting(Settings.model_validate(dict(limits)))

"""Benchmark of recovery: seconds until the stack of docker-compose.yml works normally after each fault.

python tests/bench/recovery.py [--quick | --default] [FAULT ...]

Each fault of tests/support/service/faults.py is measured twice: with the settings of docker-compose.yml, and
with those of the tests, which detect a lost job within two seconds. Three teams submit runs meanwhile. FAULT
is a part of the name of a fault (default: all faults). The script prints a table and asserts nothing.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.service.compose_stack import QUICK, Stack
from support.service.faults import FAULTS, Recovery, Traffic, impatient

COLUMNS = "{:46} {:>9} {:>9} {:>9} {:>9}  {}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--quick", action="store_true", help="use the settings of the tests only")
    only.add_argument("--default", action="store_true", help="use the settings of docker-compose.yml only")
    chosen = parser.parse_args()
    if not chosen.quick:
        measure("settings of docker-compose.yml", {}, chosen.faults)
    if not chosen.default:
        measure("settings of the tests", QUICK, chosen.faults)


def measure(title: str, settings: Mapping[str, object], words: Sequence[str]) -> None:
    """Print the recovery times of a stack with these settings."""
    print(f"\n{title}")
    print(COLUMNS.format("seconds until", "recovered", "accepted", "scored", "caught up", "slowest step"))
    with Stack(**settings) as stack, stack.client() as organiser, impatient():
        for number, (name, fault) in enumerate(FAULTS.items()):
            if not words or any(word in name for word in words):
                with Traffic(stack, organiser, f"track-{number}") as traffic:
                    show(name, fault(traffic))


def show(name: str, recovery: Recovery) -> None:
    seconds = (recovery.seconds, recovery.accepted, recovery.scored, recovery.caught_up)
    print(COLUMNS.format(name, *(f"{value:.1f}" for value in seconds), recovery.last), flush=True)


if __name__ == "__main__":
    main()

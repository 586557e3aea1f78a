"""Recovery time of the stack of docker-compose.yml after each fault of tests/support/service/faults.py.

python tests/bench/recovery.py [--quick | --default] [FAULT ...]

The faults run with the settings of docker-compose.yml, and with the settings of the tests, which detect a
lost job in two seconds. FAULT: a word of the fault's name (default: all faults). Three teams submit runs
during each fault. The script prints a table and asserts nothing.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.service.compose_stack import QUICK, Stack
from support.service.faults import FAULTS, Recovery, Traffic, short_pauses

COLUMNS = "{:46} {:>9} {:>9} {:>9} {:>9}  {}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "faults", nargs="*", metavar="FAULT", help="A word of the fault's name (default: all)."
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", action="store_true", help="Use only the settings of the tests.")
    group.add_argument("--default", action="store_true", help="Use only the settings of docker-compose.yml.")
    options = parser.parse_args()
    if not options.quick:
        measure("settings of docker-compose.yml", {}, options.faults)
    if not options.default:
        measure("settings of the tests", QUICK, options.faults)


def measure(title: str, settings: Mapping[str, object], words: Sequence[str]) -> None:
    """Print the table for a stack with these settings."""
    print(f"\n{title}")
    print(COLUMNS.format("seconds until", "recovered", "accepted", "scored", "caught up", "longest step"))
    with Stack(**settings) as stack, stack.client() as organiser, short_pauses():
        for number, (name, fault) in enumerate(FAULTS.items()):
            if not words or any(word in name for word in words):
                with Traffic(stack, organiser, f"track-{number}") as traffic:
                    show(name, fault(traffic))


def show(name: str, recovery: Recovery) -> None:
    seconds = (recovery.seconds, recovery.accepted, recovery.scored, recovery.caught_up)
    print(COLUMNS.format(name, *(f"{value:.1f}" for value in seconds), recovery.longest_step), flush=True)


if __name__ == "__main__":
    main()

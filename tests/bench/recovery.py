"""Recovery time of the stack of docker-compose.yml after each fault of tests/support/service/faults.py.

python tests/bench/recovery.py [--quick | --default] [FAULT ...]

With the file's own settings, and with those of the tests, under which a lost job is known in two seconds.
FAULT: a word of its name; default, all. Runs are handed in meanwhile by three teams. Prints a table; nothing
is asserted.
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
    only.add_argument("--quick", action="store_true", help="with the settings of the tests only")
    only.add_argument("--default", action="store_true", help="with the file's own settings only")
    chosen = parser.parse_args()
    if not chosen.quick:
        measure("settings of docker-compose.yml", {}, chosen.faults)
    if not chosen.default:
        measure("settings of the tests", QUICK, chosen.faults)


def measure(title: str, settings: Mapping[str, object], words: Sequence[str]) -> None:
    """Print the table for a stack with these settings."""
    print(f"\n{title}")
    print(COLUMNS.format("seconds until", "all well", "accepted", "scored", "caught up", "what took longest"))
    with Stack(**settings) as stack, stack.client() as organiser, impatient():
        for number, (name, fault) in enumerate(FAULTS.items()):
            if not words or any(word in name for word in words):
                with Traffic(stack, organiser, f"track-{number}") as traffic:
                    show(name, fault(traffic))


def show(name: str, found: Recovery) -> None:
    seconds = (found.seconds, found.accepted, found.scored, found.caught_up)
    print(COLUMNS.format(name, *(f"{value:.1f}" for value in seconds), found.last), flush=True)


if __name__ == "__main__":
    main()

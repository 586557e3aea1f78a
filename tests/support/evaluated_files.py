"""Files of a small collection with runs, and calls of `cupel evaluate` on them."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from cupel_client.main import cli

QRELS = "1 0 a 2\n1 0 b 1\n1 0 c 0\n2 0 a 1\n2 0 d 0\n3 0 e 0\n"
GOOD = "1 Q0 a 1 9 good\n1 Q0 b 2 8 good\n2 Q0 a 1 1 good\n"
POOR = "1 Q0 c 1 9 poor\n1 Q0 b 2 8 poor\n2 Q0 d 1 2 poor\n2 Q0 a 2 1 poor\n"
BAD = "1 Q0 a 1 9 bad\n1 Q0 b x 8 bad\n1 Q0 a 3 7 bad\n2 Q0 d 1\n"


def write_evaluated_files(folder: Path) -> None:
    """Write qrels and runs."""
    for name, text in (("qrels.txt", QRELS), ("good.txt", GOOD), ("poor.txt", POOR), ("bad.txt", BAD)):
        (folder / name).write_text(text)
    (folder / "quality.txt").write_text("1 0 a 0\n1 0 b 3\n2 0 a 1\n")


def cupel(*arguments: str) -> Result:
    """Run `cupel evaluate` in this process."""
    return CliRunner().invoke(cli, ["evaluate", *arguments], catch_exceptions=False)


def values(result: Result) -> dict[tuple[str, str, str], float]:
    """Return a mapping of (run, measure, topic) to value from JSONL output."""
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(list(row) == ["run", "measure", "topic", "value"] for row in rows)
    return {(row["run"], row["measure"], row["topic"]): row["value"] for row in rows}

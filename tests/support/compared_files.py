"""Files of a small collection with runs, and calls of `cupel compare` on them."""

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from cupel_client.main import cli

TOPICS = [f"q{number:02}" for number in range(1, 13)]
RANKS = {
    "base.txt": [1, 2, 4, 1, 3, 5, 2, 0, 4, 3, 1, 2],
    "near.txt": [1, 2, 4, 1, 3, 5, 2, 1, 4, 3, 1, 3],
    "best.txt": [1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1],
    "twin.txt": [1, 2, 4, 1, 3, 5, 2, 0, 4, 3, 1, 2],
}
"""The rank of the only relevant document of each topic; 0 if it is not retrieved. RR is 1 / rank."""
INVALID_RUN = "q01 Q0 a x 9 bad\n"


def run_text(ranks: list[int], judged: int = 5) -> str:
    """Return a run of five documents per topic; documents below rank `judged` are unjudged."""
    return "".join(
        f"{topic} Q0 {'a' if place == rank else f'n{place}' if place <= judged else f'u{place}'} {place} "
        f"{9 - place} r\n"
        for topic, rank in zip(TOPICS, ranks, strict=True)
        for place in range(1, 6)
    )


def write_compared_files(folder: Path) -> None:
    """Write qrels, a collection of two aspects, and runs."""
    judged = "".join(
        f"{topic} 0 a 1\n" + "".join(f"{topic} 0 n{i} 0\n" for i in range(1, 6)) for topic in TOPICS
    )
    quality = "".join(f"{topic} 0 a {number % 3}\n{topic} 0 n1 1\n" for number, topic in enumerate(TOPICS))
    (folder / "qrels.txt").write_text(judged)
    (folder / "quality.txt").write_text(quality)
    (folder / "c.yaml").write_text(
        "aspects: {relevance: {labels: [0, 1]}, quality: {labels: [0, 1, 2]}}\n"
        "qrels: [{file: qrels.txt, aspect: relevance}, {file: quality.txt, aspect: quality}]\n"
    )
    for name, ranks in RANKS.items():
        (folder / name).write_text(run_text(ranks))
    (folder / "unseen.txt").write_text(run_text(RANKS["best.txt"], judged=2))
    (folder / "bad.txt").write_text(INVALID_RUN)


def cupel(*arguments: str) -> Result:
    """Run `cupel compare` in this process."""
    return CliRunner().invoke(cli, ["compare", *arguments], catch_exceptions=False)


def json_of(*arguments: str) -> dict[str, Any]:
    """Return the JSON that `cupel compare` prints."""
    result = cupel(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def check_latex(text: str) -> None:
    """Assert that braces and environments close, rows fit the columns, and special characters are escaped."""
    unescaped = re.sub(r"\\[\\&%$#_{}]", "", re.sub(r"^%.*$", "", text, flags=re.M))
    depth = 0
    for character in unescaped:
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    assert unescaped.count("$") % 2 == 0
    assert not set("#~") & set(unescaped)
    outside_math = re.sub(r"\$[^$]*\$", "", unescaped)
    assert not set("_^%") & set(outside_math)
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    [columns] = re.findall(r"\\begin\{tabular\}\{(\w+)\}", text)
    rows = [re.sub(r"\\&", "", line) for line in text.splitlines() if line.endswith(r" \\")]
    assert {row.count("&") + 1 for row in rows} == {len(columns)}

"""Benchmark of comparisons: CPU seconds and peak memory of processes, with the import of scipy.

    python tests/bench/comparing.py [--quick]

Leaderboard analysis of 300 runs x 50 topics x 12 measures (44,850 pairs of runs, 10,000 replicates):
intervals of means, max-T tests with groups, best set and intervals of ranks. The aim is 15 CPU seconds.
Discriminative power of 5 measures on 100 runs: the aim is less than a minute. The aim for the peak memory of
each is less than 1 GB. The script prints results and asserts nothing.
"""

import argparse
import json

import numpy as np
from reading import run_process


def make_scores(measures: int, runs: int) -> list[np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(1)
    topics, systems = rng.random((50, 1)) * 0.2, rng.random(runs) * 0.3
    return [0.5 * rng.beta(1, 2, (50, runs)) + systems + topics for _ in range(measures)]


def board(measures: str, runs: str) -> None:
    from cupel_measures.comparing.board_analysis import analyse

    results = analyse(make_scores(int(measures), int(runs)))
    print(json.dumps({"neighbours significantly different": sum(standing.separable for standing in results)}))


def power(measures: str, runs: str) -> None:
    from cupel_measures.comparing.resampling import discriminative_power

    results = [discriminative_power(scores) for scores in make_scores(int(measures), int(runs))]
    print(json.dumps({"pairs significantly different": sum(result.n_discriminated for result in results)}))


PROCESSES = (board, power)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="Use a tenth of the runs.")
    parser.add_argument("--process", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        name, *arguments = options.process
        next(process for process in PROCESSES if process.__name__ == name)(*arguments)
        return
    share = 10 if options.quick else 1
    print("\nComparing (aim: boards under 15 s, power under 60 s, 1,000 MB)")
    print(f"{'':24}{'measures':>9}{'runs':>6}{'CPU s':>8}{'peak MB':>9}")
    for process, measures, runs in ((board, 12, 300 // share), (power, 5, 100 // share)):
        results = run_process(process, str(measures), str(runs))
        printed = ", ".join(f"{value:g} {name}" for name, value in results.printed.items())
        print(f"{process.__name__:24}{measures:9}{runs:6}{results.cpu:8.1f}{results.peak:9.0f}  {printed}")


if __name__ == "__main__":
    main()

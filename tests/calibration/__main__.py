"""Measure error rates and coverage, and write libs/measures/CALIBRATION.md.

    make calibrate                  some minutes on one core
    make calibrate TRIALS=10000     more trials

Rates on real score matrices are printed if the shared data is there. They are not part of the page.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from calibration import page, pair_rates, rank_rates, real_matrices, simultaneous_rates
from calibration.promises import Row

PAGE = Path(__file__).resolve().parents[2] / "libs/measures/CALIBRATION.md"
SEED, TRIALS = 1, 500
REAL_SHARE = 5
"""Real matrices have this fraction of the trials."""
SIMULTANEOUS = ("noise", "means", "systems", "topics")


def tables(trials: int, seed: int) -> Iterator[page.Table]:
    """Yield the tables of the page as they are computed."""
    one_pair = [pair_rates.rejection_row(case, trials, seed) for case in pair_rates.rejection_cases()]
    yield _table("tests", ("test", "differences", "topics"), one_pair)
    coverage = [pair_rates.interval_row(case, trials, seed) for case in pair_rates.interval_cases()]
    yield _table("intervals", ("interval", "differences", "topics"), coverage)
    all_pairs = [simultaneous_rates.max_t_row(design, seed) for design in simultaneous_rates.designs(trials)]
    yield _table("max-t", SIMULTANEOUS, all_pairs)
    contrast = [
        simultaneous_rates.hsd_row(design, seed) for design in simultaneous_rates.hsd_designs(trials // 2)
    ]
    yield _table("hsd", SIMULTANEOUS, contrast)
    ranks = rank_rates.rank_rows(rank_rates.rank_designs(trials), seed)
    yield _table("ranks", ("test", *SIMULTANEOUS), ranks)


def _table(name: str, headings: tuple[str, ...], rows: Sequence[Row]) -> page.Table:
    text = f"{page.TEXTS[name]} Promises: {page.promises_text(rows)}."
    return page.Table(title=page.TITLES[name], text=text, headings=headings, rows=rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make calibrate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"Number of trials (default: {TRIALS}).")
    parser.add_argument("--seed", type=int, default=SEED, help=f"Random seed (default: {SEED}).")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"File to write (default: {PAGE.name}).")
    parser.add_argument(
        "--only-real", action="store_true", help="Print only the rates on real score matrices."
    )
    options = parser.parse_args()
    if not options.only_real:
        write_page(options.page, options.trials, options.seed)
    for row in real_matrices.real_rows(max(1, options.trials // REAL_SHARE), options.seed):
        print_row(row)


def write_page(path: Path, trials: int, seed: int) -> None:
    begin, results = time.monotonic(), []
    for table in tables(trials, seed):
        results.append(table)
        inside, outside = table.missed(inside=True), table.missed(inside=False)
        print(f"{table.title}: {table.counted} rates, missed: {inside}, outside the assumptions: {outside}")
        sys.stdout.flush()
    path.write_text(page.render(results, seed=seed, trials=trials))
    print(f"wrote {path} after {time.monotonic() - begin:.0f} s")


def print_row(row: Row) -> None:
    for name, rate in row.rates.items():
        verdict = "kept" if rate.is_kept() else "missed"
        numbers = f"{rate.value:.3f} ({rate.promise}, standard error {rate.error:.4f}): {verdict}"
        outside = [f"outside the assumptions: {row.outside}"] if row.outside else []
        print(", ".join([*row.cells, f"{name} {numbers}", *outside]), flush=True)


if __name__ == "__main__":
    main()

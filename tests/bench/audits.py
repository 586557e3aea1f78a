"""Benchmark of audits: CPU seconds and peak memory of processes that read files and print a report as JSON.

    python tests/bench/audits.py [--quick] [--folder FOLDER]

The first audit is downsampling of 100 runs x 50 topics x 1000 documents with 30 samples at 6 ratios. AP is
compared with a loop over pytrec_eval-terrier; ten measures, and ten over three aspects, are compared with AP.
The second audit leaves out each of 15 teams (75 runs, ten measures), compared with a loop over
pytrec_eval-terrier. The loops process a share of the samples or teams; the time of the repeated work is then
scaled to all of them. They remove judgments in Python, topic by topic. No result makes the script fail.
"""

import argparse
import contextlib
import io
import json
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from reading import Outcome, Work, medians, run_process

from measures import ASPECTS, make_track

RATIOS = (90, 70, 50, 30, 10, 5)
SAMPLES = 30
TEAMS = 15
OVER_ASPECTS = (
    "AP nDCG@10 P@10 RR Bpref nDCG(aspect=credibility)@10 AP(aspect=clarity) CAM(of=nDCG@10) "
    "MM(of=nDCG@10) TOMA(of=nDCG@10)"
)
TEN = {
    "AP": "map", "nDCG": "ndcg", "nDCG@10": "ndcg_cut.10", "P@10": "P.10", "RR": "recip_rank",
    "Bpref": "bpref", "Rprec": "Rprec", "R@100": "recall.100", "AP@10": "map_cut.10",
    "Success@10": "success.10",
}  # fmt: skip

Labels = dict[str, dict[str, int]]
"""topic -> document -> grade."""

# ---------------------------------------------------------------------------------------------- Cupel


def ours(kind: str, judgments: str, measures: str, teams: str, *runs: str) -> None:
    """Run `cupel audit`. teams: a file, or an empty string for audits without teams."""
    from cupel_client.main import cli

    printed, quiet = io.StringIO(), contextlib.redirect_stderr(io.StringIO())
    team_options = ["--teams", teams] if teams else []
    with contextlib.redirect_stdout(printed), quiet:
        command = ["audit", kind, judgments, *runs, "-m", measures, *team_options, "--format", "json"]
        cli.main(command, standalone_mode=False)
    report = json.loads(printed.getvalue())["report"]
    points = report["tables"][0]
    scores = [
        row[place]
        for place, column in enumerate(points["columns"])
        if column["name"] == "score"
        for row in points["rows"]
    ]
    print(json.dumps({"score": statistics.fmean(scores) if scores else 0.0}))


def kinds() -> None:
    """Print the names of all audit kinds."""
    from cupel_audits import KINDS

    print(json.dumps(dict.fromkeys(KINDS, 1.0)))


# ---------------------------------------------------------------------------------------- pytrec_eval


def sampling(folder: str, share: str, *runs: str) -> None:
    """Score `share` samples by pytrec_eval; `repeated` is the CPU time of the work done per sample."""
    import pytrec_eval as peer

    qrels = judged(folder)
    begin = time.process_time()
    evaluators = [
        peer.RelevanceEvaluator(part, {"map"})
        for sample in range(int(share))
        for part in samples(qrels, sample)
    ]
    repeated, scores = time.process_time() - begin, []
    for run in runs:
        parsed = parsed_run(run)
        begin = time.process_time()
        for evaluator in evaluators:
            values = evaluator.evaluate(parsed)
            scores.append(statistics.fmean(topic["map"] for topic in values.values()))
        repeated += time.process_time() - begin
    print(json.dumps({"repeated": repeated, "score": statistics.fmean(scores)}))


def samples(qrels: Labels, seed: int) -> Iterator[Labels]:
    """Yield nested samples: RATIOS percent of each topic and grade; at least 10 of grade 0, else 1."""
    rng = random.Random(seed)
    shuffled: dict[str, dict[int, list[str]]] = {}
    for topic, grades in qrels.items():
        strata: dict[int, list[str]] = defaultdict(list)
        for document, grade in grades.items():
            strata[grade].append(document)
        for documents in strata.values():
            rng.shuffle(documents)
        shuffled[topic] = strata
    for ratio in RATIOS:
        yield {
            topic: {
                document: grade
                for grade, documents in strata.items()
                for document in documents[: max(1 if grade else 10, ratio * len(documents) // 100)]
            }
            for topic, strata in shuffled.items()
        }


def leaving_out(folder: str, share: str, *runs: str) -> None:
    """Leave out `share` teams and score all runs by pytrec_eval.

    The judgments of documents that only runs of the left-out team retrieve are removed.
    """
    import pytrec_eval as peer

    qrels, parsed = judged(folder), {run: parsed_run(run) for run in runs}
    retrieved = {run: {t: qrels[t].keys() & of.keys() for t, of in parsed[run].items()} for run in runs}
    begin, scores = time.process_time(), []
    for team in range(int(share)):
        others = [retrieved[run] for place, run in enumerate(runs) if place % TEAMS != team]
        left = {topic: set().union(*(of.get(topic, set()) for of in others)) for topic in qrels}
        part = {topic: {d: g for d, g in qrels[topic].items() if d in left[topic]} for topic in qrels}
        evaluator = peer.RelevanceEvaluator(part, set(TEN.values()))
        for run in runs:
            values = evaluator.evaluate(parsed[run]).values()
            scores += [
                statistics.fmean(topic[name.replace(".", "_")] for topic in values) for name in TEN.values()
            ]
    print(json.dumps({"repeated": time.process_time() - begin, "score": statistics.fmean(scores)}))


def judged(folder: str) -> Labels:
    import pytrec_eval as peer

    with open(Path(folder, "plain.qrels")) as file:
        qrels: Labels = peer.parse_qrel(file)
    return qrels


def parsed_run(run: str) -> Mapping[str, Mapping[str, float]]:
    import pytrec_eval as peer

    with open(run) as file:
        scores: Mapping[str, Mapping[str, float]] = peer.parse_run(file)
    return scores


PROCESSES = (make_track, ours, kinds, sampling, leaving_out)


# ------------------------------------------------------------------------------------------ reporting


def scaled(outcome: Outcome, share: int, total: int) -> float:
    """Return the CPU seconds of a loop of `total` steps, of which `share` were run."""
    repeated = outcome.printed["repeated"]
    return outcome.cpu + repeated * (total / share - 1)


def report(rows: Iterable[tuple[str, float, float, float | None, str]]) -> None:
    """Print rows of (name, CPU seconds, peak megabytes, ratio, target)."""
    print(f"{'':44}{'CPU s':>9}{'peak MB':>9}{'ratio':>9}  target")
    for name, cpu, peak, ratio, target in rows:
        shown = "" if ratio is None else f"{ratio:.4f}"
        print(f"{name:44}{cpu:9.2f}{peak:9.0f}{shown:>9}  {target}")


def report_downsampling(work: Work, rounds: int) -> None:
    plain, collection = work.folder / "plain.qrels", work.folder / "collection.yaml"
    runs, audit = work.runs_a, "downsampling"
    alone, ten, wide = medians(
        rounds,
        (ours, (audit, plain, "AP", "", *runs)),
        (ours, (audit, plain, " ".join(TEN), "", *runs)),
        (ours, (audit, collection, OVER_ASPECTS, "", *runs)),
    )
    theirs = run_process(sampling, work.folder, "1", *runs)
    total = scaled(theirs, 1, SAMPLES)
    print(f"\nDownsampling of {len(runs)} runs x 50 topics, {SAMPLES} samples x {len(RATIOS)} ratios")
    report(
        [
            (f"pytrec_eval-terrier, AP (1 of {SAMPLES} samples, scaled)", total, theirs.peak, None, ""),
            ("AP", alone.cpu, alone.peak, alone.cpu / total, "0.006 of pytrec_eval, 1,500 MB"),
            (f"{len(TEN)} measures", ten.cpu, ten.peak, ten.cpu / total, "0.01 of its AP"),
            (
                f"10 measures over {len(ASPECTS)} aspects",
                wide.cpu,
                wide.peak,
                wide.cpu / alone.cpu,
                "10 times AP alone",
            ),
        ]
    )
    difference = abs(alone.printed["score"] - theirs.printed["score"])
    print(f"mean AP over all ratios and runs: difference {difference:.4f}, due to different samples")


def report_teams(work: Work, rounds: int) -> None:
    runs = work.runs_a[: 75 * work.runs // 100]
    print(f"\nLeaving out {TEAMS} teams of {len(runs)} runs x 50 topics, {len(TEN)} measures")
    if "leave_one_team_out" not in run_process(kinds).printed:
        print("this version has no audit kind leave_one_team_out")
        return
    teams = work.folder / "teams.txt"
    teams.write_text("".join(f"{run.name} t{place % TEAMS}\n" for place, run in enumerate(runs)))
    arguments = ("leave_one_team_out", work.folder / "plain.qrels", " ".join(TEN), teams, *runs)
    [cupel] = medians(rounds, (ours, arguments))
    theirs = run_process(leaving_out, work.folder, "2", *runs)
    total = scaled(theirs, 2, TEAMS)
    report(
        [
            (f"pytrec_eval-terrier (2 of {TEAMS} teams, scaled)", total, theirs.peak, None, ""),
            ("leave_one_team_out", cupel.cpu, cupel.peak, cupel.cpu / total, "0.1, 1,500 MB"),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure a tenth of the runs, once")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "cupel-bench")
    parser.add_argument("--process", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        name, *arguments = options.process
        next(process for process in PROCESSES if process.__name__ == name)(*arguments)
        return
    runs, rounds = (10, 1) if options.quick else (100, 3)
    work = Work(options.folder / ("quick" if options.quick else "full"), runs, 0)
    run_process(make_track, work.folder, str(runs))
    report_downsampling(work, rounds)
    report_teams(work, rounds)


if __name__ == "__main__":
    main()

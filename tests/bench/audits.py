"""Benchmark of audits: CPU seconds and peak memory of processes, from the files to the JSON report.

    python tests/bench/audits.py [--quick] [--folder FOLDER]

The audit `downsampling` reads 100 runs x 50 topics x 1000 documents, and draws 30 samples at 6 ratios. It
runs three times: by AP, compared with a loop over pytrec_eval-terrier; by ten measures; and by ten measures
of three aspects, compared with the run by AP. The audit `leave_one_team_out` leaves out each of 15 teams with
75 runs, by ten measures, compared with a loop over pytrec_eval-terrier.

The loops remove judgments in Python, topic by topic. They process only a share of the samples or teams, and
the time of the repeated part is scaled to all of them. The script prints results and asserts nothing.
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
"""Grades by document, by topic."""

# Processes of Cupel


def ours(kind: str, judgments: str, measures: str, teams: str, *runs: str) -> None:
    """Run `cupel audit` and print the mean score. teams: a file, or an empty string."""
    from cupel_client.main import cli

    printed, quiet = io.StringIO(), contextlib.redirect_stderr(io.StringIO())
    team_options = ["--teams", teams] if teams else []
    with contextlib.redirect_stdout(printed), quiet:
        arguments = ["audit", kind, judgments, *runs, "-m", measures, *team_options, "--format", "json"]
        cli.main(arguments, standalone_mode=False)
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
    """Print the names of all kinds of audits."""
    from cupel_audits import KINDS

    print(json.dumps(dict.fromkeys(KINDS, 1.0)))


# Processes of pytrec_eval


def sampling(folder: str, share: str, *runs: str) -> None:
    """Score some samples with pytrec_eval. Print the CPU seconds of the part repeated for each sample."""
    import pytrec_eval as peer

    qrels = read_qrels(folder)
    begin = time.process_time()
    evaluators = [
        peer.RelevanceEvaluator(part, {"map"})
        for sample in range(int(share))
        for part in samples(qrels, sample)
    ]
    repeated, means = time.process_time() - begin, []
    for run in runs:
        parsed = read_run(run)
        begin = time.process_time()
        for evaluator in evaluators:
            values = evaluator.evaluate(parsed)
            means.append(statistics.fmean(topic["map"] for topic in values.values()))
        repeated += time.process_time() - begin
    print(json.dumps({"repeated": repeated, "score": statistics.fmean(means)}))


def samples(qrels: Labels, seed: int) -> Iterator[Labels]:
    """Yield nested stratified samples with at least 10 nonrelevant and 1 relevant document per grade."""
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
    """Leave out some teams with pytrec_eval.

    Documents that only the team's runs retrieve lose their judgment, and all runs are scored.
    """
    import pytrec_eval as peer

    qrels, parsed = read_qrels(folder), {run: read_run(run) for run in runs}
    retrieved = {run: {t: qrels[t].keys() & of.keys() for t, of in parsed[run].items()} for run in runs}
    begin, means = time.process_time(), []
    for team in range(int(share)):
        others = [retrieved[run] for place, run in enumerate(runs) if place % TEAMS != team]
        remaining = {topic: set().union(*(of.get(topic, set()) for of in others)) for topic in qrels}
        part = {topic: {d: g for d, g in qrels[topic].items() if d in remaining[topic]} for topic in qrels}
        evaluator = peer.RelevanceEvaluator(part, set(TEN.values()))
        for run in runs:
            values = evaluator.evaluate(parsed[run]).values()
            means += [
                statistics.fmean(scores[name.replace(".", "_")] for scores in values) for name in TEN.values()
            ]
    print(json.dumps({"repeated": time.process_time() - begin, "score": statistics.fmean(means)}))


def read_qrels(folder: str) -> Labels:
    import pytrec_eval as peer

    with open(Path(folder, "plain.qrels")) as file:
        labels: Labels = peer.parse_qrel(file)
    return labels


def read_run(run: str) -> Mapping[str, Mapping[str, float]]:
    import pytrec_eval as peer

    with open(run) as file:
        scores: Mapping[str, Mapping[str, float]] = peer.parse_run(file)
    return scores


PROCESSES = (make_track, ours, kinds, sampling, leaving_out)


# Reports


def scale_cpu(outcome: Outcome, share: int, total: int) -> float:
    """Return the CPU seconds of `total` repetitions, estimated from a process with `share` of them."""
    repeated = outcome.printed["repeated"]
    return outcome.cpu + repeated * (total / share - 1)


def report(rows: Iterable[tuple[str, float, float, float | None, str]]) -> None:
    """Print a table. rows: name, CPU seconds, peak megabytes, ratio and aim."""
    print(f"{'':44}{'CPU s':>9}{'peak MB':>9}{'ratio':>9}  aim")
    for name, cpu, peak, ratio, aim in rows:
        ratio_text = "" if ratio is None else f"{ratio:.4f}"
        print(f"{name:44}{cpu:9.2f}{peak:9.0f}{ratio_text:>9}  {aim}")


def report_downsampling(work: Work, rounds: int) -> None:
    plain, collection = work.folder / "plain.qrels", work.folder / "collection.yaml"
    runs, audit = work.runs_a, "downsampling"
    single, ten, multi_aspect = medians(
        rounds,
        (ours, (audit, plain, "AP", "", *runs)),
        (ours, (audit, plain, " ".join(TEN), "", *runs)),
        (ours, (audit, collection, OVER_ASPECTS, "", *runs)),
    )
    theirs = run_process(sampling, work.folder, "1", *runs)
    seconds = scale_cpu(theirs, 1, SAMPLES)
    print(f"\nDownsampling of {len(runs)} runs x 50 topics, {SAMPLES} samples x {len(RATIOS)} ratios")
    report(
        [
            (f"pytrec_eval-terrier, AP (1 of {SAMPLES} samples, scaled)", seconds, theirs.peak, None, ""),
            ("AP", single.cpu, single.peak, single.cpu / seconds, "0.006 of pytrec_eval, 1,500 MB"),
            (f"{len(TEN)} measures", ten.cpu, ten.peak, ten.cpu / seconds, "0.01 of AP by pytrec_eval"),
            (
                f"10 measures over {len(ASPECTS)} aspects",
                multi_aspect.cpu,
                multi_aspect.peak,
                multi_aspect.cpu / single.cpu,
                "10 times AP",
            ),
        ]
    )
    difference = abs(single.printed["score"] - theirs.printed["score"])
    print(f"mean AP over all ratios and runs: differs by {difference:.4f}, because the samples differ")


def report_teams(work: Work, rounds: int) -> None:
    runs = work.runs_a[: 75 * work.runs // 100]
    print(f"\nLeaving out {TEAMS} teams of {len(runs)} runs x 50 topics, {len(TEN)} measures")
    if "leave_one_team_out" not in run_process(kinds).printed:
        print("skipped: this version has no such audit")
        return
    teams = work.folder / "teams.txt"
    teams.write_text("".join(f"{run.name} t{place % TEAMS}\n" for place, run in enumerate(runs)))
    arguments = ("leave_one_team_out", work.folder / "plain.qrels", " ".join(TEN), teams, *runs)
    [us] = medians(rounds, (ours, arguments))
    theirs = run_process(leaving_out, work.folder, "2", *runs)
    seconds = scale_cpu(theirs, 2, TEAMS)
    report(
        [
            (f"pytrec_eval-terrier (2 of {TEAMS} teams, scaled)", seconds, theirs.peak, None, ""),
            ("leave_one_team_out", us.cpu, us.peak, us.cpu / seconds, "0.1, 1,500 MB"),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="Use a tenth of the runs, and measure once.")
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

"""Benchmark of measures: the cost of each measure, and of families of measures compared with peer tools.

    python tests/bench/measures.py [--quick] [--folder FOLDER]

The track has 100 runs of 50 topics x 1000 documents, judged for three aspects and by subtopic; judged
documents have texts. The first table has the CPU milliseconds of each declared measure over all runs, in one
warm process, and their ratio to nDCG. The second table compares families of measures with the fastest peer
that has them, on the same files. It has the CPU seconds of scoring alone, from the data structures that each
reader returns, and the CPU seconds of the whole process. If a peer is slow, both tools score only a share of
the runs. The script prints results and asserts nothing.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from reading import Work, make_a, run_process

ASPECTS = {"relevance": 4, "credibility": 3, "clarity": 5}
"""Number of labels of each aspect; greater relevance grades of the file are reduced to the greatest label."""
SUBTOPICS = 8
NEEDED = {"of": "nDCG", "cutoff": 1000, "recall": 0.1}
"""Values of required parameters; deep ones, so that no measure looks cheap."""

# Inputs


def make_track(folder: str, runs: str) -> None:
    """Write the runs of workload a of reading.py, and judgments by aspect and subtopic."""
    rng = np.random.default_rng(3)
    directory = Path(folder)
    work = Work(directory, int(runs), 0)
    directory.mkdir(parents=True, exist_ok=True)
    if not all(path.exists() for path in work.runs_a):
        make_a(work)
    rows = [line.split() for line in (directory / "a.qrels").read_text().splitlines()]
    with (directory / "wide.qrels").open("w") as wide, (directory / "subtopics.qrels").open("w") as narrow:
        for topic, _, document, grade in rows:
            relevance = min(int(grade), 3)
            credibility, clarity = rng.integers(3), rng.integers(5)
            wide.write(f"{topic} 0 {document} {relevance} {credibility} {clarity}\n")
            for subtopic in np.flatnonzero(rng.random(SUBTOPICS) < relevance / 6).tolist():
                narrow.write(f"{topic} {subtopic} {document} 1\n")
    aspects = ", ".join(f"{name}: {{labels: {list(range(n))}}}" for name, n in ASPECTS.items())
    (directory / "collection.yaml").write_text(
        f"aspects: {{{aspects}}}\nqrels:\n"
        f"  - {{file: wide.qrels, columns: [topic, _, document, {', '.join(ASPECTS)}]}}\n"
        "  - {file: subtopics.qrels, layout: subtopics}\ntexts: texts.jsonl\n"
    )
    words = [f"w{number}" for number in range(20_000)]
    with (directory / "texts.jsonl").open("w") as texts:
        for document in dict.fromkeys(row[2] for row in rows):
            text = " ".join(words[min(int(rank), 19_999)] for rank in rng.pareto(0.5, 60))
            texts.write(json.dumps({"id": document, "text": text}) + "\n")
    with (directory / "plain.qrels").open("w") as plain:
        plain.writelines(f"{topic} 0 {document} {min(int(grade), 3)}\n" for topic, _, document, grade in rows)
    print("{}")


# Cost of every measure


def default_measure(declaration: Any) -> Any:
    """Return the measure with default values, and with the values of NEEDED for required parameters."""
    from cupel_measures.catalogue.parser import Measure
    from cupel_measures.grammar.registry import REQUIRED

    normalised = "normalise" in declaration.parameters  # because normalisation requires a cutoff
    needed = [p.name for p in declaration.parameters.values() if p.default is REQUIRED]
    needed += ["cutoff"] * normalised
    depth = (
        {"cutoff": 250} if declaration.name in ("SBTO", "RBTO") else {}
    )  # because 4^1000 exceeds the largest float
    return Measure(declaration, ()).having(**{name: (NEEDED | depth)[name] for name in needed})


def every_measure(collection: str, *runs: str) -> None:
    """Print the CPU milliseconds of each measure over all runs."""
    from cupel_measures.catalogue.parser import all_declarations
    from cupel_measures.model import Content, Joined
    from cupel_measures.reading.collection_files import read_collection
    from cupel_measures.reading.run_files import join, read_run
    from cupel_measures.reading.text_files import join_texts
    from cupel_measures.scoring.evaluator import evaluate

    judged = read_collection(Path(collection))
    qrels, texts = judged.qrels, judged.texts.read()
    rankings = [read_run(Path(run)).ranking for run in runs]
    joined = Joined.stack([join(ranking, qrels) for ranking in rankings])
    content = Content.stack([join_texts(ranking, qrels, texts) for ranking in rankings])
    measures = [default_measure(declaration) for declaration in all_declarations()]
    costs = {
        str(measure): milliseconds(
            lambda measure=measure: evaluate(qrels, joined, [measure], content=content)
        )
        for measure in measures
    }
    print(json.dumps(costs))


def milliseconds(call: Callable[[], object], times: int = 5) -> float:
    """Return the median CPU milliseconds of a call, after one call to warm up."""
    durations: list[float] = []
    for _ in range(times + 1):
        begin = time.process_time()
        call()
        durations.append(1000 * (time.process_time() - begin))
    return statistics.median(durations[1:])


# Comparison with peers


@dataclass(frozen=True)
class Family:
    """Measures of a peer, with the names in Cupel and in the peer. share: number of runs out of 100."""

    peer: str
    ours: str
    theirs: Sequence[str]
    share: int = 100


TREC = {
    "AP": "map", "nDCG": "ndcg", "Bpref": "bpref", "RR": "recip_rank", "Rprec": "Rprec", "AP11": "11pt_avg",
    "nDCG@10": "ndcg_cut_10", "AP@10": "map_cut_10", "P@10": "P_10", "R@100": "recall_100", "infAP": "infAP",
    "Success@10": "success_10", "IPrec@0.1": "iprec_at_recall_0.10", "SetP": "set_P", "SetR": "set_recall",
    "SetF": "set_F", "SetAP": "set_map", "NumRel": "num_rel", "NumRelRet": "num_rel_ret", "NumRet": "num_ret",
}  # fmt: skip
RANX = {
    "AP": "map", "nDCG": "ndcg", "RR": "mrr", "Rprec": "r-precision", "nDCG@10": "ndcg@10", "AP@10": "map@10",
    "P@10": "precision@10", "R@100": "recall@100", "Success@10": "hit_rate@10",
}  # fmt: skip
DIVERSE = {
    "ERR_IA@20": "ERR-IA@20", "nERR_IA@20": "nERR-IA@20", "alpha_DCG@20": "alpha-DCG@20", "NRBP": "NRBP",
    "alpha_nDCG@20": "alpha-nDCG@20", "nNRBP": "nNRBP", "AP_IA": "MAP-IA", "P_IA@20": "P-IA@20",
    "StRecall@20": "strec@20",
}  # fmt: skip
CWL = (
    "INST(max_rel=3) INSQ(max_rel=3) BPM(T=1.0,max_rel=3)@1000 SDCG(max_rel=3)@1000 NERR8(max_rel=3)@1000 "
    "NERR9(max_rel=3)@1000 NERR10(p=0.9,max_rel=3) NERR11(T=1.0,max_rel=3)"
)
FAMILIES = {
    "ad hoc": Family("pytrec_eval", " ".join(TREC), tuple(TREC.values())),
    "ad hoc (ranx)": Family("ranx", " ".join(RANX), tuple(RANX.values()), 10),
    "diversity": Family("pyndeval", " ".join(DIVERSE), tuple(DIVERSE.values())),
    "user models": Family("cwl_eval", CWL, CWL.split(), 4),
    "rank-biased precision": Family("cwl_eval", "RBP(p=0.8,rel=1)", ("RBP(p=0.8,rel=1)",), 4),
    "cascades": Family("gdeval", "ERR@20 nDCG(dcg=exp-log2)@20", ("ERR@20", "nDCG(dcg='exp-log2')@20"), 20),
    "compatibility": Family("compat", "Compat", ("Compat",), 20),
    "accuracy": Family("accuracy", "Accuracy", ("Accuracy",), 20),
    "judged share": Family("judged", "Judged@10", ("Judged@10",), 20),
}


def ours(family: str, folder: str, *runs: str) -> None:
    from cupel_measures.catalogue.parser import parse_many
    from cupel_measures.model import Joined
    from cupel_measures.model.profiles import PROFILES
    from cupel_measures.reading.qrels_files import SUBTOPICS as BY_SUBTOPIC
    from cupel_measures.reading.qrels_files import QrelsFile, build_qrels, read_qrels, unscaled
    from cupel_measures.reading.run_files import join_run
    from cupel_measures.scoring.evaluator import evaluate

    if FAMILIES[family].peer == "pyndeval":
        file = Path(folder, "subtopics.qrels")
        qrels = build_qrels([unscaled("relevance")], [QrelsFile(file.name, file, BY_SUBTOPIC)])
    else:
        qrels = read_qrels(Path(folder, "plain.qrels"))
    profile = PROFILES["trec_eval-9" if FAMILIES[family].peer == "pytrec_eval" else "cupel"]
    joined = Joined.stack([join_run(Path(run), qrels, profile=profile) for run in runs])
    begin = time.process_time()
    scores = evaluate(qrels, joined, parse_many(FAMILIES[family].ours))
    spent = time.process_time() - begin
    report(spent, (float(np.cumsum(values)[-1]) for values in scores.values.values()))


def report(spent: float, sums: Iterable[float]) -> None:
    """Print CPU seconds, and the sum of each measure over runs and topics, to compare both tools."""
    print(json.dumps({"scoring": spent} | {str(place): value for place, value in enumerate(sums)}))


def pytrec_eval(family: str, folder: str, *runs: str) -> None:
    import pytrec_eval as peer

    names = FAMILIES[family].theirs
    with open(Path(folder, "plain.qrels")) as file:
        evaluator = peer.RelevanceEvaluator(
            peer.parse_qrel(file), {trec_eval_parameter(name) for name in names}
        )
    spent, sums = 0.0, [0.0] * len(names)
    for run in runs:
        with open(run) as file:
            parsed = peer.parse_run(file)
        begin = time.process_time()
        values = evaluator.evaluate(parsed)
        spent += time.process_time() - begin
        sums = [
            total + sum(topic[name] for topic in values.values())
            for total, name in zip(sums, names, strict=True)
        ]
    report(spent, sums)


def trec_eval_parameter(name: str) -> str:
    """Return the name with its cutoff after a dot, as pytrec_eval requires: map_cut.10."""
    head, _, last = name.rpartition("_")
    return f"{head}.{last}" if last.replace(".", "").isdigit() else name


def pyndeval(family: str, folder: str, *runs: str) -> None:
    import pyndeval as peer

    names = FAMILIES[family].theirs
    judged = [line.split() for line in Path(folder, "subtopics.qrels").read_text().splitlines()]
    qrels = [(topic, subtopic, document, int(grade)) for topic, subtopic, document, grade in judged]
    evaluator = peer.RelevanceEvaluator(qrels, names)
    spent, sums = 0.0, [0.0] * len(names)
    for run in runs:
        lines = [line.split() for line in Path(run).read_text().splitlines()]
        rows = [(topic, document, float(score)) for topic, _, document, _, score, _ in lines]
        begin = time.process_time()
        values = evaluator.evaluate(rows)
        spent += time.process_time() - begin
        sums = [
            total + sum(topic[name] for topic in values.values())
            for total, name in zip(sums, names, strict=True)
        ]
    report(spent, sums)


def ranx(family: str, folder: str, *runs: str) -> None:
    """Score with ranx; its kernels are compiled before the scoring is timed, but within the process."""
    import ranx as peer

    names = list(FAMILIES[family].theirs)
    qrels = peer.Qrels.from_file(str(Path(folder, "plain.qrels")), kind="trec")
    parsed = [peer.Run.from_file(str(run), kind="trec") for run in runs]
    peer.evaluate(qrels, parsed[0], names, return_mean=False)
    begin = time.process_time()
    scores = [peer.evaluate(qrels, run, names, return_mean=False) for run in parsed]
    spent = time.process_time() - begin
    report(spent, (sum(float(values[name].sum()) for values in scores) for name in names))


def provider(family: str, folder: str, *runs: str) -> None:
    """Score with a provider of ir_measures."""
    import ir_measures as peer

    measures = [peer.parse_measure(name) for name in FAMILIES[family].theirs]
    qrels = list(with_numeric_topics(peer.read_trec_qrels(str(Path(folder, "plain.qrels")))))
    evaluator = peer.providers.registry[FAMILIES[family].peer].evaluator(measures, qrels)
    spent, sums = 0.0, dict.fromkeys(measures, 0.0)
    for run in runs:
        rows = list(with_numeric_topics(peer.read_trec_run(run)))
        begin = time.process_time()
        for value in evaluator.iter_calc(rows):
            sums[value.measure] += value.value
        spent += time.process_time() - begin
    report(spent, sums.values())


def with_numeric_topics(rows: Iterable[Any]) -> Iterable[Any]:
    """Return the rows with numeric topic ids, because gdeval accepts no other ids."""
    return (row._replace(query_id=row.query_id.rpartition(".")[2]) for row in rows)


PROCESSES = (make_track, every_measure, ours, pytrec_eval, pyndeval, ranx, provider)


# Reports


def report_every(work: Work) -> None:
    costs = run_process(every_measure, work.folder / "collection.yaml", *work.runs_a).printed
    print(
        f"\nEvery measure over {len(work.runs_a)} runs x 50 topics x 1000, 3 aspects: CPU ms, ratio to nDCG"
    )
    for text, cost in sorted(costs.items(), key=lambda item: -item[1]):
        print(f"{text:34}{cost:9.1f}{cost / costs['nDCG']:8.2f}")


def report_families(work: Work) -> None:
    print("\nFamilies compared with peers: CPU seconds, and the speed relative to the peer")
    print(f"{'':24}{'peer':14}{'runs':>5}{'scoring: ours':>15}{'theirs':>9}{'times':>7}", end="")
    print(f"{'process: ours':>14}{'theirs':>9}{'times':>7}")
    for name, family in FAMILIES.items():
        runs = work.runs_a[: max(1, family.share * work.runs // 100)]
        theirs = next((process for process in PROCESSES if process.__name__ == family.peer), provider)
        us, them = (run_process(function, name, work.folder, *runs) for function in (ours, theirs))
        scoring = us.printed["scoring"], them.printed["scoring"]
        print(f"{name:24}{family.peer:14}{len(runs):5}", end="")
        print(f"{scoring[0]:15.3f}{scoring[1]:9.3f}{scoring[1] / scoring[0]:7.1f}", end="")
        note = describe_differences(us.printed, them.printed)
        print(f"{us.cpu:14.2f}{them.cpu:9.2f}{them.cpu / us.cpu:7.1f}{note}")


def describe_differences(us: dict[str, float], them: dict[str, float]) -> str:
    """Return a note on the measures whose sums differ by more than rounding; an empty string without any."""
    different = [key for key in us if key != "scoring" and abs(us[key] - them[key]) > 1e-3 * abs(us[key])]
    return f"  (values differ: {', '.join(different)})" if different else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="Use a tenth of the runs.")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "cupel-bench")
    parser.add_argument("--process", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        name, *arguments = options.process
        next(process for process in PROCESSES if process.__name__ == name)(*arguments)
        return
    runs = 10 if options.quick else 100
    work = Work(options.folder / ("quick" if options.quick else "full"), runs, 0)
    run_process(make_track, work.folder, str(runs))
    report_every(work)
    report_families(work)


if __name__ == "__main__":
    main()

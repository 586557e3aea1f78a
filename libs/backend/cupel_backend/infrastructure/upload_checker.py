"""The checking process: reads what strangers sent, in a process that may be killed.

One JSON object a line comes in on standard input, one goes out on standard output; files are named by
path. Nothing but JSON comes back, so even a subverted checker can only claim something about a file.
Run by `checking.Checkers`; knows neither settings nor database.
"""

import ctypes
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cupel_measures.catalogue.parser import parse
from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.model import NEGATIVE
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.reading.compression import Limits
from cupel_measures.reading.qrels_files import pack_qrels, qrels_digest, unpack_qrels
from cupel_measures.reading.run_files import (
    check_against,
    check_judged,
    digest,
    pack,
    profile_effects,
    read_run,
)
from cupel_measures.scoring.evaluator import list_unsupported

Verdict = dict[str, Any]

PR_SET_PDEATHSIG = 1
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

NOT_TO_BE_HAD = declare(
    "qrels-measure",
    "error",
    "a measure of the track's plan can't be had from these judgments",
    "send the judgments that it needs, or take the measure out of the plan of the track",
)

LISTED = 20
"""So many topics are named of those that a profile would order otherwise."""


def main() -> None:
    """Answer requests until standard input ends.

    The first line gives the limits of memory (bytes) and of processor time for a file (seconds), and the
    id of the process that asks.
    """
    limits = json.loads(sys.stdin.readline())
    _end_with(limits["parent"])
    memory = limits["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer = sys.stdout
    sys.stdout = sys.stderr  # nothing printed by a library may pass for an answer
    for line in sys.stdin:
        request = json.loads(line)
        _allow(limits["seconds"])
        print(json.dumps(_verdict(request), default=str), file=answer, flush=True)


def _end_with(parent: int) -> None:
    """Have Linux end this process with the thread that started it, also in the midst of a file."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # gone before we could ask
        sys.exit(1)


def _allow(seconds: float) -> None:
    """Limit what this process may compute from now on, should nobody be left to end it."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(used + seconds) + 2
    allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, most))


def _verdict(request: Mapping[str, Any]) -> Verdict:
    checks = {"run": _check_run, "qrels": _check_qrels}
    try:
        return checks[request["kind"]](request)
    except Refused as problem:
        return {"refused": True, "findings": findings_to_json(problem.findings)}
    except MemoryError:
        return {"killed": "memory"}
    except OSError as error:
        if error.errno is None:  # what a library raises for content that it can't read
            raise
        return {"killed": "storage"}


def _check_run(request: Mapping[str, Any]) -> Verdict:
    """The verdict on a run; its packed ranking goes to the path `ranking`."""
    limits = Limits(**request["limits"])
    run = read_run(Path(request["file"]), name=request["name"], limits=limits, depth=request["depth"])
    if request["qrels"] is not None:
        qrels = unpack_qrels(Path(request["qrels"]).read_bytes())
        run.findings.extend(check_against(run, qrels.topics, file=request["name"]))
        run.findings.extend(check_judged(run, qrels))
    if run.findings.refused:
        raise Refused(run.findings)
    Path(request["ranking"]).write_bytes(pack(run))
    effects = profile_effects(run, depth=request["depth"])
    return {
        "tag": CONTROL.sub("\ufffd", run.tag),  # shown on boards and terminals, kept in a database
        "digest": digest(run.ranking),
        "topics": len(run.ranking.topics),
        "documents": len(run.ranking.documents),
        "metadata": run.metadata and dict(run.metadata),
        "profile_effects": {
            "single_precision": _some(effects.precision),
            "rank_column": _some(effects.ranks),
        },
        "findings": findings_to_json(run.findings),
    }


def _some(topics: Sequence[str]) -> dict[str, Any]:
    return {"count": len(topics), "topics": list(topics[:LISTED])}


def _check_qrels(request: Mapping[str, Any]) -> Verdict:
    """The verdict on judgments; the packed qrels go to `packed` in the folder."""
    folder = Path(request["folder"])
    collection = parse_collection(
        (folder / "collection").read_bytes(),
        {name: Path(path).read_bytes() for name, path in request["files"].items()},
        declared=request["declared"],
        limits=Limits(**request["limits"]),
    )
    qrels = collection.qrels
    not_to_be_had = measure_findings(list_unsupported(qrels, [parse(text) for text in request["measures"]]))
    if not_to_be_had.refused:
        not_to_be_had.extend(collection.findings)
        raise Refused(not_to_be_had)
    (folder / "packed").write_bytes(pack_qrels(qrels))
    return {
        "digest": qrels_digest(qrels),
        "topics": list(qrels.topics),
        "counts": {
            "topics": len(qrels.topics),
            "documents": len(qrels.documents),
            "judgments": {
                aspect.name: int(np.count_nonzero(labels >= NEGATIVE))
                for aspect, labels in zip(qrels.aspects, qrels.labels, strict=True)
            },
        },
        "findings": findings_to_json(collection.findings),
    }


def measure_findings(sentences: Sequence[str]) -> Findings:
    """What is wrong with judgments that a plan can't be had from, a sentence for each such measure."""
    findings = Findings()
    for sentence in sentences:
        findings.add(Finding(NOT_TO_BE_HAD, sentence))
    return findings


def findings_to_json(findings: Findings) -> dict[str, Any]:
    """Findings as JSON keeps them."""
    listed = [{k: v for k, v in asdict(one).items() if v is not None} for one in findings.listed]
    return {"listed": listed, "totals": findings.totals}


def findings_from_json(value: Mapping[str, Any]) -> Findings:
    """What `packed` packed."""
    return Findings([Finding(**one) for one in value["listed"]], dict(value["totals"]))


if __name__ == "__main__":
    main()

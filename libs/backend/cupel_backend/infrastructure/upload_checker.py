"""The program of a check process, which reads untrusted files.

It reads requests from standard input and writes verdicts to standard output, one JSON object per line. Files
are named by path. The service reads only JSON from this process, so a compromised process can do no more than
report a wrong verdict. The process has neither the settings nor access to the database.
`check_processes.Checkers` starts it.
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
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")

UNCOMPUTABLE_MEASURE = declare(
    "qrels-measure",
    "error",
    "a measure of the track's plan cannot be computed from these judgments",
    "send the judgments that the measure needs, or remove the measure from the plan of the track",
)

MAX_LISTED_TOPICS = 20
"""Maximum number of topics in the list of topics whose ranking another profile would change."""


def main() -> None:
    """Answer requests until standard input ends.

    The first line contains the limits on memory (bytes) and on CPU time per file (seconds), and the process
    id of the parent.
    """
    limits = json.loads(sys.stdin.readline())
    _end_with(limits["parent"])
    memory = limits["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = sys.stdout
    sys.stdout = sys.stderr  # output of libraries must not be read as a verdict
    for line in sys.stdin:
        request = json.loads(line)
        _limit_cpu_time(limits["seconds"])
        print(json.dumps(_verdict(request), default=str), file=output, flush=True)


def _end_with(parent: int) -> None:
    """Make Linux kill this process when the thread that started it ends.

    This also happens during a check.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the call
        sys.exit(1)


def _limit_cpu_time(seconds: float) -> None:
    """Limit the CPU time of this process from now on.

    The limit is needed if the parent cannot kill the process.
    """
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(used + seconds) + 2
    soft_limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_CPU, (soft_limit, hard_limit))


def _verdict(request: Mapping[str, Any]) -> Verdict:
    checks = {"run": _check_run, "qrels": _check_qrels}
    try:
        return checks[request["kind"]](request)
    except Refused as problem:
        return {"refused": True, "findings": findings_to_json(problem.findings)}
    except MemoryError:
        return {"killed": "memory"}
    except OSError as error:
        if error.errno is None:  # raised by a library for unreadable content
            raise
        return {"killed": "storage"}


def _check_run(request: Mapping[str, Any]) -> Verdict:
    """Check a run; write its packed ranking to the path `ranking`."""
    limits = Limits(**request["limits"])
    run = read_run(Path(request["file"]), name=request["name"], limits=limits, depth=request["depth"])
    if request["qrels"] is not None:
        qrels = unpack_qrels(Path(request["qrels"]).read_bytes())
        run.findings.extend(check_against(run, qrels.listed_topics, file=request["name"] or None))
        run.findings.extend(check_judged(run, qrels))
    if run.findings.refused:
        raise Refused(run.findings)
    Path(request["ranking"]).write_bytes(pack(run))
    effects = profile_effects(run, depth=request["depth"])
    return {
        # Control characters could control a terminal, and databases refuse some of them.
        "tag": CONTROL_CHARACTERS.sub("\ufffd", run.tag),
        "digest": digest(run.ranking),
        "topics": len(run.ranking.topics),
        "documents": len(run.ranking.documents),
        "metadata": run.metadata and dict(run.metadata),
        "profile_effects": {
            "single_precision": _summarise_topics(effects.precision),
            "rank_column": _summarise_topics(effects.ranks),
        },
        "findings": findings_to_json(run.findings),
    }


def _summarise_topics(topics: Sequence[str]) -> dict[str, Any]:
    return {"count": len(topics), "topics": list(topics[:MAX_LISTED_TOPICS])}


def _check_qrels(request: Mapping[str, Any]) -> Verdict:
    """Check judgments; write the packed qrels to `packed` in the folder."""
    folder = Path(request["folder"])
    collection = parse_collection(
        (folder / "collection").read_bytes(),
        {name: Path(path).read_bytes() for name, path in request["files"].items()},
        declared=request["declared"],
        limits=Limits(**request["limits"]),
    )
    qrels = collection.qrels
    missing = measure_findings(list_unsupported(qrels, [parse(text) for text in request["measures"]]))
    if missing.refused:
        missing.extend(collection.findings)
        raise Refused(missing)
    (folder / "packed").write_bytes(pack_qrels(qrels))
    return {
        "digest": qrels_digest(qrels),
        "topics": list(qrels.topics),
        "counts": {
            "topics": len(qrels.topics),
            "unjudged_topics": list(qrels.unjudged_topics),
            "documents": len(qrels.documents),
            "judgments": {
                aspect.name: int(np.count_nonzero(labels >= NEGATIVE))
                for aspect, labels in zip(qrels.aspects, qrels.labels, strict=True)
            },
        },
        "findings": findings_to_json(collection.findings),
    }


def measure_findings(sentences: Sequence[str]) -> Findings:
    """Return the findings about measures that the judgments do not support.

    There is one finding for each sentence.
    """
    findings = Findings()
    for sentence in sentences:
        findings.add(Finding(code=UNCOMPUTABLE_MEASURE, message=sentence))
    return findings


def findings_to_json(findings: Findings) -> dict[str, Any]:
    """Return findings as a JSON object."""
    listed = [{k: v for k, v in asdict(finding).items() if v is not None} for finding in findings.listed]
    return {"listed": listed, "totals": findings.totals}


def findings_from_json(value: Mapping[str, Any]) -> Findings:
    """Return the findings of a JSON object that `findings_to_json` made."""
    return Findings([Finding(**finding) for finding in value["listed"]], dict(value["totals"]))


if __name__ == "__main__":
    main()

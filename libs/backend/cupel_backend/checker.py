"""The checking process: reads what strangers sent, in a process that may be killed.

One JSON object a line comes in on standard input, one goes out on standard output; files are named by
path. Nothing but JSON comes back, so even a subverted checker can only claim something about a file.
Run by `checking.Checkers`; knows neither settings nor database.
"""

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cupel_measures.findings import Finding, Findings, Refused

Verdict = dict[str, Any]


def main() -> None:
    """Answer requests until standard input ends; the first line gives the limit on memory in bytes."""
    memory = json.loads(sys.stdin.readline())["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer = sys.stdout
    sys.stdout = sys.stderr  # nothing printed by a library may pass for an answer
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_verdict(request), default=str), file=answer, flush=True)


def _verdict(request: Mapping[str, Any]) -> Verdict:
    checks = {"run": _check_run, "qrels": _check_qrels}
    try:
        return checks[request["kind"]](request)
    except Refused as problem:
        return {"refused": True, "findings": packed(problem.findings)}
    except MemoryError:
        return {"killed": "memory"}


def _check_run(request: Mapping[str, Any]) -> Verdict:
    raise NotImplementedError


def _check_qrels(request: Mapping[str, Any]) -> Verdict:
    raise NotImplementedError


def packed(findings: Findings) -> dict[str, Any]:
    """Findings as JSON keeps them."""
    listed = [{k: v for k, v in asdict(one).items() if v is not None} for one in findings.listed]
    return {"listed": listed, "totals": findings.totals}


def unpacked(value: Mapping[str, Any]) -> Findings:
    """What `packed` packed."""
    return Findings([Finding(**one) for one in value["listed"]], dict(value["totals"]))


if __name__ == "__main__":
    main()

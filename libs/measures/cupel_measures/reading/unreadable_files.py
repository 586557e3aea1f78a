"""The finding about a file that cannot be read."""

from pathlib import Path

from cupel_measures.findings import Finding, Findings, declare

UNREADABLE = declare(
    "file-unreadable",
    "error",
    "the file cannot be read",
    "give the path of a readable file, not of a folder",
)


def unreadable(problem: OSError, path: Path) -> Findings:
    """Return the finding that `path` could not be read."""
    findings = Findings()
    file = Path(problem.filename).name if isinstance(problem.filename, str) else path.name
    findings.add(
        Finding(code=UNREADABLE, message=f"cannot be read: {problem.strerror or problem}", file=file)
    )
    return findings

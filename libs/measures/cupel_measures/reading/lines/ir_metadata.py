"""ir_metadata blocks: YAML in the comments of a run.

A block is between `ir_metadata.start` and `ir_metadata.end`.

Breuer, Keller, Schaer: ir_metadata: An Extensible Metadata Schema for IR Experiments (SIGIR 2022).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cupel_measures.findings import Finding, declare

LONGEST = 64 << 10
"""Bytes of comments that are searched for metadata."""

METADATA = declare(
    "run-metadata",
    "warning",
    "the ir_metadata block in the comments is invalid and is ignored",
    "write a YAML mapping without aliases, and begin each of its lines with `# `",
)


def metadata_of(
    comments: Sequence[tuple[int, str]], file: str | None
) -> tuple[Mapping[str, Any] | None, Finding | None]:
    """Return the metadata in `comments`, or a finding if it is invalid.

    A comment is a line number and the text from `#` on.

    Values are kept as text, so that a version 1.10 does not become the number 1.1.
    """
    start = end = None
    for place, (_, text) in enumerate(comments):
        word = text.lstrip("# \t").rstrip()
        if word == "ir_metadata.start" and start is None:
            start = place
        elif word == "ir_metadata.end" and start is not None and end is None:
            end = place
    if start is None:
        return None, None
    line = comments[start][0]
    if end is None:
        return None, Finding(
            code=METADATA, message="ir_metadata.start has no ir_metadata.end", file=file, line=line
        )
    block = "\n".join(text[1:].removeprefix(" ") for _, text in comments[start + 1 : end])
    try:
        value = _mapping(block)
    except (ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())[:200]
        return None, Finding(
            code=METADATA,
            message=f"the ir_metadata block is not a YAML mapping: {problem}",
            file=file,
            line=line,
        )
    return value, None


def _mapping(text: str) -> Mapping[str, Any]:
    import yaml  # imported late, because few runs have metadata

    class Loader(yaml.BaseLoader):
        """Loader of text, lists and mappings without aliases."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("aliases are not allowed")
            return super().compose_node(parent, index)

    try:
        value = yaml.load(text, Loader)  # a BaseLoader reads every scalar as text
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ValueError("expected a mapping")
    json.dumps(value, ensure_ascii=False).encode()  # raises for a lone surrogate, which is not valid UTF-8
    return value

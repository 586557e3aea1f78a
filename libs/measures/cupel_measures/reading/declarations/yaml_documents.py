"""Hand-written YAML and JSON as a tree of words, with line numbers and findings.

Every scalar is kept as the word that was typed (`no` is "no", `1` is "1"). The code that reads a value
determines its type.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.grammar.parameters import closest

Tree = dict[str, "Tree"] | list["Tree"] | str
Path = tuple[str | int, ...]

SYNTAX = declare(
    "document-syntax",
    "error",
    "the file is neither YAML nor JSON",
    "correct the indentation, or add the missing quote or bracket, at the given place",
)
REPEATED_KEY = declare(
    "document-repeated-key", "error", "a key occurs twice in one mapping", "keep one of them"
)
UNKNOWN_KEY = declare("document-unknown-key", "error", "unknown key", "use one of the listed keys")
MISSING_KEY = declare("document-missing-key", "error", "a required key is missing", "add the key")
OTHER_KIND = declare(
    "document-other-kind",
    "error",
    "a value has the wrong kind (list, mapping, word or number)",
    "write the value as the message shows",
)


@dataclass(frozen=True, eq=False)
class Document:
    """A YAML or JSON document.

    name: its name in findings. root: its tree. lines: the line of each path.
    """

    name: str
    root: Tree
    lines: Mapping[Path, int] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @property
    def top(self) -> "Place":
        return Place(self, (), self.root)

    def over(self, data: Mapping[str, Any]) -> "Document":
        """Return the document with the additional keys of `data`.

        Keys of the document take precedence.
        """
        return replace(self, root={**_mapping(data), **self.root}) if isinstance(self.root, dict) else self

    def line(self, path: Path) -> int | None:
        """Return the line of `path`, or of its innermost parent with a known line."""
        around = (path[:depth] for depth in range(len(path), 0, -1))
        return next((self.lines[outer] for outer in around if outer in self.lines), None)


@dataclass(frozen=True)
class Place:
    """A value in a document, and its path.

    The methods report errors as findings and do not raise them.
    """

    document: Document
    path: Path
    value: Tree

    def __str__(self) -> str:
        return "".join(f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in self.path).removeprefix(".")

    def wrong(self, code: str, message: str) -> None:
        """Add a finding about this value."""
        where = f"{self}: " if self.path else ""
        sample = self.value[:80] if isinstance(self.value, str) else None
        line = self.document.line(self.path)
        self.document.findings.add(
            Finding(code=code, message=where + message, file=self.document.name, line=line, sample=sample)
        )

    def mapping(self, expected: str) -> dict[str, "Place"]:
        """Return the values of a mapping by key.

        If the value is not a mapping, report it and return {}.
        """
        if isinstance(self.value, dict):
            return {key: Place(self.document, (*self.path, key), value) for key, value in self.value.items()}
        self.wrong(OTHER_KIND, f"expected {expected}, got {_kind(self.value)}")
        return {}

    def keys(self, expected: str, *, needed: Iterable[str], also: Iterable[str]) -> dict[str, "Place"]:
        """Return the values of a mapping with known keys. Report unknown and missing keys."""
        places = self.mapping(expected)
        known = [*needed, *also]
        for key in places.keys() - set(known):
            places[key].wrong(UNKNOWN_KEY, f"unknown key {key!r}{nearest(key, known)}")
        if isinstance(self.value, dict):
            for key in [key for key in needed if key not in places]:
                self.wrong(MISSING_KEY, f"missing key {key!r}; expected {expected}")
        return {key: place for key, place in places.items() if key in known}

    def items(self, expected: str) -> list["Place"]:
        """Return the values of a list.

        If the value is not a list, report it and return [].
        """
        if isinstance(self.value, list):
            return [Place(self.document, (*self.path, i), value) for i, value in enumerate(self.value)]
        self.wrong(OTHER_KIND, f"expected {expected}, got {_kind(self.value)}")
        return []

    def word(self, expected: str) -> str | None:
        """Return the value if it is a non-empty word.

        Otherwise report an error and return None.
        """
        if isinstance(self.value, str) and self.value.strip():
            return self.value
        self.wrong(OTHER_KIND, f"expected {expected}, got {_kind(self.value)}")
        return None


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the known word closest to `word`.

    If no word is close, it names the known words.
    """
    names = list(known)
    close = closest(word, names)
    if close is not None:
        return f"; did you mean {close}?"
    return f"; expected one of {', '.join(names[:12])}" if names else ""


def _kind(value: Tree) -> str:
    if isinstance(value, str):
        return repr(value[:60]) if value.strip() else "nothing"
    return "a list" if isinstance(value, list) else "a mapping"


def of_data(data: Any, name: str) -> Document:
    """Return a document of JSON data. Raise Refused if it is nested too deeply."""
    try:
        return Document(name, _words(data))
    except RecursionError as problem:
        raise _refusal(problem, name) from None


def _mapping(data: Mapping[Any, Any]) -> dict[str, Tree]:
    return {_scalar(key): _words(value) for key, value in data.items()}


def _words(data: Any) -> Tree:
    if isinstance(data, Mapping):
        return _mapping(data)
    if isinstance(data, list | tuple):
        return [_words(value) for value in data]
    return _scalar(data)


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else _joined_surrogates(str(value))


def parse(text: str, name: str) -> Document:
    """Parse YAML or JSON. Raise Refused if the text is neither."""
    import yaml  # imported late, because few commands need it

    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        text = text.replace("\t", " ")  # JSON may be indented with tabs, YAML may not
    try:
        node = yaml.compose(text.removeprefix("\ufeff"), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as problem:
        raise _refusal(problem, name) from None
    lines: dict[Path, int] = {}
    findings = Findings()
    tree = _Nodes(name, lines, findings).tree(node, ()) if node is not None else {}
    return Document(name, tree, lines, findings)


def _refusal(problem: Exception, name: str) -> Refused:
    mark = getattr(problem, "problem_mark", None)
    message = getattr(problem, "problem", None) or getattr(problem, "reason", None) or "nested too deeply"
    context = getattr(problem, "context", None)
    findings = Findings()
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    findings.add(
        Finding(
            code=SYNTAX,
            message=f"{context}: {message}" if context else str(message),
            file=name,
            line=line,
            column=column,
        )
    )
    return Refused(findings)


@dataclass(frozen=True)
class _Nodes:
    """Conversion of YAML nodes into a tree of words, with their lines."""

    name: str
    lines: dict[Path, int]
    findings: Findings
    seen: set[int] = field(default_factory=set)

    def tree(self, node: Any, path: Path) -> Tree:
        self.lines[path] = node.start_mark.line + 1
        if id(node) in self.seen:
            self._report(SYNTAX, node, "anchors and aliases (& and *) are not supported; repeat the value")
            return ""
        self.seen.add(id(node))
        if node.id == "mapping":
            return self._mapping(node, path)
        if node.id == "sequence":
            return [self.tree(child, (*path, i)) for i, child in enumerate(node.value)]
        return _joined_surrogates(node.value)

    def _mapping(self, node: Any, path: Path) -> Tree:
        tree: dict[str, Tree] = {}
        for key_node, value in node.value:
            key = _joined_surrogates(key_node.value) if key_node.id == "scalar" else ""
            if key_node.id != "scalar":
                self._report(SYNTAX, key_node, "expected a word as key")
            elif key in tree:
                self._report(REPEATED_KEY, key_node, f"{key!r} occurs twice")
            tree[key] = self.tree(value, (*path, key))
            self.lines[(*path, key)] = key_node.start_mark.line + 1
        return tree

    def _report(self, code: str, node: Any, message: str) -> None:
        mark = node.start_mark
        self.findings.add(
            Finding(code=code, message=message, file=self.name, line=mark.line + 1, column=mark.column + 1)
        )


def _joined_surrogates(word: str) -> str:
    """Replace escaped surrogates.

    Pairs become their characters, and lone surrogates become U+FFFD.
    """
    if not re.search("[\ud800-\udfff]", word):
        return word
    return word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

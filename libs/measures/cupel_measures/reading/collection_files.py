"""Readers of collections: YAML or JSON files with aspects, qrels and measure plan."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.model import NEGATIVE, Aspect, LabelSet, Qrels
from cupel_measures.model.profiles import DEFAULT, PROFILES, Profile
from cupel_measures.reading.compression import Limits, Source, open_plain
from cupel_measures.reading.content_formats import HEAD, format_of
from cupel_measures.reading.declarations import yaml_documents
from cupel_measures.reading.declarations.aspect_declarations import (
    aspects_from,
    label_sets_from,
    read_aspects,
    read_label_sets,
)
from cupel_measures.reading.declarations.score_labels import OTHERS, Steps, read_steps
from cupel_measures.reading.declarations.yaml_documents import Document, Place, nearest
from cupel_measures.reading.lines.text_lines import text_lines
from cupel_measures.reading.qrels_files import (
    ANYTHING,
    DOCUMENT,
    NOT_TEXT,
    SUBTOPICS,
    TOPIC,
    QrelsFile,
    build_qrels,
    unscaled,
)
from cupel_measures.reading.text_files import TextsFile
from cupel_measures.reading.topic_files import read_topics

__all__ = [
    "Collection",
    "aspects_from",
    "collection_for",
    "is_collection",
    "label_sets_from",
    "parse_collection",
    "read_collection",
]

FILE_MISSING = declare(
    "collection-file-missing",
    "error",
    "a file that the collection names is missing",
    "correct the name, or send the file; names are relative to the collection file",
)
FILE_UNUSED = declare(
    "collection-file-unused",
    "warning",
    "the collection does not name a file that was sent",
    "name the unused file in the collection file, or send only files that it names",
)
COLUMNS = declare(
    "collection-columns",
    "error",
    "the layout of a qrels file is not declared",
    "declare one of `aspect: NAME`, `columns: [topic, _, document, a, b]` and `layout: subtopics`",
)
NOT_JUDGED = declare(
    "collection-aspect-not-judged",
    "warning",
    "a declared aspect is judged in no qrels file, so measures of this aspect are 0 for every run",
    "name a qrels file for the aspect, or remove the aspect",
)
OUTSIDE_LABEL_SET = declare(
    "collection-outside-label-set",
    "error",
    "a document is judged with a tuple of labels that a declared label set does not list",
    "add the tuple to the `tuples` of the label set, or correct the labels",
)
OTHER_ASPECTS = declare(
    "collection-other-aspects",
    "error",
    "the collection declares different aspects or label sets than its track",
    "omit the aspects and label sets, or declare them as the track does",
)
PROFILE = declare("collection-profile", "error", "unknown profile", f"use one of {', '.join(PROFILES)}")
MEASURE = declare(
    "collection-measure",
    "error",
    "a measure of the plan is invalid or cannot be computed from the collection",
    "`cupel measures` lists the measures and their parameters",
)
WITHOUT_LABELS = Aspect(name="relevance", labels=(0, 1))
"""The aspect of a collection without declared aspects, in which all judgments are by subtopic."""

_JSON_KEY = re.compile(rb"""[{,]\s*["']?(aspects|qrels)["']?\s*:""")
_EXAMPLE = "{aspects: {relevance: {labels: [0, 1]}}, qrels: [{file: qrels.txt, aspect: relevance}]}"
_OPTIONAL = ("topics", "texts", "label_sets", "profile", "measures")
_QRELS = "{file: qrels.txt, aspect: relevance}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Collection:
    """A test collection: qrels, topics, profile and measure plan.

    titles: title by topic id, from the topics file. measures: canonical texts of the plan. texts: the file of
    document texts, which is read when a measure needs it. findings: warnings.
    """

    qrels: Qrels
    titles: Mapping[str, str] = field(default_factory=dict)
    profile: Profile = DEFAULT
    measures: tuple[str, ...] = ()
    texts: TextsFile | None = None
    findings: Findings = field(default_factory=Findings)

    @property
    def aspects(self) -> tuple[Aspect, ...]:
        return self.qrels.aspects

    @property
    def label_sets(self) -> Mapping[str, LabelSet]:
        return self.qrels.label_sets


@dataclass(frozen=True)
class _Files:
    """The available files. find: returns a file by its name. names: returns all names."""

    find: Callable[[str], Source | None]
    names: Callable[[], Iterable[str]]

    @classmethod
    def in_folder(cls, folder: Path) -> "_Files":
        def find(name: str) -> Path | None:
            path = folder / name
            return path if path.is_file() else None

        return cls(find, lambda: sorted(path.name for path in folder.iterdir() if path.is_file()))

    @classmethod
    def sent(cls, files: Mapping[str, bytes]) -> "_Files":
        return cls(files.get, lambda: files)


def read_collection(path: Path | str, *, limits: Limits | None = None) -> Collection:
    """Read a collection file and the files that it names, relative to its folder.

    Raise Refused, with all errors of all files, if any is invalid, and OSError if `path` cannot be read.
    """
    path = Path(path)
    with open_plain(path, limits) as stream:
        text = _text(stream.read(), path.name)
    return _collection(yaml_documents.parse(text, path.name), _Files.in_folder(path.parent), limits)


def parse_collection(
    text: str | bytes,
    files: Mapping[str, bytes],
    *,
    name: str = "collection",
    declared: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> Collection:
    """Read a collection from its text and its files.

    files: content by file name, possibly compressed. declared: `aspects` and `label_sets` of the track, as
    data; the text may then omit them. Raise Refused, with all errors of all files, if any is invalid.
    """
    document = yaml_documents.parse(text if isinstance(text, str) else _text(text, name), name)
    document = document.over(declared or {})
    collection = _collection(document, _Files.sent(files), limits)
    _compare_with_track(document, collection, declared or {})
    _report_unused(document, files)
    return collection


def _compare_with_track(document: Document, collection: Collection, declared: Mapping[str, Any]) -> None:
    """Refuse declarations that differ from those of the track."""
    top, aspects = document.top.mapping(_EXAMPLE), collection.aspects
    if "aspects" in declared and aspects != aspects_from(declared["aspects"]):
        top["aspects"].wrong(OTHER_ASPECTS, "the aspects differ from those of the track")
    elif "label_sets" in declared and collection.label_sets != label_sets_from(
        declared["label_sets"], aspects
    ):
        top["label_sets"].wrong(OTHER_ASPECTS, "the label sets differ from those of the track")
    if document.findings.refused:
        raise Refused(document.findings)


def _report_unused(document: Document, files: Mapping[str, bytes]) -> None:
    parts = document.top.mapping(_EXAMPLE)
    named = [item.mapping(_QRELS)["file"] for item in parts["qrels"].items("a list")]
    used = {place.value for place in [*named, *(parts[key] for key in ("topics", "texts") if key in parts)]}
    for name in sorted(files.keys() - used):
        document.top.wrong(FILE_UNUSED, f"the collection does not name {name}")


def is_collection(path: Path) -> bool:
    """Return whether a file is a collection file.

    The answer depends on its suffix or its first lines. JSON without the keys of a collection file is a table
    of judgments. Raise OSError if the file cannot be read.
    """
    if path.suffix.lower() in (".yaml", ".yml"):
        return True
    try:
        with open_plain(path) as stream:
            begin = stream.read(HEAD).removeprefix(b"\xef\xbb\xbf")
    except Refused:
        return path.suffix.lower() == ".json"
    if format_of(begin) == "json":
        return bool(_JSON_KEY.search(begin))
    return any(line.split() in ([b"aspects:"], [b"qrels:"]) for line in begin.split(b"\n"))


def collection_for(
    qrels: Path | None, aspects: Mapping[str, Path] | None = None, *, limits: Limits | None = None
) -> Collection:
    """Read a command line's collection file, qrels file, or plain files by aspect.

    Infer the scales of plain files. Raise Refused if a file is invalid, and OSError if it cannot be read.
    """
    if qrels is not None and is_collection(qrels):
        return read_collection(qrels, limits=limits)
    named = aspects or ({} if qrels is None else {"relevance": qrels})
    files = [QrelsFile.plain(path.name, path, name) for name, path in named.items()]
    findings = Findings()
    built = build_qrels([unscaled(name) for name in named], files, findings=findings, limits=limits)
    return Collection(qrels=built, findings=findings)


def _text(data: bytes, name: str) -> str:
    findings = Findings()
    lines = text_lines(data, name, NOT_TEXT, findings)
    if findings.refused:
        raise Refused(findings)
    return b"\n".join(lines).decode()


def _collection(document: Document, files: _Files, limits: Limits | None) -> Collection:
    """Read all parts of the collection, so that all errors are reported at once."""
    by_subtopic = _is_by_subtopic(document.top.value)
    needed = ["qrels"] if by_subtopic else ["aspects", "qrels"]
    parts = document.top.keys(_EXAMPLE, needed=needed, also=["aspects", *_OPTIONAL])
    aspects: Sequence[Aspect] = (WITHOUT_LABELS,) if by_subtopic else ()
    if "aspects" in parts:
        aspects = read_aspects(parts["aspects"])
    label_sets = read_label_sets(parts["label_sets"], aspects) if "label_sets" in parts else {}
    sources = _qrels_files(parts["qrels"], aspects, files) if "qrels" in parts else []
    titles = _topics(parts["topics"], files, limits) if "topics" in parts else None
    texts = _texts(parts["texts"], files, limits) if "texts" in parts else None
    profile = _profile(parts["profile"]) if "profile" in parts else DEFAULT
    # If every qrels file is invalid, do not report measures of subtopics as another error.
    subtopics = not sources or any(file.columns == SUBTOPICS for file in sources)
    bare = Qrels.empty(tuple(aspects), label_sets, subtopics=subtopics)
    measures = _measures(parts["measures"], bare, "texts" in parts) if "measures" in parts else ()
    qrels = _judgments(document, aspects, sources, titles, limits)
    if qrels is not None:
        qrels = replace(qrels, label_sets=label_sets)
        _check_label_sets(document, qrels)
    if qrels is None or document.findings.refused:
        raise Refused(document.findings)
    titled = {topic: title for topic, title in (titles or {}).items() if title}
    return Collection(
        qrels=qrels,
        titles=titled,
        profile=profile,
        measures=measures,
        texts=texts,
        findings=document.findings,
    )


def _is_by_subtopic(tree: Any) -> bool:
    """Return whether all qrels files of a collection have judgments by subtopic."""
    files = tree.get("qrels") if isinstance(tree, Mapping) else None
    layouts = [file.get("layout") if isinstance(file, Mapping) else None for file in files or [None]]
    return set(layouts) == {"subtopics"}


def _qrels_files(place: Place, aspects: Sequence[Aspect], files: _Files) -> list[QrelsFile]:
    items = place.items(f"a list of files such as [{_QRELS}]")
    if place.value == []:
        place.wrong(COLUMNS, f"expected at least one file, such as [{_QRELS}]")
    parsed = [_qrels_file(item, aspects, files) for item in items]
    valid = [file for file in parsed if file is not None]
    if parsed and None not in parsed:
        _compare_aspects(place, items, valid, aspects)
    return valid


def _compare_aspects(
    place: Place, items: Sequence[Place], files: Sequence[QrelsFile], aspects: Sequence[Aspect]
) -> None:
    """Report aspects that no file judges, and scores that do not fit the other qrels."""
    named = [name for file in files for name in file.columns]
    by_subtopic = all(file.columns == SUBTOPICS for file in files)
    for aspect in aspects:
        if aspect.name not in named and not by_subtopic:
            place.wrong(NOT_JUDGED, f"no file judges {aspect.name}")
    for item, file in zip(items, files, strict=True):
        if file.steps is not None and named.count(file.columns[-1]) > 1:
            item.wrong(OTHERS, f"another file already judges {file.columns[-1]}")
    if files and all(file.steps is not None for file in files):
        place.wrong(OTHERS, f"no file judges the documents that have scores; add a file such as {_QRELS}")


def _qrels_file(place: Place, aspects: Sequence[Aspect], files: _Files) -> QrelsFile | None:
    parts = place.keys(_QRELS, needed=["file"], also=["aspect", "columns", "layout", "shares", "thresholds"])
    by_score = "layout" in parts and parts["layout"].value == "scores"
    steps = _steps(place, parts, aspects) if by_score else None
    columns = None if by_score else _columns(place, parts, [aspect.name for aspect in aspects])
    name, source = _file(parts["file"], files) if "file" in parts else (None, None)
    if name is None or source is None:
        return None
    if steps is not None:
        return QrelsFile(name, source, (DOCUMENT, str(parts["aspect"].value)), steps)
    return None if columns is None else QrelsFile(name, source, columns)


def _steps(place: Place, parts: Mapping[str, Place], aspects: Sequence[Aspect]) -> Steps | None:
    """Return how scores are divided into labels. Report errors in the declaration."""
    known = {aspect.name: aspect for aspect in aspects}
    if "columns" in parts:
        parts["columns"].wrong(COLUMNS, "a file of scores has the columns document and score only")
    if "aspect" not in parts:
        place.wrong(COLUMNS, "scores become labels of an aspect; declare aspect: NAME")
        return None
    name = parts["aspect"].word("the name of an aspect")
    if name is not None and name not in known:
        parts["aspect"].wrong(COLUMNS, f"unknown aspect {name!r}{nearest(name, known)}")
    return read_steps(place, parts, known[name]) if name in known else None


def _columns(place: Place, parts: Mapping[str, Place], names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns of a qrels file, from its aspect, columns or layout."""
    if misplaced := [key for key in ("shares", "thresholds") if key in parts]:
        parts[misplaced[0]].wrong(COLUMNS, f"{misplaced[0]} require layout: scores")
        return None
    ways = [key for key in ("aspect", "columns", "layout") if key in parts]
    if not ways and len(names) == 1:
        return (TOPIC, ANYTHING, DOCUMENT, names[0])
    if len(ways) != 1:
        place.wrong(COLUMNS, "expected one of aspect: NAME, columns: [...], layout: subtopics or scores")
        return None
    if ways == ["columns"]:
        return _listed_columns(parts["columns"], names)
    word = parts[ways[0]].word("a word")
    if word is not None:
        if ways == ["aspect"] and word in names:
            return (TOPIC, ANYTHING, DOCUMENT, word)
        if ways == ["layout"] and word == "subtopics":
            return SUBTOPICS
        known = names if ways == ["aspect"] else ["subtopics", "scores"]
        parts[ways[0]].wrong(COLUMNS, f"unknown {ways[0]} {word!r}{nearest(word, known)}")
    return None


def _listed_columns(place: Place, names: Sequence[str]) -> tuple[str, ...] | None:
    items = place.items("a list of columns such as [topic, _, document, a, b]")
    words = [item.word("topic, _, document, or the name of an aspect") for item in items]
    known = [TOPIC, DOCUMENT, ANYTHING, *names]
    for item, word in zip(items, words, strict=True):
        if word is not None and word not in known:
            item.wrong(COLUMNS, f"unknown aspect {word!r}{nearest(word, known)}")
        elif word != ANYTHING and word in words[: int(item.path[-1])]:
            item.wrong(COLUMNS, f"column {word} is listed twice")
    for required in (TOPIC, DOCUMENT):
        if required not in words and items:
            place.wrong(COLUMNS, f"the column {required} is missing")
    if items and not set(words) & set(names):
        place.wrong(COLUMNS, "no column names an aspect")
    columns = tuple(word for word in words if word in known)
    is_valid = len(columns) == len(words) and {TOPIC, DOCUMENT} <= set(columns) and set(columns) & set(names)
    return columns if is_valid else None


def _file(place: Place, files: _Files) -> tuple[str | None, Source | None]:
    name = place.word("the name of a file")
    source = files.find(name) if name is not None else None
    if name is not None and source is None:
        place.wrong(FILE_MISSING, f"file {name!r} not found{nearest(name, files.names())}")
    return name, source


def _texts(place: Place, files: _Files, limits: Limits | None) -> TextsFile | None:
    name, source = _file(place, files)
    return None if name is None or source is None else TextsFile(name, source, limits)


def _profile(place: Place) -> Profile:
    name = place.word("the name of a profile")
    if name is not None and name not in PROFILES:
        place.wrong(PROFILE, f"unknown profile {name!r}{nearest(name, PROFILES)}")
    return PROFILES.get(name or "", DEFAULT)


def _measures(place: Place, bare: Qrels, with_texts: bool) -> tuple[str, ...]:
    """Return the plan's distinct canonical texts, in order. bare: unjudged qrels."""
    # imported late, because a collection without a plan needs no measures
    from cupel_measures.catalogue.parser import parse_many
    from cupel_measures.grammar.syntax import MeasureError
    from cupel_measures.scoring.evaluator import check

    single = isinstance(place.value, str)
    items = [place] if single else place.items('a list of measures such as [nDCG@10, "AP(rel=2)"]')
    texts: list[str] = []
    for item in items:
        try:
            for measure in parse_many(item.word("a measure, such as nDCG@10") or ""):
                texts.append(str(measure))
                if bare.aspects:
                    check(bare, [measure], texts=with_texts)
        except MeasureError as problem:
            item.wrong(MEASURE, str(problem))
    return tuple(dict.fromkeys(texts))


def _topics(place: Place, files: _Files, limits: Limits | None) -> dict[str, str] | None:
    """Return the title by topic id, empty if a line has none."""
    name, source = _file(place, files)
    if name is None or source is None:
        return None
    findings = place.document.findings
    try:
        with open_plain(source, limits) as stream:
            return read_topics(stream.read(), name, findings)
    except Refused as refused:
        findings.extend(refused.findings)
        return None


def _judgments(
    document: Document,
    aspects: Sequence[Aspect],
    files: Sequence[QrelsFile],
    titles: Mapping[str, str] | None,
    limits: Limits | None,
) -> Qrels | None:
    """Return the qrels, or None if aspects or files are invalid."""
    if not aspects or not files:
        return None
    try:
        topics = None if titles is None else list(titles)
        return build_qrels(aspects, files, topics=topics, findings=document.findings, limits=limits)
    except Refused as refused:
        document.findings.extend(refused.findings)
        return None


def _check_label_sets(document: Document, qrels: Qrels) -> None:
    """Report documents whose tuple of labels (lowest if missing) a declared set lacks."""
    for name, label_set in qrels.label_sets.items():
        labels = qrels.labels[[qrels.aspect_index(aspect) for aspect in label_set.aspects]]
        judged = np.flatnonzero((labels >= NEGATIVE).any(axis=0))
        tuples = list(map(tuple, np.maximum(labels[:, judged], 0).T.tolist()))
        outside = [i for i, labels_ in enumerate(tuples) if labels_ not in label_set.tuples]
        if outside:
            first = judged[outside[0]]
            topic, sample = qrels.topics[qrels.topic_of[first]], qrels.documents[first]
            scales = [qrels.aspects[qrels.aspect_index(aspect)] for aspect in label_set.aspects]
            shown = ", ".join(str(s.labels[i]) for s, i in zip(scales, tuples[outside[0]], strict=True))
            message = (
                f"label set {name} lacks tuples of {len(outside)} judged documents: {sample} has ({shown})"
            )
            finding = Finding(
                code=OUTSIDE_LABEL_SET, message=message, file=document.name, topic=topic, sample=sample
            )
            document.findings.add(finding, len(outside))

"""The task of scoring runs: measures, texts and rules for a collection."""

from pathlib import Path

from cupel_measures.catalogue.parser import Measure, parse_many
from cupel_measures.evaluation.run_scoring import ScoringTask
from cupel_measures.findings import Refused
from cupel_measures.model import Texts
from cupel_measures.reading.collection_files import Collection
from cupel_measures.reading.text_files import check_texts
from cupel_measures.reading.unreadable_files import unreadable
from cupel_measures.scoring.evaluator import check


def plan_scoring(
    collection: Collection,
    measures: tuple[Measure, ...] = (),
    *,
    depth: int | None = None,
    details: bool = False,
) -> ScoringTask:
    """Return the task of scoring runs by `measures`.

    The default measures are those of the collection, or a default set. Raise MeasureError if the collection
    does not support a measure, and Refused if document texts that a measure needs are invalid.
    """
    chosen = measures or parse_many(" ".join(collection.measures) or _default_measures(collection))
    check(collection.qrels, chosen, texts=collection.texts is not None)
    texts = texts_of(collection) if any(measure.declaration.texts for measure in chosen) else None
    return ScoringTask(
        qrels=collection.qrels,
        measures=tuple(map(str, chosen)),
        profile=collection.profile.name,
        depth=depth,
        details=details,
        texts=texts,
    )


def texts_of(collection: Collection) -> Texts:
    """Read the document texts of the collection, and add warnings to its findings.

    Raise Refused if they are invalid or cannot be read.
    """
    assert collection.texts is not None
    try:
        texts = collection.texts.read()
    except OSError as problem:
        raise Refused(unreadable(problem, Path(collection.texts.name))) from problem
    collection.findings.extend(check_texts(texts, collection.qrels))
    return texts


def _default_measures(collection: Collection) -> str:
    if collection.qrels.only_by_subtopic:
        return "alpha_nDCG@20 ERR_IA@20 StRecall@20"
    others = [aspect.name for aspect in collection.aspects[1:]]
    if not others:
        return "nDCG@10 AP P@10 RR Judged@10"
    by_aspect = " ".join(f"nDCG(aspect={name!r})@10" for name in others)
    return f"nDCG@10 {by_aspect} CAM(of=nDCG@10) TOMA(of=nDCG@10)"

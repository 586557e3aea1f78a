"""Measures with their parameters, identified by their canonical text.

In the canonical text, aliases are resolved, parameters are in declared order, and defaults are omitted.
Equality, hash and the database use this text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cupel_measures.grammar import trec_names
from cupel_measures.grammar.parameters import Inner, ParameterError, ParameterKind, nearest
from cupel_measures.grammar.registry import DECLARATIONS, NAMES, REQUIRED, Declaration
from cupel_measures.grammar.syntax import ArgumentPairs, Call, MeasureError, read, short, shown
from cupel_measures.model import Aspect


@dataclass(frozen=True)
class Measure:
    """A declared measure with parameters.

    parameters: checked values that differ from the defaults, in declared order.
    """

    declaration: Declaration
    parameters: tuple[tuple[str, Any], ...]

    @cached_property
    def text(self) -> str:
        """Return the canonical text, such as `nDCG@10`."""
        inside = ",".join(f"{k}={shown(v)}" for k, v in self.parameters if k != self.declaration.at)
        after = dict(self.parameters).get(self.declaration.at or "")
        ending = "" if after is None else f"@{shown(after)}"
        return self.declaration.name + (f"({inside})" if inside else "") + ending

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text, because functions of a declaration cannot be pickled."""
        return _of_text, (self.text,)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return all parameters with their values, including defaults."""
        defaults = {name: parameter.default for name, parameter in self.declaration.parameters.items()}
        return {**defaults, **dict(self.parameters)}

    @cached_property
    def within(self) -> tuple["Measure", ...]:
        """Return the inner measures: the measure in `of=`, or one per aspect.

        The result is empty without `of=`.
        """
        inner = self.arguments.get("of")
        if isinstance(inner, ArgumentPairs):
            return tuple(measure for _, measure in inner)
        return (inner,) if inner else ()

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the minimum and maximum value.

        The range includes the ranges of the inner measures.
        """
        low, high = zip(self.declaration.bounds, *(inner.bounds for inner in self.within), strict=True)
        return min(low), max(high)

    @property
    def by_scale(self) -> bool:
        """Return whether values can depend on labels of the scale that no document has."""
        by_scale = self.declaration.by_scale
        declared = by_scale(self.arguments) if callable(by_scale) else by_scale
        return declared or any(inner.by_scale for inner in self.within)

    @property
    def needs_labels(self) -> bool:
        """Return whether the measure uses labels of an aspect.

        Judgments by subtopic do not give such labels.
        """
        if self.declaration.label_free:
            return any(self.arguments.get(name) is not None for name in ("rel", "aspect"))
        return not self.declaration.subtopics

    def having(self, **changes: Any) -> "Measure":
        """Return the measure with some parameters changed.

        Raise MeasureError as `parse` does.
        """
        return _checked(self.declaration, {**dict(self.parameters), **changes})

    def bound(self, aspects: Sequence[Aspect]) -> "Measure":
        """Return the measure in the form in which its scores for a collection are stored.

        aspects: the aspects of the collection. The result of a combining measure lists the aspects that it
        combines. Other measures do not change. Raise MeasureError if the measure names an aspect that the
        collection lacks.
        """
        arguments = self.arguments
        if self.declaration.subtopics:
            return self
        if not self.declaration.combines:
            self._require_aspects([arguments["aspect"] or aspects[0].name], aspects)
            return self
        if "understandability" in arguments:
            return self._bound_by_topicality(aspects)
        order = [aspect.name for aspect in aspects]
        named = [name for name, _ in arguments.get("weights") or ()]
        embedded = [name for name, _ in arguments.get("embedding") or ()]
        inner = arguments.get("of")
        measured = [name for name, _ in inner] if isinstance(inner, ArgumentPairs) else []
        listed = list(arguments["aspects"] or named or measured or order)
        self._require_aspects([*listed, *named, *embedded, *measured], aspects)
        if measured and sorted(measured) != sorted(listed):
            raise MeasureError(
                f"{self}: `of` lists {shown(measured)}, but the aspects are {shown(listed)}; "
                "name a measure for each aspect"
            )
        if named and sorted(named) != sorted(listed):
            raise MeasureError(
                f"{self}: `weights` lists {shown(named)}, but the aspects are {shown(listed)}; "
                "name a weight for each aspect"
            )
        if unused := [name for name in embedded if name not in listed]:
            raise MeasureError(f"{self}: `embedding` lists {unused[0]!r}, which is not one of the aspects")
        return self.having(aspects=sorted(listed, key=order.index))

    def _bound_by_topicality(self, aspects: Sequence[Aspect]) -> "Measure":
        """Bind a measure of topicality and understandability.

        The default aspects of understandability are all aspects except that of topicality.
        """
        order = [aspect.name for aspect in aspects]
        arguments = self.arguments
        topical = arguments.get("aspect") or order[0]
        named = arguments["understandability"] or [name for name in order if name != topical]
        self._require_aspects([topical, *named], aspects)
        if not named:
            raise MeasureError(f"{self}: the collection has no aspect of understandability, only {topical!r}")
        listed = {"understandability": sorted(named, key=order.index)}
        if "aspect" not in arguments:
            return self.having(**listed)
        if topical in named:
            raise MeasureError(
                f"{self}: {topical!r} is the topical aspect; name another one for understandability"
            )
        return self.having(**listed, aspect=topical)

    def _require_aspects(self, names: Iterable[str], aspects: Sequence[Aspect]) -> None:
        known = [aspect.name for aspect in aspects]
        for name in names:
            if name not in known:
                hint = nearest(name, known) or f"; it has {short(', '.join(known))}"
                raise MeasureError(f"{short(str(self))}: the collection has no aspect {short(name)!r}{hint}")


def _of_text(text: str) -> Measure:
    return measure_of(read(text))


def measure_of(call: Call) -> Measure:
    """Return the measure of a call.

    Raise MeasureError if it is unknown or a parameter is invalid.
    """
    if call.name not in NAMES:
        if (translated := trec_names.translate(str(call))) is not None and len(translated) == 1:
            return measure_of(read(translated[0]))
        if (reason := trec_names.refusal(str(call))) is not None:
            raise MeasureError(reason)
        if (known := _trec_name_at(call) or _in_other_case(call.name)) is None:
            raise MeasureError(_unknown(call.name))
        call = Call(known, call.arguments, call.at)
    declaration, preset = NAMES[call.name]
    given = dict(call.arguments)
    if call.at is not None:
        if declaration.at is None:
            raise MeasureError(_no_cutoff(declaration, call))
        if declaration.at in given:
            raise MeasureError(f"{call.name}: {declaration.at} is given twice, in parentheses and after @")
        given[declaration.at] = call.at
    return _checked(declaration, {**preset, **given})


def _trec_name_at(call: Call) -> str | None:
    """Return the measure that a name of trec_eval with @ means.

    Such names are `recip_rank@10` and `ndcg_cut@10`. Return None if the name does not stand for one
    measure with default parameters.
    """
    name = trec_names.NAMES.get(call.name, ("", ()))[0].removesuffix("@{}")
    return name if call.at is not None and name in NAMES and name != "RBP_trec" else None


def _in_other_case(name: str) -> str | None:
    """Return the name of a measure that differs from `name` only in case.

    Return None if there is none, or if trec_eval gives the name to another measure, as `rbp`.
    """
    same = [known for known in NAMES if known.lower() == name.lower()] if name.isascii() else []
    theirs = [text for trec, (text, _) in trec_names.NAMES.items() if trec.lower() == name.lower()]
    measures = {NAMES[known][0].name for known in same}
    if not same or any(NAMES[read(text.format(1)).name][0].name not in measures for text in theirs):
        return None
    return same[0]


def _unknown(name: str) -> str:
    known = [*trec_names.examples(), *NAMES, *DECLARATIONS]
    hint = nearest(name, known) or "; `cupel measures` lists all measures"
    spelling = (
        "" if name.isascii() else f" ({short(ascii(name))})"
    )  # shows letters of other scripts, which can look like ASCII, as escape sequences
    return f"unknown measure {short(name)!r}{spelling}{hint}"


def _no_cutoff(declaration: Declaration, call: Call) -> str:
    inner = dict(call.arguments).get("of")
    if not declaration.combines or inner is None or isinstance(inner, Mapping):
        return f"{call.name} takes no value after @"
    moved = inner if isinstance(inner, Call) else Call(str(inner))
    if moved.name in NAMES and NAMES[moved.name][0].at is None:
        return f"{call.name} takes no value after @, and neither does {moved.name}"
    moved = Call(moved.name, moved.arguments, call.at)
    right = Call(call.name, tuple((k, moved if k == "of" else v) for k, v in call.arguments))
    return f"{call.name}: give the cutoff to the inner measure: {right}"


def _checked(declaration: Declaration, given: dict[str, Any]) -> Measure:
    """Return the measure with the parameters `given`, checked and in declared order.

    Parameters equal to their default are omitted.
    """
    for name in given:
        if name not in declaration.parameters:
            known = list(declaration.parameters)
            hint = nearest(name, known) or f"; it takes {', '.join(known)}"
            raise MeasureError(f"{declaration.name} has no parameter {short(name)!r}{hint}")
    parameters: list[tuple[str, Any]] = []
    for parameter in declaration.parameters.values():
        if parameter.name not in given and parameter.default is REQUIRED:
            raise MeasureError(_missing(declaration, parameter.name))
        value = given.get(parameter.name, parameter.default)
        try:
            kind = parameter.kind
            value = _read_within(value, kind) if isinstance(kind, Inner) else parameter.read(value)
        except ParameterError as problem:
            raise MeasureError(f"{declaration.name}: {problem}") from None
        if value != parameter.default or isinstance(value, bool) != isinstance(parameter.default, bool):
            parameters.append((parameter.name, value))
    measure = Measure(declaration, tuple(parameters))
    negative = [inner for inner in measure.within if inner.bounds[0] < 0]
    if declaration.combination == "harmonic mean" and negative:
        reason = f"the harmonic mean needs values of at least 0, but {negative[0]} may be negative"
        raise MeasureError(f"{declaration.name}: {reason}")
    return measure


def _missing(declaration: Declaration, name: str) -> str:
    example = f"{declaration.name}@10" if name == declaration.at else f"{declaration.name}({name}=...)"
    example = f"{declaration.name}(of=nDCG@10)" if name == "of" else example
    example = f"{declaration.name}@0.1" if name == "recall" else example
    return f"{declaration.name} requires {name}, for example {example}"


def _read_within(value: Any, kind: Inner) -> Any:
    try:
        return _measure_within(value, kind)
    except ParameterError as problem:
        raise ParameterError(f"of: {problem}") from None


def _measure_within(value: Any, kind: Inner) -> Any:
    """Read the value of `of=`.

    It is a single-aspect measure without `aspect`, or one such measure per aspect.
    """
    if kind.by_aspect and isinstance(value, Mapping | ArgumentPairs):
        pairs = value if isinstance(value, ArgumentPairs) else value.items()
        if not value or not all(isinstance(name, str) for name, _ in pairs):
            raise kind.refuse(value)
        return ArgumentPairs(sorted((name, _inner_measure(inner, kind)) for name, inner in pairs))
    return _inner_measure(value, kind)


def _inner_measure(value: Any, kind: ParameterKind) -> Measure:
    if not isinstance(value, str | Call | Measure):
        raise kind.refuse(value)
    try:
        call = read(value) if isinstance(value, str) else value
        inner = measure_of(call) if isinstance(call, Call) else call
    except MeasureError as problem:
        raise ParameterError(str(problem)) from None
    declaration = inner.declaration
    if declaration.combines or declaration.subtopics or declaration.aggregate != "mean":
        raise kind.refuse(inner)
    if inner.arguments["aspect"] is not None:
        raise ParameterError(
            f"{inner}: omit the aspect, because the combining measure applies this measure to each aspect"
        )
    return inner

"""A declared measure with parameters: what the text of a measure means, and its identity.

The text is canonical: aliases resolved, parameters in declared order, defaults dropped. Equality, hash
and the database go by it (compatibility.md 1.2).
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
    """A declared measure with parameters. `text` is canonical; `parameters` holds those that differ
    from their defaults, checked, in declared order."""

    declaration: Declaration
    parameters: tuple[tuple[str, Any], ...]

    @cached_property
    def text(self) -> str:
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
        """As its text: a declaration has functions that go to no other process."""
        return _of_text, (self.text,)

    @property
    def arguments(self) -> dict[str, Any]:
        """Every parameter with its value, defaults included."""
        defaults = {one.name: one.default for one in self.declaration.parameters.values()}
        return {**defaults, **dict(self.parameters)}

    @cached_property
    def within(self) -> tuple["Measure", ...]:
        """The measures that it combines: that in `of=`, or those by aspect; none for other measures."""
        inner = self.arguments.get("of")
        return (
            tuple(one for _, one in inner) if isinstance(inner, ArgumentPairs) else (inner,) if inner else ()
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value: those declared, which a combining measure widens to those within."""
        low, high = zip(self.declaration.bounds, *(one.bounds for one in self.within), strict=True)
        return min(low), max(high)

    @property
    def by_scale(self) -> bool:
        """Whether labels that no document was given may change its values."""
        declared = self.declaration.by_scale
        own = declared(self.arguments) if callable(declared) else declared
        return own or any(one.by_scale for one in self.within)

    def having(self, **changes: Any) -> "Measure":
        """The same measure with some parameters changed; MeasureError as in `parse`."""
        return _settle(self.declaration, {**dict(self.parameters), **changes})

    def bound(self, aspects: Sequence[Aspect]) -> "Measure":
        """The measure as stored for a collection with `aspects`: combining measures list their aspects.

        Raises MeasureError where it names an aspect that the collection lacks.
        """
        arguments = self.arguments
        if self.declaration.subtopics:
            return self
        if not self.declaration.combines:
            self._known([arguments["aspect"] or aspects[0].name], aspects)
            return self
        if "understandability" in arguments:
            return self._apart(aspects)
        order = [aspect.name for aspect in aspects]
        named = [name for name, _ in arguments.get("weights") or ()]
        embedded = [name for name, _ in arguments.get("embedding") or ()]
        inner = arguments.get("of")
        measured = [name for name, _ in inner] if isinstance(inner, ArgumentPairs) else []
        listed = list(arguments["aspects"] or named or measured or order)
        self._known([*listed, *named, *embedded, *measured], aspects)
        if measured and sorted(measured) != sorted(listed):
            raise MeasureError(
                f"{self}: of is for {shown(measured)}, aspects are {shown(listed)}; give each one a measure"
            )
        if named and sorted(named) != sorted(listed):
            raise MeasureError(
                f"{self}: weights are for {shown(named)}, aspects are {shown(listed)}; give each one weight"
            )
        if unused := [name for name in embedded if name not in listed]:
            raise MeasureError(f"{self}: {unused[0]!r} has an embedding, but is not among its aspects")
        return self.having(aspects=sorted(listed, key=order.index))

    def _apart(self, aspects: Sequence[Aspect]) -> "Measure":
        """`bound` where understandability is apart from topicality: every aspect but the topical one."""
        order = [aspect.name for aspect in aspects]
        arguments = self.arguments
        topical = arguments.get("aspect") or order[0]
        named = arguments["understandability"] or [name for name in order if name != topical]
        self._known([topical, *named], aspects)
        if not named:
            raise MeasureError(f"{self}: there is no aspect of understandability here beside {topical!r}")
        listed = {"understandability": sorted(named, key=order.index)}
        if "aspect" not in arguments:
            return self.having(**listed)
        if topical in named:
            raise MeasureError(f"{self}: {topical!r} is topicality; understandability is another aspect")
        return self.having(**listed, aspect=topical)

    def _known(self, names: Iterable[str], aspects: Sequence[Aspect]) -> None:
        known = [aspect.name for aspect in aspects]
        for name in names:
            if name not in known:
                hint = nearest(name, known) or f"; there are {short(', '.join(known))}"
                raise MeasureError(f"{short(str(self))}: there is no aspect {short(name)!r} here{hint}")


def _of_text(text: str) -> Measure:
    return measure_of(read(text))


def measure_of(call: Call) -> Measure:
    """The measure that a call says; MeasureError where it is undeclared or has a wrong parameter."""
    if call.name not in NAMES:
        if (meant := trec_names.meant_by(str(call))) is not None and len(meant) == 1:
            return measure_of(read(meant[0]))
        if (why := trec_names.refused(str(call))) is not None:
            raise MeasureError(why)
        raise MeasureError(_unknown(call.name))
    declaration, preset = NAMES[call.name]
    given = dict(call.arguments)
    if call.at is not None:
        if declaration.at is None:
            raise MeasureError(_no_cutoff(declaration, call))
        if declaration.at in given:
            raise MeasureError(f"{call.name}: {declaration.at} is given twice, in brackets and after @")
        given[declaration.at] = call.at
    return _settle(declaration, {**preset, **given})


def _unknown(name: str) -> str:
    known = [*trec_names.examples(), *NAMES, *DECLARATIONS]
    hint = nearest(name, known) or "; `cupel measures` lists those there are"
    spelt = "" if name.isascii() else f", spelt {short(ascii(name))}"  # some letters look like others
    return f"there is no measure {short(name)!r}{spelt}{hint}"


def _no_cutoff(declaration: Declaration, call: Call) -> str:
    inner = dict(call.arguments).get("of")
    if not declaration.combines or inner is None or isinstance(inner, Mapping):
        return f"{call.name} takes nothing after @"
    moved = inner if isinstance(inner, Call) else Call(str(inner))
    if moved.name in NAMES and NAMES[moved.name][0].at is None:
        return f"{call.name} takes nothing after @, and neither does {moved.name}"
    moved = Call(moved.name, moved.arguments, call.at)
    right = Call(call.name, tuple((k, moved if k == "of" else v) for k, v in call.arguments))
    return f"{call.name}: the cutoff stands inside, as {right}"


def _settle(declaration: Declaration, given: dict[str, Any]) -> Measure:
    """Check `given` against the declaration, in declared order, dropping defaults."""
    for name in given:
        if name not in declaration.parameters:
            known = list(declaration.parameters)
            hint = nearest(name, known) or f"; it takes {', '.join(known)}"
            raise MeasureError(f"{declaration.name} has no parameter {short(name)!r}{hint}")
    settled: list[tuple[str, Any]] = []
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
            settled.append((parameter.name, value))
    measure = Measure(declaration, tuple(settled))
    below = [one for one in measure.within if one.bounds[0] < 0]
    if declaration.combination == "harmonic mean" and below:
        why = f"a harmonic mean needs values from 0 on, and those of {below[0]} may be less"
        raise MeasureError(f"{declaration.name}: {why}")
    return measure


def _missing(declaration: Declaration, name: str) -> str:
    right = f"{declaration.name}@10" if name == declaration.at else f"{declaration.name}({name}=...)"
    right = f"{declaration.name}(of=nDCG@10)" if name == "of" else right
    right = f"{declaration.name}@0.1" if name == "recall" else right
    return f"{declaration.name} needs {name}, as in {right}"


def _read_within(value: Any, kind: Inner) -> Any:
    try:
        return _measure_within(value, kind)
    except ParameterError as problem:
        raise ParameterError(f"of: {problem}") from None


def _measure_within(value: Any, kind: Inner) -> Any:
    """The measure in an `of=`: of one aspect, a mean, with its aspect left open; or one per aspect."""
    if kind.by_aspect and isinstance(value, Mapping | ArgumentPairs):
        pairs = value if isinstance(value, ArgumentPairs) else value.items()
        if not value or not all(isinstance(name, str) for name, _ in pairs):
            raise kind.refuse(value)
        return ArgumentPairs(sorted((name, _one_within(one, kind)) for name, one in pairs))
    return _one_within(value, kind)


def _one_within(value: Any, kind: ParameterKind) -> Measure:
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
        raise ParameterError(f"{inner}: leave its aspect out; a combining measure goes over several")
    return inner

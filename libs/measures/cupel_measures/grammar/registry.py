"""The one registry of measures: a decorator declares each; parser, API, pages and law tests read it.

A measure is a short pure function of rows whose keyword-only parameters are its grammar and whose
docstring is its documentation. The decorator takes what can't be inferred from them.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from cupel_measures.grammar.parameters import AspectName, OneFlag, ParameterError, ParameterKind
from cupel_measures.model import Exact, Floats

Aggregate = Literal["mean", "sum", "geometric mean"]
ScaleType = Literal["interval", "ordinal", "neither", "count"]
Combination = Literal["mean", "harmonic mean", "classes"]
ScaleRule = Callable[[Any, Mapping[str, Any]], ScaleType]
"""The scale type by parameters; of a combining measure by all aspects, of another by its aspect."""
ByScale = bool | Callable[[Mapping[str, Any]], bool]
"""Whether the length of the scale counts, or what tells it by parameters."""
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure; `default` is REQUIRED where it must be given."""

    name: str
    kind: ParameterKind
    default: Any

    def read(self, value: Any) -> Any:
        """The checked value; None only where it is the default. ParameterError says what was expected."""
        if value is None and self.default is None:
            return None
        try:
            return self.kind.read(value)
        except ParameterError as problem:
            raise ParameterError(f"{self.name}: {problem}") from None


@dataclass(frozen=True, eq=False)
class Declaration:
    """A declared measure.

    compute: the function. parameters: in canonical order. at: the parameter that `@` sets, if any.
    bounds: least and greatest value. combines: whether it combines aspects.
    subtopics: whether it sees judgments by subtopic rather than an aspect.
    texts: whether it sees the texts of documents too.
    exempt: laws of the registry that it is exempt from (LAWS), each with the reason.
    scale: the type of scale (spec 4.2), or "depends" where `scale_rule` tells it by parameters and aspects.
    exact: gives the same values as exact numbers (a whole number or a rational per row); None where there is
    no such function. digits: about how many decimal digits those may have below the fraction line on
    rankings of so many documents, by parameters; None where they stay few. by_scale: whether labels that no
    document was given may change its values, or what says so by parameters (see `Measure.by_scale`).
    rises: whether a better label of a retrieved document never lowers the value, although it joins recall
    base and ideal ranking; of a combining measure, if its inner measures rise too.
    combination: how a combining measure with an inner one combines: a mean of scores by aspect, a harmonic
    mean of them, or the inner measure's score on classes of labels. worth: of a combining measure that sees
    documents by one number each, that number: a function of the view to float64[D].
    """

    name: str
    compute: Callable[..., Floats]
    parameters: Mapping[str, Parameter]
    aliases: Mapping[str, Mapping[str, Any]]
    at: str | None
    bounds: tuple[float, float]
    aggregate: Aggregate
    scale: ScaleType | Literal["depends"]
    source: str
    combines: bool
    subtopics: bool
    texts: bool
    exempt: Mapping[str, str]
    exact: Callable[..., Sequence[Exact]] | None
    digits: Callable[[int, Mapping[str, Any]], float] | None
    scale_rule: ScaleRule | None
    by_scale: ByScale
    rises: bool
    combination: Combination | None
    worth: Callable[..., Floats] | None

    @property
    def documentation(self) -> str:
        return inspect.getdoc(self.compute) or ""

    @property
    def summary(self) -> str:
        return self.documentation.split("\n\n")[0].replace("\n", " ")

    @property
    def graded(self) -> bool:
        """Whether it credits gains rather than a binary relevance threshold."""
        return "rel" not in self.parameters


LAWS = (
    "a topic without relevant documents scores 0",
    "an empty run scores 0",
    "a better swap never lowers the score",
)
"""What holds for every measure on every run, but for the exemptions in its declaration."""

DECLARATIONS: dict[str, Declaration] = {}
NAMES: dict[str, tuple[Declaration, Mapping[str, Any]]] = {}
"""Every name and alias, with the parameters that the alias sets."""


NOTHING_RELEVANT, EMPTY, SWAP = LAWS


def measure(
    *,
    source: str,
    bounds: tuple[float, float] = (0.0, 1.0),
    aliases: Mapping[str, Mapping[str, Any]] | tuple[str, ...] = (),
    at: str | None = None,
    aggregate: Aggregate = "mean",
    scale: ScaleType | ScaleRule = "neither",
    judged_only: bool = True,
    combines: bool = False,
    subtopics: bool = False,
    texts: bool = False,
    exempt: Mapping[str, str] | None = None,
    exact: Callable[..., Sequence[Exact]] | None = None,
    digits: Callable[[int, Mapping[str, Any]], float] | None = None,
    by_scale: ByScale = False,
    rises: bool = False,
    combination: Combination | None = None,
    worth: Callable[..., Floats] | None = None,
) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Declare the decorated function as a measure under its own name.

    Every single-aspect measure also takes `aspect`; it and every measure of subtopics take `judged_only`
    unless it makes no sense.
    """

    def declared(compute: Callable[..., Floats]) -> Callable[..., Floats]:
        parameters = _parameters(compute)
        if not combines:
            parameters |= _common(judged_only=judged_only, aspect=not subtopics)
        declaration = Declaration(
            compute.__name__,
            compute,
            parameters,
            aliases if isinstance(aliases, Mapping) else {alias: {} for alias in aliases},
            at or ("cutoff" if "cutoff" in parameters else None),
            bounds,
            aggregate,
            "depends" if callable(scale) else scale,
            source,
            combines,
            subtopics,
            texts,
            exempt or {},
            exact,
            digits,
            scale if callable(scale) else None,
            by_scale,
            rises,
            combination,
            worth,
        )
        DECLARATIONS[declaration.name] = declaration
        NAMES[declaration.name] = (declaration, {})
        NAMES.update((alias, (declaration, sets)) for alias, sets in declaration.aliases.items())
        return compute

    return declared


def _common(**wanted: bool) -> dict[str, Parameter]:
    kinds = {"judged_only": (OneFlag, False), "aspect": (AspectName, None)}
    return {
        name: Parameter(name, kind_of(annotation), default)
        for name, (annotation, default) in kinds.items()
        if wanted[name]
    }


def _parameters(compute: Callable[..., Floats]) -> dict[str, Parameter]:
    hints = get_type_hints(compute, include_extras=True)
    signature = inspect.signature(compute).parameters.values()
    return {
        one.name: Parameter(one.name, kind_of(hints[one.name]), one.default)
        for one in signature
        if one.kind is one.KEYWORD_ONLY
    }


def kind_of(hint: Any) -> ParameterKind:
    """The kind that an annotation carries, also inside `... | None`."""
    for one in (hint, *getattr(hint, "__args__", ())):
        for note in getattr(one, "__metadata__", ()):
            if isinstance(note, ParameterKind):
                return note
    raise TypeError(f"{hint} carries no kind of parameter")

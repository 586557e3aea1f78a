"""Registry of measures.

The parser, the API, the reference pages and the tests of laws use its declarations.

A measure is a short pure function of rows, declared by a decorator. Its keyword-only parameters are the
parameters in the text of the measure. Its docstring is its documentation. The arguments of the decorator are
the properties that cannot be inferred from the function.
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
"""Function that returns the scale type from the aspect and the parameters.

For a combining measure, the first argument is the list of all aspects.
"""
ByScale = bool | Callable[[Mapping[str, Any]], bool]
"""A flag, or a function of the parameters that returns it: values can depend on labels of no document."""
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure.

    `default` has the value REQUIRED if the parameter has no default.
    """

    name: str
    kind: ParameterKind
    default: Any

    def read(self, value: Any) -> Any:
        """Return the checked value.

        Accept None only if it is the default. Raise ParameterError if it is invalid.
        """
        if value is None and self.default is None:
            return None
        try:
            return self.kind.read(value)
        except ParameterError as problem:
            raise ParameterError(f"{self.name}: {problem}") from None


@dataclass(frozen=True, eq=False, kw_only=True)
class Declaration:
    """A declared measure.

    - compute: the function that scores.
    - parameters: its parameters in canonical order.
    - aliases: other names, each with the parameters that it sets.
    - at: the parameter that `@` sets, if any.
    - bounds: minimum and maximum value.
    - aggregate: how values are aggregated over topics.
    - scale: scale type (Ferrante, Ferro and Losiouk, 2019), or "depends" if `scale_rule` determines it.
    - source: paper or tool.
    - combines: whether the measure combines aspects.
    - subtopics: whether it uses judgments by subtopic instead of an aspect.
    - texts: whether it also uses the texts of documents.
    - label_free: whether it uses no labels unless `rel` or `aspect` is set, so that it applies to collections
      with judgments by subtopic only.
    - exempt: laws (LAWS) that do not hold for it, each with the reason.
    - exact: function that computes the same values as exact numbers, an integer or a rational per row. None
      if there is no such function.
    - digits: function of the number of ranked documents and the parameters. It returns the approximate number
      of decimal digits of the exact denominators. None if this number is small.
    - by_scale: whether the values can depend on labels that no document has, or a function of the parameters
      that says so (see `Measure.by_scale`).
    - rises: whether a better label of a retrieved document never lowers the value, although the recall base
      and the ideal ranking change with it. For a combining measure: whether this holds if it holds for its
      inner measures.
    - combination: how a combining measure uses its inner measure: the mean or harmonic mean of the scores by
      aspect, or the score of the inner measure on classes of label tuples.
    - worth: for a combining measure that first reduces the labels of a document to one number, the function
      from a view to these numbers, float64[D].
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
    label_free: bool
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
        """Return whether the measure uses gains instead of a binary relevance threshold."""
        return "rel" not in self.parameters


LAWS = (
    "a topic without relevant documents scores 0",
    "an empty run scores 0",
    "moving a better document one rank up never lowers the score",
)
"""Laws that hold for every measure on every run, except for measures whose declaration exempts them."""

DECLARATIONS: dict[str, Declaration] = {}
NAMES: dict[str, tuple[Declaration, Mapping[str, Any]]] = {}
"""Name or alias -> declaration, and the parameters that the alias sets."""


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
    label_free: bool = False,
    exempt: Mapping[str, str] | None = None,
    exact: Callable[..., Sequence[Exact]] | None = None,
    digits: Callable[[int, Mapping[str, Any]], float] | None = None,
    by_scale: ByScale = False,
    rises: bool = False,
    combination: Combination | None = None,
    worth: Callable[..., Floats] | None = None,
) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Declare the decorated function as a measure with the function's name.

    A single-aspect measure gets the additional parameter `aspect`. A single-aspect measure and a measure of
    subtopics get `judged_only`, unless the argument `judged_only` is False. `Declaration` documents the other
    arguments.
    """

    def declare(compute: Callable[..., Floats]) -> Callable[..., Floats]:
        parameters = _parameters(compute)
        if not combines:
            parameters |= _common(judged_only=judged_only, aspect=not subtopics)
        declaration = Declaration(
            name=compute.__name__,
            compute=compute,
            parameters=parameters,
            aliases=aliases if isinstance(aliases, Mapping) else {alias: {} for alias in aliases},
            at=at or ("cutoff" if "cutoff" in parameters else None),
            bounds=bounds,
            aggregate=aggregate,
            scale="depends" if callable(scale) else scale,
            source=source,
            combines=combines,
            subtopics=subtopics,
            texts=texts,
            label_free=label_free,
            exempt=exempt or {},
            exact=exact,
            digits=digits,
            scale_rule=scale if callable(scale) else None,
            by_scale=by_scale,
            rises=rises,
            combination=combination,
            worth=worth,
        )
        DECLARATIONS[declaration.name] = declaration
        NAMES[declaration.name] = (declaration, {})
        NAMES.update((alias, (declaration, sets)) for alias, sets in declaration.aliases.items())
        return compute

    return declare


def _common(**included: bool) -> dict[str, Parameter]:
    kinds = {"judged_only": (OneFlag, False), "aspect": (AspectName, None)}
    return {
        name: Parameter(name, kind_of(annotation), default)
        for name, (annotation, default) in kinds.items()
        if included[name]
    }


def _parameters(compute: Callable[..., Floats]) -> dict[str, Parameter]:
    hints = get_type_hints(compute, include_extras=True)
    signature = inspect.signature(compute).parameters
    return {
        name: Parameter(name, kind_of(hints[name]), parameter.default)
        for name, parameter in signature.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def kind_of(hint: Any) -> ParameterKind:
    """Return the parameter kind of an annotation such as `Cutoff` or `Cutoff | None`.

    Raise TypeError if the annotation has no parameter kind.
    """
    for member in (hint, *getattr(hint, "__args__", ())):
        for note in getattr(member, "__metadata__", ()):
            if isinstance(note, ParameterKind):
                return note
    raise TypeError(f"{hint} is not annotated with a ParameterKind")

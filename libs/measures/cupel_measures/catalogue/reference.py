"""The reference pages of measures, in words, made of the registry: what there is to say of each, and in which
family it stands.

The documentation of a measure is paragraphs. The first one says what it is; an indented one is formulas;
one that begins with `Caveat:` says where its values mislead; one that begins with `Example:` is a worked
example (see `examples`). A family is a module; its docstring is the heading and the introduction.
"""

import inspect
import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from cupel_measures.catalogue import worked_examples
from cupel_measures.catalogue.parser import all_declarations
from cupel_measures.catalogue.worked_examples import Example
from cupel_measures.grammar.registry import LAWS, REQUIRED, Declaration, Parameter
from cupel_measures.grammar.scale_types import OPERATIONS
from cupel_measures.grammar.trec_names import trec_name

INDENT, CAVEAT, EXAMPLE = "    ", "Caveat: ", "Example: "

RULES = (
    "An unjudged document keeps its rank and gains nothing: it has the lowest label of every aspect, and is "
    "relevant to no subtopic.",
    "A negative grade is judged and counts as the lowest label.",
    "Where no document of a topic is relevant, or the ideal gains nothing, the score is 0.",
    "A topic that the run lacks has the value of an empty ranking, which is 0.",
    "A measure is averaged over all topics of the judgments; topics that they lack are ignored.",
    "Only the first k documents are seen with a cutoff k; a shorter run is not padded.",
    "Ranks begin at 1. Logarithms have base 2 unless another one is named.",
    "A tie of scores is broken by document id, the larger one first.",
)
"""What holds for every measure, unless its page says otherwise (spec 1.2)."""

LEFT_OUT = {
    "cutoff": "the whole ranking",
    "rel": "the aspect's threshold",
    "aspect": "the first of the collection",
    "aspects": "all of the collection",
    "weights": "equal",
    "understandability": "all but the first, or the topical one",
    "thresholds": "the aspects'",
    "gains": "the aspect's",
    "max_rel": "the scale's greatest gain",
    "levels": "0, 0.1, ..., 1",
    "terms": "all",
    "documents": "not known",
    "embedding": "the aspects'",
    "judged_only": "False; True takes documents out that are not judged, before anything else",
    "weighting": "step1 for a graded measure, top_half for a binary one",
    "graded": "no aspect",
    "base": "none: log2(1 + i)",
}
"""What leaving out a parameter of these names means."""


@dataclass(frozen=True)
class ReferencePage:
    """What there is to say of a measure."""

    declaration: Declaration

    @cached_property
    def paragraphs(self) -> tuple[str, ...]:
        """The documentation, but for caveats and examples; those of formulas are indented."""
        found = self.declaration.documentation.split("\n\n")
        return tuple(one for one in found if not one.startswith((CAVEAT, EXAMPLE)))

    @property
    def formulas(self) -> list[str]:
        return [inspect.cleandoc(one) for one in self.paragraphs if one.startswith(INDENT)]

    @property
    def caveats(self) -> list[str]:
        return [_joined(one.removeprefix(CAVEAT)) for one in self._marked(CAVEAT)]

    @property
    def examples(self) -> list[Example]:
        return [worked_examples.read(one) for one in self._marked(EXAMPLE)]

    def _marked(self, mark: str) -> list[str]:
        return [one for one in self.declaration.documentation.split("\n\n") if one.startswith(mark)]

    @property
    def written(self) -> str:
        """The shortest text of the measure: with the parameters that it needs, and a cutoff if it has one."""
        declaration = self.declaration
        parts = declaration.parameters.values()
        needed = [one.name for one in parts if one.default is REQUIRED and one.name != declaration.at]
        inside = ",".join("of=nDCG@10" if name == "of" else f"{name}=..." for name in needed)
        text = declaration.name + (f"({inside})" if inside else "")
        if declaration.at is None:
            return text
        symbol = "k" if declaration.at == "cutoff" else declaration.at
        return f"{text}@{symbol}" if self._needs_at else f"{text}[@{symbol}]"

    @property
    def _needs_at(self) -> bool:
        at = self.declaration.at
        return at is not None and self.declaration.parameters[at].default is REQUIRED

    @property
    def aliases(self) -> list[str]:
        """Other names: aliases, and trec_eval's name where it has another."""
        text = self.written.partition("[")[0]
        if self._needs_at:
            text = f"{self.declaration.name}@{'0.1' if self.declaration.at == 'recall' else '10'}"
        trec = trec_name(text)
        return [*self.declaration.aliases, *([] if trec == text else [trec])]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Each parameter with what it takes, and what it is without being given."""
        return [(one.name, self._expectation(one)) for one in self.declaration.parameters.values()]

    def _expectation(self, parameter: Parameter) -> str:
        after = " (written after @)" if parameter.name == self.declaration.at else ""
        if parameter.default is REQUIRED:
            return f"{parameter.kind.expects}{after}; needed"
        return f"{parameter.kind.expects}{after}; default: {self._left_out(parameter)}"

    def _left_out(self, parameter: Parameter) -> str:
        if parameter.name == "rel" and self.declaration.subtopics:
            return "1"
        if parameter.default is not None and parameter.default is not False:
            return str(parameter.default)
        return LEFT_OUT.get(parameter.name, "none" if parameter.default is None else "False")

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What the declaration says beside the documentation: a label and a text each."""
        return [
            ("also called", ", ".join(self.aliases) or "-"),
            ("values", self._bounds),
            ("over topics", self.declaration.aggregate),
            ("scale type", self.scale),
            ("exact values", self.exact),
            *((f"{law}", self._law(law)) for law in LAWS),
            ("source", self.declaration.source),
        ]

    @property
    def _bounds(self) -> str:
        low, high = self.declaration.bounds
        if math.isinf(low):
            return "any number"
        own = f"from {low:g}" + ("" if math.isinf(high) else f" to {high:g}")
        return own + ("; as far as `of` goes, where that goes further" if self._over_another else "")

    @property
    def _over_another(self) -> bool:
        return "of" in self.declaration.parameters

    @property
    def scale(self) -> str:
        """The scale type and what it allows; or by which rule it follows from parameters and aspects."""
        if self.declaration.scale != "depends":
            return f"{self.declaration.scale}: allows {', '.join(OPERATIONS[self.declaration.scale])}"
        return _joined(inspect.getdoc(self.declaration.scale_rule) or "").rstrip(".")

    @property
    def exact(self) -> str:
        if self.declaration.exact is None:
            return "no, floats"
        return "yes, where the measure in `of` has them" if self.declaration.combines else "yes"

    def _law(self, law: str) -> str:
        return f"no: {self.declaration.exempt[law]}" if law in self.declaration.exempt else "yes"


@dataclass(frozen=True)
class MeasureFamily:
    """Measures of one module. name: the module's. title, introduction: what its docstring says."""

    name: str
    title: str
    introduction: tuple[str, ...]
    pages: tuple[ReferencePage, ...]


def families() -> list[MeasureFamily]:
    """All measures by family: those of one aspect first, then those that combine aspects, then the others."""
    members: dict[str, list[Declaration]] = {}
    for declaration in all_declarations():
        members.setdefault(declaration.compute.__module__, []).append(declaration)
    found = [_family(module, of) for module, of in members.items()]
    return sorted(found, key=lambda one: (_kind(one.pages[0].declaration), one.title))


def family_of(declaration: Declaration) -> MeasureFamily:
    """The family that a measure stands in."""
    return next(one for one in families() if declaration in {page.declaration for page in one.pages})


def _family(module: str, members: Iterable[Declaration]) -> MeasureFamily:
    first, *more = (inspect.getdoc(sys.modules[module]) or "").split("\n\n")
    title = re.sub(r" \((spec|trec_eval)[^)]*\)\.$", "", _joined(first)).removesuffix(".")
    return MeasureFamily(module.rpartition(".")[2], title, tuple(more), tuple(map(ReferencePage, members)))


def _kind(declaration: Declaration) -> int:
    return 2 * declaration.subtopics + declaration.combines


def _joined(paragraph: str) -> str:
    return " ".join(paragraph.split())

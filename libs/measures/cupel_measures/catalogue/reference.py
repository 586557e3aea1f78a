"""Content of the reference pages of measures, derived from their declarations.

The docstring of a measure consists of paragraphs. The first one is the summary. An indented paragraph holds
formulas; `Caveat:` starts a caveat, and `Example:` a worked example (see `worked_examples`). A family is a
module; its docstring is the heading and the introduction.
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

DISPUTED = ". Whether a mean needs an interval scale is disputed (Sakai 2020; Moffat 2022)"
INDENT, CAVEAT, EXAMPLE = "    ", "Caveat: ", "Example: "

RULES = (
    "An unjudged document keeps its rank and has gain 0: it has the lowest label of every aspect and is "
    "relevant to no subtopic.",
    "A negative grade is a judgment with the lowest label.",
    "If a topic has no relevant document, or its ideal ranking has gain 0, the score is 0.",
    "A topic that is missing from the run scores as an empty ranking, whose score is 0.",
    "Scores are averaged over all topics with a judgment. A topic of the collection without any judgment is "
    "shown, but never enters a mean. Topics of the run that the qrels lack are ignored.",
    "A cutoff k keeps the first k documents. A shorter ranking is not padded.",
    "Ranks start at 1. Logarithms have base 2 unless the page says otherwise.",
    "Ties in score are broken by document id, in descending order.",
)
"""Rules that hold for every measure unless its page says otherwise."""

LEFT_OUT = {
    "cutoff": "the whole ranking",
    "rel": "the aspect's threshold",
    "aspect": "the first aspect of the collection",
    "aspects": "all aspects of the collection",
    "weights": "equal",
    "understandability": "all aspects except the topical one, which is the first by default",
    "thresholds": "the aspects'",
    "gains": "the aspect's",
    "max_rel": "the scale's greatest gain",
    "levels": "0, 0.1, ..., 1",
    "terms": "all",
    "documents": "unknown",
    "embedding": "the aspects'",
    "judged_only": "False; True removes unjudged documents first",
    "weighting": "step1 for a graded measure, top_half for a binary one",
    "graded": "no aspect",
    "base": "none: log2(1 + i)",
}
"""Parameter name -> effect of omitting the parameter."""


@dataclass(frozen=True)
class ReferencePage:
    """Reference page of a measure."""

    declaration: Declaration

    @cached_property
    def paragraphs(self) -> tuple[str, ...]:
        """Return the paragraphs of the documentation without caveats and examples.

        Formulas are indented.
        """
        paragraphs = self.declaration.documentation.split("\n\n")
        return tuple(text for text in paragraphs if not text.startswith((CAVEAT, EXAMPLE)))

    @property
    def formulas(self) -> list[str]:
        return [inspect.cleandoc(text) for text in self.paragraphs if text.startswith(INDENT)]

    @property
    def caveats(self) -> list[str]:
        return [_joined(text.removeprefix(CAVEAT)) for text in self._marked(CAVEAT)]

    @property
    def examples(self) -> list[Example]:
        return [worked_examples.read(text) for text in self._marked(EXAMPLE)]

    def _marked(self, mark: str) -> list[str]:
        return [text for text in self.declaration.documentation.split("\n\n") if text.startswith(mark)]

    @property
    def written(self) -> str:
        """Return the shortest form of the measure, such as nDCG[@k].

        It has the required parameters, and the parameter that @ sets, in brackets if it is optional.
        """
        declaration = self.declaration
        parameters = declaration.parameters.items()
        required = [name for name, parameter in parameters if parameter.default is REQUIRED]
        names = [name for name in required if name != declaration.at]
        inside = ",".join("of=nDCG@10" if name == "of" else f"{name}=..." for name in names)
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
        """Return the other names: aliases, and trec_eval's name if it differs."""
        text = self.written.partition("[")[0]
        if self._needs_at:
            text = f"{self.declaration.name}@{'0.1' if self.declaration.at == 'recall' else '10'}"
        trec = trec_name(text)
        return [*self.declaration.aliases, *([] if trec == text else [trec])]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return the name of each parameter and a text about its values and its default."""
        declared = self.declaration.parameters.items()
        return [(name, self._expectation(parameter)) for name, parameter in declared]

    def _expectation(self, parameter: Parameter) -> str:
        after = " (written after @)" if parameter.name == self.declaration.at else ""
        if parameter.default is REQUIRED:
            return f"{parameter.kind.expects}{after}; required"
        return f"{parameter.kind.expects}{after}; default: {self._default(parameter)}"

    def _default(self, parameter: Parameter) -> str:
        if parameter.name == "rel" and self.declaration.subtopics:
            return "1"
        if parameter.default is not None and parameter.default is not False:
            return str(parameter.default)
        return LEFT_OUT.get(parameter.name, "none" if parameter.default is None else "False")

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return the facts of the declaration as pairs of a heading and a text."""
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
        bounds = f"from {low:g}" + ("" if math.isinf(high) else f" to {high:g}")
        return bounds + ("; wider if the values of `of` are wider" if self._has_inner else "")

    @property
    def _has_inner(self) -> bool:
        return "of" in self.declaration.parameters

    @property
    def scale(self) -> str:
        """Return the scale type and the operations that it allows.

        If a rule determines the type, return the rule. If means may need a stronger scale, add that this is
        disputed.
        """
        type_ = self.declaration.scale
        if type_ == "depends":
            return _joined(inspect.getdoc(self.declaration.scale_rule) or "").rstrip(".") + DISPUTED
        allowed = f"{type_}: allows {', '.join(OPERATIONS[type_])}"
        return allowed if "mean" in OPERATIONS[type_] else allowed + DISPUTED

    @property
    def exact(self) -> str:
        if self.declaration.exact is None:
            return "no, floats"
        return "yes, if the measure in `of` has them" if self.declaration.combines else "yes"

    def _law(self, law: str) -> str:
        return f"no: {self.declaration.exempt[law]}" if law in self.declaration.exempt else "yes"


@dataclass(frozen=True)
class MeasureFamily:
    """Measures of one module.

    The docstring of the module contains the title and the introduction.
    """

    name: str
    title: str
    introduction: tuple[str, ...]
    pages: tuple[ReferencePage, ...]


def families() -> list[MeasureFamily]:
    """Return all families of measures.

    Measures of one aspect come first, then of several aspects, then of subtopics.
    """
    members: dict[str, list[Declaration]] = {}
    for declaration in all_declarations():
        members.setdefault(declaration.compute.__module__, []).append(declaration)
    all_families = [_family(module, declarations) for module, declarations in members.items()]
    return sorted(all_families, key=lambda family: (_kind(family.pages[0].declaration), family.title))


def family_of(declaration: Declaration) -> MeasureFamily:
    """Return the family of a measure."""
    return next(f for f in families() if declaration in {page.declaration for page in f.pages})


def _family(module: str, members: Iterable[Declaration]) -> MeasureFamily:
    first, *more = (inspect.getdoc(sys.modules[module]) or "").split("\n\n")
    title = re.sub(r" \(trec_eval[^)]*\)\.$", "", _joined(first)).removesuffix(".")
    return MeasureFamily(module.rpartition(".")[2], title, tuple(more), tuple(map(ReferencePage, members)))


def _kind(declaration: Declaration) -> int:
    return 2 * declaration.subtopics + declaration.combines


def _joined(paragraph: str) -> str:
    return " ".join(paragraph.split())

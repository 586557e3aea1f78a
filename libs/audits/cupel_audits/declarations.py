"""The registry of audit kinds.

It has the question, the parameters, the trials and the report of each kind.

To add a kind, add one module to `cupel_audits/kinds/` that is named like the kind. If one file is not enough,
add a package with a module `NAME_kind`. The module contains:

- a frozen dataclass derived from `Audit` and decorated with `@audit(...)`. Its docstring is its
  documentation. Its fields are the parameters, each declared with `setting`;
- a TypedDict for the result of a trial. Results are stored as JSON, so JSON must represent them without loss.
  `run_trials` yields a result for each trial, and `report` takes the results of all finished trials;
- row classes, table schemas and plots for the report: see `cupel_audits.report`.

`kinds/downsampling.py` and `kinds/leave_one_run_out.py` are examples.

Trials are independent. Each draws from its own random generator, which is seeded by the seed of the audit,
the kind and the number of the trial. So a trial has the same result, bit by bit, if it is repeated alone, in
another order or in another process.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, TypeVar, get_type_hints

import numpy as np

from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.grammar.parameters import ParameterError, Whole, nearest
from cupel_measures.grammar.registry import Parameter, kind_of
from cupel_measures.grammar.syntax import MeasureError, literal

Audited = TypeVar("Audited", bound="Audit")

LARGEST_COUNT = 100_000


def whole_number(least: int = 1, description: str = "a whole number") -> Whole:
    """Return the type of a count or a depth.

    The upper bound limits the memory that an audit needs.
    """
    return Whole(f"{description} from {least} to {LARGEST_COUNT:,}", least, LARGEST_COUNT)


class AuditError(ValueError):
    """An audit is impossible; `sentences` holds all reasons, each with a remedy."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = tuple(sentences)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A declared parameter of an audit kind, with its description."""

    parameter: Parameter
    about: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit:
    """An audit with its parameters; base class of all kinds.

    It has defaults that kinds may override.

    name, title: the name and the title of the kind. answers: the question that the kind answers, in one
    sentence. source: the papers. settings: the declared parameters by name. needs_texts: whether the texts
    of the documents are required. extra_arguments: arguments that an example command needs besides
    judgments and runs, such as "--other second.txt". needs_other_qrels: whether the audit compares two
    versions of the judgments (`AuditSubject.other_subject`). removes_judgments: whether trials remove
    judgments, which needs a relevant document.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    answers: ClassVar[str]
    source: ClassVar[str]
    settings: ClassVar[Mapping[str, Setting]]
    needs_texts: ClassVar[bool] = False
    extra_arguments: ClassVar[str] = ""
    needs_other_qrels: ClassVar[bool] = False
    removes_judgments: ClassVar[bool] = False

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        """Yield a sentence for each reason why the subject cannot be audited.

        Each sentence has a remedy.
        """
        if (count := len(subject.about.runs)) < 2:
            given = "only one is given" if count else "none is given"
            yield f"the audit compares runs, but {given}: give two or more"
        if self.removes_judgments and not subject.about.relevant:
            yield "no document is judged relevant, so removing judgments would change nothing"

    def ranking_depth(self) -> int:
        """Return the depth to which `AuditSubject.tops` is needed; 0 if it is not needed."""
        return 0

    def trials(self, subject: AuditSubject) -> int:
        """Return the number of independent trials."""
        return 1

    def steps(self, subject: AuditSubject) -> float:
        """Return how often a trial scores all runs by all measures, approximately."""
        return 1.0

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        """Run the given trials and yield their results in the order of the trials.

        Each result is JSON-serialisable.
        """
        raise NotImplementedError

    def report(self, about: SubjectSummary, results: Mapping[int, Any]) -> AuditReport:
        """Return the report on the finished trials.

        results: the result by trial number, of at least one trial. The report depends on the arguments only.
        It is partial if some trials are not finished.
        """
        raise NotImplementedError

    @property
    def values(self) -> dict[str, Any]:
        """Return the parameters as JSON data."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def generator(self, seed: int, trial: int) -> np.random.Generator:
        """Return the random generator of a trial."""
        kind = int.from_bytes(sha256(self.name.encode()).digest()[:8], "big")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, kind, trial])))


class AuditKinds(Mapping[str, type[Audit]]):
    """The audit kinds by name, in alphabetical order.

    A kind is imported when it is first looked up, because the import of all takes a quarter of a second.

    loaded: the kinds imported so far.
    """

    def __init__(self) -> None:
        kinds = Path(__file__).parent / "kinds"
        self._modules = {
            name: f"{name}.{name}_kind" if is_package else name
            for _, name, is_package in iter_modules([str(kinds)])
        }
        self.loaded: dict[str, type[Audit]] = {}

    def __getitem__(self, name: str) -> type[Audit]:
        if name not in self.loaded and name in self._modules:
            import_module(f"cupel_audits.kinds.{self._modules[name]}")
        return self.loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self.loaded

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._modules, *self.loaded}))

    def __len__(self) -> int:
        return len({*self._modules, *self.loaded})


KINDS = AuditKinds()


def audit(name: str, *, title: str, answers: str, source: str) -> Callable[[type[Audited]], type[Audited]]:
    """Register the decorated class as a kind of audit.

    The docstring of the class is the documentation.
    """

    def register(cls: type[Audited]) -> type[Audited]:
        kind = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        kind.name, kind.title, kind.answers, kind.source = name, title, answers, source
        hints = get_type_hints(kind, include_extras=True)
        kind.settings = {
            field.name: Setting(
                Parameter(field.name, kind_of(hints[field.name]), field.default), field.metadata["about"]
            )
            for field in dataclasses.fields(kind)
        }
        KINDS.loaded[name] = kind
        return kind

    return register


def setting(default: Any, about: str) -> Any:
    """Declare a parameter of a kind by its default and its description."""
    return dataclasses.field(default=default, metadata={"about": about})


def read_audit(kind: str, parameters: Mapping[str, Any] | None = None) -> Audit:
    """Return the audit of this kind with parameters from JSON data.

    Raise AuditError with all problems: an unknown kind, unknown parameters, and invalid values.
    """
    return _read(kind, parameters or {}, Parameter.read)


def parse_audit(kind: str, parameters: Mapping[str, str]) -> Audit:
    """Return the audit of this kind with parameters from a command line.

    Values are written as in the text of a measure, such as `{quality:0.5}`. A list may omit its brackets, as
    in `90,50,10`. Raise AuditError like `read_audit`.
    """
    return _read(kind, parameters, _parse_value)


def _read(kind: str, parameters: Mapping[str, Any], read_value: Callable[[Parameter, Any], Any]) -> Audit:
    if kind not in KINDS:
        raise AuditError(
            [f"unknown audit {kind!r}{nearest(kind, [*KINDS])}; the kinds are {', '.join(KINDS)}"]
        )
    settings, values, sentences = KINDS[kind].settings, {}, []
    for name, value in parameters.items():
        try:
            values[name] = read_value(_find_parameter(settings, kind, name), value)
        except ParameterError as problem:
            sentences.append(str(problem))
    if sentences:
        raise AuditError(sentences)
    return KINDS[kind](**values)


def _find_parameter(settings: Mapping[str, Setting], kind: str, name: str) -> Parameter:
    if name not in settings:
        known = f"it takes {', '.join(settings)}" if settings else "it takes none"
        raise ParameterError(f"{kind} has no parameter {name!r}{nearest(name, [*settings])}; {known}")
    return settings[name].parameter


def _parse_value(parameter: Parameter, text: str) -> Any:
    """Return the first valid interpretation of the text.

    Raises the error of the first interpretation if none is valid.
    """
    problems = []
    for value in _interpretations(text):
        try:
            return parameter.read(value)
        except ParameterError as problem:
            problems.append(problem)
    raise problems[0]


def _interpretations(text: str) -> Iterator[Any]:
    for written in (text, f"[{text}]"):
        with contextlib.suppress(MeasureError, TypeError):
            value = literal(written)
            json.dumps(value)  # raises TypeError for rationals and measures, which audits do not take
            yield value
    yield text
    yield text.split(",")


def check_audit(audit: Audit, subject: AuditSubject) -> None:
    """Raise AuditError with every reason why the audit is impossible for this subject."""
    if sentences := list(audit.problems(subject)):
        raise AuditError(sentences)

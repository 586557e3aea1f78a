"""The one registry of audit kinds: what each answers, its parameters, its trials and its report.

A kind is a frozen dataclass whose fields are its parameters. Its trials are independent: each draws from a
generator of its own, seeded by the audit's seed and its number, so that any of them can be done again alone,
in any order, process or grouping, with the same result to the last bit.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, TypeVar, get_type_hints

import numpy as np

from cupel_audits.report import AuditReport
from cupel_audits.subject import About, AuditSubject
from cupel_measures.grammar.parameters import ParameterError, Whole, nearest
from cupel_measures.grammar.registry import Parameter, kind_of
from cupel_measures.grammar.syntax import MeasureError, literal

Audited = TypeVar("Audited", bound="Audit")

MOST = 100_000


def whole(least: int = 1, what: str = "a whole number") -> Whole:
    """How often something is drawn, or how deep one looks: never more than memory can hold."""
    return Whole(f"{what} from {least} to {MOST:,}", least, MOST)


class AuditError(ValueError):
    """An audit that can't be done; `sentences` say all reasons, each with what would be right."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = tuple(sentences)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit:
    """An audit of some kind with its parameters. What a kind does not say is as here.

    name, title: of the kind. answers: its question, in one sentence. source: the paper, or spec section.
    texts: whether it needs those of the documents. beside: what a command line has to name beside judgments
    and runs, such as "--other second.txt". compares: whether it holds the judgments against others
    (`Subject.other`).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    answers: ClassVar[str]
    source: ClassVar[str]
    texts: ClassVar[bool] = False
    beside: ClassVar[str] = ""
    compares: ClassVar[bool] = False

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        """Why it can't be done of `subject`: a sentence each, with what would be right."""
        if len(subject.about.runs) < 2:
            yield f"it compares runs, and there {_are(len(subject.about.runs))}: give two or more"

    def top(self) -> int:
        """How deep `Subject.tops` is needed, rankings with their unjudged documents; 0 for not at all."""
        return 0

    def trials(self, subject: AuditSubject) -> int:
        """How many independent trials there are."""
        return 1

    def steps(self, subject: AuditSubject) -> float:
        """How often one trial scores all runs by all measures, about: trials are grouped by this."""
        return 1.0

    def work(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        """The result of each of `trials`, which JSON can hold to the last bit, one after another."""
        raise NotImplementedError

    def report(self, about: About, found: Mapping[int, Any]) -> AuditReport:
        """What the finished trials (number -> result) say; a function of its arguments alone.

        Only called with at least one finished trial; with fewer than all of them it is a partial report.
        """
        raise NotImplementedError

    @property
    def values(self) -> dict[str, Any]:
        """The parameters as JSON holds them."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: list(one) if isinstance(one, tuple) else one for name, one in found.items()}

    def generator(self, seed: int, trial: int) -> np.random.Generator:
        """What a trial draws from."""
        kind = int.from_bytes(sha256(self.name.encode()).digest()[:8], "big")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, kind, trial])))


@dataclasses.dataclass(frozen=True)
class Setting:
    """A parameter of a kind with what it does, in words."""

    parameter: Parameter
    about: str


KINDS: dict[str, type[Audit]] = {}
SETTINGS: dict[str, dict[str, Setting]] = {}
"""The parameters of each kind. Both registries are sorted by the name of the kind."""


def audit(name: str, *, title: str, answers: str, source: str) -> Callable[[type[Audited]], type[Audited]]:
    """Declare the decorated class as a kind of audit; its docstring is the documentation."""

    def declared(cls: type[Audited]) -> type[Audited]:
        made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        made.name, made.title, made.answers, made.source = name, title, answers, source
        hints = get_type_hints(made, include_extras=True)
        settings = {
            field.name: Setting(
                Parameter(field.name, kind_of(hints[field.name]), field.default), field.metadata["about"]
            )
            for field in dataclasses.fields(made)
        }
        KINDS[name], SETTINGS[name] = made, settings
        _sort_by_name(KINDS)
        _sort_by_name(SETTINGS)
        return made

    return declared


def _sort_by_name(registry: dict[str, Any]) -> None:
    """Sort the entries, so that kinds are listed alphabetically whatever the order of imports."""
    entries = sorted(registry.items())
    registry.clear()
    registry.update(entries)


def setting(default: Any, about: str) -> Any:
    """A parameter of a kind: its default, and what it does."""
    return dataclasses.field(default=default, metadata={"about": about})


def read(kind: str, given: Mapping[str, Any] | None = None) -> Audit:
    """The audit of this kind with these parameters, as JSON gives them.

    AuditError tells all that is wrong: an unknown kind, unknown parameters, values they can't take.
    """
    return _audit(kind, given or {}, Parameter.read)


def from_text(kind: str, given: Mapping[str, str]) -> Audit:
    """The audit of this kind with these parameters, as a command line gives them.

    A value is written as in a measure's text, a list also without its brackets: `90,50,10`, `{quality:0.5}`.
    Raises as `read` does.
    """
    return _audit(kind, given, _read_text)


def _read_text(parameter: Parameter, text: str) -> Any:
    """The first of what `text` may mean that the parameter takes; else what is wrong with the first."""
    problems = []
    for meant in _meanings(text):
        try:
            return parameter.read(meant)
        except ParameterError as problem:
            problems.append(problem)
    raise problems[0]


def _meanings(text: str) -> Iterator[Any]:
    for written in (text, f"[{text}]"):
        with contextlib.suppress(MeasureError, TypeError):
            meant = literal(written)
            json.dumps(meant)  # TypeError for what the parameters of an audit can't be: rationals, measures
            yield meant
    yield text
    yield text.split(",")


def _audit(kind: str, given: Mapping[str, Any], read: Callable[[Parameter, Any], Any]) -> Audit:
    if kind not in KINDS:
        raise AuditError(
            [f"there is no audit {kind!r}{nearest(kind, [*KINDS])}; there are {', '.join(KINDS)}"]
        )
    settings, values, sentences = SETTINGS[kind], {}, []
    for name, value in given.items():
        try:
            values[name] = read(_known(settings, kind, name), value)
        except ParameterError as problem:
            sentences.append(str(problem))
    if sentences:
        raise AuditError(sentences)
    return KINDS[kind](**values)


def require(audit: Audit, subject: AuditSubject) -> None:
    """Raise AuditError where the audit can't be done of `subject`, with every reason."""
    if sentences := list(audit.problems(subject)):
        raise AuditError(sentences)


def _known(settings: Mapping[str, Setting], kind: str, name: str) -> Parameter:
    if name not in settings:
        takes = f"it takes {', '.join(settings)}" if settings else "it takes none"
        raise ParameterError(f"{kind} has no parameter {name!r}{nearest(name, [*settings])}; {takes}")
    return settings[name].parameter


def _are(number: int) -> str:
    return "is only one" if number == 1 else "are none"

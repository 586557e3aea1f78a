"""The kinds of audits as people read of them: a list, a page of each, all of them as Markdown."""

import inspect
from collections.abc import Iterator
from typing import Any

from cupel_audits import KINDS, SETTINGS, Audit
from cupel_audits.declarations import Setting
from cupel_client.offline.presentation.measure_reference import table
from cupel_measures.grammar.parameters import Flag
from cupel_measures.grammar.syntax import shown

HEAD = """# Audits

Every kind of audit that Cupel has: what it answers, how, and its parameters. This page is made by
`cupel audit --format markdown` from what the kinds themselves declare; `cupel audit KIND --help` prints the
same for one of them.

An audit asks how far a collection and its board can be trusted. A document that loses its judgment is
unjudged; it is never deleted. All that is drawn comes from the seed: the same seed gives the same result, to
the last bit, in any number of processes.

On a command line a parameter is an option: `tau_ap` is `--tau-ap`, and one with the name of an option that
every audit has begins with `audit-`, as in `--audit-aspect`. A list is written with or without its brackets.
"""
"""What the document begins with."""


def document() -> str:
    """All kinds: an index, then every page."""
    index = table(
        ("audit", "what it answers"),
        [(f"[`{one.name}`](#{one.name})", one.answers) for one in KINDS.values()],
    )
    return "\n".join([HEAD, index, *map(_page, KINDS.values())])


def _page(kind: type[Audit]) -> str:
    rows = [
        (f"`{name}`", _what(one), f"`{_default(one)}`" if _default(one) else "")
        for name, one in SETTINGS[kind.name].items()
    ]
    parts = [
        f"## {kind.name}",
        f"**{kind.title}.** {kind.answers}",
        *paragraphs(kind),
        f"Source: {kind.source}.",
    ]
    if rows:
        parts.append(table(("parameter", "what it is", "default"), rows).rstrip())
    parts.append(f"    {example(kind)}")
    return "\n\n".join(parts) + "\n"


def data() -> list[dict[str, Any]]:
    """As programs read it."""
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "answers": kind.answers,
            "documentation": inspect.getdoc(kind) or "",
            "source": kind.source,
            "parameters": [
                {
                    "name": name,
                    "about": one.about,
                    "expects": one.parameter.kind.expects,
                    "default": one.parameter.default,
                }
                for name, one in SETTINGS[kind.name].items()
            ],
        }
        for kind in KINDS.values()
    ]


def paragraphs(kind: type[Audit]) -> list[str]:
    """The documentation of a kind."""
    return (inspect.getdoc(kind) or "").split("\n\n")


def example(kind: type[Audit]) -> str:
    """A command that does such an audit."""
    words = [
        "cupel audit",
        kind.name,
        "collection.yaml runs/*.gz",
        kind.extra_arguments,
        *_some(kind),
        f"--out {kind.name}",
    ]
    return " ".join(filter(None, words))


def _some(kind: type[Audit]) -> Iterator[str]:
    """The first parameters that have a default to show."""
    settings = SETTINGS[kind.name]
    plain = [
        name for name, one in settings.items() if _default(one) and not isinstance(one.parameter.kind, Flag)
    ]
    for name in plain[:2]:
        yield f"{option(name)} {_default(settings[name])}"


def option(name: str) -> str:
    """The option that sets a parameter, where nothing else is called so."""
    return "--" + name.replace("_", "-")


def described(one: Setting) -> str:
    """What a parameter does, what it takes, and its default."""
    default = _default(one)
    return _what(one) + (f"  [default: {default}]" if default else "")


def _what(one: Setting) -> str:
    kind = one.parameter.kind
    return one.about if isinstance(kind, Flag) else f"{one.about}: {kind.expects}"


def _default(one: Setting) -> str:
    """As a command line has it; empty where leaving it out means what `about` says."""
    default = one.parameter.default
    if default is None:
        return ""
    return ",".join(map(shown, default)) if isinstance(default, tuple) else shown(default)

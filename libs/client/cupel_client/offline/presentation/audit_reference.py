"""Reference documentation of the audit kinds.

Each kind has a page; all of them together are available as Markdown or JSON.
"""

import inspect
from collections.abc import Iterator
from typing import Any

from cupel_audits import KINDS, Audit
from cupel_audits.declarations import Setting
from cupel_client.offline.presentation.measure_reference import table
from cupel_measures.grammar.parameters import Flag
from cupel_measures.grammar.syntax import shown

HEAD = """# Audits

This page documents every kind of audit: the question that it answers, its method and its parameters.
`cupel audit --format markdown` generates the page from the declarations of the kinds. `cupel audit KIND
--help` prints the documentation of one kind.

An audit tests how far a collection and its leaderboard can be trusted. A document whose judgment is removed
becomes unjudged; it is not deleted from the runs. All random draws depend on the seed: the same seed gives
the same result, bit by bit, with any number of processes.

On the command line every parameter is an option: `tau_ap` is `--tau-ap`. If all audits have an option of
that name, the prefix `audit-` is added, as in `--audit-aspect`. Brackets around lists are optional.
"""
"""The introduction of the document."""


def document() -> str:
    """Return the document: an index, then a page for each kind."""
    index = table(
        ("audit", "question"),
        [(f"[`{kind.name}`](#{kind.name})", kind.answers) for kind in KINDS.values()],
    )
    return "\n".join([HEAD, index, *map(_page, KINDS.values())])


def _page(kind: type[Audit]) -> str:
    rows = [
        (f"`{name}`", _description(setting), f"`{_default(setting)}`" if _default(setting) else "")
        for name, setting in kind.settings.items()
    ]
    parts = [
        f"## {kind.name}",
        f"**{kind.title}.** {kind.answers}",
        *paragraphs(kind),
        f"Source: {kind.source}.",
    ]
    if rows:
        parts.append(table(("parameter", "description", "default"), rows).rstrip())
    parts.append(f"    {example(kind)}")
    return "\n\n".join(parts) + "\n"


def data() -> list[dict[str, Any]]:
    """Return the documentation of all kinds as JSON data."""
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
                    "about": setting.about,
                    "expects": setting.parameter.kind.expects,
                    "default": setting.parameter.default,
                }
                for name, setting in kind.settings.items()
            ],
        }
        for kind in KINDS.values()
    ]


def paragraphs(kind: type[Audit]) -> list[str]:
    """Return the paragraphs of the documentation of a kind."""
    return (inspect.getdoc(kind) or "").split("\n\n")


def example(kind: type[Audit]) -> str:
    """Return an example command for a kind."""
    words = [
        "cupel audit",
        kind.name,
        "collection.yaml runs/*.gz",
        kind.extra_arguments,
        *_example_options(kind),
        f"--out {kind.name}",
    ]
    return " ".join(filter(None, words))


def _example_options(kind: type[Audit]) -> Iterator[str]:
    """Yield options for an example command.

    They are for the first two parameters that have a default and are not flags.
    """
    settings = kind.settings
    names = [
        name
        for name, setting in settings.items()
        if _default(setting) and not isinstance(setting.parameter.kind, Flag)
    ]
    for name in names[:2]:
        yield f"{option(name)} {_default(settings[name])}"


def option(name: str) -> str:
    """Return the name of the option for a parameter: `--tau-ap` for `tau_ap`."""
    return "--" + name.replace("_", "-")


def help_text(setting: Setting) -> str:
    """Return the description of a parameter, its type and its default."""
    default = _default(setting)
    return _description(setting) + (f"  [default: {default}]" if default else "")


def _description(setting: Setting) -> str:
    kind = setting.parameter.kind
    about = f"{setting.about[0].upper()}{setting.about[1:]}."
    return about if isinstance(kind, Flag) else f"{about} Value: {kind.expects}."


def _default(setting: Setting) -> str:
    """Return the default as a user would write it.

    It is empty for None, which the description explains.
    """
    default = setting.parameter.default
    if default is None:
        return ""
    return ",".join(map(shown, default)) if isinstance(default, tuple) else shown(default)

"""The option --out of commands that write a page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from cupel_client.output import printable
from cupel_measures.evaluation.exports.page_library import missing_packages

_Command = TypeVar("_Command", bound=Callable[..., Any])


class WritesPage(Protocol):
    """A result that can be written as a page."""

    def page(self, path: str | Path) -> None: ...


class PageFile(click.Path):
    """Path of a page to write; errors are found before the work begins."""

    name = "PAGE"

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(
        self,
        value: str,  # type: ignore[override]
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix.lower() not in (".html", ".htm"):
            self.fail(f"{printable(value)!r} is not the name of a page; it must end in .html", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"there is no folder {printable(str(path.parent))!r}", param, ctx)
        if missing := missing_packages():
            packages = " ".join(missing)
            self.fail(
                f"a page needs packages that are not installed; run: pip install {packages}", param, ctx
            )
        return path


def page_option(command: _Command) -> _Command:
    """Add --out, the page to write."""
    return click.option(
        "--out",
        type=PageFile(),
        metavar="PAGE",
        help="Also write a page (PAGE.html) with tables and plots. It loads nothing from the network.",
    )(command)


def write_page(path: Path | None, result: WritesPage) -> None:
    """Write the page of a result and print its name, if --out is given."""
    if path is None:
        return
    try:
        result.page(path)
    except OSError as problem:
        raise click.ClickException(f"cannot write {path}: {problem.strerror}") from None
    click.echo(f"{printable(str(path))} is written.", err=True)

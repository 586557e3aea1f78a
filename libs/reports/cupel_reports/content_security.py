"""What a page may do: its own scripts and styles by their hashes, no others, and no connection at all."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html.parser import HTMLParser


def policy(page: str) -> str:
    """The Content-Security-Policy header to serve a page with: it allows what the page brings, no more."""
    inside = _Inside()
    inside.feed(page)
    return f"{directives(inside.scripts, inside.styles)}; frame-ancestors 'none'"


def directives(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The policy of a page with these inline scripts and styles."""
    return "; ".join((
        "default-src 'none'",
        f"script-src {_hashes(scripts)}",
        f"style-src {_hashes(styles)}",
        "base-uri 'none'",
        "form-action 'none'",
    ))  # fmt: skip


def _hashes(texts: Iterable[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


class _Inside(HTMLParser):
    """The inline scripts that would run, and the style sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._open: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        runs = {"script": self.scripts, "style": self.styles}
        self._open = None if dict(attrs).get("type") == "application/json" else runs.get(tag)
        if self._open is not None:
            self._open.append("")

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = None

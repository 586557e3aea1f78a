"""The Content-Security-Policy of a page.

It allows the page's own scripts and styles by hash, and no connections.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html.parser import HTMLParser


def policy(page: str) -> str:
    """Return the Content-Security-Policy header for a page.

    Only the page's own scripts and styles may run.
    """
    inline = _InlineParts()
    inline.feed(page)
    return f"{directives(inline.scripts, inline.styles)}; frame-ancestors 'none'"


def directives(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the policy of a page with these inline scripts and styles."""
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


class _InlineParts(HTMLParser):
    """The inline scripts that a browser would run, and the inline style sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._open: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        collected = {"script": self.scripts, "style": self.styles}
        self._open = None if dict(attrs).get("type") == "application/json" else collected.get(tag)
        if self._open is not None:
            self._open.append("")

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = None

"""A reader of HTML that finds elements, texts, tables and unclosed elements."""

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "hr", "input"}


class HtmlReader(HTMLParser):
    """The elements of a document, the texts by tag, the cells of tables, and the elements still open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.tables: list[list[list[str]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        self.tables = [[[cell.strip() for cell in row] for row in table] for table in self.tables]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_optional({"td": {"td"}, "tr": {"td", "tr"}}.get(tag, set()))
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.texts[tag][-1] += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._end_optional({"td", "tr"} - {tag})
        assert self.open, f"</{tag}> has no start tag"
        assert self.open.pop() == tag

    def _end_optional(self, tags: set[str]) -> None:
        """Close cells and rows, whose end tags are optional."""
        while self.open and self.open[-1] in tags:
            self.open.pop()

    def all(self, tag: str, **having: str) -> list[dict[str, str | None]]:
        """Return the attributes of the elements with this tag and these words in their attributes."""
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and all(value in (attrs.get(key) or "").split() for key, value in having.items())
        ]

"""A page read strictly: every element is closed; ids, links and text are kept."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta"}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, ids are unique, text is kept by section."""

    def __init__(self, text):
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        if name not in VOID:
            self.open.append(name)
        self.take(attributes)

    def handle_startendtag(self, name, attributes):
        self.take(attributes)

    def take(self, attributes):
        self.attributes.extend((key, value or "") for key, value in attributes)
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if key in ("href", "src"):
                self.links.append(value)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words += data + " "

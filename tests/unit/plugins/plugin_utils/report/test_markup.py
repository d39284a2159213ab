from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html, join, table, tag


class Reader(HTMLParser):
    """Collects the tags, attributes and text that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes.update(attributes)

    def handle_data(self, data):
        self.text += data


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=("Cs",)))


@given(WORDS, WORDS)
def test_whatever_users_write_stays_text(content, title):
    reader = Reader()
    reader.feed(tag("p", content, title=title))
    reader.close()
    assert reader.tags == ["p"]
    assert reader.text == content
    assert reader.attributes["title"] == title


def test_markup_is_kept_and_none_vanishes():
    assert tag("p", Html("<b>x</b>"), None, [1, " & "]) == "<p><b>x</b>1 &amp; </p>"
    assert join("<", Html("<br>")) == "&lt;<br>"


def test_attributes_follow_python_spelling():
    assert tag("input", class_="a", aria_label="b", hidden=True, checked=False, id=None) == (
        '<input class="a" aria-label="b" hidden>'
    )


def test_cells_carry_their_column_for_narrow_screens():
    written = table(["Mode", "P90"], [["heading"], ["baseline", "1.2"]], caption="c")
    assert '<td data-label="P90">1.2</td>' in written
    assert '<th colspan="2" scope="rowgroup">heading</th>' in written

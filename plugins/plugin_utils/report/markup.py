# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build HTML from Python values so that nothing reaches the page unescaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias


class Html(str):
    """Text that is markup already: everything else is escaped when it becomes a child."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"

_VOID = frozenset({"br", "col", "hr", "img", "input", "meta"})


def join(*children: Child) -> Html:
    """Concatenate children: plain text is escaped, lists are flattened, None is dropped."""
    return Html("".join(_pieces(children)))


def _pieces(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield str(child)
        elif isinstance(child, (str, int)):
            yield html.escape(str(child))
        else:
            yield from _pieces(child)


def tag(name: str, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Make one element.

    Attribute names lose a trailing underscore and turn inner ones into dashes (class_ → class,
    aria_label → aria-label). True writes the bare name; None and False leave the attribute out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{html.escape(str(value))}"'


def table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    caption: str | None = None,
    class_: str = "plain",
) -> Html:
    """Make a table whose cells carry their column's name, so that a narrow screen can stack them.

    A row of a single cell is a heading for the rows after it.
    """
    names = [name if isinstance(name, str) else "" for name in head]
    head_row = tag("tr", [tag("th", name, scope="col") for name in head])
    body = [_row(row, names) for row in rows]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption) if caption else None,
            tag("thead", head_row),
            tag("tbody", body),
            class_=class_,
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption or "table",
    )


def _row(row: Sequence[Child], names: Sequence[str]) -> Html:
    if len(row) == 1 < len(names):
        return tag("tr", tag("th", row[0], colspan=len(names), scope="rowgroup"), class_="group")
    head = tag("th", row[0], scope="row")
    return tag("tr", head, [tag("td", cell, data_label=name) for cell, name in zip(row[1:], names[1:], strict=True)])


def details(summary: str, *children: Child, open_: bool = False) -> Html:
    """Make a part that the reader can unfold."""
    return tag("details", tag("summary", summary), *children, open_=open_)


def definitions(pairs: Mapping[str, Child], class_: str = "facts") -> Html:
    """Make a list of name and value; entries without a value are left out."""
    shown = [(name, value) for name, value in pairs.items() if value not in (None, "")]
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in shown], class_=class_)

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the table of a policy's words is made of: values, lists, mappings with free keys; and which engine acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

STATIC = "static"
LATER = ("agent", "koordinator")
ENGINES = (STATIC, *LATER)
# Who acts on words that are not Koordinator's.
OWN = (STATIC, "agent")
Default = Union[bool, int, float, str, None]


@dataclass(frozen=True)
class Leaf:
    """A key with a value.

    ``choices`` are all that Koordinator knows, ``static_choices`` those of engine static. ``low`` and ``high`` are the
    ends of the range, which for kind ``number`` doesn't include ``low``. ``readings``: acting on the key takes
    readings at run time, which engine static does not take.
    """

    kind: str
    default: Default = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    static_choices: tuple[str, ...] = ()
    engines: tuple[str, ...] = LATER
    readings: bool = False


@dataclass(frozen=True)
class ListOf:
    """A list. ``required`` are the keys that each of its mappings must have."""

    item: Node
    required: tuple[str, ...] = ()
    engines: tuple[str, ...] = LATER


@dataclass(frozen=True)
class MapOf:
    """A mapping whose keys are the user's; ``keys`` is the kind of leaf that they are, "" for any text."""

    value: Node
    engines: tuple[str, ...] = LATER
    keys: str = ""


Node = Union[Leaf, ListOf, MapOf, Mapping[str, "Node"]]


def implemented(node: Node, engine: str) -> bool:
    """Tell whether an engine acts on a key, or on any key below it."""
    if isinstance(node, (Leaf, ListOf, MapOf)):
        return engine in node.engines
    if not node:
        return engine in LATER
    return any(implemented(child, engine) for child in node.values())


def needs_readings(node: Node) -> bool:
    """Tell whether a key, or every key below it, needs readings at run time."""
    if isinstance(node, Leaf):
        return node.readings
    return isinstance(node, Mapping) and bool(node) and all(needs_readings(child) for child in node.values())


def names(node: Mapping[str, Node], engine: str) -> list[str]:
    """Return the keys of a section that an engine implements, sorted."""
    return sorted(name for name, child in node.items() if implemented(child, engine))


def flag(default: bool | None = False, static: bool = False) -> Leaf:
    """Return a truth value."""
    return Leaf("bool", default, engines=ENGINES if static else LATER)


def percent(default: int | None, high: int | None = 100, low: int = 0, static: bool = False) -> Leaf:
    """Return a whole percentage; ``high`` None is without upper end."""
    return Leaf("int", default, low, high, engines=ENGINES if static else LATER)


def number(default: int | None, low: int | None, high: int | None = None) -> Leaf:
    """Return a whole number."""
    return Leaf("int", default, low, high)


def ratio(default: float | None = None, high: int | None = None) -> Leaf:
    """Return a number above 0, with or without a fraction."""
    return Leaf("number", default, 0, high)


def choice(default: str | None, *allowed: str, static: tuple[str, ...] = ()) -> Leaf:
    """Return one of some words; ``static`` are those that engine static acts on."""
    return Leaf("choice", default, choices=allowed, static_choices=static, engines=ENGINES if static else LATER)


def reading(default: int | None, low: int | None, high: int | None = None) -> Leaf:
    """Return a whole number that acts on readings at run time."""
    return Leaf("int", default, low, high, readings=True)

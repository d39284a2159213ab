# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the single values of a policy: one sentence for each that is not what its key takes."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import STATIC, Leaf

_LABEL = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z")
_LABEL_KEY = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z"
)
_MAX_PREFIX = 253
_INT64 = 2**63
_SHOWN = 60


def suggest(name: str, allowed: list[str]) -> str:
    """Return the list of what is allowed, with the likeliest meaning of a misspelled name first."""
    same = [item for item in allowed if item.lower() == name.lower()]
    close = same or difflib.get_close_matches(name, allowed, 1, 0.6)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}allowed: {', '.join(allowed) or 'nothing'}"


def shown(value: Any) -> str:
    """Return a value for a sentence, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def problems(value: Any, leaf: Leaf, path: str, engine: str) -> Iterator[str]:
    """Yield one sentence for each thing that is wrong with the value of a key."""
    check = {
        "bool": _flag,
        "int": _whole,
        "number": _number,
        "choice": _choice,
        "text": _text,
        "label": _label,
        "label_key": _label_key,
        "duration": _duration,
        "quantity": _quantity,
        "share": _share,
        "rate": _rate,
    }[leaf.kind]
    yield from (f"{path}: {problem}" for problem in check(value, leaf))
    if engine == STATIC and leaf.static_choices and value in leaf.choices and value not in leaf.static_choices:
        yield (
            f"{path}: {value} needs readings at run time, which engine static does not take; "
            f"allowed: {', '.join(leaf.static_choices)}"
        )


def _flag(value: Any, _leaf: Leaf) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{shown(value)} is not a truth value; write true or false, without quotes"


def _range(leaf: Leaf) -> str:
    if leaf.low is None and leaf.high is None:
        return ""
    return f" from {leaf.low} on" if leaf.high is None else f" from {leaf.low} to {leaf.high}"


def _whole(value: Any, leaf: Leaf) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield f"{shown(value)} is not a whole number; write one{_range(leaf)}"
    elif leaf.high is not None and value > leaf.high:
        yield f"{shown(value)} is above {leaf.high}; write a number{_range(leaf)}"
    elif leaf.low is not None and value < leaf.low:
        yield f"{shown(value)} is below {leaf.low}; write a number{_range(leaf)}"
    elif not -_INT64 <= value < _INT64:
        yield f"{shown(value)} does not fit into 64 bits; write a smaller number"


def _number(value: Any, leaf: Leaf) -> Iterator[str]:
    high = "" if leaf.high is None else f", up to {leaf.high}"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or (isinstance(value, float) and not math.isfinite(value)):
        yield f"{shown(value)} is not a number; write one above {leaf.low}{high}"
    elif (leaf.low is not None and value <= leaf.low) or (leaf.high is not None and value > leaf.high):
        yield f"{shown(value)} is out of range; write a number above {leaf.low}{high}"


def _choice(value: Any, leaf: Leaf) -> Iterator[str]:
    if value not in leaf.choices:
        yield f"{shown(value)} is not known; {suggest(str(value), list(leaf.choices))}"


def _text(value: Any, _leaf: Leaf) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{shown(value)} is not text; write it in quotes"
    elif not value.isprintable():
        yield f"{shown(value)} has characters that are not printable; write one line of text"


def _label(value: Any, _leaf: Leaf) -> Iterator[str]:
    if not isinstance(value, str) or not _LABEL.match(value):
        yield (
            f"{shown(value)} is not the value of a label; write text in quotes, up to 63 letters, digits and - _ ., "
            "a letter or digit at both ends"
        )


def _label_key(value: Any, _leaf: Leaf) -> Iterator[str]:
    good = isinstance(value, str) and _LABEL_KEY.match(value)
    if not good or len(value.rpartition("/")[0]) > _MAX_PREFIX:
        yield (
            f"{shown(value)} is not the key of a label, so the entry would match no node; write a name of up to 63 "
            "letters, digits and - _ ., if need be with a domain and / before it"
        )


def _duration(value: Any, _leaf: Leaf) -> Iterator[str]:
    try:
        quantity.parse_duration_ns(value)
    except quantity.QuantityError as exc:
        yield str(exc)


def _quantity(value: Any, _leaf: Leaf) -> Iterator[str]:
    try:
        negative = quantity.parse(value) < 0
    except quantity.QuantityError as exc:
        yield str(exc)
    else:
        if negative:
            yield f"{shown(value)} is negative; write 0 or more"


def _share(value: Any, leaf: Leaf) -> Iterator[str]:
    """Check a share: a whole number is a percentage of the node's bandwidth, text a quantity of bits per second."""
    if isinstance(value, str):
        yield from _quantity(value, leaf)
    elif isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:
        yield f"{shown(value)} is neither a percentage nor a quantity; write 0 to 100, or text such as '50M'"


def _rate(value: Any, _leaf: Leaf) -> Iterator[str]:
    try:
        zero = quantity.parse_byte_rate(value) == 0
    except quantity.QuantityError as exc:
        yield str(exc)
    else:
        if zero:
            yield f"{shown(value)} would let nothing pass; leave it out for no limit"

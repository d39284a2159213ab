# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy as people have it who use Koordinator already: its ConfigMap, or its data, whose sections are JSON texts.

Texts are read as Koordinator's manager reads them, for which ``MBAPercent`` is ``mbaPercent``; what it would leave out
without a word is refused: a key that is there twice, and numbers that are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import VOCABULARY
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import (
    Leaf,
    ListOf,
    MapOf,
    Node,
)

_KIND = "ConfigMap"
_COMMENT = re.compile(r"^\s*(?:#|//)", re.MULTILINE)


class TextError(Exception):
    """The text of a section cannot be read; the text says which, why, and what to do."""


class _TwiceError(Exception):
    """A key is there twice."""


def read(policy: Any, where: str) -> Any:
    """Return a policy whose sections are mappings; what is neither a ConfigMap nor has texts comes back as it is.

    Raises TextError.
    """
    if isinstance(policy, Mapping) and policy.get("kind") == _KIND:
        policy, where = policy.get("data") or {}, f"{where}.data"
    if not isinstance(policy, Mapping):
        return policy
    return {
        name: _section(value, VOCABULARY[name], f"{where}.{name}")
        if isinstance(name, str) and isinstance(value, str) and name in VOCABULARY
        else value
        for name, value in policy.items()
    }


def _section(text: str, node: Node, where: str) -> Any:
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        return _named(found, node)
    except _TwiceError as exc:
        raise TextError(f"{where}: has {exc} twice in one object, and Koordinator mixes the two; remove one") from exc
    except ValueError as exc:
        hint = "JSON has no comments, remove them" if _COMMENT.search(text) else "correct the text"
        raise TextError(f"{where}: is not JSON ({exc}), and Koordinator keeps its old values; {hint}") from exc


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _TwiceError(repr(name))
        found[name] = value
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _named(value: Any, node: Node) -> Any:
    """Return a value with its keys in the vocabulary's letters, whichever case they are written in."""
    if isinstance(node, ListOf):
        return [_named(item, node.item) for item in value] if isinstance(value, list) else value
    if not isinstance(value, dict) or isinstance(node, Leaf):
        return value
    if isinstance(node, MapOf):
        return {name: _named(item, node.value) for name, item in value.items()}
    letters = {name.lower(): name for name in node}
    pairs = [
        (name if name in node else letters.get(str(name).lower(), str(name)), item) for name, item in value.items()
    ]
    return {name: _named(item, node[name]) if name in node else item for name, item in _once(pairs).items()}

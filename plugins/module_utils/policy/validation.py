# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a policy against the vocabulary: every problem with its path, what is wrong and what is allowed.

Upstream ignores unknown keys silently; a policy that does nothing because of a typo would falsify a comparison, so here
nothing is ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import vocabulary
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import VOCABULARY, Leaf, Node

# Of a policy, not of Koordinator: for people.
DESCRIPTION = "description"


class PolicyError(Exception):
    """A policy cannot be used; ``problems`` has one sentence for each thing that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


def suggest(name: str, allowed: list[str]) -> str:
    """Return the list of what is allowed, with the likeliest meaning of a misspelled name first."""
    close = difflib.get_close_matches(name, allowed, 1, 0.6)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}allowed: {', '.join(allowed) or 'nothing'}"


def problems(policy: Any, where: str, engine: str = "static") -> list[str]:
    """Return one sentence for each thing in a policy that the engine cannot honour; none when it is good.

    ``where`` is the path of the policy itself, for the sentences.
    """
    if not isinstance(policy, Mapping):
        return [f"{where}: is {type(policy).__name__}, not a mapping of sections; {_sections(engine)}"]
    found = list(_walk({**policy, DESCRIPTION: None}, VOCABULARY, where, engine))
    if not isinstance(policy.get(DESCRIPTION, ""), str):
        found.append(f"{where}.{DESCRIPTION}: is not text; write a sentence")
    if not set(policy) - {DESCRIPTION}:
        found.append(f"{where}: has no section, so it would do nothing; {_sections(engine)}")
    return found + _cross(policy, where)


def _sections(engine: str) -> str:
    return f"allowed: {', '.join(vocabulary.names(VOCABULARY, engine))}"


def _walk(value: Mapping[str, Any], node: Mapping[str, Node], where: str, engine: str) -> Iterator[str]:
    for name, item in value.items():
        path = f"{where}.{name}"
        child = node.get(name)
        allowed = vocabulary.names(node, engine)
        if name == DESCRIPTION and node is VOCABULARY:
            continue
        if child is None:
            yield f"{path}: is not a key of Koordinator; {suggest(str(name), allowed)}"
        elif not vocabulary.implemented(child, engine):
            yield f"{path}: is known to Koordinator, but not yet to engine {engine}; {suggest('', allowed)}"
        elif isinstance(child, Leaf):
            yield from _leaf(item, child, path, engine)
        elif not isinstance(item, Mapping):
            yield f"{path}: is {type(item).__name__}, not a mapping; {suggest('', vocabulary.names(child, engine))}"
        else:
            yield from _walk(item, child, path, engine)


def _leaf(value: Any, leaf: Leaf, path: str, engine: str) -> Iterator[str]:
    if leaf.kind == "bool":
        if not isinstance(value, bool):
            yield f"{path}: {value!r} is not a truth value; write true or false, without quotes"
    elif leaf.kind == "int":
        if isinstance(value, bool) or not isinstance(value, int):
            yield f"{path}: {value!r} is not a whole number; write one from {leaf.low} to {leaf.high}"
        elif leaf.high is not None and value > leaf.high:
            yield f"{path}: {value} is above {leaf.high}; write a number from {leaf.low} to {leaf.high}"
        elif leaf.low is not None and value < leaf.low:
            yield f"{path}: {value} is below {leaf.low}; write a number from {leaf.low} to {leaf.high}"
    elif value not in leaf.choices:
        yield f"{path}: {value!r} is not known; {suggest(str(value), list(leaf.choices))}"
    elif engine == "static" and value not in leaf.static_choices:
        yield (
            f"{path}: {value} needs readings at run time, which engine static does not take; "
            f"allowed: {', '.join(leaf.static_choices)}"
        )


def _cross(policy: Mapping[str, Any], where: str) -> list[str]:
    """Check that no default of Koordinator applies that engine static cannot honour."""
    found = []
    for section, key, wanted in (
        ("resource-threshold-config.clusterStrategy", "cpuSuppressPolicy", "cfsQuota"),
        ("colocation-config", "memoryCalculatePolicy", "request"),
    ):
        strategy = lookup(policy, *section.split("."))
        if isinstance(strategy, Mapping) and strategy.get("enable") is True and key not in strategy:
            found.append(
                f"{where}.{section}.{key}: is missing, and Koordinator's default needs readings at run time, which "
                f"engine static does not take; write {wanted}"
            )
    return found


def lookup(value: Any, *names: str) -> Any:
    """Return a value by its path of keys, or None where a part is missing."""
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def check(policy: Any, where: str, engine: str = "static") -> None:
    """Raise PolicyError unless the engine can honour the whole policy."""
    found = problems(policy, where, engine)
    if found:
        raise PolicyError(found)

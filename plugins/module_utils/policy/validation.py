# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a policy against the vocabulary: every problem with its path, what is wrong and what is allowed.

Upstream ignores unknown keys silently; a policy that does nothing because of a typo would falsify a comparison, so here
nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    bandwidth,
    validation_pairs,
    validation_values,
    vocabulary,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import VOCABULARY
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import (
    OWN,
    STATIC,
    Leaf,
    ListOf,
    MapOf,
    Node,
    implemented,
    names,
    needs_readings,
)

# Of a policy, not of Koordinator: for people.
DESCRIPTION = "description"


class PolicyError(Exception):
    """A policy cannot be used; ``problems`` has one sentence for each thing that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


def problems(policy: Any, where: str, engine: str = STATIC) -> list[str]:
    """Return one sentence for each thing in a policy that the engine cannot honour; none when it is good.

    ``where`` is the path of the policy itself, for the sentences.
    """
    if not isinstance(policy, Mapping):
        return [f"{where}: is {quantity.kind_of(policy)}, not a mapping of sections; {_sections(engine)}"]
    sections = {name: value for name, value in policy.items() if name != DESCRIPTION}
    found = list(_mapping(sections, VOCABULARY, where, engine))
    if not any(text.startswith(f"{where}.{bandwidth.SECTION}") for text in found):
        found += bandwidth.problems(policy, where)
    if not isinstance(policy.get(DESCRIPTION, ""), str):
        found.append(f"{where}.{DESCRIPTION}: is not text; write a sentence")
    if not sections:
        found.append(f"{where}: has no section, so it would do nothing; {_sections(engine)}")
    # All pairs are of keys that engine static refuses one by one.
    return found + (_cross(policy, where) if engine == STATIC else validation_pairs.problems(policy, where))


def _sections(engine: str) -> str:
    return f"allowed: {', '.join(names(VOCABULARY, engine))}"


def _mapping(value: Mapping[str, Any], node: Mapping[str, Node], where: str, engine: str) -> Iterator[str]:
    for name, item in value.items():
        path = f"{where}.{name}"
        child = node.get(name) if isinstance(name, str) else None
        if child is None:
            yield f"{path}: is not a key of {_owner(node)}; {_meant(str(name), node, engine)}"
        elif not implemented(child, engine):
            yield f"{path}: {_why_not(name, child, engine)}; {suggest('', names(node, engine))}"
        else:
            yield from _node(item, child, path, engine)


def _why_not(name: str, child: Node, engine: str) -> str:
    if needs_readings(child):
        return f"needs readings at run time, which engine {engine} does not take"
    if name in vocabulary.OWN_SECTIONS:
        return f"is not a section of Koordinator, and engine {engine} acts on no others"
    return f"is known to Koordinator, but not yet to engine {engine}"


def _owner(node: Mapping[str, Node]) -> str:
    """Return whose word a key would have to be, by the engines of the keys that there are."""
    own = bool(node) and all(isinstance(child, Leaf) and child.engines == OWN for child in node.values())
    return "this collection" if own or node is VOCABULARY[bandwidth.SECTION] else "Koordinator"


def _meant(name: str, node: Mapping[str, Node], engine: str) -> str:
    """Return what is allowed; of the two names for lists of node entries, each is often written for the other."""
    allowed = names(node, engine)
    other = next((item for item in vocabulary.ENTRY_LISTS if item in node), None)
    if name in vocabulary.ENTRY_LISTS and other is not None:
        return f"did you mean {other}? allowed: {', '.join(allowed)}"
    return suggest(name, allowed)


def _node(item: Any, node: Node, path: str, engine: str) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield from validation_values.problems(item, node, path, engine)
    elif isinstance(node, ListOf):
        yield from _list(item, node, path, engine)
    elif not isinstance(item, Mapping):
        allowed = "write keys and values" if isinstance(node, MapOf) else suggest("", names(node, engine))
        yield f"{path}: is {quantity.kind_of(item)}, not a mapping; {allowed}"
    elif isinstance(node, MapOf):
        for name, value in item.items():
            if not isinstance(name, str) or not name:
                yield f"{path}: {validation_values.shown(name)} is not a key; write text in quotes"
            elif node.keys:
                yield from validation_values.problems(name, Leaf(node.keys), path, engine)
            yield from _node(value, node.value, f"{path}.{name}", engine)
    else:
        yield from _mapping(item, node, path, engine)


def _list(value: Any, node: ListOf, path: str, engine: str) -> Iterator[str]:
    if not isinstance(value, (list, tuple)):
        yield f"{path}: is {quantity.kind_of(value)}, not a list; write one entry in each line, with a dash before it"
        return
    for number, item in enumerate(value):
        yield from _node(item, node.item, f"{path}[{number}]", engine)
        for key in node.required if isinstance(item, Mapping) else ():
            if key not in item:
                yield f"{path}[{number}].{key}: is missing; add it (needed: {', '.join(node.required)})"


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


def check(policy: Any, where: str, engine: str = STATIC) -> None:
    """Raise PolicyError unless the engine can honour the whole policy."""
    found = problems(policy, where, engine)
    if found:
        raise PolicyError(found)

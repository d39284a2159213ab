# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a policy to what counts for one node: Koordinator's defaults, the cluster's values, the node entry's values.

Each layer overrides the one below it key by key; lists are replaced. Of the node entries the first whose selector
matches the node's labels counts. Expects a policy that validation has found good.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import vocabulary_qos
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import (
    Leaf,
    ListOf,
    MapOf,
    Node,
)

_PROFILE = ("name", "nodeSelector")
# The section whose node entries stand for the cluster's values, instead of lying over them.
_REPLACED = "host-application-config"


class OverlayError(Exception):
    """A policy has no such section; the text says which there are."""


@dataclass(frozen=True)
class Strategy:
    """What counts for one node in one section.

    ``values`` have every key that has a default or was given. ``given`` are the paths of keys that the policy gives,
    each with its path in the policy; ``entry`` is the node entry that matched (its number), None when none did.
    """

    section: str
    values: Mapping[str, Any]
    given: Mapping[tuple[str, ...], str]
    entry: int | None

    def get(self, *names: str) -> Any:
        """Return a value by its path of keys; None where nothing says one."""
        value: Any = self.values
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def path(self, *names: str) -> str:
        """Return the path in the policy of what gives a value; of a default, where the cluster would give it."""
        cluster = SECTIONS[self.section].cluster
        return self.given.get(names) or ".".join(filter(None, (self.section, cluster, *names)))


def merge(lower: Any, upper: Any) -> Any:
    """Return ``upper`` laid over ``lower`` as Koordinator does: mappings key by key, all else is replaced."""
    if not (isinstance(lower, Mapping) and isinstance(upper, Mapping)):
        return copy.deepcopy(upper)
    return {
        **lower,
        **{key: merge(lower[key], value) if key in lower else copy.deepcopy(value) for key, value in upper.items()},
    }


def defaults(node: Mapping[str, Node]) -> dict[str, Any]:
    """Return Koordinator's defaults of the keys of a strategy; keys that are unset by default are left out."""
    found: dict[str, Any] = {}
    for name, child in node.items():
        if isinstance(child, Leaf):
            if child.default is not None:
                found[name] = child.default
        elif not isinstance(child, (ListOf, MapOf)):
            found[name] = defaults(child)
    return found


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a node's labels meet a selector, as Kubernetes says: every label and every expression."""
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _expression(item, labels) for item in expressions
    )


def _expression(item: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(item["key"]), item.get("values") or ()
    return {
        "In": value is not None and value in values,
        "NotIn": value is None or value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[item["operator"]]


def strategy(policy: Mapping[str, Any], section: str, labels: Mapping[str, str], presets: bool = True) -> Strategy:
    """Return what counts in one section for a node with these labels. Raises OverlayError for an unknown section.

    ``colocation-config`` with ``enable: false`` (the default) for the cluster disables every node. ``presets``: neutral
    values stand in for disabled blocks, as Koordinator's agent has it; its manager leaves them as they are written.
    """
    shape = SECTIONS.get(section)
    if shape is None:
        raise OverlayError(f"policy section {section}: is not known; allowed: {', '.join(SECTIONS)}")
    whole = policy.get(section) or {}
    cluster = (whole.get(shape.cluster) or {}) if shape.cluster else _without(whole, (shape.entries,))
    values = merge(defaults(shape.strategy), cluster)
    prefix = ".".join(filter(None, (section, shape.cluster)))
    given = _given(cluster, (), prefix)
    number, entry = _first(whole.get(shape.entries) or (), labels)
    if entry is not None and section == _REPLACED:
        values = {"applications": [], **entry}
        given = _given(entry, (), f"{section}.{shape.entries}[{number}]")
    elif entry is not None:
        switched_off = section == "colocation-config" and values.get("enable") is not True
        values = merge(values, {**entry, "enable": False} if switched_off else entry)
        given = {**given, **_given(entry, (), f"{section}.{shape.entries}[{number}]")}
    if presets and section == "resource-qos-config":
        values = with_presets(values)
    return Strategy(section, values, given, number)


def _without(value: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in names}


def _first(entries: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> tuple[int | None, dict[str, Any] | None]:
    for number, entry in enumerate(entries):
        if matches(entry["nodeSelector"], labels):
            return number, _without(entry, _PROFILE)
    return None, None


def _given(value: Any, names: tuple[str, ...], path: str) -> dict[tuple[str, ...], str]:
    if not isinstance(value, Mapping):
        return {names: path}
    found: dict[tuple[str, ...], str] = {}
    for key, item in value.items():
        found.update(_given(item, (*names, key), f"{path}.{key}"))
    return found


def with_presets(qos: Mapping[str, Any]) -> dict[str, Any]:
    """Return classes in which disabled CPU, memory and cache blocks have Koordinator's neutral values.

    Not for the system class and the root group, nor for disks and network: Koordinator leaves those as they are.
    """
    found = dict(qos)
    for name in vocabulary_qos.WITH_PRESETS:
        blocks = dict(found.get(name) or {})
        for block, neutral in vocabulary_qos.PRESETS.items():
            if (blocks.get(block) or {}).get("enable") is not True:
                blocks[block] = {"enable": False, **neutral}
        found[name] = blocks
    return found

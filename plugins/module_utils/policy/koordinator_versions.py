# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a version of Koordinator has that the one before it lacks: keys of a policy, and feature gates.

An older manager ignores a newer key without a word, and an older program does not start with a newer gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import validation, validation_pairs

NEWEST = "1.8.0"
VERSIONS = ("1.7.0", NEWEST)

_KEYS_SINCE: Mapping[str, Mapping[str, str]] = {
    "colocation-config": dict.fromkeys(
        ("midReclaimMode", "midStaticCPUReservedPercent", "midStaticMemoryReservedPercent"), "1.8.0"
    ),
    "resource-threshold-config": dict.fromkeys(
        (
            *("cpuAllocatableEvictThresholdPercent", "cpuAllocatableEvictLowerPercent"),
            *("memoryAllocatableEvictThresholdPercent", "memoryAllocatableEvictLowerPercent"),
            "allocatableEvictPriorityThreshold",
        ),
        "1.8.0",
    ),
}
GATES_SINCE: Mapping[str, str] = {
    "CPUAllocatableEvict": "1.8.0",
    "MemoryAllocatableEvict": "1.8.0",
    "ColocationProfileSkipValidatingPriority": "1.8.0",
    "ElasticQuotaEvaluationTransformPod": "1.8.0",
    "ReplaceResourcesTransformer": "1.8.0",
}


def is_there(since: str, version: str) -> bool:
    """Tell whether a version has what there is since another."""
    return VERSIONS.index(since) <= VERSIONS.index(version)


def problems(policy: Mapping[str, Any], where: str, version: str) -> list[str]:
    """Return one sentence for each key of a checked policy that the version does not know."""
    return [text for section in _KEYS_SINCE for text in _problems(policy, where, version, section)]


def check(policy: Mapping[str, Any], where: str, version: str) -> None:
    """Raise PolicyError unless the version knows every key of a checked policy."""
    found = problems(policy, where, version)
    if found:
        raise validation.PolicyError(found)


def _problems(policy: Mapping[str, Any], where: str, version: str, section: str) -> Iterator[str]:
    for name, path, strategy in validation_pairs.strategies(policy, where):
        for key, since in _KEYS_SINCE[section].items() if name == section else ():
            if key in strategy and not is_there(since, version):
                yield (
                    f"{path}.{key}: is a key of Koordinator from {since} on, and {version} ignores it; remove it, or "
                    f"install {since}"
                )

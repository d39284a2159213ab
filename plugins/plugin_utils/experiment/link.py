# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tested node's link to the load node, divided as a mode's policy says: applied, read back, and taken back.

Programs are loaded once for a run; from mode to mode only devices are attached and detached, and maps change.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy.bandwidth import POOL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node

KINDS = ("pools", "classes", "devices")
#: Module and option of each kind, in the order in which they are taken back.
_TAKEN_BACK = (("bandwidth_device", "devices"), ("bandwidth_class", "classes"), ("bandwidth_pool", "pools"))
#: Key for what the kernel says of maps, programs and queueing disciplines as a whole.
KERNEL = "link/kernel"
AS_APPLIED = "as applied"
_LONGEST_NAME = 63
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]")


def instance(node: Node) -> str:
    """Return the name of the matrix's instance of the programs; hosts of a lab share the file system of their pins."""
    return _UNSAFE.sub("-", f"matrix-{node.name}")[:_LONGEST_NAME]


def values(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings in a result of the bandwidth modules as keys and texts, without counters and empty lists."""
    flat = {}
    for kind in KINDS:
        for name, settings in found.get(kind, {}).items():
            for key, value in settings.items():
                if key != "figures" and value not in (None, []):
                    flat[f"link/{kind}/{name}/{key}"] = value if isinstance(value, str) else json.dumps(value)
    return flat


class Link:
    """Carries out on the tested node what modes want of its link."""

    def __init__(self, node: Node, peer: str) -> None:
        """Remember the node, and the address or name of the load node; nothing is asked yet."""
        self._node = node
        self._peer = peer
        self._device = ""
        self._divided: Mapping[str, Any] | None = None
        self._results: dict[str, Any] = {}
        self._attached = True

    def clear(self) -> None:
        """Take away what a run that was killed has left."""
        if self._run("bandwidth_info", {})["exists"]:
            self.remove()

    def remove(self) -> None:
        """Take everything back; the device has what it had before."""
        for module, kind in _TAKEN_BACK:
            self._run(module, {kind: [], "purge": True})
        self._divided, self._attached = None, False

    def apply(self, wanted: Mapping[str, Any] | None) -> dict[str, dict[str, str]]:
        """Divide the link as wanted, or leave it alone where None is; return what was asked and what there is."""
        if wanted is None:
            if self._attached:
                self._run("bandwidth_device", {"devices": [], "purge": True})
                self._attached = False
            return {"wanted": {}, "applied": {}}
        if self._divided != wanted:
            if self._divided is not None:
                # Classes of another mode may ask for more than the pool of this one has.
                self._run("bandwidth_class", {"classes": [], "purge": True})
            pools = self._run("bandwidth_pool", {"pools": _plain(wanted["pools"]), "purge": True})
            classes = self._run("bandwidth_class", {"classes": _plain(wanted["classes"]), "purge": True})
            self._results = {"pools": pools["pools"], "classes": classes["classes"]}
            self._divided = wanted
        self._attached = True
        devices = self._run("bandwidth_device", self._devices())
        asked = {**values({**self._results, "devices": devices["devices"]}), KERNEL: AS_APPLIED}
        return {"wanted": asked, "applied": {**values(self._run("bandwidth_info", {})), KERNEL: AS_APPLIED}}

    def look_again(self) -> dict[str, str]:
        """Return the values that there are after a window, for those that no sample has."""
        compared = self._run("bandwidth_device", self._devices(), check_mode=True)
        found = AS_APPLIED
        if compared["changed"]:
            found = "; ".join(compared["commands"]) or "maps or records differ"
        return {**values(self._run("bandwidth_info", {})), KERNEL: found}

    def _devices(self) -> dict[str, Any]:
        if not self._device:
            facts = {"state_dir": self._node.state_dir, "route_to": self._peer}
            self._device = str(self._node.host.run("node_facts", facts)["route_device"])
        return {"devices": [{"name": self._device, "pool": POOL}], "purge": True}

    def _run(self, module: str, options: Mapping[str, Any], check_mode: bool | None = None) -> dict[str, Any]:
        given = {"instance": instance(self._node), "state_dir": self._node.state_dir, **options}
        return self._node.host.run(module, given, check_mode=check_mode)


def _plain(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(item) for item in items]

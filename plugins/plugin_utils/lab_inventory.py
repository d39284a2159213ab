# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of the lab, as their own variables in the inventory describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LabInventoryError(Exception):
    """A host of the lab lacks a variable; the text says which, and what to write."""


def hosts(names: Iterable[str], hostvars: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return name, address and CPU list of each host. Raises LabInventoryError where a host has no address."""
    found: list[dict[str, Any]] = []
    for name in names:
        variables = hostvars[name]
        if "ansible_host" not in variables:
            raise LabInventoryError(
                f"lab host {name} has no address: give it ansible_host in the inventory, an IPv4 address in lab_subnet"
            )
        cpus = str(variables.get("lab_cpus", "")) or str(variables.get("node_cpus", ""))
        found.append({"name": name, "address": str(variables["ansible_host"]), "cpus": cpus})
    return found

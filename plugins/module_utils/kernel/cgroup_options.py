# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of one group as a module takes them: their specification, and from them to a wanted group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_check, cgroup_devices, cgroup_keys
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group

BOOLEANS = ("cpu_idle", "memory_oom_group", "memory_use_priority_oom")


def group(raw: Mapping[str, Any]) -> Group:
    """Return what the options of one group ask for."""
    values = {name: raw[name] for name in cgroup_check.OPTIONS if raw.get(name) is not None}
    values.update({name: int(values[name]) for name in BOOLEANS if name in values})
    members = (tuple(raw[name]) for name in ("pids", "units", "process_names"))
    return Group(raw["name"], raw["state"], values, *members)


def _limits(name: str) -> dict[str, Any]:
    fields: dict[str, dict[str, Any]] = {field: {"type": "int"} for field in cgroup_devices.FIELDS[name]}
    if name == cgroup_devices.IO_LATENCY:
        fields["target_us"]["required"] = True
    return {"type": "list", "elements": "dict", "options": {"device": {"type": "str", "required": True}, **fields}}


def specification() -> dict[str, Any]:
    """Return the specification of one group's options, as AnsibleModule takes it."""
    options: dict[str, Any] = {}
    for key in cgroup_keys.KEYS:
        kind = "bool" if key.name in BOOLEANS else "str" if key.low is None else "int"
        options[key.name] = {"type": kind, **({"choices": list(key.choices)} if key.choices else {})}
    options.update({name: _limits(name) for name in cgroup_devices.FIELDS})
    options.update({name: {"type": "list", "elements": "str", "default": []} for name in ("units", "process_names")})
    options.update(
        name={"type": "str", "required": True},
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
        pids={"type": "list", "elements": "int", "default": []},
    )
    return options

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules on bandwidth have in common: their options, and how a call becomes a reconciliation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import plan, reconcile
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Place

ARGUMENTS: dict[str, dict[str, Any]] = {
    "instance": {"type": "str", "default": "main"},
    "bpffs": {"type": "path", "default": "/sys/fs/bpf"},
    "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
}


def listed(name: str, options: Mapping[str, Any], **conditions: Any) -> dict[str, dict[str, Any]]:
    """Return the options of a module that takes a list of things, and removes others on demand."""
    each = {"type": "list", "elements": "dict", "required": True, "options": dict(options), **conditions}
    return {**ARGUMENTS, name: each, "purge": {"type": "bool", "default": False}}


def place(params: Mapping[str, Any]) -> Place:
    """Return the instance that a call is about."""
    return Place(params["instance"], params["bpffs"], params["state_dir"])


def bring_about(
    params: Mapping[str, Any], edit: reconcile.Edit, named: frozenset[str], by: str, check: bool, host: plan.Host,
    look: bool = True,
) -> reconcile.Outcome:  # fmt: skip
    """Carry out what a call asks for, and say how long that took. Raises what reconcile.ERRORS lists."""
    begin_s = time.perf_counter()
    book = journal.of(params["state_dir"])
    done = reconcile.reconcile(place(params), edit, named, book, by, check, host, look)
    return replace(done, elapsed_ms=round((time.perf_counter() - begin_s) * 1000, 3))

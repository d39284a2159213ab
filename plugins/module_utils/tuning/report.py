# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows, diff and warnings of a tuned host, in the words that the module returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.tuning.plan import CHANGE, MISSING, Kept, Plan, Row


def _persisted(kept: Kept) -> dict[str, Any]:
    return {
        "wanted": kept.wanted,
        "before": kept.before,
        "file": kept.path or None,
        "supported": not kept.why,
        "reason": kept.why or None,
    }


def row(item: Row, live: Mapping[str, str | None], refused: Mapping[str, str]) -> dict[str, Any]:
    """Return one file of one setting: ``result`` is same, changed, refused or missing."""
    result = {CHANGE: "changed", MISSING: "missing"}.get(item.state, "same")
    why = item.why
    if item.path in refused:
        result, why = "refused", refused[item.path]
    return {
        "kind": item.setting.kind,
        "name": item.setting.name,
        "path": item.path or None,
        "result": result,
        "reason": why or None,
        "live": {"wanted": item.wanted, "before": item.before, "after": live.get(item.path, item.before)},
        "persisted": _persisted(item.kept),
    }


def predicted(plan: Plan) -> dict[str, str | None]:
    """Return what each file would hold after the plan, for check mode."""
    return {item.path: item.wanted if item.state == CHANGE else item.before for item in plan.rows if item.path}


def diff(plan: Plan, refused: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return one difference for the live values, and one for each drop-in file."""
    changed = [item for item in plan.rows if item.state == CHANGE and item.path not in refused]
    live = {
        "before": {item.path: item.before for item in changed},
        "after": {item.path: item.wanted for item in changed},
        "before_header": "live values",
        "after_header": "live values",
    }
    return [
        live,
        *(
            {
                "before": item.before or "",
                "after": item.text or "",
                "before_header": item.path,
                "after_header": item.path,
            }
            for item in plan.files
        ),
    ]


def missing(plan: Plan) -> list[str]:
    """Return a warning for each setting that the host lacks, and for each value that nobody can keep over a boot."""
    lacking = [f"{item.setting.label}: skipped, {item.why}" for item in plan.rows if item.state == MISSING]
    asked = [item for item in plan.rows if item.kept.asked and item.kept.why]
    unkept = dict.fromkeys(f"{item.setting.label}: not kept for the next boot: {item.kept.why}" for item in asked)
    return [*lacking, *unkept]

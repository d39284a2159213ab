# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What single role variables may hold, beyond their type: one row of the table for each, as the roles would fail on it.

Looked at before anything is made: what a role finds out itself, it finds when hosts and programs are there already.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.plugin_utils import ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIZE = re.compile(r"[1-9][0-9]{0,4}x[1-9][0-9]{0,4}")


@dataclass(frozen=True)
class Rule:
    """What is allowed in words, for the table, and the sentence about a value that is not (None: it is allowed)."""

    allowed: str
    problem: Callable[[str, Any], str | None]


def _whole(low: int, high: int, why: str) -> Rule:
    allowed = f"{low} to {high}"

    def problem(name: str, value: Any) -> str | None:
        if ranges.is_inside(value, (low, high)):
            return None
        return f"{name} is {value!r}: allowed are whole numbers from {allowed} ({why}); change it"

    return Rule(allowed, problem)


def _each(rule: Rule) -> Rule:
    def problem(name: str, value: Any) -> str | None:
        return next((text for item in value if (text := rule.problem(f"{name}, entry {item!r},", item))), None)

    return Rule(f"each {rule.allowed}", problem)


def _quantity(parse: Callable[[Any], int], example: str, what: str) -> Rule:
    def problem(name: str, value: Any) -> str | None:
        try:
            parse(value)
        except quantity.QuantityError as exc:
            return f"{name}: {exc}; allowed is {what} such as {example}"
        return None

    return Rule(f"{what}, {example}", problem)


def _group(name: str, value: Any) -> str | None:
    try:
        cgroup.check_name(str(value))
    except cgroup.CgroupError as exc:
        return f"{name}: {exc}"
    return None


def _absolute(name: str, value: Any) -> str | None:
    # A role that takes another's directory by default writes it with a template, and ~ is the host's to resolve.
    if str(value).startswith(("/", "~")):
        return None
    return f"{name} is {value!r}: allowed is an absolute path, since a relative one depends on where a task runs"


def _size(name: str, value: Any) -> str | None:
    if _SIZE.fullmatch(str(value)):
        return None
    return f"{name} is {value!r}: allowed are width and height in pixels, such as 1280x720"


def _word(name: str, value: Any) -> str | None:
    if str(value).strip() and not set(str(value)) & set(" \t\n"):
        return None
    return f"{name} is {value!r}: allowed is one word, the name of what ffmpeg has; ffmpeg -encoders lists them"


_PORT = _whole(*ranges.TCP_PORT, "TCP ports")
_CPU = _quantity(quantity.parse_cpu_milli, "500m", "a CPU quantity")
_MEMORY = _quantity(quantity.parse_bytes, "512Mi", "a memory quantity")
_PATH = Rule("an absolute path", _absolute)
_GROUP = Rule("a path of a control group", _group)

RULES: Mapping[str, Rule] = {
    "batch_workload_clip_rate_fps": _whole(1, 1000, "frames of the clip in a second"),
    "batch_workload_clip_seconds": _whole(1, 3600, "length of the clip"),
    "batch_workload_clip_size": Rule("such as 1280x720", _size),
    "batch_workload_codec": Rule("an encoder of ffmpeg", _word),
    "batch_workload_cpu_request": _CPU,
    "batch_workload_memory_request": _MEMORY,
    "batch_workload_peer_port": _PORT,
    "batch_workload_preset": Rule("a preset of the encoder", _word),
    "batch_workload_threads": _whole(1, 1024, "an aggressor has one worker at least"),
    "calibration_blocks": _whole(0, 1000, "0 deploys only"),
    "cgroup_policy_state_dir": _PATH,
    "host_tuning_state_dir": _PATH,
    "lab_cgroup_root": _GROUP,
    "lab_state_dir": _PATH,
    "latency_service_cpu_request": _CPU,
    "latency_service_memory_request": _MEMORY,
    "latency_service_page_bytes": _whole(*ranges.PAGE_BYTES, "size of the page"),
    "latency_service_page_seed": _whole(0, 2**31 - 1, "seed of the page's text"),
    "latency_service_port": _PORT,
    "latency_service_slow_pages_pct": _each(_whole(*ranges.SLOWDOWN_PCT, "slowdowns in percent")),
    "latency_service_worker_connections": _whole(1, 1_000_000, "connections of one worker"),
    "latency_service_worker_processes": _whole(1, 1024, "nginx needs one worker at least"),
    "load_generator_git_timeout_s": _whole(1, 3600, "seconds that fetching may take"),
    "node_cgroup_root": _GROUP,
    "node_state_dir": _PATH,
    "preflight_min_free_mib": _whole(0, 2**31 - 1, "space that must be free"),
    "reset_state_dir": _PATH,
    "resctrl_state_dir": _PATH,
}

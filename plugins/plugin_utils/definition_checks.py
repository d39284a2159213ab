# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mode and an aggressor may say. Each function returns sentences, each with the path of what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest

ENGINES = ("none", "static", "koordinator")
LATER_ENGINES = ("agent",)
OBJECTIVES = (
    "p50_added_pct",
    "p90_added_pct",
    "p99_added_pct",
    "p999_added_pct",
    "batch_work_kept_pct",
    "utilisation_won_points_min",
)
RESOURCES = ("cpu", "cache", "memory_bandwidth", "disk", "network")
WORK_KINDS = ("ffmpeg_progress", "cpu_time", "io_bytes", "net_bytes")
PLACEHOLDERS = ("clip", "threads", "codec", "preset", "progress", "directory", "peer_address", "port")
PORT_PLACEHOLDER = "{port}"
MAX_SLOWDOWN_PCT = 1000
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_BRACES = re.compile(r"\{([^{}]*)\}")


def _keys(value: Any, where: str, required: Sequence[str], optional: Sequence[str]) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{where}: is {quantity.kind_of(value)}, not a mapping; write its keys below it"
        return
    allowed = sorted([*required, *optional])
    for key in value:
        if key not in allowed:
            yield f"{where}.{key}: is not known; {suggest(str(key), allowed)}"
    for key in required:
        if key not in value:
            yield f"{where}.{key}: is missing; add it (needed: {', '.join(required)})"


def _text(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        yield f"{where}: {value!r} is not a line of text; write one"


def _choice(value: Any, where: str, allowed: Sequence[str]) -> Iterator[str]:
    if value not in allowed:
        yield f"{where}: {value!r} is not known; {suggest(str(value), list(allowed))}"


def _texts(value: Any, where: str, what: str) -> Iterator[str]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)) or not all(isinstance(x, str) for x in value):
        yield f"{where}: is not a list of texts; write {what}, numbers in quotes"


def _number(value: Any, where: str, low: float, high: float) -> Iterator[str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        yield f"{where}: {value!r} is not a number from {low:g} to {high:g}; write one"


def mode(value: Any, where: str, policies: Sequence[str]) -> list[str]:
    """Return what is wrong with a mode; ``policies`` are the names that are defined."""
    optional = ("title", "objectives", "service_slowdown_pct")
    found = list(_keys(value, where, ("description", "workloads", "policy", "engine"), optional))
    if not isinstance(value, Mapping):
        return found
    rules: dict[str, Callable[[Any, str], Iterator[str]]] = {
        "description": _text,
        "title": _text,
        "workloads": _workloads,
        "policy": lambda item, path: _choice("none" if item is None else item, path, ["none", *policies]),
        "engine": _engine,
        "objectives": _objectives,
        "service_slowdown_pct": lambda item, path: _number(item, path, 0, MAX_SLOWDOWN_PCT),
    }
    for key, rule in rules.items():
        if key in value:
            found += rule(value[key], f"{where}.{key}")
    return found or list(_mode_as_a_whole(value, where))


def _mode_as_a_whole(value: Mapping[str, Any], where: str) -> Iterator[str]:
    has_policy = value["policy"] not in (None, "none")
    if has_policy != (value["engine"] != "none"):
        yield (
            f"{where}: policy {value['policy'] or 'none'} with engine {value['engine']} would do nothing; "
            "give both a policy and engine static or koordinator, or none for both"
        )
    if has_policy and "batch" not in value["workloads"]:
        yield f"{where}.workloads: has no batch, which the policy is about; add batch, or set policy and engine to none"
    if value.get("objectives", {}).get("batch_work_kept_pct") is not None and "batch" not in value["workloads"]:
        yield f"{where}.objectives.batch_work_kept_pct: the mode runs no batch workload; add batch to workloads"


def _workloads(value: Any, where: str) -> Iterator[str]:
    if value not in (["service"], ["service", "batch"]):
        yield f"{where}: {value!r} is not possible; allowed: [service] or [service, batch]"


def _engine(value: Any, where: str) -> Iterator[str]:
    if value in LATER_ENGINES:
        yield f"{where}: {value!r} comes with a role that this version does not have; allowed: {', '.join(ENGINES)}"
    elif value not in ENGINES:
        yield (
            f"{where}: {value!r} is not an engine; allowed: {', '.join(ENGINES)} "
            f"({' and '.join(LATER_ENGINES)} comes with another role)"
        )


def _objectives(value: Any, where: str) -> Iterator[str]:
    yield from _keys(value, where, (), OBJECTIVES)
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in OBJECTIVES and item is not None:
                yield from _number(item, f"{where}.{key}", 0, 1000)


def normal_mode(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid mode with every key that judging and the driver read (docs/architecture.md)."""
    workloads = list(value["workloads"])
    return {
        "description": value["description"],
        "title": value.get("title", name),
        "workloads": workloads,
        "batch": "batch" in workloads,
        "policy": None if value["policy"] in (None, "none") else value["policy"],
        "engine": value["engine"],
        "service_slowdown_pct": value.get("service_slowdown_pct", 0),
        # A null takes an objective away that the definition below has.
        "objectives": {key: item for key, item in value.get("objectives", {}).items() if item is not None},
    }


def aggressor(value: Any, where: str) -> list[str]:
    """Return what is wrong with an aggressor."""
    found = list(_keys(value, where, ("description", "resource", "packages", "argv", "work"), ("title", "peer")))
    if not isinstance(value, Mapping):
        return found
    rules: dict[str, Callable[[Any, str], Iterator[str]]] = {
        "description": _text,
        "title": _text,
        "resource": lambda item, path: _choice(item, path, RESOURCES),
        "packages": _packages,
        "argv": _argv,
        "work": _work,
        "peer": _peer,
    }
    for key, rule in rules.items():
        if key in value:
            found += rule(value[key], f"{where}.{key}")
    if not found and value["work"]["kind"] == "ffmpeg_progress" and "{progress}" not in value["argv"]:
        found.append(f"{where}.argv: lacks {{progress}}, the file that work kind ffmpeg_progress reads; add it")
    return found


def _packages(value: Any, where: str) -> Iterator[str]:
    problem = list(_texts(value, where, "names of Debian packages, or []"))
    yield from problem
    for name in [] if problem else value:
        if not _PACKAGE.fullmatch(name):
            yield f"{where}: {name!r} is not the name of a package; write lower-case letters, digits and + . -"


def _argv(value: Any, where: str) -> Iterator[str]:
    problem = list(_texts(value, where, "the program and its arguments, one each"))
    yield from problem
    if not problem and not value:
        yield f"{where}: is empty; write the program and its arguments"
    for word in [] if problem else value:
        for name in _BRACES.findall(word):
            if name not in PLACEHOLDERS:
                yield f"{where}: {{{name}}} is not a placeholder; {suggest(name, list(PLACEHOLDERS))}"
        if "\0" in word:
            yield f"{where}: {word!r} holds a zero byte, which no argument can; remove it"


def _work(value: Any, where: str) -> Iterator[str]:
    yield from _keys(value, where, ("kind", "unit"), ())
    if isinstance(value, Mapping):
        if "kind" in value:
            yield from _choice(value["kind"], f"{where}.kind", WORK_KINDS)
        if "unit" in value:
            yield from _text(value["unit"], f"{where}.unit")


def _peer(value: Any, where: str) -> Iterator[str]:
    yield from _keys(value, where, ("argv", "packages"), ("ready_tcp_port",))
    if isinstance(value, Mapping):
        for key, rule in (("argv", _argv), ("packages", _packages)):
            if key in value:
                yield from rule(value[key], f"{where}.{key}")
        if "ready_tcp_port" in value:
            port = value["ready_tcp_port"]
            known = port == PORT_PLACEHOLDER or (isinstance(port, int) and not isinstance(port, bool))
            if not known or (isinstance(port, int) and not 1 <= port <= 65535):
                yield (
                    f"{where}.ready_tcp_port: {port!r} is not a port; write a number from 1 to 65535, or "
                    f"'{PORT_PLACEHOLDER}' for the variable batch_workload_peer_port"
                )

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scenario may say. Each function yields sentences, each with the path of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest

SHAPERS = ("ebpf", "htb", "tbf", "none")
DIRECTIONS = ("egress", "ingress", "both")
ROLES = ("online", "offline")
SHARES = ("none", "weights", "strict")
POOL_RATES = ("total", "waterline", "low", "high")
PLANES = ("edt", "htb", "police")
OBJECTIVES = (
    *("accuracy_pct_min", "accuracy_p95_pct_min", "utilisation_pct_min", "request_kept_pct_min"),
    *("switch_p95_ms_max", "transitions_per_change_max", "apply_ms_max", "rr_p50_us_max", "rr_p99_us_max"),
    *("program_ns_per_packet_max", "cpu_ratio_htb_max", "cpu_ratio_tbf_max", "overshoot_pct_max"),
)
FAMILIES = ("ipv4", "ipv6")
PROTOCOLS = ("tcp", "udp")
#: The most bytes of a datagram that is not cut in pieces at an MTU of 1500; who knows a packet by its port knows the
#: first piece only.
LONGEST_DATAGRAM = {"ipv4": 1472, "ipv6": 1452}
CASE_KEYS = ("direction", "family", "pool", "classes", "objectives", "shapers", "window", "block_factor")
CLASS_KEYS = (
    *("role", "direction", "priority", "request", "limit"),
    *("protocol", "flows", "message", "offered", "bursts", "probe", "count"),
)
MAX_BLOCK_FACTOR = 10
MAX_CLASSES = 500
MAX_FLOWS = 1000
_NAME = re.compile(r"[a-z0-9][A-Za-z0-9_]{0,39}")
_BYTES = re.compile(r"([1-9][0-9]{0,6})(B|KiB|MiB)")
_FACTORS = {"B": 1, "KiB": 1024, "MiB": 1024**2}


def message_bytes(text: Any) -> int:
    """Return bytes of a message's size such as 512B or 128KiB. Raises QuantityError."""
    found = _BYTES.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise quantity.QuantityError(f"{text!r}: is not a size; write a number with B, KiB or MiB, such as '128KiB'")
    return int(found[1]) * _FACTORS[found[2]]


def keys(value: Any, where: str, allowed: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the keys of a mapping."""
    if not isinstance(value, Mapping):
        yield f"{where}: is {type(value).__name__}, not a mapping; write its keys below it"
        return
    for key in value:
        if key not in allowed:
            yield f"{where}.{key}: is not known; {suggest(str(key), sorted(allowed))}"


def _line(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        yield f"{where}: {value!r} is not a line of text; write one"


def _choice(allowed: Sequence[str]) -> Callable[[Any, str], Iterator[str]]:
    def rule(value: Any, where: str) -> Iterator[str]:
        if value not in allowed:
            yield f"{where}: {value!r} is not known; {suggest(str(value), list(allowed))}"

    return rule


def _whole(low: int, high: int) -> Callable[[Any, str], Iterator[str]]:
    def rule(value: Any, where: str) -> Iterator[str]:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield f"{where}: {value!r} is not a whole number from {low} to {high}; write one"

    return rule


def _parsed(parse: Callable[[Any], Any]) -> Callable[[Any, str], Iterator[str]]:
    def rule(value: Any, where: str) -> Iterator[str]:
        try:
            found = parse(value)
        except quantity.QuantityError as exc:
            yield f"{where}: {exc}"
        else:
            if not found > 0:
                yield f"{where}: is {value}; write more than 0, or leave it out"

    return rule


def _flag(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{where}: {value!r} is neither true nor false; write one of them"


def _bursts(value: Any, where: str) -> Iterator[str]:
    yield from keys(value, where, ("length", "pause"))
    for key in ("length", "pause"):
        if isinstance(value, Mapping):
            if key not in value:
                yield f"{where}.{key}: is missing; give both length and pause, such as 60ms"
            else:
                yield from _parsed(quantity.parse_duration_ns)(value[key], f"{where}.{key}")


_RATE = _parsed(quantity.parse_byte_rate)
_CLASS_RULES: dict[str, Callable[[Any, str], Iterator[str]]] = {
    "role": _choice(ROLES),
    "direction": _choice(values.DIRECTIONS),
    "priority": _whole(0, values.PRIORITIES - 1),
    "request": _RATE,
    "limit": _RATE,
    "offered": _RATE,
    "protocol": _choice(PROTOCOLS),
    "flows": _whole(0, MAX_FLOWS),
    "count": _whole(1, MAX_CLASSES),
    "message": _parsed(message_bytes),
    "bursts": _bursts,
    "probe": _flag,
}


def _shapers(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, (list, tuple)) or not value:
        yield f"{where}: is not a list; name at least one of {', '.join(SHAPERS)}"
        return
    for item in value:
        yield from _choice(SHAPERS)(item, where)


def _pool(value: Any, where: str) -> Iterator[str]:
    yield from keys(value, where, (*POOL_RATES, "shares"))
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key in POOL_RATES:
            yield from _RATE(item, f"{where}.{key}")
        elif key == "shares":
            yield from _choice(SHARES)(item, f"{where}.{key}")


def _classes(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        yield f"{where}: is not a mapping of names to classes; write at least one"
        return
    for name, item in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield f"{where}.{name}: is not a name; use up to 40 letters, digits and _"
        yield from keys(item, f"{where}.{name}", CLASS_KEYS)
        for key, given in item.items() if isinstance(item, Mapping) else ():
            if key in _CLASS_RULES:
                yield from _CLASS_RULES[key](given, f"{where}.{name}.{key}")


def _objectives(value: Any, where: str) -> Iterator[str]:
    yield from keys(value, where, OBJECTIVES)
    for key, item in value.items() if isinstance(value, Mapping) else ():
        path = f"{where}.{key}"
        if isinstance(item, Mapping):
            yield from keys(item, path, PLANES)
            for plane, number in item.items():
                yield from _number(number, f"{path}.{plane}")
        else:
            yield from _number(item, path)


def _number(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1e9:
        yield f"{where}: {value!r} is not a number from 0 up; write one, or a mapping of planes to numbers"


_PART_RULES: dict[str, Callable[[Any, str], Iterator[str]]] = {
    "direction": _choice(DIRECTIONS),
    "family": _choice(FAMILIES),
    "block_factor": _whole(1, MAX_BLOCK_FACTOR),
    "pool": _pool,
    "classes": _classes,
    "objectives": _objectives,
    "shapers": _shapers,
    "window": _parsed(quantity.parse_duration_ns),
}


def scenario(value: Any, where: str) -> list[str]:
    """Return what is wrong with a scenario as written; a case is looked at in whole once this finds nothing."""
    found = list(keys(value, where, ("title", "description", "cases", *CASE_KEYS)))
    if not isinstance(value, Mapping):
        return found
    for key in ("title", "description"):
        found += _line(value[key], f"{where}.{key}") if key in value else [f"{where}.{key}: is missing; write a line"]
    cases = value.get("cases")
    if not isinstance(cases, Mapping) or not cases:
        return [*found, f"{where}.cases: is not a mapping of names to cases; write at least one"]
    parts = [(value, where), *((item, f"{where}.cases.{name}") for name, item in cases.items())]
    for name, item in cases.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            found.append(f"{where}.cases.{name}: is not a name; use up to 40 letters, digits and _")
        found += keys(item, f"{where}.cases.{name}", CASE_KEYS)
    for part, path in parts:
        if isinstance(part, Mapping):
            for key, rule in _PART_RULES.items():
                found += rule(part[key], f"{path}.{key}") if key in part else []
    return found

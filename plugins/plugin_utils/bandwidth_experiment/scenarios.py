# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios as data: the collection's own with the user's laid over them, validated, and resolved into plain cases.

A user adds one by an entry in ``bandwidth_matrix_scenarios``. An entry with the name of a built-in one changes the keys
that it gives; ``null`` takes a case away.
"""

from __future__ import annotations

import copy
import fnmatch
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import merge
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import (
    scenario_checks as checks,
)

VARIABLE = "bandwidth_matrix_scenarios"
FOLDER = "scenarios"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_DEFAULT_MESSAGE = {"tcp": "128KiB", "udp": "1448B"}
# YAML takes "on" and "off" for true and false, so they are called otherwise where people write them.
_BURSTS = (("length", "on_s"), ("pause", "off_s"))


class ScenariosError(Exception):
    """Scenarios cannot be used; ``problems`` has one sentence for each thing that is wrong, with its path."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


def load(collection_root: Path, given: Any, select: Sequence[str], shapers: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the chosen scenarios by name, as manifest.json has them; objectives may still be told by plane.

    :param given: the user's definitions, laid over the built-in ones.
    :param select: what is measured: names of scenarios, or ``scenario.case``, with wildcards as in a shell.
    :param shapers: of the scenarios' shapers, those that are measured.
    :raises ScenariosError: with all problems.
    """
    problems: list[str] = []
    merged, paths = _merged(collection_root, given, problems)
    for name, value in merged.items():
        problems += checks.scenario(value, paths[name])
    if problems:
        raise ScenariosError(problems)
    resolved = {name: _resolved(value, paths[name], problems) for name, value in merged.items()}
    chosen = _chosen(resolved, select, shapers, problems)
    if problems:
        raise ScenariosError(problems)
    return chosen


def _merged(root: Path, given: Any, problems: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    found: dict[str, Any] = {}
    for path in sorted((root / "files" / FOLDER).glob("*.yml")):
        try:
            found[path.stem] = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
            shown = " ".join(str(exc).split())
            problems.append(f"files/{FOLDER}/{path.name}: cannot be read: {shown}; restore it from the collection")
    paths = {name: f"files/{FOLDER}/{name}.yml" for name in found}
    if not isinstance(given, Mapping):
        problems.append(f"{VARIABLE}: is {type(given).__name__}, not a mapping of names to scenarios; write one")
        return found, paths
    for name, value in given.items():
        where = f"{VARIABLE}.{name}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(f"{where}: is not a name; use up to 40 lower-case letters, digits and _, a letter first")
        elif not isinstance(value, Mapping):
            problems.append(f"{where}: is {type(value).__name__}, not a mapping; write its keys below it")
        else:
            found[name] = _without_nulls(merge(copy.deepcopy(found.get(name, {})), value))
            paths[name] = where
    return found, paths


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    cases = value.get("cases")
    if isinstance(cases, Mapping):
        value["cases"] = {name: item for name, item in cases.items() if item is not None}
    return value


def _resolved(value: Mapping[str, Any], where: str, problems: list[str]) -> dict[str, Any]:
    shared = {key: value[key] for key in checks.CASE_KEYS if key in value}
    cases = {}
    for name, item in value["cases"].items():
        path = f"{where}.cases.{name}"
        case, found = _case(merge(copy.deepcopy(shared), item), path)
        problems += found
        cases[name] = case
    return {"title": value["title"], "description": value["description"], "cases": cases}


def _case(raw: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[str]]:
    missing = [key for key in ("direction", "classes", "shapers") if key not in raw]
    problems = [f"{where}: has no {key}; give it here or for the scenario" for key in missing]
    if problems:
        return {}, problems
    classes: dict[str, Any] = {}
    for name, item in raw["classes"].items():
        problems += _class_problems(raw, item, f"{where}.classes.{name}")
        classes.update(_spread(name, _class(item, raw["direction"])))
    case = {
        "direction": raw["direction"],
        "family": raw.get("family", "ipv4"),
        "pool": _pool(raw.get("pool") or {}),
        "classes": classes,
        "objectives": dict(raw.get("objectives") or {}),
        "shapers": list(dict.fromkeys(raw["shapers"])),
        "window_s": quantity.parse_duration_ns(raw["window"]) / 1e9 if "window" in raw else None,
        "block_factor": raw.get("block_factor", 1),
    }
    return case, problems or list(_whole(raw, case, where))


def _class(raw: Mapping[str, Any], direction: str) -> dict[str, Any]:
    bursts, protocol = raw.get("bursts"), raw.get("protocol", "tcp")
    return {
        "role": raw.get("role", "online"),
        "direction": raw.get("direction", direction),
        "priority": raw.get("priority", 0),
        **{f"{key}_bps": _bps(raw.get(key)) for key in ("limit", "request", "offered")},
        "flows": raw.get("flows", 1),
        "message_bytes": checks.message_bytes(raw.get("message", _DEFAULT_MESSAGE[protocol])),
        "protocol": protocol,
        "bursts": bursts and {to: quantity.parse_duration_ns(bursts[key]) / 1e9 for key, to in _BURSTS},
        "probe": raw.get("probe", False),
        "count": raw.get("count"),
    }


def _spread(name: str, item: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the classes that one entry stands for."""
    count = item.pop("count")
    names = [name] if count is None else [f"{name}_{number:03d}" for number in range(1, count + 1)]
    return {each: dict(item) for each in names}


def _bps(text: Any) -> int | None:
    return None if text is None else quantity.parse_bit_rate(text)


def _pool(raw: Mapping[str, Any]) -> dict[str, Any]:
    rates = {f"{key}_bps": _bps(raw.get(key)) for key in checks.POOL_RATES}
    return {**rates, "shares": raw.get("shares", "none")}


def _class_problems(case: Mapping[str, Any], raw: Mapping[str, Any], where: str) -> list[str]:
    found, direction = [], case["direction"]
    if direction == "both" and "direction" not in raw:
        found.append(f"{where}: has no direction; say egress or ingress, as the case is for both")
    if direction != "both" and raw.get("direction", direction) != direction:
        found.append(f"{where}.direction: is {raw['direction']} in a case for {direction}; make the case for both")
    if "bursts" in raw and "offered" not in raw:
        found.append(f"{where}.bursts: need offered, the rate at which the class sends meanwhile; add it")
    if not raw.get("flows", 1) and not raw.get("probe"):
        found.append(f"{where}.flows: is 0, so that the class sends nothing; set probe, or give it a flow")
    longest = checks.LONGEST_DATAGRAM[case.get("family", "ipv4")]
    if raw.get("protocol") == "udp" and "message" in raw and checks.message_bytes(raw["message"]) > longest:
        found.append(f"{where}.message: is more than {longest} B, so that a datagram would be cut in pieces; lower it")
    return found


def _whole(raw: Mapping[str, Any], case: Mapping[str, Any], where: str) -> list[str]:
    """Return what is wrong with a case as a whole, as the modules would say it."""
    classes = case["classes"]
    found = []
    if len(classes) > checks.MAX_CLASSES:
        found.append(f"{where}.classes: come to {len(classes)}; at most {checks.MAX_CLASSES} are possible")
    for direction in values.DIRECTIONS if "tbf" in case["shapers"] else ():
        here = [item for item in classes.values() if item["direction"] == direction]
        limited = sum(item["limit_bps"] is not None for item in here)
        if here and limited != 1:
            found.append(
                f"{where}.shapers: tbf has one rate for all, but {limited} classes are limited for {direction}; "
                "take tbf out, or limit one class"
            )
    try:
        _as_the_modules_check(raw, case)
    except values.BandwidthError as exc:
        found.append(f"{where}: {exc}")
    return found


def _as_the_modules_check(raw: Mapping[str, Any], case: Mapping[str, Any]) -> None:
    pool = values.pool({**(raw.get("pool") or {}), "name": "pool"})
    made = {}
    for name, item in case["classes"].items():
        rates = {key: f"{item[f'{key}_bps']}bit/s" for key in ("limit", "request") if item[f"{key}_bps"]}
        made[name] = values.traffic_class({"name": name, "pool": "pool", "cgroups": [name], **rates})
        if pool.total and made[name].limit > pool.total:
            raise values.BandwidthError(f"class {name}: limit is above the pool's total; lower it")
    values.check(values.Policy({"pool": pool}, made, {"pool": 0}, {}))


def _chosen(
    resolved: Mapping[str, Mapping[str, Any]], select: Sequence[str], shapers: Sequence[str], problems: list[str]
) -> dict[str, dict[str, Any]]:
    everything = [f"{name}.{case}" for name, scenario in resolved.items() for case in scenario["cases"]]
    wanted: dict[str, None] = {}
    for pattern in select:
        found = [key for key in everything if fnmatch.fnmatchcase(key, pattern if "." in pattern else f"{pattern}.*")]
        if not found:
            hint = suggest(str(pattern), sorted([*resolved, *everything]))
            problems.append(f"bandwidth_matrix_select: {pattern!r} names no scenario or case; {hint}")
        wanted.update(dict.fromkeys(found))
    chosen = {}
    for name, scenario in resolved.items():
        cases = {case: dict(item) for case, item in scenario["cases"].items() if f"{name}.{case}" in wanted}
        for item in cases.values():
            item["shapers"] = [shaper for shaper in item.get("shapers", []) if shaper in shapers]
        kept = {case: item for case, item in cases.items() if item["shapers"]}
        if kept:
            together = [shaper for shaper in checks.SHAPERS if any(shaper in item["shapers"] for item in kept.values())]
            chosen[name] = {**scenario, "cases": kept, "shapers": together}
    if not chosen and not problems:
        problems.append("bandwidth_matrix_select: nothing is left to measure by these shapers; select more")
    return chosen

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sections that say what was measured: modes and policies as applied, hosts, versions, load, how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import MeasurementRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import (
    Child,
    Html,
    definitions,
    details,
    join,
    table,
    tag,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.matrix_tables import mode_label
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Json, Mode, Outcome
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory

_UNITS = (
    ("_bytes", "bytes"),
    ("_rps", "requests/s"),
    ("_pct", "%"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_bps", "bit/s"),
    ("_s", "s"),
)


def modes(view: View, run: RunDirectory, records: Sequence[MeasurementRecord]) -> Html:
    """Make one part a mode: its definition, and the values that were read back from the kernel."""
    return join([_mode(view, mode, run, records) for mode in view.modes])


def _mode(view: View, mode: Mode, run: RunDirectory, records: Sequence[MeasurementRecord]) -> Html:
    definition = (view.manifest.get("modes") or {}).get(mode.name) or {}
    policy_name = definition.get("policy") if isinstance(definition, Mapping) else None
    policy = (view.manifest.get("policies") or {}).get(policy_name) if isinstance(policy_name, str) else None
    record = next((item for item in records if item.mode == mode.name and item.kept), None)
    pieces: list[Child] = [tag("h3", mode_label(mode))]
    if definition:
        pieces.append(_structure(f"Mode {mode.name} as defined", definition))
    if policy:
        pieces.append(_structure(f"Policy {policy_name} as defined", policy))
    pieces.append(_applied(run, record, str(definition.get("engine") or "")))
    return tag("div", pieces, class_="mode-part")


def _structure(title: str, value: object) -> Html:
    return details(title, tag("pre", json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)))


def _applied(run: RunDirectory, record: MeasurementRecord | None, engine: str) -> Html:
    if record is None:
        return tag("p", "No measurement of this mode counts, so no applied values are shown.", class_="nothing")
    nothing = "This mode sets nothing: the groups keep the kernel's values."
    if engine == "koordinator":
        nothing = "Koordinator's agent sets the values of this mode; none of them was asked for by name."
    return applied(run.policy(record), f"Values read back inside {record.name}", "Kernel file", nothing)


def applied(policy: Json, caption: str, what: str, nothing: str) -> Html:
    """Make the table of what was asked for and what was read back, or say that it is ``nothing``."""
    wanted, found = policy.get("wanted") or {}, policy.get("applied") or {}
    if not wanted and not found:
        return tag("p", nothing, class_="nothing")
    rows = []
    for key in sorted({*wanted, *found}):
        asked, got = wanted.get(key), found.get(key)
        same = key not in wanted or str(asked) == str(got)
        rows.append([tag("span", key, class_="mono"), _value(asked), _value(got), "" if same else "differs"])
    return table([what, "Asked", "Read back", ""], rows, caption=caption, class_="plain policy")


def _value(value: object) -> Child:
    if value is None:
        return tag("span", numerals.NONE, class_="nothing")
    return tag("span", str(value), class_="mono")


def hosts(view: Outcome) -> Html:
    """Make one card a host."""
    cards = []
    for name, facts in view.hosts.items():
        pairs: dict[str, Child] = {
            "Processor": str(facts.get("cpu_model") or ""),
            "CPUs": _listed(facts.get("cpus")),
            "Measured CPUs": _listed(facts.get("measured_cpus")),
            "Memory": numerals.mebibytes(facts.get("memory_bytes")),
            "Kernel": str(facts.get("kernel") or ""),
            "Control groups": str(facts.get("cgroup") or ""),
            "Virtualisation": str(facts.get("virtualization") or "none found"),
            "Service manager": str(facts.get("service_manager") or ""),
            "PM QoS held at 0 µs": _yes_no(facts.get("pm_qos")),
            "Clock offset": _offset(facts.get("clock_offset_s")),
        }
        role = f"{facts.get('role', '?')} node"
        cards.append(tag("div", tag("h3", name, tag("small", role)), definitions(pairs), class_="card facts-card"))
    return tag("div", cards, class_="cards") if cards else tag("p", "The manifest names no host.", class_="nothing")


def _listed(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _yes_no(value: object) -> str:
    if value is None:
        return "not recorded"
    return "yes" if value else "no"


def _offset(value: object) -> str:
    return "" if value is None else f"{float(str(value)) * 1000:.3g}{numerals.NBSP}ms"


def versions(view: Outcome) -> Html:
    """Make the list of versions."""
    found = view.manifest.get("versions") or {}
    return definitions({str(name): _free(value) for name, value in sorted(found.items())})


def parameters(view: View) -> Html:
    """Make the lists of load, service, batch workload, schedule and guard limits."""
    titles = {
        "load": "Load",
        "service": "Latency service",
        "batch": "Batch workload",
        "schedule": "Schedule",
        "limits": "Guard limits",
    }
    return fact_cards({title: view.manifest.get(key) for key, title in titles.items()})


def fact_cards(parts: Mapping[str, object]) -> Html:
    """Make a card with names and values of each part; those without any are left out."""
    cards = []
    for title, found in parts.items():
        if isinstance(found, Mapping) and found:
            pairs = {str(name).replace("_", " "): _with_unit(str(name), value) for name, value in found.items()}
            cards.append(tag("div", tag("h3", title), definitions(pairs), class_="card facts-card"))
    return tag("div", cards, class_="cards")


def _with_unit(name: str, value: object) -> str:
    text = _free(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return text
    unit = next((unit for suffix, unit in _UNITS if name.endswith(suffix)), "")
    return f"{text}{numerals.NBSP}{unit}" if unit else text


def _free(value: object) -> str:
    if isinstance(value, bool):
        return _yes_no(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_free(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_free(item) for item in value)
    return numerals.NONE if value is None else str(value)


def repeat(view: Outcome) -> Html:
    """Make the part that says how to repeat the run."""
    manifest = view.manifest
    command = manifest.get("command")
    text = " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command or "")
    pieces: list[Child] = []
    if text:
        copy = tag("button", "Copy", type_="button", class_="copy", hidden=True)
        pieces.append(tag("div", tag("pre", tag("code", text)), copy, class_="command"))
    seed = (manifest.get("schedule") or {}).get("seed")
    pieces.append(
        definitions(
            {
                "Run": view.run_id,
                "Seed": "" if seed is None else str(seed),
                "Began": view.created,
                "Ended": str(manifest.get("finished") or "cut short"),
                "Fingerprint of what can be compared": str(manifest.get("fingerprint") or ""),
            }
        )
    )
    return join(pieces)

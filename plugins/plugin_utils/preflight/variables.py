# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the user's role variables, because Ansible ignores misspelled ones and does not convert texts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.plugin_utils import ranges
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import values
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

Options = dict[str, dict[str, Any]]

#: Facts that roles set for later plays; they share the roles' prefixes, and are nobody's setting.
SET_BY_ROLES = frozenset(
    {
        "batch_workload_deployed",
        "cgroup_policy_result",
        "latency_service_deployed",
        "load_generator_wrk",
        "matrix_result",
        "node_access_deployed",
        "node_deployed",
        "report_result",
        "resctrl_deployed",
        "bandwidth_matrix_result",
        "bandwidth_traffic_deployed",
    }
)

#: What a value of each type is called, and how one is written in JSON on the command line.
_KINDS = {
    "bool": ("a bool", "true"),
    "int": ("a whole number", "1"),
    "float": ("a number", "0.5"),
    "list": ("a list", "[…]"),
    "dict": ("a mapping", "{…}"),
    "str": ("a text", '"…"'),
    "path": ("a text", '"…"'),
}
#: A name of a role this short is also found in other people's words.
_LONG_NAME = 6
#: In a shorter one any slip makes the name of something else (lab, lb, alb).
_SHORT_NAME = 4
_OWN_PREFIX_CUTOFF = 0.8
_OTHER_PREFIX_CUTOFF = 0.9
_SWAPPED_CUTOFF = 0.85


def role_options(roles_dir: Path) -> Options:
    """Return every role variable with its specification, from the roles' argument_specs."""
    options: Options = {}
    for spec in sorted(roles_dir.glob("*/meta/argument_specs.yml")):
        document = yaml.safe_load(spec.read_text(encoding="utf-8"))
        options.update(document["argument_specs"]["main"].get("options") or {})
    return options


def concerns(name: str, options: Options, roles: frozenset[str]) -> bool:
    """Return whether a variable is one of a role, or might be meant as one."""
    return name not in SET_BY_ROLES and (_belongs(name, roles) or _meant(name, options, roles) is not None)


def check(variables: Mapping[str, Any], options: Options, roles: frozenset[str], where: str) -> Iterator[Row]:
    """Yield a row for each variable that no role knows, and for each value that its role could not use.

    :param variables: the variables of one host; those that ``concerns`` leaves out are passed over.
    :param where: the host, for the table.
    """
    for name in sorted(variables):
        if not concerns(name, options, roles):
            continue
        if name not in options:
            yield _unknown(name, options, roles, where)
        else:
            yield from _valued(name, variables[name], options[name], where)


def _belongs(name: str, roles: frozenset[str]) -> bool:
    return any(name.startswith(f"{role}_") for role in roles)


def _meant(name: str, options: Options, roles: frozenset[str]) -> str | None:
    """Return the variable whose role is misspelled in a name, or None for a name of somebody else's.

    A short role name with one other letter is another word (node, mode, code), so there only letters that changed
    places or got lost are taken for a slip.
    """
    if name in options or _belongs(name, roles) or "_" not in name or name.startswith(("ansible_", "_")):
        return None
    for near in difflib.get_close_matches(name, options, n=3, cutoff=_SWAPPED_CUTOFF):
        role = next(item for item in sorted(roles, key=len, reverse=True) if near.startswith(f"{item}_"))
        written = name[: len(name) - len(near) + len(role)]
        lost = len(written) == len(role) - 1 and any(role[:at] + role[at + 1 :] == written for at in range(len(role)))
        swapped = sorted(written) == sorted(role) and name[len(written) :] == near[len(role) :]
        close = difflib.SequenceMatcher(None, near, name).ratio() >= _OTHER_PREFIX_CUTOFF
        slip = (swapped or (close and lost)) and len(role) >= _SHORT_NAME
        if slip or (close and len(role) >= _LONG_NAME):
            return near
    return None


def _unknown(name: str, options: Options, roles: frozenset[str], where: str) -> Row:
    near = _meant(name, options, roles) or next(
        iter(difflib.get_close_matches(name, options, n=1, cutoff=_OWN_PREFIX_CUTOFF)), None
    )
    if near:
        hint = f"no role has a variable {name}; did you mean {near}?"
        return Row(name, where, "a role's variable", "unknown", "missing", hint)
    # Prefixes such as node_ are common: what resembles none of ours is probably somebody else's.
    hint = f"no role of this collection has a variable {name}; it is ignored"
    return Row(name, where, "a role's variable", "unknown", "degraded", hint)


def _valued(name: str, value: Any, option: Mapping[str, Any], where: str) -> Iterator[Row]:
    """Yield a row for a value of another type, outside the choices, or outside what the role can do with it."""
    kind = str(option.get("type", "str"))
    if value is None:
        if "default" in option:
            yield _row(name, where, _KINDS.get(kind, (kind,))[0], "nothing", f"{name} is null: give it a value")
        return
    if not _is_of(value, kind) or not _elements_fit(value, option):
        yield _mistyped(name, value, option, where)
    elif "choices" in option and not _is_chosen(value, option):
        allowed = ", ".join(map(str, option["choices"]))
        yield _row(name, where, allowed, str(value), f"{name} is {value!r}; allowed are {allowed}")
    elif name in values.RULES:
        problem = values.RULES[name].problem(name, value)
        if problem:
            yield _row(name, where, values.RULES[name].allowed, str(value), problem)


def _row(name: str, where: str, needed: str, found: str, problem: str) -> Row:
    return Row(name, where, needed, found, "missing", problem)


def _mistyped(name: str, value: Any, option: Mapping[str, Any], where: str) -> Row:
    kind = str(option.get("type", "str"))
    needed, example = _KINDS[kind]
    if _is_of(value, kind):
        wanted = _KINDS[str(option["elements"])][0].removeprefix("a ")
        problem = f"{name} is {value!r}: allowed is {needed} in which each entry is a {wanted}; correct it"
        return _row(name, where, f"{needed} of {wanted}s", str(value), problem)
    problem = f"{name} is {value!r}, {quantity.kind_of(value)}, where {needed} is needed"
    if isinstance(value, str):
        problem += (
            f"; -e name=value always makes a text, so write -e '{{\"{name}\": {example}}}' or set it in the inventory"
        )
    return _row(name, where, needed, f"{quantity.kind_of(value).removeprefix('a ')} {value!r}", problem)


def _is_of(value: Any, kind: str) -> bool:
    """Return whether a value is of a type, or one that Ansible turns into it without loss."""
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "int":
        return ranges.whole(value) is not None
    if kind == "float":
        return _is_number(value)
    if kind == "list":
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if kind == "dict":
        return isinstance(value, Mapping)
    if kind in ("str", "path"):
        return isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return True


def _elements_fit(value: Any, option: Mapping[str, Any]) -> bool:
    elements = str(option.get("elements", "raw"))
    return option.get("type") != "list" or all(_is_of(item, elements) for item in value)


def _is_chosen(value: Any, option: Mapping[str, Any]) -> bool:
    if isinstance(value, (list, tuple)):
        return all(item in option["choices"] for item in value)
    return value in option["choices"] or ranges.whole(value) in option["choices"]


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and float(value) == float(value)
    except (TypeError, ValueError):
        return False

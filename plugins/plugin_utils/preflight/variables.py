# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the user's role variables, because Ansible ignores misspelled ones and does not convert texts."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Options = dict[str, dict[str, Any]]

#: Facts that roles set for later plays; they share the roles' prefixes, and are nobody's setting.
SET_BY_ROLES = frozenset(
    {
        *("node_deployed", "latency_service_deployed", "batch_workload_deployed", "load_generator_wrk"),
        *("matrix_result", "bandwidth_traffic_deployed", "bandwidth_matrix_result"),
    }
)

_ARTICLES = {"int": "an"}


def role_options(roles_dir: Path) -> Options:
    """Return every role variable with its specification, from the roles' argument_specs."""
    options: Options = {}
    for spec in sorted(roles_dir.glob("*/meta/argument_specs.yml")):
        document = yaml.safe_load(spec.read_text(encoding="utf-8"))
        options.update(document["argument_specs"]["main"].get("options") or {})
    return options


def check(variables: Mapping[str, Any], options: Options, roles: frozenset[str], where: str) -> Iterator[Row]:
    """Yield a row for each variable that no role knows, or whose value is a text where it must not be one.

    :param variables: the variables of one host; only those that begin with a role's name are looked at.
    :param where: the host, for the table.
    """
    for name in sorted(variables):
        if not _belongs(name, roles) or name in SET_BY_ROLES:
            continue
        if name not in options:
            yield _unknown(name, options, where)
        else:
            yield from _typed(name, variables[name], options[name], where)


def _belongs(name: str, roles: frozenset[str]) -> bool:
    return any(name.startswith(f"{role}_") for role in roles)


def _unknown(name: str, options: Options, where: str) -> Row:
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.8)
    if near:
        hint = f"no role has a variable {name}; did you mean {near[0]}?"
        return Row(name, where, "a role's variable", "unknown", "missing", hint)
    # Prefixes such as node_ are common: what resembles none of ours is probably somebody else's.
    hint = f"no role of this collection has a variable {name}; it is ignored"
    return Row(name, where, "a role's variable", "unknown", "degraded", hint)


def _typed(name: str, value: Any, option: Mapping[str, Any], where: str) -> Iterator[Row]:
    kind = option.get("type", "str")
    if isinstance(value, str) and kind in ("bool", "int", "float", "list", "dict"):
        if kind in ("int", "float") and _is_number(value, kind):
            return
        example = {"bool": "true", "int": "1", "float": "0.5", "list": "[…]", "dict": "{…}"}[kind]
        yield Row(
            name,
            where,
            kind,
            f"text {value!r}",
            "missing",
            f"{name} is the text {value!r} where {_ARTICLES.get(kind, 'a')} {kind} is needed; "
            f"-e name=value always makes a text, "
            f"so write -e '{{\"{name}\": {example}}}' or set it in the inventory",
        )
    elif "choices" in option and value not in option["choices"] and not isinstance(value, list):
        allowed = ", ".join(map(str, option["choices"]))
        yield Row(name, where, allowed, str(value), "missing", f"{name} is {value!r}; allowed are {allowed}")


def _is_number(value: str, kind: str) -> bool:
    try:
        int(value) if kind == "int" else float(value)
    except ValueError:
        return False
    return True

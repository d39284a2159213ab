# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From components as roles describe them (program, flags, environment, health) to processes of the module process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_OWN = {"program", "flags", "arguments"}
_PASSED = {
    *("env", "cpus", "config_files", "ready", "ready_timeout_s", "stop_signal", "stop_timeout_s", "directory"),
    *("port_setting", "group"),
}


class ComponentError(Exception):
    """A component is not described as it must be; the text names it and the key."""


def flag_words(flags: Mapping[str, Any]) -> list[str]:
    """Return flags as arguments, `--name=value` each; a null or an empty mapping leaves one out.

    A list is joined by commas, and so is a mapping of words, `key=value` each.
    """
    return [f"--{name}={_text(value)}" for name, value in flags.items() if value is not None and value != {}]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(f"{key}={value[key]}" for key in sorted(value))
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def process(name: str, raw: Mapping[str, Any], bin_dir: str, prefix: Sequence[str]) -> dict[str, Any]:
    """Return one component as an entry of module process. Raises ComponentError for keys that are unknown."""
    unknown = sorted(set(raw) - _OWN - _PASSED)
    if unknown:
        known = ", ".join(sorted(_OWN | _PASSED))
        raise ComponentError(f"component {name}: {unknown[0]} is unknown; use one of {known}")
    program = str(raw.get("program") or name)
    path = program if program.startswith("/") or not bin_dir else f"{bin_dir}/{program}"
    argv = [*prefix, path, *map(str, raw.get("arguments") or ()), *flag_words(raw.get("flags") or {})]
    passed = {key: value for key, value in raw.items() if key in _PASSED and value not in (None, "", [], {})}
    return {"name": name, "argv": argv, **passed}


def laid_over(lower: Any, upper: Any) -> Any:
    """Return a description with changes laid over it: mappings key by key, everything else as a whole."""
    if isinstance(lower, Mapping) and isinstance(upper, Mapping):
        return {**lower, **{key: laid_over(lower.get(key), value) for key, value in upper.items()}}
    return upper


def processes(
    components: Mapping[str, Mapping[str, Any]],
    bin_dir: str,
    prefix: Sequence[str] = (),
    name_prefix: str = "",
    changes: Mapping[str, Any] | None = None,
    state: str = "",
    group: str = "",
) -> list[dict[str, Any]]:
    """Return components as entries of module process, in their order; one that is null is left out.

    ``changes`` by component are laid over them. With ``state`` absent the last one comes first, as it needs the others.
    ``group`` is the control group of those that name none; empty leaves them where their supervisor is.
    """
    usual = {**({"state": state} if state else {}), **({"group": group} if group else {})}
    found = [
        {**usual, **process(name, raw, bin_dir, prefix), "name": f"{name_prefix}{name}"}
        for name, raw in laid_over(components, changes or {}).items()
        if raw is not None
    ]
    return found[::-1] if state == "absent" else found

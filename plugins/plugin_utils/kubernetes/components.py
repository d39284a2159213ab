# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From components as roles describe them (program, flags, environment, health) to processes of the module process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OWN = {"program", "flags", "arguments"}
_PASSED = {
    *("env", "cpus", "config_files", "ready", "ready_timeout_s", "stop_signal", "stop_timeout_s", "directory"),
    *("port_setting", "group"),
}


class ComponentError(Exception):
    """A component is not described as it must be; the text names it and the key."""


def flag_words(flags: Mapping[str, Any]) -> list[str]:
    """Return flags as arguments, `--name=value` each; a null leaves one out, a list is joined by commas."""
    return [f"--{name}={_text(value)}" for name, value in flags.items() if value is not None]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
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


def processes(
    components: Mapping[str, Mapping[str, Any]],
    bin_dir: str,
    prefix: Sequence[str] = (),
    name_prefix: str = "",
    group: str = "",
) -> list[dict[str, Any]]:
    """Return components as entries of module process, in their order; one that is null is left out.

    :param group: control group of those that name none; empty leaves them where their supervisor is.
    """
    usual = {"group": group} if group else {}
    return [
        {**usual, **process(name, raw, bin_dir, prefix), "name": f"{name_prefix}{name}"}
        for name, raw in components.items()
        if raw is not None
    ]

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles of host tuning as data, in files/tuning/, with a user's own settings laid over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = "files/tuning"


class TuningProfileError(Exception):
    """There is no such profile, or a setting is no mapping; the text says which and what to write."""


@dataclass(frozen=True)
class Profile:
    """A profile: what it is for, its settings, and those whose value is the list of housekeeping CPUs."""

    description: str
    settings: tuple[dict[str, Any], ...]
    interrupts: tuple[dict[str, Any], ...]


def names(collection_root: Path) -> list[str]:
    """Return the names of all profiles."""
    return sorted(path.stem for path in (collection_root / FOLDER).glob("*.yml"))


def load(collection_root: Path, name: str) -> Profile:
    """Return a profile. Raises TuningProfileError where there is none of that name."""
    known = names(collection_root)
    if name not in known:
        raise TuningProfileError(f"host_tuning_profile: {name!r} is not one of {', '.join(known)}; write one of these")
    raw = yaml.safe_load((collection_root / FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
    return Profile(raw["description"], tuple(raw["settings"]), tuple(raw["interrupts"]))


def _key(setting: Mapping[str, Any]) -> tuple[str, str]:
    return str(setting.get("kind")), str(setting.get("name") or "")


def settings(
    profile: Profile, own: Sequence[Any], housekeeping_cpus: str, of_policy: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Return the settings for module ``host_tuning``: the profile's, which a host may lack, a policy's, the user's own.

    Of two with the same kind and name the later one counts. Raises TuningProfileError.
    """
    for variable, given in (("host_tuning_settings", own), ("host_tuning_policy_settings", of_policy)):
        wrong = [index for index, item in enumerate(given) if not isinstance(item, Mapping)]
        if wrong:
            raise TuningProfileError(
                f"{variable}[{wrong[0]}]: {given[wrong[0]]!r} is no mapping; write kind, name and value"
            )
    known = [*profile.settings]
    if housekeeping_cpus:
        known += [{**item, "value": housekeeping_cpus} for item in profile.interrupts]
    from_profile = [
        {"kind": item["kind"], "name": item.get("name", ""), "value": item["value"], "on_missing": "skip"}
        for item in known
    ]
    wanted = _without(_without(from_profile, of_policy) + [dict(item) for item in of_policy], own)
    return [*wanted, *(dict(item) for item in own)]


def _without(given: Sequence[dict[str, Any]], replaced: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    keys = {_key(item) for item in replaced}
    return [item for item in given if _key(item) not in keys]

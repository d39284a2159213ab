# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modes, policies and aggressors as data: the collection's own, with the user's laid over them, all validated.

A user adds one by an entry in ``matrix_mode_definitions``, ``matrix_policy_definitions`` or
``matrix_aggressor_definitions``. An entry with the name of a built-in one changes the keys that it gives.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    koordinator,
    koordinator_text,
    translation,
    validation,
    vocabulary_types,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import merge
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest
from ansible_collections.colocation.testbed.plugins.plugin_utils import definition_checks as checks

KINDS = {"mode": "modes", "policy": "policies", "aggressor": "aggressors"}
# Modes become parts of directory names, which are split at dashes.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class DefinitionsError(Exception):
    """Definitions cannot be used; ``problems`` has one sentence for each thing that is wrong, with its path."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True)
class Needs:
    """What aggressors need on the hosts: packages of the tested and of the load node, and whether a clip is read."""

    packages: tuple[str, ...]
    peer_packages: tuple[str, ...]
    clip: bool


@dataclass(frozen=True)
class Definitions:
    """All definitions by name, as plain JSON values, normalised: what docs/architecture.md says of each is there."""

    modes: Mapping[str, dict[str, Any]]
    policies: Mapping[str, dict[str, Any]]
    aggressors: Mapping[str, dict[str, Any]]

    def groups(self, mode: str, requests: Mapping[str, Any], cpus: int, memory_bytes: int) -> list[dict[str, Any]]:
        """Return the entries for option ``groups`` of module ``cgroup`` that bring a mode about on the tested node.

        :param requests: Kubernetes quantities, ``{"service": {"cpu": "500m", "memory": "64Mi"}, "batch": {…}}``.
        :param cpus: number of measured CPUs of the node.
        :raises PolicyError: for requests that are not quantities or do not fit.
        """
        name = self.modes[mode]["policy"]
        policy = None if name is None else self.policies[name]
        facts = translation.Facts(cpus, memory_bytes)
        found = translation.translate(policy, requests, facts, f"policy {name}")
        return [{"name": group, **options} for group, options in found.items()]

    def link(self, mode: str, root: str) -> dict[str, list[dict[str, Any]]] | None:
        """Return the pools and classes that a mode wants of the tested node's link; None where it wants none.

        :param root: path of the node's groups below the hierarchies.
        """
        name = self.modes[mode]["policy"]
        return translation.link(None if name is None else self.policies[name], root)

    def needs(self, names: Sequence[str]) -> Needs:
        """Return what these aggressors need together."""
        chosen = [self.aggressors[name] for name in names]
        peers = [definition["peer"] for definition in chosen if definition.get("peer")]
        return Needs(
            packages=tuple(sorted({package for definition in chosen for package in definition["packages"]})),
            peer_packages=tuple(sorted({package for peer in peers for package in peer.get("packages", [])})),
            clip=any("{clip}" in word for definition in chosen for word in definition["argv"]),
        )


def load_definitions(
    collection_root: str | Path,
    modes: Sequence[str] = (),
    mode_definitions: Mapping[str, Any] | None = None,
    policy_definitions: Mapping[str, Any] | None = None,
    aggressor_definitions: Mapping[str, Any] | None = None,
    aggressors: Sequence[str] = (),
    where: str = "matrix_",
) -> Definitions:
    """Load the built-in definitions, lay the user's over them and validate all.

    :param collection_root: directory that has ``files/modes``, ``files/policies`` and ``files/aggressors``.
    :param modes: names that must be defined, as the user selected them; likewise ``aggressors``.
    :param where: prefix of the user's variables, for the paths in sentences.
    :raises DefinitionsError: with all problems; every sentence begins with the path of what is wrong.
    """
    given = {"mode": mode_definitions, "policy": policy_definitions, "aggressor": aggressor_definitions}
    problems: list[str] = []
    merged: dict[str, dict[str, Any]] = {}
    paths: dict[str, dict[str, str]] = {}
    for kind, folder in KINDS.items():
        built_in = _built_in(Path(collection_root), folder, problems)
        variable = f"{where}{kind}_definitions"
        texts = _read(given[kind] or {}, variable, problems) if kind == "policy" else given[kind] or {}
        merged[kind], found = _overlay(built_in, texts, variable, problems)
        paths[kind] = {
            name: f"{variable}.{name}" if name in found else f"files/{folder}/{name}.yml" for name in merged[kind]
        }
    problems += _validate(merged, paths)
    problems += _selected(modes, merged["mode"], f"{where}modes", "mode")
    problems += _selected(aggressors, merged["aggressor"], f"{where}aggressors", "aggressor")
    if problems:
        raise DefinitionsError(problems)
    return Definitions(
        {name: checks.normal_mode(name, value) for name, value in merged["mode"].items()},
        merged["policy"],
        merged["aggressor"],
    )


def policy_named(collection_root: str | Path, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy by its name, the user's laid over the built-in one; {} for the empty name. Not validated.

    Policies may be meant for different engines, so only who uses one can tell whether it is good.

    :raises DefinitionsError: for an unknown name and for definitions that are none.
    """
    if not name:
        return {}
    problems: list[str] = []
    built_in = _built_in(Path(collection_root), KINDS["policy"], problems)
    merged, _given = _overlay(built_in, _read(given, "policy_definitions", problems), "policy_definitions", problems)
    problems += _selected([name], merged, "policy", "policy")
    if problems:
        raise DefinitionsError(problems)
    return dict(merged[name])


def _built_in(root: Path, folder: str, problems: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted((root / "files" / folder).glob("*.yml")):
        try:
            found[path.stem] = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
            shown = " ".join(str(exc).split())
            problems.append(f"files/{folder}/{path.name}: cannot be read: {shown}; restore it from the collection")
    if not found:
        problems.append(f"{root / 'files' / folder}: holds no definitions; install the collection again")
    return found


def _read(given: Any, variable: str, problems: list[str]) -> Any:
    """Return policies whose sections are mappings, also where somebody gives the ConfigMap of a cluster."""
    if not isinstance(given, Mapping):
        return given
    found: dict[Any, Any] = {}
    for name, value in given.items():
        try:
            found[name] = koordinator_text.read(value, f"{variable}.{name}")
        except koordinator_text.TextError as exc:
            problems.append(str(exc))
    return found


def _overlay(
    built_in: Mapping[str, Any], given: Any, variable: str, problems: list[str]
) -> tuple[dict[str, Any], set[str]]:
    merged = {name: copy.deepcopy(value) for name, value in built_in.items()}
    if not isinstance(given, Mapping):
        problems.append(f"{variable}: is {quantity.kind_of(given)}, not a mapping of names to definitions; write one")
        return merged, set()
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(
                f"{variable}.{name}: is not a name; use up to 40 lower-case letters, digits and _, a letter first"
            )
        elif not isinstance(value, Mapping):
            problems.append(f"{variable}.{name}: is {quantity.kind_of(value)}, not a mapping; write its keys below it")
        else:
            merged[name] = merge(merged.get(name, {}), value)
    return merged, set(given) & set(merged)


def _validate(merged: Mapping[str, Mapping[str, Any]], paths: Mapping[str, Mapping[str, str]]) -> list[str]:
    problems: list[str] = []
    policies = sorted(merged["policy"])
    for name, value in merged["mode"].items():
        problems += checks.mode(value, paths["mode"][name], policies)
    engines = _engines(merged["mode"])
    for name, value in merged["policy"].items():
        for engine in engines.get(name, [koordinator.ENGINE]):
            problems += validation.problems(value, paths["policy"][name], engine)
    for name, value in merged["aggressor"].items():
        problems += checks.aggressor(value, paths["aggressor"][name])
    return problems


def _engines(modes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return for each policy the engines that modes use it with; it need not be good for any other."""
    found: dict[str, list[str]] = {}
    for mode in modes.values():
        policy, engine = (mode.get("policy"), mode.get("engine")) if isinstance(mode, Mapping) else (None, None)
        if isinstance(policy, str) and isinstance(engine, str) and engine in vocabulary_types.ENGINES:
            known = found.setdefault(policy, [])
            known += [] if engine in known else [engine]
    return found


def _selected(names: Sequence[str], defined: Mapping[str, Any], where: str, kind: str) -> list[str]:
    unknown = [name for name in names if name not in defined]
    known = sorted(defined)
    return [f"{where}: {name!r} is not a defined {kind}; {suggest(str(name), known)}" for name in unknown]

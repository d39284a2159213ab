# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines go with which substrate, and which sections of a policy: told before anything is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import bandwidth

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KOORDINATOR, STATIC = "koordinator", "static"
OWN, PLATFORM = "own", "platform"


def problems(
    modes: Mapping[str, Mapping[str, Any]],
    policies: Mapping[str, Mapping[str, Any]],
    substrate: str,
    agent: str,
) -> list[str]:
    """Return one sentence for each mode that can't be brought about.

    :param modes: the chosen modes by name.
    :param agent: whose agent of Koordinator is, or is to be, on the tested node: OWN, PLATFORM, or "" for none.
    """
    return [text for name, mode in modes.items() for text in _of_mode(name, mode, policies, substrate, agent)]


def _of_mode(
    name: str, mode: Mapping[str, Any], policies: Mapping[str, Mapping[str, Any]], substrate: str, agent: str
) -> Iterator[str]:
    engine = mode["engine"]
    if substrate == "process":
        if engine == KOORDINATOR:
            yield f"mode {name}: engine koordinator holds pods back, not processes; set matrix_substrate to pod"
        return
    if engine == KOORDINATOR and agent == PLATFORM:
        yield (
            f"mode {name}: engine koordinator can't give the platform's own agent a policy; choose modes with engine "
            "none, or a cluster without it"
        )
    elif engine == KOORDINATOR and not agent:
        yield (
            f"mode {name}: engine koordinator needs Koordinator in the cluster; set koordinator_state to present, or "
            "choose engine static"
        )
    if engine == STATIC and agent:
        yield (
            f"mode {name}: engine static and Koordinator's agent would write the same control groups; give the mode "
            "engine koordinator and a policy for it, or set koordinator_state to absent"
        )
    if bandwidth.SECTION in policies.get(str(mode["policy"]), {}):
        yield (
            f"mode {name}: section {bandwidth.SECTION} of policy {mode['policy']} divides the link of processes; for "
            "pods use playbook bandwidth, or take the section out"
        )

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


def problems(
    modes: Mapping[str, Mapping[str, Any]],
    policies: Mapping[str, Mapping[str, Any]],
    substrate: str,
    has_koordinator: bool,
) -> list[str]:
    """Return one sentence for each mode that can't be brought about.

    :param modes: the chosen modes by name.
    :param has_koordinator: whether Koordinator is, or is to be, in the tested node's cluster.
    """
    return [text for name, mode in modes.items() for text in _of_mode(name, mode, policies, substrate, has_koordinator)]


def _of_mode(
    name: str, mode: Mapping[str, Any], policies: Mapping[str, Mapping[str, Any]], substrate: str, has_koordinator: bool
) -> Iterator[str]:
    engine = mode["engine"]
    if substrate == "process":
        if engine == KOORDINATOR:
            yield f"mode {name}: engine koordinator holds pods back, not processes; set matrix_substrate to pod"
        return
    if engine == KOORDINATOR and not has_koordinator:
        yield (
            f"mode {name}: engine koordinator needs Koordinator in the cluster; set koordinator_state to present, or "
            "choose engine static"
        )
    if engine == STATIC and has_koordinator:
        yield (
            f"mode {name}: engine static and Koordinator's agent would write the same control groups; give the mode "
            "engine koordinator and a policy for it, or set koordinator_state to absent"
        )
    if bandwidth.SECTION in policies.get(str(mode["policy"]), {}):
        yield (
            f"mode {name}: section {bandwidth.SECTION} of policy {mode['policy']} divides the link of processes; for "
            "pods use playbook bandwidth, or take the section out"
        )

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the groups of a measurement are: our own below one root, those of pods wherever the kubelet made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GroupPlaces:
    """Finds a group by its name; `paths` has those that are not below `root`, relative to the hierarchies' root."""

    root: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """Return the path of a group below the root of each hierarchy; the empty name is our own root."""
        if name in self.paths:
            return self.paths[name]
        return "/".join(part for part in (self.root, name) if part)

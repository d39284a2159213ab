# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The groups of programs that the collection knows, from files/kubernetes: pins for the module go_programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIRECTORY = Path(__file__).resolve().parents[3] / "files" / "kubernetes"


class GoPinsError(Exception):
    """A group is unknown, or its files cannot be read; the text names it and what there is."""


def load(names: Sequence[str], directory: Path = _DIRECTORY) -> list[dict[str, Any]]:
    """Return groups as the module takes them, in the order of their names. Raises GoPinsError."""
    try:
        known = yaml.safe_load((directory / "programs.yml").read_text(encoding="utf-8"))
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise GoPinsError(f"groups of programs: {', '.join(unknown)} unknown; choose of {', '.join(sorted(known))}")
        return [
            {
                "name": name,
                **known[name],
                "go_mod": (directory / "go" / name / "go.mod").read_text(encoding="utf-8"),
                "go_sum": (directory / "go" / name / "go.sum").read_text(encoding="utf-8"),
            }
            for name in dict.fromkeys(names)
        ]
    except (OSError, yaml.YAMLError) as exc:
        raise GoPinsError(f"groups of programs: {exc}; restore the collection's files/kubernetes") from exc

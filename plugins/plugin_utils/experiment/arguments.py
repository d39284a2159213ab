# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the matrix, read from the module's documentation, so that they are written down once."""

from __future__ import annotations

from typing import Any

import yaml

from ansible_collections.colocation.testbed.plugins.modules import matrix

_TEXTS = ("description", "version_added")


def of_documentation(documentation: str) -> dict[str, dict[str, Any]]:
    """Return the argument specification that a module's DOCUMENTATION describes."""
    options: dict[str, dict[str, Any]] = yaml.safe_load(documentation)["options"]
    return {
        name: {key: value for key, value in option.items() if key not in _TEXTS} for name, option in options.items()
    }


MATRIX = of_documentation(matrix.DOCUMENTATION)

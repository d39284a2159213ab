# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of an action, read from its module's documentation, so that they are written down once."""

from __future__ import annotations

from typing import Any

import yaml

_TEXTS = ("description", "version_added")


def argument_spec(documentation: str) -> dict[str, dict[str, Any]]:
    """Return the argument specification that a module's DOCUMENTATION describes."""
    options: dict[str, dict[str, Any]] = yaml.safe_load(documentation)["options"]
    return {
        name: {key: value for key, value in option.items() if key not in _TEXTS} for name, option in options.items()
    }

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the modules which make hosts share; documented in plugins/doc_fragments/lab.py."""

from __future__ import annotations

from typing import Any

HOST: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "cpus": {"type": "str", "default": ""},
}
NETWORK: dict[str, Any] = {
    "hosts": {"type": "list", "elements": "dict", "default": [], "options": HOST},
    "subnet": {"type": "str", "default": "198.18.0.0/24"},
    "namespace_prefix": {"type": "str", "default": "colocation-"},
    "link_prefix": {"type": "str", "default": "ct"},
    "mtu_bytes": {"type": "int", "default": 1500},
    "link_rate": {"type": "str", "default": ""},
    "link_buffer_kib": {"type": "int", "default": 512},
    "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
}

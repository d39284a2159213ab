# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry point of the node tool: `node.pyz COMMAND --spec FILE`. Only the module of the command is imported."""

from __future__ import annotations

import importlib
import sys

PACKAGE = "ansible_collections.colocation.testbed.plugins.module_utils.node"
COMMANDS = {
    "supervise": "supervise",
    "sample": "sample",
    "hold-pm-qos": "pm_qos_holder",
    "load": "load",
}


def main(arguments: list[str]) -> int:
    """Run one command; each is a module with `run(spec_path) -> exit status`."""
    if len(arguments) != 3 or arguments[0] not in COMMANDS or arguments[1] != "--spec":
        print(f"usage: node.pyz {'|'.join(COMMANDS)} --spec FILE", file=sys.stderr)
        return 2
    module = importlib.import_module(f"{PACKAGE}.{COMMANDS[arguments[0]]}")
    return int(module.run(arguments[2]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

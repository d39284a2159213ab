# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry point of the node tool: `node.pyz COMMAND --spec FILE`. Only the module of the command is imported.

`node.pyz check` imports all of them and prints the interpreter's version: what is missing shows when the tool is
installed, and not when a measurement starts.
"""

from __future__ import annotations

import importlib
import sys

PACKAGE = "ansible_collections.colocation.testbed.plugins.module_utils.node"
COMMANDS = {
    "supervise": "supervise",
    "sample": "sample",
    "hold-pm-qos": "pm_qos_holder",
    "load": "load",
    "bandwidth-apply": "bandwidth_apply",
    "count-received": "count_received",
    "echo": "echo",
    "probe": "probe",
    "receive": "receive",
    "send": "send",
}


def check() -> int:
    """Import every command. Returns the exit status."""
    if sys.version_info < (3, 9):  # noqa: UP036  the host's interpreter is the user's choice
        print(f"Python {sys.version.split()[0]} is too old, 3.9 is the oldest that runs this tool", file=sys.stderr)
        return 1
    for module in COMMANDS.values():
        importlib.import_module(f"{PACKAGE}.{module}")
    print(sys.version.split()[0])
    return 0


def main(arguments: list[str]) -> int:
    """Run one command; each is a module with `run(spec_path) -> exit status`."""
    if arguments == ["check"]:
        return check()
    if len(arguments) != 3 or arguments[0] not in COMMANDS or arguments[1] != "--spec":
        print(f"usage: node.pyz {'|'.join(COMMANDS)} --spec FILE, or node.pyz check", file=sys.stderr)
        return 2
    module = importlib.import_module(f"{PACKAGE}.{COMMANDS[arguments[0]]}")
    return int(module.run(arguments[2]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

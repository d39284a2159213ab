# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module as a program of its own: name and JSON of its options as arguments, its result on standard output.

With a third argument the process kills itself with SIGKILL before that many values were written (0: before the first).
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import sys

from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils import files


def main() -> None:
    """Run the module."""
    name, options = sys.argv[1], json.loads(sys.argv[2])
    if len(sys.argv) > 3:
        left, real = int(sys.argv[3]), files.write_kernel
        counter = itertools.count()

        def write(path: str, text: str) -> None:
            if next(counter) == left:
                os.kill(os.getpid(), signal.SIGKILL)
            real(path, text)

        files.write_kernel = write
    module = importlib.import_module(f"ansible_collections.colocation.testbed.plugins.modules.{name}")
    with patch_module_args(options):
        module.main()


if __name__ == "__main__":
    main()

"""A controller without numpy, matplotlib or jsonschema gets the preflight's table, not a traceback."""

from __future__ import annotations

import subprocess
import sys

from tooling import IMPORT_PREFIX, ROOT


def test_preflight_loads_without_the_packages_that_it_looks_for() -> None:
    code = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.controller import PACKAGES\n"
        "sys.modules.update(dict.fromkeys(PACKAGES))\n"  # None: importing it fails as if it weren't there
        f"import {IMPORT_PREFIX}plugins.action.preflight\n"
        "print(PACKAGES)\n"
    )
    argv = [sys.executable, "-c", code, str(ROOT / "collections")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "jsonschema" in done.stdout

"""Run a module of the collection in this process and print how long it took inside: imports are not counted.

`python -m tools.bandwidth.module_time NAME FILE`, FILE with the module's options as JSON. Prints the module's result
with `elapsed_ms`: the module's own where it returns one, else from calling it to its answer.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import time
from pathlib import Path

MODULES = "ansible_collections.colocation.testbed.plugins.modules"


def main() -> int:
    """Run the module; the exit code is the module's."""
    name, orders = sys.argv[1], Path(sys.argv[2])
    module = importlib.import_module(f"{MODULES}.{name}")
    sys.argv[1:] = [str(orders)]
    shown, status = io.StringIO(), 0
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(shown):
            module.main()
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else 1
    elapsed_ms = 1000 * (time.perf_counter() - started)
    result = json.loads(shown.getvalue())
    print(json.dumps({"elapsed_ms": elapsed_ms, **result}))
    return status


if __name__ == "__main__":
    sys.exit(main())

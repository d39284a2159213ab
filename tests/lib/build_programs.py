"""Build groups of Go programs into the cache that roles use: python build_programs.py DIRECTORY GROUP..."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils import cache_directory, commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_build, go_groups
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import go_pins

# A pause in the middle of a download can cost the connection; groups that were built are kept.
ATTEMPTS = 2


def _end(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGTERM)
    # The unfinished part is removed on the way out.
    raise SystemExit(128 + signal.SIGTERM)


def main(cache: str, names: Sequence[str]) -> int:
    """Build groups as module go_programs does; the last line that is printed says why one was not."""
    signal.signal(signal.SIGTERM, _end)
    store = go_build.Store(cache)
    groups = go_groups.parse(go_pins.load(names))
    for attempt in range(1, ATTEMPTS + 1):
        try:
            built = go_build.make(groups, store, go_build.Settings())
        except (cache_directory.CacheError, commands.CommandError, files.FilesError, go_build.GoBuildError) as exc:
            print(f"attempt {attempt} of {ATTEMPTS}: {exc}", flush=True)
        else:
            print(f"built: {', '.join(built)}", flush=True)
            return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))

"""Build selections of Go programs into the cache that roles use, for example etcd,crictl and koordinator."""

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


def build(selection: Sequence[str], store: go_build.Store) -> None:
    """Build one selection as module go_programs does; a failure is tried again."""
    groups = go_groups.parse(go_pins.load(selection))
    for attempt in range(1, ATTEMPTS + 1):
        try:
            go_build.make(groups, store, go_build.Settings())
        except go_build.GoBuildError as exc:
            if attempt == ATTEMPTS:
                raise
            print(f"{exc}: trying again", flush=True)
        else:
            return


def main(cache: str, selections: Sequence[str]) -> int:
    """Build everything; the last line that is printed says why something was not."""
    signal.signal(signal.SIGTERM, _end)
    store = go_build.Store(cache)
    for selection in selections:
        try:
            build(selection.split(","), store)
            print(f"{selection}: built", flush=True)
        except (cache_directory.CacheError, commands.CommandError, files.FilesError, go_build.GoBuildError) as exc:
            print(exc, flush=True)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))

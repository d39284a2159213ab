# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build groups of programs from pinned Go modules into a cache that runs share, once for each set of pins."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import cache_directory, commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.go_groups import (
    Group,
    Program,
    selection_key,
)

SCHEMA = "colocation.testbed/go-programs/1"
RECORD = "record.json"
SETTING = "kubernetes_cache_dir"
_BUILD_PREFIX = ".build-"
_BUILD_TIMEOUT_S = 7200.0
_ASK_TIMEOUT_S = 30.0
# Module cache, build cache and programs of the largest group.
_MIN_FREE_BYTES = 9 * 1024**3
# What go and the C compiler say, and what the user can do about it. The first that is found counts.
_REASONS = (
    (r"no space left on device", "the disk is full; free some space, or choose another " + SETTING),
    (
        r"checksum mismatch|SECURITY ERROR",
        "a module is not what go.sum pins; look at go env GOPROXY",
    ),
    (r"requires go >= ([0-9.]+)", "needs a newer Go; install one, or let GOTOOLCHAIN=auto fetch it"),
    (r"pfmlib\.h: No such file|cannot find -lpfm", "headers are missing; install {packages}"),
    (r"C compiler .* not found", "there is no C compiler; install {packages}"),
    (
        r"dial tcp|no such host|i/o timeout|connection refused|TLS handshake|proxyconnect|module lookup disabled"
        r"|: (?:403|404|410|5\d\d) ",
        "the module proxy cannot be reached; check go env GOPROXY and the network, or choose another "
        "kubernetes_programs_source",
    ),
    (r"signal: killed", "the compiler was killed, for memory most likely; build with fewer jobs"),
)

Run = Callable[..., commands.Result]


class GoBuildError(Exception):
    """Programs could not be built; one sentence for each group that failed."""


@dataclass(frozen=True)
class Settings:
    """How to build: niceness, parallel jobs (0: as many as CPUs), a directory for Go's caches (empty: not kept)."""

    nice: int = 10
    jobs: int = 0
    go_cache_dir: str = ""
    lock_timeout_s: float = _BUILD_TIMEOUT_S


@dataclass(frozen=True)
class Store:
    """The cache: `groups/<group>-<key>` holds each group's programs, `<key>/bin` links to those of a selection."""

    directory: str
    machine: str = platform.machine()

    def group_dir(self, group: Group) -> str:
        """Return where a group's programs are, or will be."""
        return os.path.join(self.directory, "groups", f"{group.name}-{group.key(self.machine)}")

    def bin_dir(self, groups: Sequence[Group]) -> str:
        """Return the directory that has all programs of several groups."""
        return os.path.join(self.directory, selection_key(groups, self.machine), "bin")

    def has(self, group: Group) -> bool:
        """Tell whether a group's programs are there, whole: of the sizes that were recorded when they were built."""
        folder = self.group_dir(group)
        try:
            sizes = files.read_json(os.path.join(folder, RECORD))["size_bytes"]
            return set(sizes) == set(group.programs) and all(
                _size(os.path.join(folder, name)) == size for name, size in sizes.items()
            )
        except (files.FilesError, KeyError, TypeError):
            return False

    def linked(self, groups: Sequence[Group]) -> bool:
        """Tell whether the selection's directory has exactly the programs of its groups."""
        folder = self.bin_dir(groups)
        wanted = {name: os.path.join(self.group_dir(group), name) for group in groups for name in group.programs}
        try:
            return set(os.listdir(folder)) == set(wanted) and all(
                os.path.samefile(os.path.join(folder, name), source) for name, source in wanted.items()
            )
        except OSError:
            return False


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except OSError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) and found.st_mode & 0o111 else -1


def make(groups: Sequence[Group], store: Store, settings: Settings, run: Run = commands.run) -> tuple[str, ...]:
    """Build the groups that are missing, link the selection, and return the names of those that were built now.

    A group that fails does not cost the others: they are built and kept. Raises GoBuildError with a sentence for each
    group that failed, CacheError when the cache cannot be used, FilesError.
    """
    with cache_directory.locked(store.directory, "programs", SETTING, settings.lock_timeout_s):
        _remove_unfinished(store)
        missing = [group for group in groups if not store.has(group)]
        if missing:
            cache_directory.require_space(store.directory, "programs", SETTING, _MIN_FREE_BYTES)
            _require_go(run)
        work = tempfile.mkdtemp(prefix=_BUILD_PREFIX, dir=store.directory)
        problems: list[str] = []
        try:
            for group in missing:
                try:
                    _build(group, store, settings, work, run)
                except (GoBuildError, commands.CommandError, OSError) as exc:
                    problems.append(str(exc))
            if not problems:
                _link(groups, store, work)
        finally:
            _remove(work)
    if problems:
        raise GoBuildError("; ".join(problems))
    return tuple(group.name for group in missing)


def _require_go(run: Run) -> None:
    try:
        run(["go", "version"])
    except commands.CommandError as exc:
        raise GoBuildError(
            f"go: cannot be run ({exc}); install Go (https://go.dev/dl), put it into PATH of the host, or choose "
            "another kubernetes_programs_source"
        ) from exc


def _build(group: Group, store: Store, settings: Settings, work: str, run: Run) -> None:
    source, made = os.path.join(work, "src", group.name), os.path.join(work, "bin", group.name)
    scratch = os.path.join(work, "tmp", group.name)
    for folder in (source, made, scratch):
        os.makedirs(folder)
    files.write_atomic(os.path.join(source, "go.mod"), group.go_mod)
    files.write_atomic(os.path.join(source, "go.sum"), group.go_sum)
    caches = settings.go_cache_dir or work
    environment = {
        "GOMODCACHE": os.path.join(caches, "mod"),
        "GOCACHE": os.path.join(caches, "build"),
        # Go that is killed leaves its scratch files, which go away here with everything else.
        "GOTMPDIR": scratch,
        # Writable, so that the module cache can be removed like any directory.
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false -trimpath",
        "CGO_ENABLED": "1" if group.cgo else "0",
    }
    jobs = ["-p", str(settings.jobs)] if settings.jobs else []
    argv = ["nice", "-n", str(settings.nice), "go", "build", *jobs, "-tags", ",".join(group.tags)]
    argv += ["-ldflags", group.link_flags, "-o", made + os.sep, *(item.package for item in group.programs.values())]
    done = run(argv, check=False, timeout_s=_BUILD_TIMEOUT_S, directory=source, environment=environment)
    if done.status != 0:
        raise GoBuildError(f"programs of group {group.name}: {explain(done.stderr, group)}")
    _publish(group, store, made, run)


def explain(output: str, group: Group) -> str:
    """Return what a failed build means in one sentence: the line that says it, and what the user can do."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("go: downloading")]
    for pattern, remedy in _REASONS:
        for line in lines:
            if re.search(pattern, line):
                return f"{line}: {remedy.format(packages=', '.join(group.packages) or 'gcc, libc6-dev')}"
    return f"{lines[-1] if lines else 'go printed nothing'}: go build failed; run it by hand with this go.mod"


def _publish(group: Group, store: Store, made: str, run: Run) -> None:
    """Check that each program runs and says its version, then give the directory its name in the cache."""
    for name, program in group.programs.items():
        built, wanted = os.path.join(made, program.built_name), os.path.join(made, name)
        if built != wanted:
            os.rename(built, wanted)
        _require_version(wanted, program, run)
    sizes = {name: os.stat(os.path.join(made, name)).st_size for name in group.programs}
    files.write_json(os.path.join(made, RECORD), {"schema": SCHEMA, "group": group.name, "size_bytes": sizes})
    target = store.group_dir(group)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        shutil.rmtree(target)
    os.rename(made, target)
    files.sync_directory(os.path.dirname(target))


def _require_version(path: str, program: Program, run: Run) -> None:
    if not program.version_argv:
        return
    printed = run([path, *program.version_argv], timeout_s=_ASK_TIMEOUT_S)
    if program.version not in printed.stdout + printed.stderr:
        raise GoBuildError(
            f"{os.path.basename(path)}: says {(printed.stdout or printed.stderr).strip()!r} instead of "
            f"{program.version}; correct version or go.mod"
        )


def _link(groups: Sequence[Group], store: Store, work: str) -> None:
    """Make the selection's directory of hard links, which cost no space, and put it into place as a whole."""
    if store.linked(groups):
        return
    fresh = os.path.join(work, "linked")
    os.makedirs(os.path.join(fresh, "bin"))
    for group in groups:
        for name in group.programs:
            os.link(os.path.join(store.group_dir(group), name), os.path.join(fresh, "bin", name))
    target = os.path.dirname(store.bin_dir(groups))
    if os.path.lexists(target):
        # Programs that run keep their files.
        os.rename(target, os.path.join(work, "replaced"))
    os.rename(fresh, target)
    files.sync_directory(store.directory)


def _remove_unfinished(store: Store) -> None:
    for name in os.listdir(store.directory):
        if name.startswith(_BUILD_PREFIX):
            _remove(os.path.join(store.directory, name))


def _remove(folder: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)

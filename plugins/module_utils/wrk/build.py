# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compile wrk in a private directory and install it beside a record of what was built."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.wrk import record, source
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.record import Build, Request, Store
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.source import Tree

# The bundled OpenSSL takes minutes on a small machine.
_MAKE_TIMEOUT_S = 1800.0
PACKAGED = "/usr/bin/wrk"
_TOOLS = {
    "git": ("git",),
    "url": (),
    "path": (),
    "debian_source": ("apt-get", "dpkg-source"),
}


class BuildError(Exception):
    """wrk could not be compiled or installed; the text says why and what to do."""


@dataclass(frozen=True)
class Library:
    """Where one of the two libraries comes from: the system's (with compiler flags) or the tarball in the tree."""

    name: str
    system: bool
    description: str
    cflags: str = ""

    @property
    def make_variable(self) -> str:
        """Return the make argument that chooses the system's library."""
        return f"WITH_{self.name.upper()}=/usr"


def check_tools(request: Request, which: Callable[[str], str | None] = shutil.which) -> None:
    """Raise BuildError where a program is missing that this source is fetched or compiled with."""
    sources = ("git", "debian_source") if request.source == "auto" else (request.source,)
    if request.source == "package":
        return
    # auto can do without one of its two sources: that is what it is for.
    fetched_with = [] if request.source == "auto" else [tool for name in sources for tool in _TOOLS[name]]
    missing = [tool for tool in ("cc", "make", *fetched_with) if not which(tool)]
    if missing:
        raise BuildError(
            f"wrk: {', '.join(missing)} not found on this host, which source {request.source} needs; install the "
            "packages of role load_generator, or choose source package"
        )


def system_library(name: str) -> Library | None:
    """Return the system's LuaJIT or OpenSSL with its headers, or None. LuaJIT's compiler is needed too."""
    if name == "luajit" and not shutil.which("luajit"):
        return None
    try:
        version = commands.run(["pkg-config", "--modversion", name]).stdout.strip()
        cflags = commands.run(["pkg-config", "--cflags", name]).stdout.strip()
    except commands.CommandError:
        return None
    return Library(name, True, f"system {version}", cflags)


def bundled_library(name: str, tree: Tree) -> Library:
    """Return the LuaJIT or OpenSSL that upstream keeps in deps/. Raises BuildError where there is none."""
    pattern, tool = {"luajit": ("LuaJIT*", "unzip"), "openssl": ("openssl*", "perl")}[name]
    found = sorted(glob.glob(os.path.join(glob.escape(tree.directory), "deps", pattern)))
    if not found:
        raise BuildError(
            f"wrk: neither the system nor {tree.origin} has {name}; install the packages of role load_generator"
        )
    if not shutil.which(tool):
        raise BuildError(f"wrk: the bundled {name} needs {tool}; install it, or the system's {name} with its headers")
    return Library(name, False, f"bundled {os.path.basename(found[0])}")


def make_command(tree: Tree, libraries: list[Library], jobs: int) -> tuple[list[str], dict[str, str]]:
    """Return make's command line and environment. The Makefile appends to CFLAGS of the environment.

    Upstream's script.c uses the name luaL_reg, which newer LuaJITs call luaL_Reg only.
    """
    chosen = [library.make_variable for library in libraries if library.system]
    flags = " ".join(["-DluaL_reg=luaL_Reg", *(library.cflags for library in libraries if library.cflags)])
    return ["make", f"-j{jobs}", f"VER={tree.version}", *chosen], {"CFLAGS": flags}


def compile_tree(tree: Tree) -> tuple[str, dict[str, str]]:
    """Compile a source tree; return the program's path and where each library came from. Raises BuildError."""
    libraries = [system_library(name) or bundled_library(name, tree) for name in ("luajit", "openssl")]
    argv, environment = make_command(tree, libraries, len(os.sched_getaffinity(0)))
    try:
        commands.run(argv, timeout_s=_MAKE_TIMEOUT_S, directory=tree.directory, environment=environment)
    except commands.CommandError as exc:
        raise BuildError(f"wrk: compiling {tree.origin} failed: {exc}; or choose another source") from exc
    return os.path.join(tree.directory, record.PROGRAM), {item.name: item.description for item in libraries}


def fetch_and_note(request: Request, work_dir: str) -> tuple[Tree, str]:
    """Fetch the source; for auto, git and then Debian's. Return the tree and a line that says why not git."""
    if request.source != "auto":
        return source.fetch(request, work_dir), ""
    try:
        return source.fetch(replace(request, source="git"), work_dir), ""
    except source.SourceError as first:
        try:
            tree = source.fetch(replace(request, source="debian_source"), work_dir)
        except source.SourceError as second:
            raise source.SourceError(f"{first}. And in its place: {second}") from second
        return tree, (
            f"wrk {tree.version} was built from Debian's source package instead of {request.version} from git: {first}"
        )


def _fresh_directory(store: Store, purpose: str) -> str:
    path = tempfile.mkdtemp(prefix=f".{purpose}-", dir=store.root)
    # apt fetches as a user of its own, and wrk may be run by any: they have to get in.
    os.chmod(path, 0o755)  # noqa: S103
    return path


@contextmanager
def _work_dir(store: Store) -> Iterator[str]:
    """Yield a directory below the store, so that what a killed build leaves goes away with the store."""
    path = _fresh_directory(store, "build")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def build(request: Request, store: Store) -> tuple[Build, str]:
    """Fetch, compile and install what the request asks; return the record and a line for the user, or an empty text.

    Raises BuildError, source.SourceError, record.RecordError or files.FilesError; then the store is as it was.
    """
    if request.source == "package":
        return install_packaged(store), ""
    with _work_dir(store) as work_dir:
        tree, note = fetch_and_note(request, work_dir)
        program, libraries = compile_tree(tree)
        found = record.reported_version(program)
        if found != tree.version:
            raise BuildError(f"wrk: the compiled program reports version {found!r}, not {tree.version}")
        made = _describe(tree, libraries, request.pin if note else None, store)
        return install(program, made, store), note


def _describe(tree: Tree, libraries: Mapping[str, str], stands_in_for: Mapping[str, str] | None, store: Store) -> Build:
    compiler = commands.run(["cc", "--version"]).stdout.splitlines()
    return Build(
        source=tree.source,
        version=tree.version,
        program=os.path.join(store.root, f"{tree.version}-{tree.source}", record.PROGRAM),
        commit=tree.commit,
        sha256=tree.sha256,
        origin=tree.origin,
        compiler=compiler[0] if compiler else "",
        libraries=libraries,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        stands_in_for=stands_in_for,
    )


def install(program: str, made: Build, store: Store) -> Build:
    """Move a compiled program and its record to their directory and choose it; an older build there is replaced."""
    fresh = _fresh_directory(store, "new")
    shutil.copy2(program, os.path.join(fresh, record.PROGRAM))
    return _move_in(fresh, made, store)


def install_packaged(store: Store) -> Build:
    """Choose the distribution's wrk, by a link. Raises BuildError where it is not installed."""
    version = record.reported_version(PACKAGED)
    if not version:
        raise BuildError(f"wrk: {PACKAGED} is not there; install the package wrk, or choose another source")
    fresh = _fresh_directory(store, "new")
    os.symlink(PACKAGED, os.path.join(fresh, record.PROGRAM))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made = Build("package", version, PACKAGED, "", source.sha256_of(PACKAGED), "package wrk", "", {}, stamp, None)
    return _move_in(fresh, made, store)


def _move_in(fresh: str, made: Build, store: Store) -> Build:
    store.write(fresh, made)
    target = store.directory(made)
    if os.path.isdir(target):
        shutil.rmtree(target)
    os.rename(fresh, target)
    files.sync_directory(store.root)
    store.choose(made)
    return made

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch wrk's source: each function leaves a source tree in a directory of its own and says what it is."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import apt_sources, commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.record import Request

_GIT_LOCAL_TIMEOUT_S = 60.0
_URL_TIMEOUT_S = 60.0
_APT_TIMEOUT_S = 300.0
_CHUNK_BYTES = 1 << 20


class SourceError(Exception):
    """The source could not be fetched or is not what was asked; the text says why and what to do."""


@dataclass(frozen=True)
class Tree:
    """A source tree: `origin` is where it came from, `sha256` that of the tarball or of the .dsc file."""

    directory: str
    source: str
    version: str
    origin: str
    commit: str = ""
    sha256: str = ""


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file as hexadecimal digits. Raises SourceError."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as handle:
            for chunk in iter(lambda: handle.read(_CHUNK_BYTES), b""):
                digest.update(chunk)
    except OSError as exc:
        raise SourceError(
            f"wrk: {path} cannot be read: {exc.strerror}; copy the tarball there or correct path"
        ) from exc
    return digest.hexdigest()


def fetch(request: Request, work_dir: str, root: str = "/") -> Tree:
    """Fetch the source that the request names (not auto, not package) below work_dir. Raises SourceError."""
    if request.source == "git":
        return from_git(request, work_dir)
    if request.source == "url":
        return from_url(request, work_dir)
    if request.source == "path":
        return from_path(request, work_dir)
    return from_debian(work_dir, root)


def from_git(request: Request, work_dir: str) -> Tree:
    """Fetch one commit by its id, which is a checksum of its content: no name that somebody could move is used."""
    directory = os.path.join(work_dir, "git")
    environment = {"GIT_TERMINAL_PROMPT": "0"}

    def git(*arguments: str, timeout_s: float = _GIT_LOCAL_TIMEOUT_S) -> str:
        argv = ["git", "-C", directory, *arguments]
        done = commands.run(argv, timeout_s=timeout_s, environment=environment, check=False)
        if done.status != 0:
            reason = (done.stderr.strip().splitlines() or [f"status {done.status}"])[-1]
            raise SourceError(f"wrk: git {arguments[0]}: {reason}; check git_url and commit, or choose another source")
        return done.stdout.strip()

    os.makedirs(directory)
    try:
        git("init", "--quiet")
        fetch_argv = ["fetch", "--quiet", "--depth=1", "--no-tags", request.git_url, request.commit]
        git(*fetch_argv, timeout_s=float(request.git_timeout_s))
        git("checkout", "--quiet", "--detach", "FETCH_HEAD")
        head = git("rev-parse", "HEAD")
    except commands.CommandError as exc:
        raise SourceError(f"wrk: {exc}; check git_url {request.git_url}, or choose another source") from exc
    if head != request.commit:
        raise SourceError(f"wrk: git: {request.git_url} gave commit {head}, not {request.commit}; do not trust it")
    return checked(Tree(directory, "git", request.version, request.git_url, commit=head))


def from_url(request: Request, work_dir: str) -> Tree:
    """Download a tarball and check it against the SHA-256 before it is unpacked."""
    path = os.path.join(work_dir, "download")
    try:
        # S310: record.check() allows http and https only.
        with urllib.request.urlopen(request.url, timeout=_URL_TIMEOUT_S) as answer, open(path, "wb") as handle:  # noqa: S310
            for chunk in iter(lambda: answer.read(_CHUNK_BYTES), b""):
                handle.write(chunk)
    except (OSError, ValueError, urllib.error.URLError) as exc:
        raise SourceError(f"wrk: {request.url}: {exc}; check the address, or choose another source") from exc
    return _from_tarball(request, path, request.url, work_dir)


def from_path(request: Request, work_dir: str) -> Tree:
    """Unpack a tarball on the host, checked where a SHA-256 is given."""
    return _from_tarball(request, request.path, request.path, work_dir)


def check_sum(path: str, wanted: str, origin: str) -> str:
    """Return the SHA-256 of a file; raises SourceError where it is not the wanted one (empty: any)."""
    found = sha256_of(path)
    if wanted and found != wanted:
        raise SourceError(f"wrk: {origin} has the SHA-256 {found}, not {wanted}; correct sha256 or get another tarball")
    return found


def _from_tarball(request: Request, path: str, origin: str, work_dir: str) -> Tree:
    found = check_sum(path, request.sha256, origin)
    directory = os.path.join(work_dir, "tarball")
    os.makedirs(directory)
    try:
        with tarfile.open(path) as archive:
            _extract(archive, directory, origin)
    except (tarfile.TarError, EOFError, OSError) as exc:
        raise SourceError(f"wrk: {origin} cannot be unpacked: {exc}; give a .tar.gz, .tar.xz or .tar.bz2") from exc
    return checked(Tree(_only_directory(directory, origin), request.source, request.version, origin, sha256=found))


def _extract(archive: tarfile.TarFile, directory: str, origin: str) -> None:
    """Unpack nothing outside the directory and no special files, also with a Python that has no filters yet."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(directory, filter="data")
        return
    for member in archive.getmembers():
        inside = os.path.normpath(member.name)
        if inside.startswith(("/", "..")) or not (member.isfile() or member.isdir()):
            raise SourceError(f"wrk: {origin} holds {member.name}, which no source tarball needs; do not trust it")
    archive.extractall(directory)  # noqa: S202 - every member was checked above


def _only_directory(directory: str, origin: str) -> str:
    names = [name for name in os.listdir(directory) if os.path.isdir(os.path.join(directory, name))]
    if len(names) != 1:
        raise SourceError(f"wrk: {origin} holds {len(names)} directories at its top; a source tarball of wrk has one")
    return os.path.join(directory, names[0])


def apt_configuration(work_dir: str) -> str:
    """Return settings that keep apt's lists, caches and sources in work_dir; proxies and keyrings stay the host's.

    Hooks are cleared: distributions and images use them to change the host's own caches after each update.
    """
    hooks = ("Update::Pre-Invoke", "Update::Post-Invoke", "Update::Post-Invoke-Success")
    lines = [
        f'Dir::Etc::sourcelist "{os.devnull}";',
        f'Dir::Etc::sourceparts "{work_dir}/sources";',
        f'Dir::State::lists "{work_dir}/lists";',
        f'Dir::Cache "{work_dir}/cache";',
        f'Dir::Log "{work_dir}/log";',
        'Acquire::Languages "none";',
        'Acquire::Retries "2";',
        *(f"#clear APT::{hook};" for hook in hooks),
    ]
    return "\n".join(lines) + "\n"


def from_debian(work_dir: str, root: str = "/") -> Tree:
    """Fetch the distribution's source package with a private apt configuration; apt verifies the signatures."""
    try:
        archives = apt_sources.read(root)
        for name in ("sources", "lists/partial", "cache/archives/partial", "log", "package"):
            os.makedirs(os.path.join(work_dir, name))
        files.write_atomic(f"{work_dir}/sources/wrk.sources", "\n".join(archive.render() for archive in archives))
        files.write_atomic(f"{work_dir}/apt.conf", apt_configuration(work_dir))
    except apt_sources.AptSourcesError as exc:
        raise SourceError(f"wrk: {exc}; choose another source, for example path") from exc
    except files.FilesError as exc:
        raise SourceError(str(exc)) from exc
    folder = os.path.join(work_dir, "package")
    apt = ["apt-get", "-q", "-c", f"{work_dir}/apt.conf"]
    try:
        commands.run([*apt, "-o", "APT::Update::Error-Mode=any", "update"], timeout_s=_APT_TIMEOUT_S)
        commands.run([*apt, "source", "--only-source", "wrk"], timeout_s=_APT_TIMEOUT_S, directory=folder)
    except commands.CommandError as exc:
        raise SourceError(
            f"wrk: debian_source: {exc}; do the archives in /etc/apt offer source packages? Or choose another source"
        ) from exc
    descriptions = [name for name in os.listdir(folder) if name.endswith(".dsc")]
    if len(descriptions) != 1:
        raise SourceError(f"wrk: debian_source: apt left {len(descriptions)} .dsc files instead of one; run it again")
    path = os.path.join(folder, descriptions[0])
    version = parse_dsc_version(files.read_text(path))
    origin = f"{archives[0].uris[0]} {archives[0].suites[0]}"
    return checked(Tree(_only_directory(folder, origin), "debian_source", version, origin, sha256=sha256_of(path)))


def parse_dsc_version(text: str) -> str:
    """Return the Version field of a .dsc file. Raises SourceError."""
    match = re.search(r"^Version:[ \t]*([0-9][0-9A-Za-z.+~:-]*)[ \t]*$", text, re.MULTILINE)
    if not match:
        raise SourceError("wrk: debian_source: the .dsc file has no Version field; choose another source")
    return match[1].rpartition(":")[2]


def checked(tree: Tree) -> Tree:
    """Return the tree if it is a source tree of wrk; raises SourceError otherwise."""
    missing = [name for name in ("Makefile", "src/wrk.c") if not os.path.isfile(os.path.join(tree.directory, name))]
    if missing:
        raise SourceError(f"wrk: {tree.origin} has no {missing[0]}, so it is not wrk's source; correct the source")
    return tree

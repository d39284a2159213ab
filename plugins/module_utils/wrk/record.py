# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What wrk is wanted and what wrk is there: requests, build records, and whether one satisfies the other."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files

SOURCES = ("auto", "git", "url", "path", "debian_source", "package")
SCHEMA = "colocation.testbed/wrk/1"
RECORD = "build.json"
PROGRAM = "wrk"
CURRENT = "current"
SCRIPTS = "scripts"
_SCRIPT = re.compile(r"[a-z][a-z0-9_]*\.lua\Z")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+~_-]{0,63}\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class RecordError(Exception):
    """The request is not allowed, or a build record is damaged; the text names the option or file and the remedy."""


@dataclass(frozen=True)
class Request:
    """Which wrk the user wants; empty texts are not given. `sha256` of a tarball."""

    source: str
    version: str
    commit: str = ""
    git_url: str = ""
    git_timeout_s: int = 20
    url: str = ""
    sha256: str = ""
    path: str = ""

    @property
    def pin(self) -> dict[str, str]:
        """Return what a fallback build stands in for."""
        return {"version": self.version, "commit": self.commit}


@dataclass(frozen=True)
class Build:
    """A wrk that is installed, as build.json describes it; absent facts are empty texts."""

    source: str
    version: str
    program: str
    commit: str
    sha256: str
    origin: str
    compiler: str
    libraries: Mapping[str, str]
    time: str
    stands_in_for: Mapping[str, str] | None

    @property
    def name(self) -> str:
        """Return the name of its directory."""
        return f"{self.version}-{self.source}"


def check(request: Request) -> None:
    """Raise RecordError for a request that no source can fulfil; touches nothing but a tarball given by path."""
    if request.source not in SOURCES:
        raise RecordError(f"wrk: source {request.source!r} is unknown; choose one of {', '.join(SOURCES)}")
    if not _VERSION.match(request.version):
        raise RecordError(f"wrk: version {request.version!r} is not a version such as 4.2.0; correct version")
    if request.source in ("auto", "git") and not _COMMIT.match(request.commit):
        raise RecordError(
            f"wrk: commit {request.commit!r} is not a full commit id of 40 hexadecimal digits; names of branches and "
            "tags can be moved, so give the id"
        )
    if request.sha256 and not _SHA256.match(request.sha256):
        raise RecordError(f"wrk: sha256 {request.sha256!r} is not 64 lower-case hexadecimal digits; correct sha256")
    if request.source == "url":
        if not request.url.startswith(("http://", "https://")):
            raise RecordError(
                f"wrk: url {request.url!r} does not begin with http:// or https://; give one with source url"
            )
        if not request.sha256:
            raise RecordError("wrk: source url needs sha256, the checksum of the tarball; print it with sha256sum FILE")
    if request.source == "path" and not os.path.isfile(request.path):
        raise RecordError(f"wrk: path {request.path!r} is no file on this host; copy the tarball there or correct path")


def satisfies(build: Build, request: Request) -> bool:
    """Tell whether a build is what a request asks for. `request.sha256` must be known for source path."""
    if request.source == "auto":
        if build.source == "debian_source":
            return build.stands_in_for == request.pin
        return build.source == "git" and satisfies_pin(build, request)
    return build.source == request.source and satisfies_pin(build, request)


def satisfies_pin(build: Build, request: Request) -> bool:
    """Tell whether version and content are those of the request, as far as the build's source can be pinned."""
    if build.source == "git":
        return (build.version, build.commit) == (request.version, request.commit)
    if build.source in ("url", "path"):
        return (build.version, build.sha256) == (request.version, request.sha256)
    return True


def parse(raw: object, where: str) -> Build:
    """Build a record from the object in a build.json. Raises RecordError."""
    names = {field.name for field in fields(Build)}
    if not isinstance(raw, Mapping) or raw.get("schema") != SCHEMA or set(raw) != names | {"schema"}:
        raise RecordError(f"wrk: {where} is not a build record of schema {SCHEMA}; remove its directory")
    texts = names - {"libraries", "stands_in_for"}
    stands_in_for = raw["stands_in_for"]
    sound = all(isinstance(raw[name], str) for name in texts) and isinstance(raw["libraries"], Mapping)
    if not sound or not (stands_in_for is None or isinstance(stands_in_for, Mapping)):
        raise RecordError(f"wrk: {where} is damaged; remove its directory")
    return Build(**{name: raw[name] for name in names})


def checked_scripts(scripts: Mapping[object, object]) -> dict[str, str]:
    """Return scripts by file name as they were given. Raises RecordError for a name or a content that is none."""
    for name, text in scripts.items():
        if not isinstance(name, str) or not _SCRIPT.match(name) or not isinstance(text, str):
            raise RecordError(f"wrk: scripts: {name!r} is not a file name such as open_loop.lua with a text as content")
    return {str(name): str(text) for name, text in scripts.items()}


@dataclass(frozen=True)
class Store:
    """The directory that holds every build, `<state directory>/wrk`."""

    root: str

    @property
    def program(self) -> str:
        """Return the path under which the chosen wrk is always found."""
        return os.path.join(self.root, CURRENT, PROGRAM)

    @property
    def scripts(self) -> str:
        """Return the directory of the scripts."""
        return os.path.join(self.root, SCRIPTS)

    def read_scripts(self) -> dict[str, str]:
        """Return the content of every file in the directory of the scripts by its name."""
        names = sorted(os.listdir(self.scripts)) if os.path.isdir(self.scripts) else []
        return {name: files.read_text(os.path.join(self.scripts, name)) for name in names}

    def write_scripts(self, scripts: Mapping[str, str]) -> None:
        """Make the directory hold these scripts and no others."""
        os.makedirs(self.scripts, exist_ok=True)
        present = self.read_scripts()
        for name in sorted(set(present) - set(scripts)):
            os.unlink(os.path.join(self.scripts, name))
        for name, text in scripts.items():
            if present.get(name) != text:
                files.write_atomic(os.path.join(self.scripts, name), text)

    def directory(self, build: Build) -> str:
        """Return where a build is or goes."""
        return os.path.join(self.root, build.name)

    def builds(self) -> tuple[Build, ...]:
        """Return every build whose record is readable and whose program runs and says the recorded version."""
        try:
            names = sorted(os.listdir(self.root))
        except FileNotFoundError:
            return ()
        found = []
        for name in names:
            path = os.path.join(self.root, name, RECORD)
            if name not in (CURRENT, SCRIPTS) and not name.startswith(".") and os.path.isfile(path):
                build = _readable(path)
                if build and build.name == name and reported_version(build.program) == build.version:
                    found.append(build)
        return tuple(found)

    def current(self) -> Build | None:
        """Return the chosen build, or None when there is none or it is damaged."""
        path = os.path.join(self.root, CURRENT, RECORD)
        return _readable(path) if os.path.isfile(path) else None

    def write(self, directory: str, build: Build) -> None:
        """Write a build's record. Raises files.FilesError."""
        files.write_json(os.path.join(directory, RECORD), {"schema": SCHEMA, **asdict(build)})

    def choose(self, build: Build) -> None:
        """Make a build the chosen one; atomic, so that a wrk is found at every moment."""
        fresh = os.path.join(self.root, f".{CURRENT}.new")
        if os.path.lexists(fresh):
            os.unlink(fresh)
        os.symlink(build.name, fresh)
        os.replace(fresh, os.path.join(self.root, CURRENT))


def _readable(path: str) -> Build | None:
    try:
        return parse(files.read_json(path), path)
    except (RecordError, files.FilesError):
        # What can't be read is built again: that is cheap, and the record's text would help nobody.
        return None


def parse_version(text: str) -> str:
    """Return the version in what `wrk -v` prints ("wrk debian/4.1.0-3 [epoll] …": 4.1.0-3), or an empty text."""
    words = text.split()
    if len(words) < 2 or words[0] != "wrk":
        return ""
    return words[1].rpartition("/")[2]


def reported_version(program: str) -> str:
    """Return the version that a wrk reports, or an empty text when it does not run."""
    try:
        # wrk ends with status 1 after printing its version.
        return parse_version(commands.run([program, "-v"], check=False, timeout_s=10).stdout)
    except commands.CommandError:
        return ""

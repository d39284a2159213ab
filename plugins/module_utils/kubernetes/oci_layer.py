# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in a layer of an image: programs of this host with the libraries that they load, files, directories, links.

The layout is that of a system with merged /usr, as Debian's. Equal content gives an equal recipe and an equal layer on
every host, as times and owners are left out.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from ansible_collections.colocation.testbed.plugins.module_utils import commands

_MERGED = ("bin", "sbin", "lib", "lib64")
_LIBRARY = re.compile(r"(?:=>\s+)?(/\S+)\s+\(0x[0-9a-f]+\)")
_MISSING = re.compile(r"(\S+) => not found")
_STATIC = ("statically linked", "not a dynamic executable")
_NOT_NEEDED = ("__pycache__", "dist-packages", "site-packages", "test", "idlelib", "tkinter", "lib2to3", "ensurepip")
_CHUNK_BYTES = 1 << 20

Run = Callable[..., commands.Result]


class LayerError(Exception):
    """A layer cannot be made; the text names the file, why, and what to do."""


@dataclass(frozen=True)
class Item:
    """One entry of a layer: a directory, a link to `link`, or a file with `content` or the content of `source`."""

    kind: str
    mode: int = 0o755
    source: str = ""
    content: bytes | None = None
    link: str = ""

    def digest(self) -> str:
        """Return the SHA-256 of a file's content, the target of a link, or an empty text."""
        if self.kind != "file":
            return self.link
        if self.content is not None:
            return hashlib.sha256(self.content).hexdigest()
        found = hashlib.sha256()
        with open(self.source, "rb") as handle:
            while part := handle.read(_CHUNK_BYTES):
                found.update(part)
        return found.hexdigest()


@dataclass(frozen=True)
class File:
    """A file that is asked for: a path in the image, and either its text or a file or directory of this host."""

    path: str
    content: str | None = None
    source: str = ""
    mode: int | None = None


@dataclass(frozen=True)
class Wanted:
    """What a layer is to hold. `programs` are names or paths of this host's, each kept at its own path.

    `interpreters` are Pythons among them, whose standard library comes along.
    """

    programs: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    directories: Mapping[str, int] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    interpreters: tuple[str, ...] = ()


Layer = Mapping[str, Item]
"""Entries by path without leading slash."""


def place(path: str) -> str:
    """Return where a path of the host lies in an image, without leading slash: /lib is /usr/lib. Raises LayerError."""
    clean = os.path.normpath("/" + path.lstrip("/")).lstrip("/")
    if not clean or clean == "." or ".." in path.split("/"):
        raise LayerError(f"image path {path!r}: is none; give one such as /usr/bin/program")
    head, _slash, rest = clean.partition("/")
    return f"usr/{head}/{rest}" if head in _MERGED and rest else clean


def libraries(program: str, run: Run = commands.run) -> tuple[str, ...]:
    """Return the paths of the libraries that a program loads, the loader included. Raises LayerError, CommandError."""
    done = run(["ldd", program], check=False)
    text = done.stdout + done.stderr
    missing = _MISSING.findall(text)
    if missing:
        raise LayerError(f"{program}: needs {', '.join(missing)}, which this host lacks; install the package with it")
    if done.status != 0 and not any(words in text for words in _STATIC):
        raise LayerError(f"{program}: ldd does not take it ({text.strip()}); name a program of this host")
    return tuple(dict.fromkeys(_LIBRARY.findall(text)))


def collect(wanted: Wanted, run: Run = commands.run, which: Callable[[str], str | None] = shutil.which) -> Layer:
    """Return the entries of a layer, with the directories above them. Raises LayerError, CommandError."""
    items: dict[str, Item] = {}
    for name in (*wanted.programs, *wanted.interpreters):
        for path in _with_libraries(_found(name, which), run):
            items[place(path)] = _from_host(path, None)
    for name in wanted.interpreters:
        for path in standard_library(_found(name, which), run):
            parts = _with_libraries(path, run) if path.endswith(".so") else (path,)
            items.update({place(part): _from_host(part, None) for part in parts})
    if wanted.programs or wanted.interpreters:
        items.update({name: Item("link", link=f"usr/{name}") for name in _MERGED})
        items.update({f"usr/{name}": Item("directory") for name in _MERGED})
    items.update({place(path): Item("directory", mode) for path, mode in wanted.directories.items()})
    for file in wanted.files:
        items.update(_file(file))
    items.update({place(path): Item("link", link=link) for path, link in wanted.links.items()})
    parents = {parent for path in items for parent in _parents(path)}
    return {**{path: Item("directory") for path in parents - set(items)}, **items}


def _found(name: str, which: Callable[[str], str | None]) -> str:
    found = name if os.path.isabs(name) else which(name)
    if found is None or not os.path.isfile(found):
        raise LayerError(f"program {name}: is not on this host; install the package with it, or correct its name")
    return found


def _with_libraries(path: str, run: Run) -> tuple[str, ...]:
    return (path, *libraries(path, run))


def standard_library(interpreter: str, run: Run = commands.run) -> list[str]:
    """Return the files of a Python's standard library, without what only developers need. Raises CommandError."""
    found = run([interpreter, "-I", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"])
    top = found.stdout.strip()
    files = []
    for folder, below, names in os.walk(top):
        below[:] = [name for name in below if name not in _NOT_NEEDED and not name.startswith("config-")]
        files += [os.path.join(folder, name) for name in names]
    # A link to something that is not installed.
    return sorted(path for path in files if os.path.isfile(path))


def _parents(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _file(file: File) -> dict[str, Item]:
    if file.content is not None:
        mode = 0o644 if file.mode is None else file.mode
        return {place(file.path): Item("file", mode, content=file.content.encode("utf-8"))}
    if not os.path.exists(file.source):
        raise LayerError(f"{file.source}: is not on this host; correct source of {file.path}")
    if not os.path.isdir(file.source):
        return {place(file.path): _from_host(file.source, file.mode)}
    found = {}
    for folder, _below, names in os.walk(file.source):
        below = os.path.relpath(folder, file.source)
        for name in names:
            target = os.path.normpath(os.path.join(file.path, below, name))
            found[place(target)] = _from_host(os.path.join(folder, name), file.mode)
    return found


def _from_host(path: str, mode: int | None) -> Item:
    real = os.path.realpath(path)
    return Item("file", stat.S_IMODE(os.stat(real).st_mode) if mode is None else mode, real)


def recipe(layer: Layer) -> list[list[str]]:
    """Return what makes a layer what it is, in canonical order: path, kind, mode, content's digest or link's target."""
    return [[path, item.kind, oct(item.mode), item.digest()] for path, item in sorted(layer.items())]


class _Digesting(io.RawIOBase):
    """Passes bytes on and keeps their SHA-256 and number."""

    def __init__(self, target: BinaryIO | gzip.GzipFile) -> None:
        """Take where the bytes go."""
        self.target, self.hash, self.size = target, hashlib.sha256(), 0

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Take bytes."""
        self.hash.update(data)
        self.size += len(data)
        self.target.write(data)
        return len(data)


@dataclass(frozen=True)
class Blob:
    """A packed layer: digest and bytes of the packed file, digest of what is in it."""

    digest: str
    size_bytes: int
    content_digest: str


def pack(layer: Layer, output: BinaryIO) -> Blob:
    """Write a layer as tar.gz without times and owners, streaming. Level 1 suits a registry on the same machine."""
    packed = _Digesting(output)
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=1, mtime=0) as squeezed:
        content = _Digesting(squeezed)
        with tarfile.open(fileobj=content, mode="w|", format=tarfile.GNU_FORMAT) as archive:
            for path, item in _in_order(layer):
                _add(archive, path, item)
    output.flush()
    return Blob(f"sha256:{packed.hash.hexdigest()}", packed.size, f"sha256:{content.hash.hexdigest()}")


def _in_order(layer: Layer) -> Sequence[tuple[str, Item]]:
    return sorted(layer.items())


def _add(archive: tarfile.TarFile, path: str, item: Item) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode, entry.mtime = item.mode, 0
    if item.kind == "directory":
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    elif item.kind == "link":
        entry.type, entry.linkname = tarfile.SYMTYPE, item.link
        archive.addfile(entry)
    elif item.content is not None:
        entry.size = len(item.content)
        archive.addfile(entry, io.BytesIO(item.content))
    else:
        with open(item.source, "rb") as handle:
            entry.size = os.fstat(handle.fileno()).st_size
            archive.addfile(entry, handle)

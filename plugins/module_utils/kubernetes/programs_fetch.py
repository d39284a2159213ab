# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch programs by addresses and checksums into a directory of a cache: all of them, or nothing at all.

What was fetched is checked in a directory beside, which only gets the name under which it is used when all is well.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from ansible_collections.colocation.testbed.plugins.module_utils import cache_directory, files

SETTING = "kubernetes_programs_urls"
_CHUNK_BYTES = 1 << 20
_URL_TIMEOUT_S = 60.0
_LOCK_TIMEOUT_S = 1800.0
_PREFIX = ".fetching-"


class FetchError(Exception):
    """A program can't be fetched, or isn't what its checksum says; one sentence, and nothing is kept."""


@dataclass(frozen=True)
class Source:
    """Where a program comes from: an address, the SHA-256 of what is there, and its name, if it is in an archive."""

    name: str
    url: str
    sha256: str
    member: str = ""


def check(sources: Sequence[Source]) -> None:
    """Raise FetchError for what can't be an address, a checksum or a name of a program, before anything is fetched."""
    problems = []
    for item in sources:
        if not item.name or os.path.basename(item.name) != item.name or item.name.startswith("."):
            problems.append(f"name {item.name!r} is not the name of a program")
        if not item.url.startswith(("http://", "https://")):
            problems.append(f"{item.name}: url {item.url!r} does not begin with http:// or https://")
        if len(item.sha256) != 64 or item.sha256.strip("0123456789abcdef"):
            problems.append(f"{item.name}: sha256 is not 64 hexadecimal digits; print it with sha256sum FILE")
    if len({item.name for item in sources}) != len(sources):
        problems.append("two entries have the same name")
    if problems:
        raise FetchError(f"{SETTING}: {'; '.join(problems)}")


def is_there(directory: str, sources: Sequence[Source]) -> bool:
    """Tell whether all programs were fetched before."""
    return all(os.path.isfile(os.path.join(directory, item.name)) for item in sources)


def fetch(directory: str, sources: Sequence[Source], judge: Callable[[str], Any]) -> None:
    """Fetch all programs, let ``judge`` look at the directory that they are in, then give it its name.

    Raises FetchError, CacheError, and what ``judge`` raises; then nothing of it is kept.
    """
    above = os.path.dirname(directory)
    with cache_directory.locked(above, "programs", "kubernetes_cache_dir", _LOCK_TIMEOUT_S):
        if is_there(directory, sources):
            return
        work = tempfile.mkdtemp(prefix=_PREFIX, dir=above)
        try:
            made = os.path.join(work, "bin")
            os.makedirs(made)
            fetched: dict[str, str] = {}
            for number, item in enumerate(sources):
                if item.url not in fetched:
                    fetched[item.url] = os.path.join(work, f"download-{number}")
                    _download(item, fetched[item.url])
                _check_sum(item, fetched[item.url])
                _put(item, fetched[item.url], os.path.join(made, item.name))
            judge(made)
            if os.path.lexists(directory):
                os.rename(directory, os.path.join(work, "replaced"))
            os.rename(made, directory)
            files.sync_directory(above)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _download(item: Source, path: str) -> None:
    try:
        # S310: check() allows http and https only.
        with urllib.request.urlopen(item.url, timeout=_URL_TIMEOUT_S) as answer, open(path, "wb") as handle:  # noqa: S310
            shutil.copyfileobj(answer, handle, _CHUNK_BYTES)
    except (OSError, ValueError, urllib.error.URLError) as exc:
        raise FetchError(f"program {item.name}: {item.url}: {exc}; correct {SETTING}, or look with: curl -I") from exc


def _check_sum(item: Source, path: str) -> None:
    found = hashlib.sha256()
    with open(path, "rb") as handle:
        for chunk in iter(lambda: handle.read(_CHUNK_BYTES), b""):
            found.update(chunk)
    if found.hexdigest() != item.sha256:
        raise FetchError(
            f"program {item.name}: {item.url} has the SHA-256 {found.hexdigest()}, not {item.sha256}; don't trust it, "
            f"or correct {SETTING}"
        )


def _put(item: Source, fetched: str, path: str) -> None:
    """Bring a program under its name: the file itself, or a member of the archive that it is."""
    if not item.member:
        shutil.copyfile(fetched, path)
    else:
        try:
            with tarfile.open(fetched) as archive, _member(archive, item) as inside, open(path, "wb") as handle:
                shutil.copyfileobj(inside, handle, _CHUNK_BYTES)
        except (tarfile.TarError, EOFError, OSError) as exc:
            raise FetchError(f"program {item.name}: {item.url} is no archive of tar ({exc}); leave member out") from exc
    os.chmod(path, 0o755)  # noqa: S103 - programs are everybody's to run


def _member(archive: tarfile.TarFile, item: Source) -> IO[bytes]:
    for entry in archive:
        found = archive.extractfile(entry) if entry.isfile() else None
        if found is not None and os.path.normpath(entry.name) == os.path.normpath(item.member):
            return found
    raise FetchError(f"program {item.name}: {item.url} has no file {item.member}; look with: tar tf")

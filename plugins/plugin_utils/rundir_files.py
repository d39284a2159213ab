# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of run directories, read and written so that each is whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.plugin_utils import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SCHEMA = "colocation.testbed/manifest/1"
MANIFEST = "manifest.json"
#: A manifest that names no experiment is of the first one.
MATRIX, BANDWIDTH = "matrix", "bandwidth"
EXPERIMENTS = (MATRIX, BANDWIDTH)
#: What a directory is called while it is written.
TEMPORARY = ".tmp-"


class RunDirectoryError(Exception):
    """A run directory cannot be read or written; the text names path, finding, what is allowed and what to do."""


def read_manifest(target: Path) -> dict[str, Any]:
    """Return the manifest of a run. Raises RunDirectoryError when there is none of this version."""
    if not target.is_dir():
        raise RunDirectoryError(f"{target}: is no run directory; name one that holds {MANIFEST}, such as results/<id>")
    manifest = read_json(target / MANIFEST)
    found = manifest.get("schema") if isinstance(manifest, dict) else None
    if found != SCHEMA:
        raise RunDirectoryError(
            f"{target / MANIFEST}: schema is {found!r}; this version reads {SCHEMA!r} only; "
            "use the version of the collection that wrote it (versions.collection in the file)"
        )
    return dict(manifest)


def experiment_of(manifest: Mapping[str, Any], target: Path) -> str:
    """Return which experiment a run is of. Raises RunDirectoryError for one that this version does not know."""
    found = manifest.get("experiment", MATRIX)
    if found not in EXPERIMENTS:
        raise RunDirectoryError(
            f"{target / MANIFEST}: experiment is {found!r}; this version knows {', '.join(EXPERIMENTS)}; "
            "use the version of the collection that wrote it (versions.collection in the file)"
        )
    return str(found)


@contextlib.contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """Yield a fresh directory that becomes ``target`` in one step when the block ends well, and vanishes otherwise."""
    temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        for folder in (temporary, *(entry for entry in temporary.iterdir() if entry.is_dir())):
            files.sync_directory(str(folder))
        temporary.rename(target)
        files.sync_directory(str(target.parent))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check(name: str, value: Any, path: Path) -> None:
    """Check a value against the schema of that name. Raises RunDirectoryError."""
    try:
        schemas.check(name, value)
    except schemas.SchemaError as exc:
        raise RunDirectoryError(
            f"{path}: does not follow docs/schemas/{name}.schema.json: {exc}; restore the file or remove the run"
        ) from exc


def read_json(path: Path) -> Any:
    """Return the value in a file. Raises RunDirectoryError."""
    try:
        return files.read_json(str(path))
    except files.FilesError as exc:
        raise RunDirectoryError(str(exc)) from exc


def read_lines(path: Path) -> tuple[dict[str, Any], ...]:
    """Return the objects in a file of JSON lines. Raises RunDirectoryError, also for a truncated one."""
    try:
        content = files.read_text(str(path))
    except files.FilesError as exc:
        raise RunDirectoryError(str(exc)) from exc
    if content and not content.endswith("\n"):
        raise RunDirectoryError(f"{path}: its last line is cut short; restore the file from a copy or remove the run")
    lines = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            value = json.loads(line)
        except ValueError as exc:
            raise RunDirectoryError(
                f"{path}:{number}: is not JSON: {exc}; restore the file from a copy or remove the run"
            ) from exc
        if not isinstance(value, dict):
            raise RunDirectoryError(f"{path}:{number}: is no object; restore the file from a copy or remove the run")
        lines.append(value)
    return tuple(lines)


def as_lines(lines: bytes | Iterable[Mapping[str, Any]]) -> bytes:
    """Return samples as they are stored; a last line that the sampler had not finished is left out."""
    if isinstance(lines, bytes):
        return lines[: lines.rfind(b"\n") + 1]
    return b"".join(json.dumps(dict(line), sort_keys=True).encode("utf-8") + b"\n" for line in lines)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a new file, and wait until the disk has it."""
    with path.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


def write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    """Write a new file with a value, and wait until the disk has it."""
    write_bytes(path, (json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8"))


def replace_json(path: Path, value: Any) -> None:
    """Write a value in place of a file. Raises RunDirectoryError."""
    try:
        files.write_json(str(path), value)
    except files.FilesError as exc:
        raise RunDirectoryError(str(exc)) from exc


def fail_to_write(path: Path, exc: OSError) -> NoReturn:
    """Raise RunDirectoryError for what the operating system refused."""
    raise RunDirectoryError(
        f"{path}: cannot be written: {exc.strerror}; check permissions and free space of the results directory"
    ) from exc

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read files with clear errors and write them so that a crash leaves the old or the new content, never half."""

from __future__ import annotations

import base64
import json
import os
import stat
import tempfile
from typing import Any

_KERNEL_READ_BYTES = 65536


class FilesError(Exception):
    """A file could not be read or written; the text says which, why and what to do."""


def read_bytes(path: str) -> bytes:
    """Return the content of a file. Raises FilesError."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError as exc:
        raise FilesError(f"{path}: cannot be read: {exc.strerror}; check that it exists and who may read it") from exc


def read_text(path: str) -> str:
    """Return the content of a UTF-8 file. Raises FilesError."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise FilesError(f"{path}: is not UTF-8 text at byte {exc.start}; replace the file") from exc


def read_text_or_none(path: str) -> str | None:
    """Return the content of a UTF-8 file, or None when there is no such file. Raises FilesError otherwise."""
    try:
        return read_text(path)
    except FilesError as exc:
        if isinstance(exc.__cause__, (FileNotFoundError, NotADirectoryError)):
            return None
        raise


def read_json(path: str) -> Any:
    """Return the value in a JSON file. Raises FilesError for a missing or malformed one."""
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as exc:
        raise FilesError(f"{path}: is not JSON: {exc}; restore the file or remove it") from exc


def sync_directory(path: str) -> None:
    """Make the entries of a directory durable (a rename is only safe once its directory is)."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: str, content: bytes | str, mode: int = 0o644, owner: tuple[int, int] | None = None) -> None:
    """Replace a file as a whole, durably: temporary file beside it, fsync, rename, fsync of the directory.

    ``owner`` is (uid, gid); None leaves the writer's. Raises FilesError.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    directory = os.path.dirname(path) or "."
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", suffix=".tmp", dir=directory)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
                if owner is not None:
                    os.fchown(stream.fileno(), owner[0], owner[1])
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        sync_directory(directory)
    except OSError as exc:
        raise FilesError(f"{path}: cannot be written: {exc.strerror}; check the directory and the free space") from exc


def write_json(path: str, value: Any, mode: int = 0o644) -> None:
    """Replace a JSON file as a whole, with sorted keys so that two writings of one value are equal."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n", mode)


def capture(path: str) -> dict[str, Any] | None:
    """Return a regular file as the journal keeps it (content, mode, owner), or None when there is none.

    Raises FilesError for a directory, a link or a device: those are not replaced as files.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode):
        raise FilesError(f"{path}: is not a regular file, so it is not replaced; move it away")
    content = base64.b64encode(read_bytes(path)).decode("ascii")
    return {
        "content_b64": content,
        "mode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
    }


def restore(path: str, captured: dict[str, Any] | None) -> None:
    """Put a file back as capture() returned it; None removes it. Raises FilesError."""
    if captured is None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError as exc:
            raise FilesError(f"{path}: cannot be removed: {exc.strerror}; remove it by hand") from exc
        return
    try:
        content = base64.b64decode(captured["content_b64"], validate=True)
        mode, owner = int(captured["mode"]), (int(captured["uid"]), int(captured["gid"]))
    except (KeyError, TypeError, ValueError) as exc:
        raise FilesError(f"{path}: its recorded content is damaged ({exc!r}); restore the file by hand") from exc
    write_atomic(path, content, mode, owner)


def read_kernel(path: str) -> str | None:
    """Return the content of a kernel interface file, None when there is no such file. Raises FilesError otherwise.

    Opens and reads without buffering, which takes a third of the time; it counts where thousands are read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise FilesError(f"{path}: cannot be read: {exc.strerror}; check that it exists and who may read it") from exc
    try:
        parts = []
        while part := os.read(handle, _KERNEL_READ_BYTES):
            parts.append(part)
        return b"".join(parts).decode("utf-8", "replace")
    except OSError as exc:
        raise FilesError(f"{path}: cannot be read: {exc.strerror}; check that it exists and who may read it") from exc
    finally:
        os.close(handle)


def write_kernel(path: str, text: str) -> None:
    """Write a value to a kernel interface file in one write() call. Raises FilesError with the kernel's reason.

    Not atomic by renaming, because the kernel acts on the write itself; never creates the file. The empty text is
    written as a line feed, since a write of nothing never reaches the kernel.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(handle, text.encode("utf-8") or b"\n")
        finally:
            os.close(handle)
    except OSError as exc:
        raise FilesError(f"{path}: the kernel refused {text!r}: {exc.strerror}; check the value") from exc

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the node tool: a zip file of module_utils that Python runs. The same sources give the same bytes."""

from __future__ import annotations

import ast
import hashlib
import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFIX = "ansible_collections.colocation.testbed."
# The modules of the tool's commands; what they import, directly or not, is packed with them.
COMMANDS = (
    *("supervise", "sample", "pm_qos_holder", "load", "bandwidth_apply"),
    *("count_received", "echo", "probe", "receive", "send"),
)
# The earliest time that a zip file can hold: time stamps of the checkout must not change the bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


class BundleError(Exception):
    """The node tool could not be built from the collection's files."""


@dataclass(frozen=True)
class Bundle:
    """The bytes of the tool and their SHA-256."""

    content: bytes
    sha256: str


def imports(source: bytes) -> Iterator[str]:
    """Yield the names of this collection's modules that a source may import: `from a import b` may mean a and a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise BundleError(f"{path}: cannot be read ({exc.strerror}); install the collection again") from exc


def sources(collection_root: Path) -> dict[str, bytes]:
    """Return {name in the archive: content} of all files of the tool. Raises BundleError."""
    found = {"__main__.py": _read(collection_root / "files" / "node" / "__main__.py")}
    queue = [f"{PREFIX}plugins.module_utils.node.{name}" for name in COMMANDS]
    while queue:
        module = queue.pop()
        name = module.replace(".", "/") + ".py"
        path = collection_root / (module.removeprefix(PREFIX).replace(".", "/") + ".py")
        if not module.startswith(PREFIX) or name in found or not path.exists():
            continue
        found[name] = _read(path)
        queue += imports(found[name])
    # Python finds packages in a zip file without __init__.py too, but then asks every other path entry first.
    folders = {"/".join(name.split("/")[:depth]) for name in found for depth in range(1, name.count("/") + 1)}
    return {**{f"{folder}/__init__.py": b"" for folder in folders}, **found}


def build(collection_root: Path) -> Bundle:
    """Return the node tool built from the collection at `collection_root`. Raises BundleError."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(sources(collection_root).items()):
            info = zipfile.ZipInfo(name, _TIME)
            # Not compressed: what a compressor makes depends on its version, which differs between controllers.
            info.compress_type = zipfile.ZIP_STORED
            info.create_system = 3
            info.external_attr = _MODE
            archive.writestr(info, content)
    data = buffer.getvalue()
    return Bundle(data, hashlib.sha256(data).hexdigest())

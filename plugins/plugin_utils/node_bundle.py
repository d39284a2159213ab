# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the node tool: a zip file of module_utils that Python runs. The same sources give the same bytes."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "ansible_collections/colocation/testbed/plugins/module_utils"
# Folders and files of module_utils that the commands of the tool import.
PARTS = ("kernel", "node", "commands.py", "files.py", "journal.py", "quantity.py")
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


def sources(collection_root: Path) -> dict[str, bytes]:
    """Return {name in the archive: content} of all files of the tool. Raises BundleError."""
    utils = collection_root / "plugins" / "module_utils"
    entry = collection_root / "files" / "node" / "__main__.py"
    try:
        found = {"__main__.py": entry.read_bytes()}
        for part in PARTS:
            path = utils / part
            for item in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                if item.exists():
                    found[f"{PACKAGE}/{item.relative_to(utils).as_posix()}"] = item.read_bytes()
    except OSError as exc:
        raise BundleError(f"{exc.filename}: cannot be read ({exc.strerror}); install the collection again") from exc
    # Python finds packages in a zip file without __init__.py too, but then asks every other path entry first.
    folders = {parent.as_posix() for name in found for parent in Path(name).parents} - {"."}
    return {**{f"{folder}/__init__.py": b"" for folder in folders}, **found}


def build(collection_root: Path) -> Bundle:
    """Return the node tool built from the collection at `collection_root`. Raises BundleError."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(sources(collection_root).items()):
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = _MODE
            archive.writestr(info, content)
    data = buffer.getvalue()
    return Bundle(data, hashlib.sha256(data).hexdigest())

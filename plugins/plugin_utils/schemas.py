# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON Schemas of a run directory's files, and checks against them that answer in one sentence."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import files

if TYPE_CHECKING:
    import jsonschema

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
NAMES = (
    "manifest",
    "measurement",
    "load",
    "sample",
    "policy",
    "validity",
    "summary",
    "bandwidth-manifest",
    "bandwidth-measurement",
    "traffic",
    "bandwidth-summary",
)


class SchemaError(Exception):
    """A value does not follow its schema; the text says where and how."""


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Return the validator of one of NAMES. Raises SchemaError when the collection lacks the schema."""
    # Imported late, so that the preflight can still say that the package is missing.
    try:
        import jsonschema
    except ImportError as exc:
        raise SchemaError(
            "jsonschema is not installed for Ansible's Python; install requirements.txt of the collection"
        ) from exc
    path = SCHEMAS / f"{name}.schema.json"
    try:
        return jsonschema.Draft202012Validator(files.read_json(str(path)))
    except files.FilesError as exc:
        raise SchemaError(f"{exc}; install the collection again") from exc


def check(name: str, value: Any) -> None:
    """Check a value against the schema of that name. Raises SchemaError with the most telling difference."""
    errors = validator(name).iter_errors(value)
    from jsonschema.exceptions import best_match

    error = best_match(errors)
    if error is None:
        return
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    text = error.message if len(error.message) <= 200 else f"{error.message[:100]} … {error.message[-90:]}"
    raise SchemaError(f"{where}: {text}" if where else text)

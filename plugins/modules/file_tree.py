#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: file_tree
short_description: Keep a workload's files in a directory of its own
version_added: 0.1.0
description:
  - Makes one directory and the files in it, in one call. A file has given content, generated text, or is made by a
    program.
  - The directory is journalled, and goes as a whole when it is undone. One that exists and is not in the journal
    belongs to somebody else, and the module fails without touching it.
  - Works in check mode while the programs that make or validate files are not installed yet.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: Files are not validated in check mode.
  diff_mode:
    support: full
options:
  directory:
    description: The directory. All that is in it goes with it.
    type: path
    required: true
  subdirectories:
    description: Directories in it, parents first.
    type: list
    elements: str
    default: []
  files:
    description: The files. Others in the directory are left alone.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path below O(directory).
        type: str
        required: true
      mode:
        description: Permissions, in octal.
        type: str
        default: "0644"
      content:
        description: The content. One of O(files[].content), O(files[].text_bytes) and O(files[].command) is required.
        type: str
      text_bytes:
        description: Size of generated text in bytes, which compresses like a page of a website.
        type: int
      text_seed:
        description: Seed of the generated text. The same size and seed give the same bytes on every host.
        type: int
        default: 1
      command:
        description:
          - Program and arguments that make the file. C({path}) stands for the file.
          - It runs when the file is missing, or when these arguments are not those that it was made with.
        type: list
        elements: str
      validate:
        description:
          - Program and arguments that must accept the file before it gets its name. C({path}) stands for the file.
        type: list
        elements: str
  timeout_s:
    description: Seconds that each program may run.
    type: int
    default: 300
  state:
    description: Whether the directory should exist.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: State directory of the host; its journal records the directory.
    type: path
    default: /var/lib/colocation-testbed
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Write a page of 72 kB
  colocation.testbed.file_tree:
    directory: /var/lib/colocation-testbed/latency-service
    subdirectories: [html]
    files:
      - path: html/index.html
        text_bytes: 72000

- name: Make a clip
  colocation.testbed.file_tree:
    directory: /var/lib/colocation-testbed/batch-workload
    files:
      - path: clip.mkv
        command: [ffmpeg, -f, lavfi, -i, "testsrc2=size=1280x720:rate=30:duration=2", "{path}"]
"""

RETURN = r"""
directory:
  description: The directory.
  returned: always
  type: str
  sample: /var/lib/colocation-testbed/latency-service
changes:
  description: What was changed, or would be, in words.
  returned: always
  type: list
  elements: str
  sample: [write /var/lib/colocation-testbed/latency-service/html/index.html]
"""

import contextlib
import os
import shutil
from collections.abc import Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import (
    commands,
    file_tree,
    files,
    journal,
    pseudotext,
)

_BY = "file_tree"
_KIND = "directory"
# What makes the journal's undo remove the directory with everything in it.
_TREE = {"tree": True}


def wanted_file(params: dict[str, Any]) -> file_tree.Wanted:
    """Return one file as asked for."""
    try:
        mode = int(params["mode"], 8)
    except ValueError as exc:
        raise file_tree.FileTreeError(
            f"{params['path']}: mode {params['mode']!r} is not octal; write it quoted, like '0644'"
        ) from exc
    content = None if params["content"] is None else params["content"].encode("utf-8")
    if params["text_bytes"] is not None:
        content = pseudotext.generate(params["text_bytes"], params["text_seed"])
    return file_tree.Wanted(
        path=params["path"],
        mode=mode,
        content=content,
        command=tuple(params["command"] or ()),
        validate=tuple(params["validate"] or ()),
    )


def require_own(directory: str, book: journal.Journal) -> None:
    """Raise FileTreeError where the directory exists and the journal does not know it as ours."""
    if any(entry.kind == _KIND and entry.target == directory for entry in book.entries()):
        return
    if os.path.lexists(directory):
        raise file_tree.FileTreeError(
            f"{directory}: exists and was not made by this collection (it is not in {book.path}); move it away"
        )


def present(module: AnsibleModule, directory: str, book: journal.Journal) -> tuple[file_tree.Change, ...]:
    """Make the tree as asked for, read it back, and return what changed."""
    wanted = [wanted_file(item) for item in module.params["files"]]
    subdirectories = module.params["subdirectories"]
    changes = file_tree.plan(directory, subdirectories, wanted)
    if changes and not module.check_mode:

        def run(argv: Sequence[str]) -> object:
            return commands.run(argv, timeout_s=module.params["timeout_s"])

        book.record(_KIND, directory, _TREE, _BY)
        file_tree.apply(changes, run)
        left = file_tree.plan(directory, subdirectories, wanted)
        if left:
            raise file_tree.FileTreeError(
                f"{left[0].path}: '{left[0].text}' had no effect; does something else write it?"
            )
    return changes


def absent(module: AnsibleModule, directory: str, book: journal.Journal) -> tuple[file_tree.Change, ...]:
    """Remove the tree, and return what changed."""
    if not os.path.lexists(directory):
        if not module.check_mode:
            book.forget(_KIND, directory)
        return ()
    if not module.check_mode:
        try:
            shutil.rmtree(directory)
        except OSError as exc:
            raise file_tree.FileTreeError(
                f"{exc.filename}: cannot be removed: {exc.strerror}; remove it by hand"
            ) from exc
        book.forget(_KIND, directory)
    return (file_tree.Change(directory, f"remove {directory}", "directory\n", ""),)


def run(module: AnsibleModule) -> None:
    """Compare, act, report."""
    directory = os.path.abspath(module.params["directory"])
    book = journal.Journal(os.path.join(module.params["state_dir"], "journal.json"))
    require_own(directory, book)
    act = present if module.params["state"] == "present" else absent
    # Check mode reads only, and must not wait for a run that writes.
    lock = contextlib.nullcontext() if module.check_mode else file_tree.alone(directory, module.params["timeout_s"])
    with lock:
        changes = act(module, directory, book)
    result: dict[str, Any] = {
        "changed": bool(changes),
        "directory": directory,
        "changes": [change.text for change in changes],
    }
    if module._diff:
        result["diff"] = [
            {
                "before": change.before,
                "after": change.after,
                "before_header": change.path,
                "after_header": change.path,
            }
            for change in changes
        ]
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    sources = ("content", "text_bytes", "command")
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "subdirectories": {"type": "list", "elements": "str", "default": []},
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "str", "required": True},
                    "mode": {"type": "str", "default": "0644"},
                    "content": {"type": "str"},
                    "text_bytes": {"type": "int"},
                    "text_seed": {"type": "int", "default": 1},
                    "command": {"type": "list", "elements": "str"},
                    "validate": {"type": "list", "elements": "str"},
                },
                "mutually_exclusive": [sources],
                "required_one_of": [sources],
            },
            "timeout_s": {"type": "int", "default": 300},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (commands.CommandError, file_tree.FileTreeError, files.FilesError, journal.JournalError) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()

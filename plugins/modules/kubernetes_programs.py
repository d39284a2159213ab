#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_programs
short_description: Bring programs of a cluster from addresses, or check those that are there
version_added: 0.1.0
description:
  - Checks that a directory has all programs that are needed, that they are for this machine (by their ELF header), may
    be executed, and print the version that is needed. All that is wrong is told at once.
  - With O(urls), fetches them before. Each must have its checksum. The directory appears when all programs were fetched
    and passed the checks, and not at all otherwise.
  - The directory is like the cache of a package manager. It is not in the journal, and nothing removes it but you.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is fetched in check mode, so programs that are not there yet can't be checked.
  diff_mode:
    support: full
options:
  directory:
    description: Directory of the programs.
    type: path
    required: true
  programs:
    description: The programs that must be there.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the program.
        type: str
        required: true
      version_argv:
        description: Arguments with which it prints its version. Without any, the version is not asked for.
        type: list
        elements: str
        default: []
      exactly:
        description: The version that it must have, with or without V(v).
        type: str
        default: ""
      at_least:
        description: The oldest version that it may have.
        type: str
        default: ""
      setting:
        description: Setting that says which version is wanted; for the message.
        type: str
        default: ""
  urls:
    description: Where programs are fetched from. Without any, they must be there.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the program.
        type: str
        required: true
      url:
        description: Address of the program, or of an archive of tar that has it. Begins with http:// or https://.
        type: str
        required: true
      sha256:
        description: SHA-256 of what is there.
        type: str
        required: true
      member:
        description: Name of the program in the archive; empty where the address is the program's own.
        type: str
        default: ""
  advice:
    description: What to do about a missing program; for the message.
    type: str
    default: put it there
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: See that kubelet is the right one
  colocation.testbed.kubernetes_programs:
    directory: /opt/kubernetes/bin
    programs:
      - {name: kubelet, version_argv: [--version], exactly: v1.34.4, setting: kubernetes_version}
"""

RETURN = r"""
versions:
  description: Version of each program, empty where it was not asked for.
  returned: when the programs are there
  type: dict
  sample: {"kubelet": "1.34.4"}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import cache_directory, commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import programs, programs_fetch

PROGRAM: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "version_argv": {"type": "list", "elements": "str", "default": []},
    "exactly": {"type": "str", "default": ""},
    "at_least": {"type": "str", "default": ""},
    "setting": {"type": "str", "default": ""},
}
SOURCE: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "url": {"type": "str", "required": True},
    "sha256": {"type": "str", "required": True},
    "member": {"type": "str", "default": ""},
}


def _run(params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    directory, advice = params["directory"], params["advice"]
    wanted = [programs.Wanted(**{**item, "version_argv": tuple(item["version_argv"])}) for item in params["programs"]]
    sources = [programs_fetch.Source(**item) for item in params["urls"]]
    programs_fetch.check(sources)
    changed = bool(sources) and not programs_fetch.is_there(directory, sources)
    lines = "".join(f"{item.name}: {item.url}\n" for item in sources) if changed else ""
    result: dict[str, Any] = {"changed": changed, "diff": {"before": "", "after": lines}}
    missing = sorted({item.name for item in wanted} - {item.name for item in sources})
    if sources and missing:
        raise programs.ProgramsError(f"program {', '.join(missing)}: has no address; {advice}")
    if changed and check_mode:
        return result
    if changed:
        programs_fetch.fetch(directory, sources, lambda made: programs.check(made, wanted, advice))
    return {**result, "versions": programs.check(directory, wanted, advice)}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "programs": {"type": "list", "elements": "dict", "required": True, "options": PROGRAM},
            "urls": {"type": "list", "elements": "dict", "default": [], "options": SOURCE},
            "advice": {"type": "str", "default": "put it there"},
        },
        supports_check_mode=True,
    )
    try:
        result = _run(module.params, module.check_mode)
    except (
        cache_directory.CacheError,
        commands.CommandError,
        files.FilesError,
        programs.ProgramsError,
        programs_fetch.FetchError,
    ) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"programs: {exc.filename}: {exc.strerror}; check its mode and the free space")
    module.exit_json(**result)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: go_programs
short_description: Build programs from pinned Go modules into a cache
version_added: 0.1.0
description:
  - Builds groups of programs, each from one C(go.mod) and C(go.sum), which pin every dependency by its checksum. What
    is built comes from Go's module proxy, as C(go env GOPROXY) of the host says.
  - A group is built once. Its directory is called after its pins; runs, checkouts and tests share it. A changed pin is
    another directory. An interrupted run leaves no half group, and two runs never build at the same time.
  - RV(bin_dir) has the programs of all groups that were asked for, as links, so that it can be put into PATH.
  - A group that cannot be built does not cost the others; they are kept, and the next run builds only what is missing.
  - The cache is like that of a package manager. It is not in the journal, and nothing removes it but you.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is fetched in check mode, so it can't tell whether the module proxy can be reached.
  diff_mode:
    support: full
options:
  groups:
    description: The groups; the filter P(colocation.testbed.go_groups#filter) reads those of C(files/kubernetes).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the group.
        type: str
        required: true
      go_mod:
        description: Text of its C(go.mod).
        type: str
        required: true
      go_sum:
        description: Text of its C(go.sum).
        type: str
        required: true
      programs:
        description:
          - Programs by name, each with its Go C(package). A program with C(version_argv) is run with these arguments
            and must print its C(version).
        type: dict
        required: true
      defines:
        description: Texts that the linker puts into variables of the programs, such as versions.
        type: dict
        default: {}
      tags:
        description: Build tags.
        type: list
        elements: str
        default: []
      cgo:
        description: Whether a C compiler takes part.
        type: bool
        default: false
      packages:
        description: Packages of the distribution that must be there to build with C; named when they are missing.
        type: list
        elements: str
        default: []
  cache_dir:
    description: Where programs are kept.
    type: path
    default: ~/.cache/colocation-testbed/kubernetes
  go_cache_dir:
    description:
      - Directory for Go's own caches, to be kept between builds. They take some 12 GB.
      - Where it is empty, they are in a directory beside the programs that is removed afterwards.
    type: path
  nice:
    description: Niceness of the compiler, from 0 to 19.
    type: int
    default: 10
  jobs:
    description: Compilers that run at the same time; 0 means as many as there are CPUs.
    type: int
    default: 0
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Build a control plane
  colocation.testbed.go_programs:
    groups: "{{ ['etcd', 'kubernetes'] | colocation.testbed.go_groups }}"
  register: programs

- name: Show where the programs are
  ansible.builtin.debug:
    msg: "{{ programs.bin_dir }}"
"""

RETURN = r"""
bin_dir:
  description: Directory that has the programs of all groups.
  returned: always
  type: str
  sample: /root/.cache/colocation-testbed/kubernetes/0123456789abcdef/bin
programs:
  description: Path of each program by its name.
  returned: always
  type: dict
  sample: {"etcd": "/root/.cache/colocation-testbed/kubernetes/0123456789abcdef/bin/etcd"}
built:
  description: Groups that were built now; in check mode those that would be.
  returned: always
  type: list
  elements: str
  sample: [etcd]
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import cache_directory, commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_build, go_groups

GROUP: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "go_mod": {"type": "str", "required": True},
    "go_sum": {"type": "str", "required": True},
    "programs": {"type": "dict", "required": True},
    "defines": {"type": "dict", "default": {}},
    "tags": {"type": "list", "elements": "str", "default": []},
    "cgo": {"type": "bool", "default": False},
    "packages": {"type": "list", "elements": "str", "default": []},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Compare with the cache, build what is missing, say where everything is."""
    params = module.params
    if not 0 <= params["nice"] <= 19 or params["jobs"] < 0:
        raise go_groups.GoGroupsError("go_programs: nice is from 0 to 19, and jobs is 0 or more; correct them")
    groups = go_groups.parse(params["groups"])
    store = go_build.Store(params["cache_dir"])
    built = tuple(group.name for group in groups if not store.has(group))
    changed = bool(built) or not store.linked(groups)
    if changed and not module.check_mode:
        settings = go_build.Settings(params["nice"], params["jobs"], params["go_cache_dir"] or "")
        built = go_build.make(groups, store, settings)
    folder = store.bin_dir(groups)
    names = sorted(name for group in groups for name in group.programs)
    after = "".join(f"{group.name}: {store.group_dir(group)}\n" for group in groups)
    return {
        "changed": changed,
        "bin_dir": folder,
        "programs": {name: os.path.join(folder, name) for name in names},
        "built": list(built),
        "diff": {"before": "" if changed else after, "after": after, "before_header": folder, "after_header": folder},
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "groups": {"type": "list", "elements": "dict", "required": True, "options": GROUP},
            "cache_dir": {"type": "path", "default": "~/.cache/colocation-testbed/kubernetes"},
            "go_cache_dir": {"type": "path"},
            "nice": {"type": "int", "default": 10},
            "jobs": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (
        cache_directory.CacheError,
        commands.CommandError,
        files.FilesError,
        go_build.GoBuildError,
        go_groups.GoGroupsError,
    ) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"go programs: {exc.filename}: {exc.strerror}; check its mode and the free space")
    module.exit_json(**result)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: koordinator_source
short_description: Fetch Koordinator's sources, in which its manifests are
version_added: 0.1.0
description:
  - Fetches the Go module of Koordinator through Go's module proxy, as C(go env GOPROXY) says, and returns the directory
    in Go's module cache. Its checksum is compared with the one that this collection has noted for the version.
  - What is in the cache already is not fetched again. Nothing is journalled, as the cache is like a package manager's.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: The cache is filled in check mode too, as the manifests are needed to tell what would change.
  diff_mode:
    support: none
options:
  version:
    description: Version of Koordinator.
    type: str
    choices: ["1.7.0", "1.8.0"]
    default: "1.8.0"
  go:
    description: The go program.
    type: str
    default: go
  timeout_s:
    description: Seconds that fetching may take.
    type: int
    default: 300
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Fetch Koordinator's manifests
  colocation.testbed.koordinator_source:
    version: 1.8.0
  delegate_to: localhost
"""

RETURN = r"""
directory:
  description: Directory of the sources.
  returned: always
  type: str
  sample: /root/go/pkg/mod/github.com/koordinator-sh/koordinator@v1.8.0
sum:
  description: Checksum of the module, as C(go.sum) has it.
  returned: always
  type: str
  sample: h1:CEMaFv6qru+arNhcdhkLP2Shxw77Heb6PSaXjHZ/t0I=
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_module


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "version": {"type": "str", "choices": sorted(go_module.SUMS), "default": "1.8.0"},
            "go": {"type": "str", "default": "go"},
            "timeout_s": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    try:
        found = go_module.fetch(module.params["version"], module.params["go"], float(module.params["timeout_s"]))
    except go_module.GoModuleError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, directory=found.directory, sum=found.sum)


if __name__ == "__main__":
    main()

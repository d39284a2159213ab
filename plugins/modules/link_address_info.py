#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: link_address_info
short_description: Say which device has an address, and by which address of IPv6 it is reached
version_added: 0.1.0
description:
  - Looks for the device that has an IPv4 address, and for an IPv6 address of the same device. One that is valid
    everywhere comes before one of the link alone. Temporary and deprecated ones are left out.
  - An address that the kernel still checks for duplicates is waited for, up to five seconds.
  - Changes nothing.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  address:
    description: The IPv4 address.
    type: str
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Look for the other address of the link
  colocation.testbed.link_address_info:
    address: 192.0.2.11
  register: link
"""

RETURN = r"""
device:
  description: The device, or the empty text where none has the address.
  returned: success
  type: str
  sample: ct0
address6:
  description: Its IPv6 address, or the empty text where it has none.
  returned: success
  type: str
  sample: fe80::c011:fcff:fe4d:d0c0
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import link_addresses
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait

_CHECKED_WITHIN_S = 5.0


def _shown() -> str:
    return commands.run(["ip", "-j", "addr", "show"]).stdout


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"address": {"type": "str", "required": True}}, supports_check_mode=True)
    try:
        wait(lambda: not link_addresses.checking(_shown()), _CHECKED_WITHIN_S)
        device, address6 = link_addresses.find(_shown(), module.params["address"])
    except (commands.CommandError, link_addresses.LinkAddressError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, device=device, address6=address6)


if __name__ == "__main__":
    main()

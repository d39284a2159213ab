# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role bandwidth_traffic left on the hosts, as the facts that it sets."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import Ends
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import deployed
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import DeployedError

if TYPE_CHECKING:
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Host

FACT = "bandwidth_traffic_deployed"


def read(tested: Host, load: Host) -> Ends:
    """Return both hosts with their addresses. Raises DeployedError where a role has not run, or an address is none."""
    return Ends(deployed.node(tested), deployed.node(load), _address(tested), _address(load))


def _address(host: Host) -> str:
    text = str(deployed.fact(host, FACT)["address"])
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise DeployedError(
            f"{host.name}: bandwidth_traffic_address is {text!r}, which is not an IPv4 address; "
            "set it to the host's own on the link that is measured"
        ) from None

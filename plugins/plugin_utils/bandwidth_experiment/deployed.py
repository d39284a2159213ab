# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role bandwidth_traffic left on the hosts, as the facts that it sets."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import End, Ends
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import deployed
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import DeployedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Host

FACT = "bandwidth_traffic_deployed"


def read(tested: Host, load: Host) -> Ends:
    """Return both hosts with their addresses. Raises DeployedError where a role has not run, or an address is none."""
    return Ends(_end(tested), _end(load))


def _end(host: Host) -> End:
    fact = deployed.fact(host, FACT)
    text, newer = str(fact["address"]), str(fact.get("address6") or "")
    try:
        address = str(ipaddress.IPv4Address(text))
    except ValueError:
        raise DeployedError(
            f"{host.name}: bandwidth_traffic_address is {text!r}, which is not an IPv4 address; "
            "set it to the host's own on the link that is measured"
        ) from None
    try:
        address6 = str(ipaddress.IPv6Address(newer)) if newer else ""
    except ValueError:
        raise DeployedError(
            f"{host.name}: bandwidth_traffic_address6 is {newer!r}, which is not an IPv6 address; "
            "set it to the host's own on the link that is measured, or leave it empty"
        ) from None
    return End(deployed.node(host), address, address6, str(fact.get("device") or ""))


def check(ends: Ends, scenarios: Mapping[str, Any]) -> None:
    """Raise DeployedError where a case needs an address that a host lacks."""
    for name, scenario in scenarios.items():
        for case, item in scenario["cases"].items():
            for end in (ends.tested_end, ends.load_end):
                if item["family"] == "ipv6" and not end.address6:
                    raise DeployedError(
                        f"{end.node.name}: the device of {end.address} has no IPv6 address, which {name}.{case} needs; "
                        "give it one and set bandwidth_traffic_address6, or select other cases"
                    )

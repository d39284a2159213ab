# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node that is reached through a pod can be reached, or would be once the pod is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutorError
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes.node_inventory import NODE_POD
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.rows import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Host

#: The host on which kubectl reaches the cluster, as for the connection.
MACHINE = "localhost"
#: Options of module node_access by the variable that they come from, where the role's are called otherwise.
_CLUSTER = ("kubectl", "kubeconfig", "context")
_OWN = ("namespace", "image", "image_pull_policy", "directory", "more_directories", "requests")


def is_wanted(host: Host) -> bool:
    """Tell whether a host is reached through a pod."""
    return bool(host.variable("ansible_connection", "") == NODE_POD)


def look(host: Host, machine: Host, options: Mapping[str, Mapping[str, Any]]) -> tuple[Row, bool]:
    """Return the row of a host's pod, and whether the host can be asked already. Nothing is changed."""

    def value(name: str) -> Any:
        return host.variable(name, options[name].get("default"))

    given = {
        **{name: value(f"kubernetes_{name}") for name in _CLUSTER},
        **{name: value(f"node_access_{name}") for name in _OWN},
        "node": host.variable("kubernetes_node_name", host.name),
        "state_dir": value("node_state_dir"),
    }
    try:
        found = machine.run("node_access", given, check_mode=True)
    except HostExecutorError as exc:
        # What fails is not the machine's fault that was asked.
        text = str(exc).removeprefix(f"{MACHINE}: ")
        return Row("pod for access", host.name, "ready, or can be made", "can't be made", "missing", text), False
    if found["pod"]:
        return Row("pod for access", host.name, "ready, or can be made", "ready"), True
    return Row("pod for access", host.name, "ready, or can be made", "to be made, host not asked yet"), False

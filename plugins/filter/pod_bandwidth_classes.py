# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pod_bandwidth_classes
short_description: Make classes of bandwidth from annotations of Kubernetes pods
version_added: 0.1.0
description:
  - Takes pods as C(kubernetes.core.k8s_info) returns them in C(resources), and returns classes for module
    M(colocation.testbed.bandwidth_class).
  - C(kubernetes.io/egress-bandwidth) and C(kubernetes.io/ingress-bandwidth) are quantities in bits a second, so C(10M)
    is 10 Mbit/s. C(oncn-bwm.openeuler.org/egress-bandwidth) and C(oncn-bwm.openeuler.org/ingress-bandwidth) are JSON
    with C(request), C(limit) and C(priority), in units of 2^20 bits a second.
  - A pod is known by its addresses, one in the host's network by its control group. Pods of quality of service
    C(BestEffort) are offline, all others online.
positional: _input
options:
  _input:
    description: The pods. One that has ended, or has no address yet, gives no class.
    type: list
    elements: dict
    required: true
  egress:
    description: Pool for what pods send. Without it annotations about that are not read.
    type: str
    default: ""
  ingress:
    description: Pool for what pods receive. Without it annotations about that are not read.
    type: str
    default: ""
  node:
    description: Take the pods of this node only.
    type: str
    default: ""
  devices:
    description: The host's ends of the links of pods by uid, where they are known; they are members of the class too.
    type: dict
    default: {}
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show the classes of a node's pods
  ansible.builtin.debug:
    msg: "{{ pods.resources | colocation.testbed.pod_bandwidth_classes(egress='link', node='worker1') }}"
  vars:
    pods: {resources: []}
"""

RETURN = r"""
_value:
  description: Classes as module M(colocation.testbed.bandwidth_class) takes them.
  type: list
  elements: dict
  sample:
    - {name: "shop.web:egress", pool: link, role: online, limit: 10000000bit/s, prefixes: [10.1.0.7/32]}
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import pods, values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def pod_bandwidth_classes(
    found: Sequence[Mapping[str, Any]],
    egress: str = "",
    ingress: str = "",
    node: str = "",
    devices: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the classes of all pods. Raises AnsibleFilterError for an annotation that cannot be honoured."""
    pools, classes = {"egress": egress, "ingress": ingress}, []
    try:
        for raw in found:
            pod, where = pods.pod_of(raw, devices or {})
            if not node or where == node:
                for item in pods.classes(pod, pools):
                    # Checked here too, so that a message names the pod.
                    values.traffic_class(item)
                    classes.append(item)
    except (pods.PodError, values.BandwidthError) as exc:
        raise AnsibleFilterError(str(exc)) from exc
    return classes


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"pod_bandwidth_classes": pod_bandwidth_classes}

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that kubelet and the container runtime give to the control groups of pods and of their containers.

Paths are relative to a hierarchy's root. They depend on kubelet's cgroup driver only: the same path lies below every
controller's mount point on v1, and below the one mount point on v2. kubelet's cgroupRoot must be /.
"""

from __future__ import annotations

import re

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import pod_cgroup

SYSTEMD, CGROUPFS = "systemd", "cgroupfs"
ALL_PODS = {SYSTEMD: "kubepods.slice", CGROUPFS: "kubepods"}
# Classes of Kubernetes (status.qosClass), not of Koordinator's label; guaranteed pods lie directly below all pods.
_TIERS = {"guaranteed": "", "burstable": "burstable", "besteffort": "besteffort"}
# Runtime in a pod's status.containerStatuses[].containerID -> what precedes the id in the name of the group.
_SCOPE = {"containerd": "cri-containerd-", "cri-o": "crio-", "docker": "docker-"}
_PLAIN = {"containerd": "", "cri-o": "crio-", "docker": ""}
_ID = re.compile(r"(?:([a-z-]+)://)?([0-9a-f]{12,64})\Z")


class PodGroupError(Exception):
    """A group can't be named: the uid, class, driver or container id isn't one; the text says which and what is."""


def all_pods(driver: str) -> str:
    """Return the group of all pods. Raises PodGroupError for a driver that kubelet doesn't have."""
    if driver not in ALL_PODS:
        raise PodGroupError(f"cgroup driver {driver!r}: kubelet has {CGROUPFS} and {SYSTEMD}; look at its cgroupDriver")
    return ALL_PODS[driver]


def tier_group(qos_class: str, driver: str) -> str:
    """Return the group of all pods of a class of Kubernetes; Guaranteed has none of its own. Raises PodGroupError."""
    pods = all_pods(driver)
    tier = _TIERS.get(qos_class.lower())
    if tier is None:
        raise PodGroupError(
            f"qos class {qos_class!r}: Kubernetes has Guaranteed, Burstable and BestEffort; "
            "take it from the pod's status.qosClass (Koordinator's label says something else)"
        )
    if not tier:
        return pods
    return f"{pods}/kubepods-{tier}.slice" if driver == SYSTEMD else f"{pods}/{tier}"


def pod_group(uid: str, qos_class: str, driver: str) -> str:
    """Return the group of a pod by its uid, its class (``status.qosClass``) and kubelet's driver.

    A pod of a file on the node (a static pod) has, in its group's name, not the uid that the API server shows but the
    one in its annotation kubernetes.io/config.hash. Raises PodGroupError.
    """
    known = pod_cgroup.normal(uid)
    if known is None:
        raise PodGroupError(f"pod uid {uid!r}: not one; take it from the pod's metadata.uid")
    above = tier_group(qos_class, driver)
    if driver == CGROUPFS:
        return f"{above}/pod{known}"
    # A slice's name carries those of the slices above it, joined by hyphens; so the uid can't keep its own.
    stem = above.rsplit("/", 1)[-1][: -len(".slice")]
    return f"{above}/{stem}-pod{known.replace('-', '_')}.slice"


def container_group(pod_path: str, container_id: str, driver: str) -> str:
    """Return the group of a container below its pod's.

    ``container_id`` is as in ``status.containerStatuses[].containerID``, such as containerd://0123456789ab…; an id
    without a runtime is taken for containerd's. Raises PodGroupError.
    """
    all_pods(driver)
    found = _ID.match(container_id)
    runtime = found[1] or "containerd" if found else ""
    if found is None or runtime not in _SCOPE:
        raise PodGroupError(
            f"container id {container_id!r}: not one; take containerID from the pod's status.containerStatuses "
            f"(an id of hexadecimal digits, after one of {', '.join(f'{name}://' for name in sorted(_SCOPE))})"
        )
    if driver == SYSTEMD:
        return f"{pod_path}/{_SCOPE[runtime]}{found[2]}.scope"
    return f"{pod_path}/{_PLAIN[runtime]}{found[2]}"

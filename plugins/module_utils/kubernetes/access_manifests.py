# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod through which a node is got at, as manifests: pure functions.

It has the node's processes, network, devices and /sys, and one directory of the node at its own path. So what modules
write and read there is the node's, while Python and programs are the image's.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import OWNER, OWNER_LABEL
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.objects import PART_LABEL

NAMESPACE = "colocation-testbed-access"
ACCESS_LABEL = "colocation.testbed/access"
PART = "node-access"
CONTAINER = "node"
_LONGEST_LABEL = 63
_GRACE_S = 2
_START_S = 120
# Where the directory above the shared one is in the pod: a mount point can only be removed from outside.
_ABOVE = "/run/colocation-testbed-above"
_SHARED = "COLOCATION_TESTBED_DIRECTORY"
_MODES = ("enforce", "audit", "warn")
# The node tool and modules ask for /usr/bin/python3, which not every image has at that path.
_START = """
python=$(command -v python3) || { echo 'the image has no python3; choose another in node_access_image' >&2; exit 1; }
test -e /usr/bin/python3 || ln -s "$python" /usr/bin/python3
exec sleep infinity
"""
JOURNAL = f'find "${_SHARED}" -name journal.json'
TIDY = f'rmdir {shlex.quote(_ABOVE)}/"$(basename "${_SHARED}")"'


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a node's pod. ``directory`` is shared with the node; ``state_dir`` lies below it."""

    node: str
    image: str
    directory: str
    state_dir: str
    namespace: str = NAMESPACE
    pull_policy: str = "IfNotPresent"
    more_directories: tuple[str, ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)


def name_of(node: str) -> str:
    """Return the name of a node's DaemonSet, which is also the label of its pod."""
    plain = f"{PART}-{node}"
    return plain if len(plain) <= _LONGEST_LABEL else f"{PART}-{hashlib.sha256(node.encode()).hexdigest()[:16]}"


def namespace(wanted: Wanted) -> dict[str, Any]:
    """Return the namespace, which admits privileged pods."""
    labels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in _MODES}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted.namespace, "labels": labels}}


def pod(wanted: Wanted) -> dict[str, Any]:
    """Return a pod as the DaemonSet makes it, to be tried on the server."""
    template = _template(wanted)
    metadata = {**template["metadata"], "name": f"{PART}-probe", "namespace": wanted.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def daemon_set(wanted: Wanted) -> dict[str, Any]:
    """Return the DaemonSet of one node."""
    name = name_of(wanted.node)
    labels = {PART_LABEL: PART, ACCESS_LABEL: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": wanted.namespace, "labels": labels},
        "spec": {"selector": {"matchLabels": {ACCESS_LABEL: name}}, "template": _template(wanted)},
    }


def _template(wanted: Wanted) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [wanted.node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "metadata": {"labels": {OWNER_LABEL: OWNER, PART_LABEL: PART, ACCESS_LABEL: name_of(wanted.node)}},
        "spec": {
            "affinity": {"nodeAffinity": required},
            "tolerations": [{"operator": "Exists"}],
            "hostPID": True,
            "hostNetwork": True,
            # The node's own, so that names resolve that the load node's inventory has.
            "dnsPolicy": "Default",
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": _GRACE_S,
            "containers": [_container(wanted)],
            "volumes": [{"name": name, "hostPath": path} for name, path, _mount in _volumes(wanted)],
        },
    }


def _container(wanted: Wanted) -> dict[str, Any]:
    probe = {
        "exec": {"command": ["test", "-e", "/usr/bin/python3"]},
        "periodSeconds": 1,
        "timeoutSeconds": 10,
        "failureThreshold": _START_S,
    }
    return {
        "name": CONTAINER,
        "image": wanted.image,
        "imagePullPolicy": wanted.pull_policy,
        "command": ["/bin/sh", "-c", _START],
        "env": [{"name": _SHARED, "value": wanted.directory}],
        "securityContext": {"privileged": True, "runAsUser": 0},
        # Without requests it would be best effort, and held back with what the experiment holds back.
        "resources": {"requests": dict(wanted.requests)},
        # Asked until it is there and never again, so that nothing disturbs a window.
        "startupProbe": probe,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": name, "mountPath": mount} for name, _path, mount in _volumes(wanted)],
    }


def _volumes(wanted: Wanted) -> list[tuple[str, dict[str, str], str]]:
    """Return name, path on the node and path in the pod of what they share."""
    above = os.path.dirname(wanted.directory.rstrip("/"))
    more = [(f"more-{number}", path) for number, path in enumerate(wanted.more_directories)]
    return [
        ("sys", {"path": "/sys", "type": "Directory"}, "/sys"),
        ("shared", {"path": wanted.directory, "type": "DirectoryOrCreate"}, wanted.directory),
        ("above", {"path": above, "type": "Directory"}, _ABOVE),
        *((name, {"path": path, "type": "Directory"}, path) for name, path in more),
    ]

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classes of Kubernetes pods from their annotations. Pure.

kubernetes.io/{egress,ingress}-bandwidth is a quantity in bits a second, powers of 1000 (Kubernetes, network plugins);
oncn-bwm.openeuler.org/{egress,ingress}-bandwidth is JSON of request, limit and priority; its Mb is 2^20 bits a second.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import DIRECTIONS, PRIORITIES

KUBERNETES = "kubernetes.io/{}-bandwidth"
ONCN = "oncn-bwm.openeuler.org/{}-bandwidth"
_ONCN_RATE = re.compile(r"([1-9][0-9]{0,8})(?:Mb|M|m)\Z")
_ONCN_KEYS = ("request", "limit", "priority")
# What network plugins accept: from 1k to 1P.
_LOWEST_BIT, _HIGHEST_BIT = 10**3, 10**15
# More than any link has, and the most that a class takes.
_UNLIMITED_BIT = 10**13
_NAME_LENGTH = 63
_OVER = ("Succeeded", "Failed")


class PodError(Exception):
    """A pod cannot have what its annotations ask for; the text says which pod, what, and what to write."""


@dataclass(frozen=True)
class Pod:
    """What counts of a pod: names, uid, quality of service, addresses, annotations, the host's end of its link."""

    namespace: str
    name: str
    uid: str
    qos: str = "BestEffort"
    host_network: bool = False
    addresses: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    device: str = ""

    @property
    def shown(self) -> str:
        """Return how a message names the pod."""
        return f"pod {self.namespace}/{self.name}"


def pod_of(raw: Mapping[str, Any], devices: Mapping[str, str]) -> tuple[Pod, str]:
    """Return a pod, and its node, from what the API server tells; ``devices`` gives links by uid. Raises PodError."""
    try:
        about, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        addresses = [item["ip"] for item in status.get("podIPs") or () if item.get("ip")]
        if not addresses and status.get("podIP"):
            addresses = [status["podIP"]]
        pod = Pod(
            namespace=about["namespace"],
            name=about["name"],
            uid=about["uid"],
            qos=status.get("qosClass") or "BestEffort",
            host_network=bool(spec.get("hostNetwork")),
            addresses=() if status.get("phase") in _OVER else tuple(addresses),
            annotations=about.get("annotations") or {},
            labels=about.get("labels") or {},
            device=devices.get(about["uid"], ""),
        )
    except (AttributeError, KeyError, TypeError) as exc:
        raise PodError(
            f"pod {str(raw)[:60]!r}: is not as the API server tells it ({exc!r}); give .resources of k8s_info"
        ) from exc
    return pod, str(spec.get("nodeName") or "")


def _quantity(pod: Pod, key: str) -> dict[str, str]:
    text = pod.annotations[key]
    try:
        bits = quantity.parse(text)
    except quantity.QuantityError as exc:
        raise PodError(f"{pod.shown}: annotation {key}: {exc}") from exc
    if not _LOWEST_BIT <= bits <= _HIGHEST_BIT:
        raise PodError(f"{pod.shown}: annotation {key}: {text!r} is not between 1k and 1P bits a second; write '10M'")
    # Whole bytes, downwards: less than a byte a second.
    return {"limit": f"{min(int(bits), _UNLIMITED_BIT) // 8 * 8}bit/s"}


def _oncn(pod: Pod, key: str) -> dict[str, Any]:
    where = f"{pod.shown}: annotation {key}"
    example = """'{"request": "600Mb", "limit": "800Mb", "priority": "1"}'"""
    try:
        raw = json.loads(pod.annotations[key])
    except ValueError as exc:
        raise PodError(f"{where}: is not JSON ({exc}); write {example}") from exc
    if not isinstance(raw, dict) or not raw or set(raw) - set(_ONCN_KEYS):
        raise PodError(f"{where}: is not an object with request, limit and priority only; write {example}")
    found: dict[str, Any] = {}
    for name in ("request", "limit"):
        if name in raw:
            match = _ONCN_RATE.match(str(raw[name]))
            if not match:
                raise PodError(f"{where}: {name} {raw[name]!r} is not a number with Mb; write {example}")
            found[name] = f"{match[1]}Mibit/s"
    if "priority" in raw:
        if not re.match(r"[0-9]{1,9}\Z", str(raw["priority"])):
            raise PodError(f"{where}: priority {raw['priority']!r} is not a number from 0; write {example}")
        found["priority"] = min(int(raw["priority"]), PRIORITIES - 1)
    return found


def _rates(pod: Pod, direction: str) -> dict[str, Any]:
    """Return limit, request and priority of a direction, nothing where no annotation says anything."""
    plain, oncn = KUBERNETES.format(direction), ONCN.format(direction)
    for key in (plain, oncn):
        if key in pod.labels and key not in pod.annotations:
            raise PodError(f"{pod.shown}: {key} is a label, which nobody reads; write it as an annotation")
    if plain in pod.annotations and oncn in pod.annotations:
        raise PodError(f"{pod.shown}: has both {plain} and {oncn}; remove one of these annotations")
    if plain in pod.annotations:
        return _quantity(pod, plain)
    return _oncn(pod, oncn) if oncn in pod.annotations else {}


def _members(pod: Pod) -> dict[str, list[str]]:
    # Pods in the host's network share its addresses; only their sockets tell them apart.
    if pod.host_network:
        return {"pods": [pod.uid]}
    try:
        prefixes = [str(ipaddress.ip_network(address)) for address in pod.addresses]
    except ValueError as exc:
        raise PodError(f"{pod.shown}: its address is not one ({exc}); give .resources of k8s_info") from exc
    return {"prefixes": prefixes, **({"devices": [pod.device]} if pod.device else {})}


def _class_name(pod: Pod, direction: str) -> str:
    name = f"{pod.namespace}.{pod.name}:{direction}"
    if len(name) <= _NAME_LENGTH:
        return name
    end = f".{pod.uid[:8]}:{direction}"
    return name[: _NAME_LENGTH - len(end)] + end


def classes(pod: Pod, pools: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the classes that a pod's annotations ask for, as module bandwidth_class takes them. Raises PodError.

    ``pools`` names the pool of each direction; one without a pool is left out, and so is a pod without an address.
    """
    if not pod.addresses:
        return []
    found = []
    for direction in DIRECTIONS:
        rates = _rates(pod, direction) if pools.get(direction) else {}
        if rates:
            role = "offline" if pod.qos == "BestEffort" else "online"
            named = {"name": _class_name(pod, direction), "pool": pools[direction], "role": role}
            found.append({**named, **rates, **_members(pod)})
    return found

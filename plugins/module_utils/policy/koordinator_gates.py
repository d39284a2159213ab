# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Feature gates of Koordinator's agent, and what a policy needs of them and of the node to have any effect.

A strategy acts only when the agent's gate is on *and* the policy enables it. Names and defaults are those of v1.8.0;
what older versions lack is in koordinator_versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    koordinator_versions,
    overlay,
    vocabulary_qos,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest

_ON = (
    "BECPUSuppress",
    "CPUBurst",
    "RdtResctrl",
    "NodeTopologyReport",
    "GroupIdentity",
    "CPUSetAllocator",
    "BatchResource",
)
_OFF = (
    *("BECPUEvict", "BEMemoryEvict", "CPUEvict", "MemoryEvict", "CPUAllocatableEvict", "MemoryAllocatableEvict"),
    *("CgroupReconcile", "BlkIOReconcile", "SystemConfig", "BECPUManager", "CPICollector", "PSICollector", "Libpfm4"),
    *("ResctrlCollector", "ColdPageCollector", "AuditEvents", "AuditEventsHTTPHandler", "Accelerators", "RDMADevices"),
    *("HugePageReport", "PodResourcesProxy", "HamiCoreVGPUMonitor", "CoreSched", "CPUNormalization", "TerwayQoS"),
    *("TCNetworkQoS", "Resctrl", "GPUEnvInject", "RDMADeviceInject"),
)
GATES: Mapping[str, bool] = {**dict.fromkeys(_ON, True), **dict.fromkeys(_OFF, False)}
_MANAGER_ON = (
    *("PodMutatingWebhook", "PodValidatingWebhook", "ElasticMutatingWebhook", "ElasticValidatingWebhook"),
    "WebhookFramework",
)
_MANAGER_OFF = (
    *("NodeMutatingWebhook", "NodeValidatingWebhook", "ConfigMapValidatingWebhook", "ReservationMutatingWebhook"),
    *("ColocationProfileSkipMutatingResources", "ColocationProfileSkipValidatingPriority", "MultiQuotaTree"),
    *("ElasticQuotaIgnorePodOverhead", "ElasticQuotaGuaranteeUsage", "ElasticQuotaEnableUpdateResourceKey"),
    *("ElasticQuotaEvaluationTransformPod", "DisableDefaultQuota", "SupportParentQuotaSubmitPod"),
    *("EnableQuotaAdmission", "EnableSyncGPUSharedResource", "ColocationProfileController"),
    *("ValidatePodDeviceResource", "EnablePodEnhancedValidator", "DisablePVCReservation", "PriorityTransformer"),
    *("PreemptionPolicyTransformer", "ReplaceResourcesTransformer"),
)
MANAGER_GATES: Mapping[str, bool] = {**dict.fromkeys(_MANAGER_ON, True), **dict.fromkeys(_MANAGER_OFF, False)}
_PROGRAMS: Mapping[str, Mapping[str, bool]] = {"agent": GATES, "manager": MANAGER_GATES}
_GROUPS = ("AllAlpha", "AllBeta")
FAIL, WARN = "fail", "warn"
_MIN_CPUS_OF_CPUSET = 2
_FULL_PERCENT = 100


class GatesError(Exception):
    """Feature gates are written wrongly; the text says which, and what is allowed."""


@dataclass(frozen=True)
class Host:
    """What the rules need to know of a tested node. None: not known, and nothing is concluded."""

    cpus: int | None = None
    cgroup_v2: bool | None = None
    group_identity: bool | None = None
    burst_above_quota: bool | None = None
    cpu_manager: str | None = None
    cgroup_driver: str | None = None


@dataclass(frozen=True)
class Finding:
    """A part of a policy that Koordinator would take and not carry out (FAIL), or not as one might think (WARN)."""

    kind: str
    text: str


def parse(
    features: str, where: str = "features", version: str = koordinator_versions.NEWEST, program: str = "agent"
) -> dict[str, bool]:
    """Return every gate of the agent or the manager with its value, from a text such as ``BECPUEvict=true``.

    Raises GatesError for an unknown gate (the program would not start) and for values other than true and false.
    """
    if not isinstance(features, str):
        raise GatesError(f"{where}: {features!r} is not text; write 'NAME=true,OTHER=false'")
    found = {name: is_on for name, is_on in _PROGRAMS[program].items() if _is_there(name, version)}
    known = sorted(found)
    for item in filter(None, (part.strip() for part in features.split(","))):
        name, _equals, value = (part.strip() for part in item.partition("="))
        if name in _PROGRAMS[program] and name not in found:
            raise GatesError(
                f"{where}: {name} is a feature gate from {koordinator_versions.GATES_SINCE[name]} on, and "
                f"the {program} of Koordinator {version} does not start with it; remove it"
            )
        if name not in known and name not in _GROUPS:
            raise GatesError(f"{where}: {name!r} is no feature gate of Koordinator's {program}; {suggest(name, known)}")
        if value not in ("true", "false"):
            raise GatesError(f"{where}: {item!r} says neither true nor false; write {name}=true or {name}=false")
        if name in _GROUPS:
            raise GatesError(f"{where}: {name} switches on what is not meant; name the gates that you want one by one")
        found[name] = value == "true"
    return found


def _is_there(gate: str, version: str) -> bool:
    since = koordinator_versions.GATES_SINCE.get(gate)
    return since is None or koordinator_versions.is_there(since, version)


def findings(
    policy: Mapping[str, Any], labels: Mapping[str, str], gates: Mapping[str, bool], host: Host
) -> tuple[Finding, ...]:
    """Return what of a policy would have no effect, or another one, with these gates on this node."""
    return (
        *_threshold(overlay.strategy(policy, "resource-threshold-config", labels), gates, host),
        *_burst(overlay.strategy(policy, "cpu-burst-config", labels), gates, host),
        *_qos(overlay.strategy(policy, "resource-qos-config", labels, presets=False), gates, host),
        *_system(overlay.strategy(policy, "system-config", labels), gates),
        *_colocation(overlay.strategy(policy, "colocation-config", labels), gates),
        *_normalization(overlay.strategy(policy, "cpu-normalization-config", labels), gates),
    )


def _gate(name: str, gates: Mapping[str, bool], path: str) -> Iterator[Finding]:
    if not gates.get(name, False):
        text = f"{path}: has no effect while the agent's feature gate {name} is off; add {name}=true to the features"
        yield Finding(FAIL, text)


# Threshold to the gate whose plugin reads it, and the key without which that plugin does nothing ("": none).
_EVICTION: Mapping[str, tuple[str, str]] = {
    "cpuEvictBESatisfactionLowerPercent": ("BECPUEvict", "cpuEvictBESatisfactionUpperPercent"),
    "cpuEvictThresholdPercent": ("CPUEvict", "evictEnabledPriorityThreshold"),
    "cpuAllocatableEvictThresholdPercent": ("CPUAllocatableEvict", "allocatableEvictPriorityThreshold"),
    "memoryAllocatableEvictThresholdPercent": ("MemoryAllocatableEvict", "allocatableEvictPriorityThreshold"),
}


def _threshold(strategy: overlay.Strategy, gates: Mapping[str, bool], host: Host) -> Iterator[Finding]:
    if strategy.get("enable") is not True:
        return
    where = strategy.path("cpuSuppressPolicy")
    yield from _gate("BECPUSuppress", gates, strategy.path("cpuSuppressThresholdPercent"))
    if gates.get("BECPUManager"):
        yield Finding(FAIL, f"{where}: has no effect beside the agent's feature gate BECPUManager; switch that off")
    if strategy.get("cpuSuppressPolicy") == "cpuset" and host.cpus is not None and host.cpus <= _MIN_CPUS_OF_CPUSET:
        yield Finding(
            FAIL,
            f"{where}: cpuset never leaves best effort fewer than {_MIN_CPUS_OF_CPUSET} CPUs, and the node has "
            f"{host.cpus}, so it would do nothing; write cfsQuota",
        )
    if strategy.get("cpuSuppressPolicy") == "cpuset" and host.cpu_manager == "static":
        yield Finding(
            WARN,
            f"{where}: kubelet's CPU manager is static and writes the same cpusets, so pods may fail to start; write "
            "cfsQuota, or set kubelet's cpuManagerPolicy to none",
        )
    if strategy.get("cpuSuppressPolicy") == "cfsQuota" and host.cgroup_driver == "systemd":
        yield Finding(
            WARN,
            f"{where}: kubelet's cgroup driver is systemd, which lifts the quota of best effort whenever kubelet "
            "writes its shares, once a minute; write cpuset, or look at the quota during the measurement",
        )
    yield from _eviction(strategy, gates)


def _eviction(strategy: overlay.Strategy, gates: Mapping[str, bool]) -> Iterator[Finding]:
    for key, (gate, needed) in _EVICTION.items():
        if strategy.get(key) is not None:
            yield from _gate(gate, gates, strategy.path(key))
            yield from _needed(strategy, needed, key)
    if "memoryEvictThresholdPercent" in {names[-1] for names in strategy.given}:
        key = "memoryEvictThresholdPercent"
        if not gates.get("MemoryEvict"):
            yield from _gate("BEMemoryEvict", gates, strategy.path(key))
        elif not gates.get("BEMemoryEvict"):
            yield from _needed(strategy, "evictEnabledPriorityThreshold", key)
    if strategy.get("cpuEvictPolicy") == "evictByAllocatable":
        yield Finding(
            WARN,
            f"{strategy.path('cpuEvictPolicy')}: evictByAllocatable evicts best effort when the node offers little, as "
            "the margin counts twice; evictByRealLimit looks at what best effort may really use",
        )
    if gates.get("BECPUEvict") and strategy.get("cpuEvictBESatisfactionLowerPercent") is None:
        yield Finding(
            WARN,
            f"{strategy.path('cpuEvictBESatisfactionLowerPercent')}: is missing while the gate BECPUEvict is on; the "
            "agent evicts nothing and logs a warning a second",
        )


def _needed(strategy: overlay.Strategy, needed: str, key: str) -> Iterator[Finding]:
    if strategy.get(needed) is None:
        yield Finding(
            FAIL,
            f"{strategy.path(key)}: the agent evicts nothing by it without {needed}; add {needed}, or remove {key}",
        )


def _burst(strategy: overlay.Strategy, gates: Mapping[str, bool], host: Host) -> Iterator[Finding]:
    if strategy.get("policy") == "none":
        return
    yield from _gate("CPUBurst", gates, strategy.path("policy"))
    kernel = strategy.get("policy") in ("cpuBurstOnly", "auto")
    percent = strategy.get("cpuBurstPercent")
    if kernel and percent > _FULL_PERCENT and host.burst_above_quota is False:
        yield Finding(
            FAIL,
            f"{strategy.path('cpuBurstPercent')}: {percent} asks for more than the quota, which this kernel refuses; "
            f"write {_FULL_PERCENT} or less, or policy cfsQuotaBurstOnly",
        )


def _qos(strategy: overlay.Strategy, gates: Mapping[str, bool], host: Host) -> Iterator[Finding]:
    core = strategy.get("policies", "cpuPolicy") == "coreSched"
    for name in vocabulary_qos.CLASSES:
        if strategy.get(name, "cpuQOS", "enable") is True:
            yield from _cpu_qos(strategy, name, core, gates, host)
        if strategy.get(name, "memoryQOS", "enable") is True:
            yield from _gate("CgroupReconcile", gates, strategy.path(name, "memoryQOS", "enable"))
        if strategy.get(name, "resctrlQOS", "enable") is True:
            yield from _gate("RdtResctrl", gates, strategy.path(name, "resctrlQOS", "enable"))
        if strategy.get(name, "blkioQOS", "enable") is True:
            where = strategy.path(name, "blkioQOS", "enable")
            yield from _gate("BlkIOReconcile", gates, where)
            if host.cgroup_v2:
                yield Finding(
                    FAIL, f"{where}: Koordinator limits disks on cgroup v1 only, and the node has v2; remove it"
                )
        if strategy.get(name, "networkQOS", "enable") is True:
            gate = _NETWORK_GATES[strategy.get("policies", "netQOSPolicy")]
            yield from _gate(gate, gates, strategy.path(name, "networkQOS", "enable"))


_NETWORK_GATES: Mapping[str, str] = {"tc": "TCNetworkQoS", "terway-qos": "TerwayQoS"}


def _cpu_qos(
    strategy: overlay.Strategy, name: str, core: bool, gates: Mapping[str, bool], host: Host
) -> Iterator[Finding]:
    idle = strategy.path(name, "cpuQOS", "schedIdle")
    if core:
        yield from _gate("CoreSched", gates, strategy.path("policies", "cpuPolicy"))
        if strategy.get(name, "cpuQOS", "schedIdle") == 1:
            yield Finding(
                FAIL,
                f"{idle}: 1 sets cpu.idle on the root of the class, whose weight kubelet then can't write: it does not "
                "start again; write 0",
            )
        return
    if strategy.get(name, "cpuQOS", "schedIdle") == 1:
        yield Finding(WARN, f"{idle}: Koordinator acts on it with cpuPolicy coreSched only; it has no effect here")
    where = strategy.path(name, "cpuQOS", "groupIdentity")
    yield from _gate("GroupIdentity", gates, where)
    if host.group_identity is False:
        yield Finding(
            WARN,
            f"{where}: this kernel has no cpu.bvt_warp_ns, so the agent can't set it; suppress alone holds best effort "
            "back",
        )


def _system(strategy: overlay.Strategy, gates: Mapping[str, bool]) -> Iterator[Finding]:
    if strategy.given:
        yield from _gate("SystemConfig", gates, strategy.path(*min(strategy.given)))


def _colocation(strategy: overlay.Strategy, gates: Mapping[str, bool]) -> Iterator[Finding]:
    if strategy.get("enable") is True and strategy.get("metricMemoryCollectPolicy") == "usageWithHotPageCache":
        yield from _gate("ColdPageCollector", gates, strategy.path("metricMemoryCollectPolicy"))


def _normalization(strategy: overlay.Strategy, gates: Mapping[str, bool]) -> Iterator[Finding]:
    if strategy.get("enable") is True:
        yield from _gate("CPUNormalization", gates, strategy.path("enable"))

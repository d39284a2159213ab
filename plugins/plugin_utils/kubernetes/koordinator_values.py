# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installation of Koordinator is set to, in the words of its Helm chart: one set of values for both methods.

Helm ignores keys that a chart does not know, so a misspelled one would do nothing; here they are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates as gates
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import merge
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest

MANAGER, AGENT, SCHEDULER, DESCHEDULER = "manager", "koordlet", "scheduler", "descheduler"
COMPONENTS: Mapping[str, str] = {
    MANAGER: "Deployment/koord-manager",
    AGENT: "DaemonSet/koordlet",
    SCHEDULER: "Deployment/koord-scheduler",
    DESCHEDULER: "Deployment/koord-descheduler",
}
"""Component to kind and name of its workload, by either method."""
NEEDED = (MANAGER, AGENT)
NAMESPACE = "koordinator-system"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
# A label that no node has: the chart has no switch for this component.
_NOWHERE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "colocation.testbed/nowhere", "operator": "Exists"}]}]
        }
    }
}
_CRDS = (
    *("managed", "clustercolocationprofiles", "devices", "elasticquotaprofiles", "elasticquotas", "nodemetrics"),
    *("nodeslos", "noderesourcetopologies", "recommendations", "reservations", "podgroups", "podmigrationjobs"),
    *("clusternetworktopologies", "scheduleexplanations"),
)
_HOST_DIRS = (
    *("kubeletConfigDir", "kubeletLibDir", "koordProxyRegisterDir", "koordletSockDir", "predictionCheckpointDir"),
    *("koordletTSDBDir", "podResourcesProxyPath"),
)
_IMAGE = {"repository": None, "tag": None}
_PLACED = {"hostNetwork": None, "nodeAffinity": None, "nodeSelector": None, "tolerations": None}
_DEPLOYMENT: Mapping[str, Any] = {
    "log": {"level": None},
    "replicas": None,
    "image": _IMAGE,
    "resources": None,
    **_PLACED,
}
# None: whatever stands below is the chart's to take as it is.
_KEYS: Mapping[str, Any] = {
    "crds": dict.fromkeys(_CRDS),
    "installation": {"namespace": None, "roleListGroups": None},
    "featureGates": None,
    "imageRepositoryHost": None,
    "imagePullSecrets": None,
    "koordlet": {
        "image": _IMAGE,
        "resources": None,
        "features": None,
        "log": {"level": None},
        "hostDirs": dict.fromkeys(_HOST_DIRS),
        "runtimeClassName": None,
        "nodeAffinity": None,
        "metrics": {"port": None},
        "enableServiceMonitor": None,
    },
    "manager": {
        **_DEPLOYMENT,
        "webhook": {"port": None},
        "metrics": {"addr": None, "port": None},
        "healthProbe": {"port": None},
        "resyncPeriod": None,
    },
    "webhookConfiguration": {
        "failurePolicy": dict.fromkeys(("pods", "elasticquotas", "nodeStatus", "nodes", "reservations")),
        "timeoutSeconds": None,
    },
    "serviceAccount": {"annotations": None},
    "scheduler": {
        **_DEPLOYMENT,
        **dict.fromkeys(("port", "featureGates", "compatible122FeatureGates", "compatibleBelow122FeatureGates")),
        "enableJobPreemption": None,
    },
    "descheduler": {**_DEPLOYMENT, "port": None, "featureGates": None},
    "deviceDaemon": {"image": _IMAGE, "resources": None, "log": {"level": None}, "nodeAffinity": None},
}
_LATER = {"scheduler": {"deviceShare": None, "monitorEnabled": None}, "descheduler": {"monitorEnabled": None}}
KEYS: Mapping[str, Mapping[str, Any]] = {"1.7.0": _KEYS, "1.8.0": merge(_KEYS, _LATER)}
"""Version of the chart to the keys that its values may have."""


class ValuesError(Exception):
    """Settings of an installation cannot be used; ``problems`` has one sentence for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True)
class Settings:
    """What a user decides about an installation; ``extra`` are values of the chart, laid over all others."""

    version: str
    image_host: str
    image_tag: str = ""
    components: Sequence[str] = (MANAGER, AGENT, SCHEDULER)
    replicas: int = 1
    features: str = ""
    manager_gates: str = ""
    host_dirs: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def values(settings: Settings, where: str = "koordinator_") -> dict[str, Any]:
    """Return the chart's values. Raises ValuesError with all problems.

    Components that are not wanted have no pods: Deployments by replicas, the device daemon by a node label that no node
    has, since the chart has no switches.
    """
    problems = list(_problems(settings, where))
    if problems:
        raise ValuesError(problems)
    tag = settings.image_tag or f"v{settings.version}"
    found: dict[str, Any] = {
        "imageRepositoryHost": settings.image_host,
        "installation": {"namespace": NAMESPACE},
        "featureGates": settings.manager_gates,
        AGENT: {"features": settings.features, "hostDirs": dict(settings.host_dirs)},
        "deviceDaemon": {"nodeAffinity": _NOWHERE},
    }
    for name in (MANAGER, SCHEDULER, DESCHEDULER):
        found[name] = {"replicas": settings.replicas if name in settings.components else 0}
    for name, program in (
        (AGENT, "koordlet"),
        *((name, f"koord-{name}") for name in (MANAGER, SCHEDULER, DESCHEDULER)),
    ):
        found[name]["image"] = {"repository": f"koordinator-sh/{program}", "tag": tag}
        if name in settings.resources:
            found[name]["resources"] = settings.resources[name]
    return dict(merge(found, settings.extra))


def _problems(settings: Settings, where: str) -> Iterator[str]:
    if settings.version not in KEYS:
        yield f"{where}version: {settings.version!r} is not known; {suggest(settings.version, sorted(KEYS))}"
        return
    for name in settings.components:
        if name not in COMPONENTS:
            yield f"{where}components: {name!r} is not a component; {suggest(name, sorted(COMPONENTS))}"
    for name in NEEDED:
        if name not in settings.components:
            yield f"{where}components: lacks {name}, without which nothing is held back; add it"
    for name in settings.resources:
        if name not in COMPONENTS:
            yield f"{where}resources.{name}: is not a component; {suggest(name, sorted(COMPONENTS))}"
    if not 1 <= settings.replicas <= 10:
        yield f"{where}replicas: {settings.replicas} is out of range; write a number from 1 to 10"
    if not settings.image_host or "://" in settings.image_host or settings.image_host.endswith("/"):
        yield f"{where}image_host: {settings.image_host!r} is no registry; write host or host:port, without a scheme"
    for name, path in settings.host_dirs.items():
        if name not in _HOST_DIRS:
            yield f"{where}host_dirs.{name}: is not known; {suggest(name, sorted(_HOST_DIRS))}"
        elif not path.startswith("/"):
            yield f"{where}host_dirs.{name}: {path!r} is no absolute path; write one"
    try:
        gates.parse(settings.features, f"{where}features")
    except gates.GatesError as exc:
        yield str(exc)
    yield from _unknown(settings.extra, KEYS[settings.version], f"{where}values", settings.version)


def _unknown(given: Mapping[str, Any], known: Mapping[str, Any], where: str, version: str) -> Iterator[str]:
    for name, value in given.items():
        if name not in known:
            yield f"{where}.{name}: is no value of chart {version}, which ignores it; {suggest(name, sorted(known))}"
        elif isinstance(known[name], Mapping):
            if isinstance(value, Mapping):
                yield from _unknown(value, known[name], f"{where}.{name}", version)
            else:
                yield f"{where}.{name}: is {type(value).__name__}, not a mapping; write its keys below it"


def workloads(settings: Settings) -> list[str]:
    """Return kind and name of what must be ready after an installation."""
    return [COMPONENTS[name] for name in COMPONENTS if name in settings.components]

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of the values of Koordinator's Helm chart, by version: what each takes, and which do nothing.

Helm ignores keys that a chart does not know, takes the text "false" for true, and passes on whatever it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import merge
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import shown, suggest

FLAG, WHOLE, TEXT, TEXTUAL, LIST, MAPPING = "flag", "whole", "text", "textual", "list", "mapping"
_MEANT: Mapping[str, str] = {
    FLAG: "a truth value; write true or false, without quotes, as Helm takes any text for true",
    WHOLE: "a whole number; write one, without quotes",
    TEXT: "text; write it in quotes",
    TEXTUAL: "text or a whole number; write one of them",
    LIST: "a list; write one entry in each line, with a dash before it",
    MAPPING: "a mapping; write keys and values",
}
_CRDS = (
    *("managed", "clustercolocationprofiles", "devices", "elasticquotaprofiles", "elasticquotas", "nodemetrics"),
    *("nodeslos", "noderesourcetopologies", "recommendations", "reservations", "podgroups", "podmigrationjobs"),
    *("clusternetworktopologies", "scheduleexplanations"),
)
HOST_DIRS = (
    *("kubeletConfigDir", "kubeletLibDir", "koordProxyRegisterDir", "koordletSockDir", "predictionCheckpointDir"),
    *("koordletTSDBDir", "podResourcesProxyPath"),
)
_IMAGE = {"repository": TEXT, "tag": TEXT}
_LOG = {"level": TEXTUAL}
_DEPLOYMENT: Mapping[str, Any] = {
    **{"log": _LOG, "replicas": WHOLE, "image": _IMAGE, "resources": MAPPING},
    **{"hostNetwork": FLAG, "nodeAffinity": MAPPING, "nodeSelector": MAPPING, "tolerations": LIST},
}
_SCHEDULER_GATES = ("featureGates", "compatible122FeatureGates", "compatibleBelow122FeatureGates")
_KEYS: Mapping[str, Any] = {
    "crds": dict.fromkeys(_CRDS, FLAG),
    "installation": {"namespace": TEXT, "roleListGroups": LIST},
    "featureGates": TEXT,
    "imageRepositoryHost": TEXT,
    "imagePullSecrets": LIST,
    "koordlet": {
        "image": _IMAGE,
        "resources": MAPPING,
        "features": TEXT,
        "log": _LOG,
        "hostDirs": dict.fromkeys(HOST_DIRS, TEXT),
        "runtimeClassName": TEXT,
        "nodeAffinity": MAPPING,
        "metrics": {"port": WHOLE},
        "enableServiceMonitor": FLAG,
    },
    "manager": {
        **_DEPLOYMENT,
        "webhook": {"port": WHOLE},
        "metrics": {"addr": TEXT, "port": WHOLE},
        "healthProbe": {"port": WHOLE},
        "resyncPeriod": TEXTUAL,
    },
    "webhookConfiguration": {
        "failurePolicy": dict.fromkeys(("pods", "elasticquotas", "nodeStatus", "nodes", "reservations"), TEXT),
        "timeoutSeconds": WHOLE,
    },
    "serviceAccount": {"annotations": MAPPING},
    "scheduler": {
        **_DEPLOYMENT,
        "port": WHOLE,
        **dict.fromkeys(_SCHEDULER_GATES, TEXT),
        "enableJobPreemption": FLAG,
    },
    "descheduler": {**_DEPLOYMENT, "port": WHOLE, "featureGates": TEXT},
    "deviceDaemon": {"image": _IMAGE, "resources": MAPPING, "log": _LOG, "nodeAffinity": MAPPING},
}
_LATER = {"scheduler": {"deviceShare": MAPPING, "monitorEnabled": FLAG}, "descheduler": {"monitorEnabled": FLAG}}
KEYS: Mapping[str, Mapping[str, Any]] = {"1.7.0": _KEYS, "1.8.0": merge(_KEYS, _LATER)}
"""Version of the chart to the keys that its values may have, each with the kind of its value."""

# The chart lists these among its values, and none of its templates reads them. What it lists is harmless.
_UNREAD: Mapping[str, Any] = {"installation.roleListGroups": ["*"], "descheduler.featureGates": ""}
# Koordinator's own manifests have nothing that these could change.
_CHART_ONLY: Mapping[str, Any] = {
    "koordlet.enableServiceMonitor": False,
    "scheduler.monitorEnabled": False,
    "descheduler.monitorEnabled": False,
    "descheduler.port": 10251,
    "scheduler.enableJobPreemption": True,
    "scheduler.compatible122FeatureGates": "CompatibleCSIStorageCapacity=true",
    "scheduler.compatibleBelow122FeatureGates": (
        "DisableCSIStorageCapacityInformer=true,CompatiblePodDisruptionBudget=true"
    ),
    "scheduler.deviceShare": {"gpuShareUnsupportedModels": [{"vendor": "huawei", "model": "Ascend-310P3-300I-DUO"}]},
    "serviceAccount.annotations": {},
}


def problems(given: Mapping[str, Any], version: str, where: str, manifests: bool) -> Iterator[str]:
    """Yield one sentence for each of a user's values that the chart would not take as it is meant.

    :param manifests: whether Koordinator's own manifests get the values, instead of its chart.
    """
    yield from _unknown(given, KEYS[version], where, version)
    for path, usual in _UNREAD.items():
        if _differs(given, path, usual):
            yield f"{where}.{path}: is among the chart's values and nothing reads it; remove it"
    for path, usual in _CHART_ONLY.items() if manifests else ():
        if _differs(given, path, usual):
            yield (
                f"{where}.{path}: has no effect on Koordinator's own manifests; remove it, or write "
                "koordinator_method: helm"
            )


def lookup(given: Mapping[str, Any], path: str) -> Any:
    """Return a value by its path with dots, None where there is none."""
    found: Any = given
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _differs(given: Mapping[str, Any], path: str, usual: Any) -> bool:
    value = lookup(given, path)
    return value is not None and value != usual


def _unknown(given: Mapping[str, Any], known: Mapping[str, Any], where: str, version: str) -> Iterator[str]:
    for name, value in given.items():
        path = f"{where}.{name}"
        if name not in known:
            yield f"{path}: is no value of chart {version}, which ignores it; {suggest(str(name), sorted(known))}"
        elif not isinstance(known[name], Mapping):
            yield from _kind(value, known[name], path)
        elif isinstance(value, Mapping):
            yield from _unknown(value, known[name], path, version)
        else:
            yield f"{path}: is {quantity.kind_of(value)}, not a mapping; write its keys below it"


def _kind(value: Any, kind: str, path: str) -> Iterator[str]:
    fits = {
        FLAG: isinstance(value, bool),
        WHOLE: isinstance(value, int) and not isinstance(value, bool),
        TEXT: isinstance(value, str),
        TEXTUAL: isinstance(value, (str, int)) and not isinstance(value, bool),
        # The chart itself writes {} for a list without entries.
        LIST: isinstance(value, (list, tuple)) or value == {},
        MAPPING: isinstance(value, Mapping),
    }
    if not fits[kind]:
        yield f"{path}: {shown(value)} is not {_MEANT[kind]}"

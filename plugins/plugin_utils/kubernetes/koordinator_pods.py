# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Koordinator's workloads with the values of its chart: images, arguments, directories of the host, resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_values as chart

# Volume of the agent to the chart's key for its directory on the host.
_DIRECTORIES: Mapping[str, str] = {
    "host-kubernetes": "kubeletConfigDir",
    "host-kubelet-rootdir": "kubeletLibDir",
    "host-etc-hookserver": "koordProxyRegisterDir",
    "host-var-run-koordlet": "koordletSockDir",
    "host-koordlet-checkpoint-dir": "predictionCheckpointDir",
    "pod-resources-proxy": "podResourcesProxyPath",
}
_METRIC_VOLUME = "metric-db-path"
_AGENT_PORT, _HEALTH_PORT, _METRICS_PORT = 9316, 8000, 8080
_DEFAULT_FEATURES = "BECPUEvict=true,BEMemoryEvict=true,CgroupReconcile=true,Accelerators=true"


def settle(item: dict[str, Any], component: str, values: Mapping[str, Any], pull_policy: str) -> None:
    """Change a workload of the tree to what the chart's values say of it."""
    own = values[component]
    spec = item["spec"]["template"]["spec"]
    container = spec["containers"][0]
    container["image"] = f"{values['imageRepositoryHost']}/{own['image']['repository']}:{own['image']['tag']}"
    container["imagePullPolicy"] = pull_policy
    if own.get("resources"):
        container["resources"] = own["resources"]
    if values.get("imagePullSecrets"):
        spec["imagePullSecrets"] = values["imagePullSecrets"]
    level = (own.get("log") or {}).get("level")
    if level is not None:
        _argument(container, "v", str(level))
    if component == chart.AGENT:
        _agent(spec, container, own)
        return
    item["spec"]["replicas"] = own["replicas"]
    for name in ("hostNetwork", "nodeSelector", "tolerations"):
        if own.get(name):
            spec[name] = own[name]
    if own.get("nodeAffinity"):
        spec.setdefault("affinity", {})["nodeAffinity"] = own["nodeAffinity"]
    if component == chart.MANAGER:
        spec["serviceAccountName"] = "koord-manager"
        _manager(container, own, values)
    if component == chart.SCHEDULER:
        for name, key in (("port", "port"), ("feature-gates", "featureGates")):
            if own.get(key):
                _argument(container, name, str(own[key]))
        if own.get("port") and "readinessProbe" in container:
            container["readinessProbe"]["httpGet"]["port"] = own["port"]


def _argument(container: dict[str, Any], name: str, value: str) -> None:
    """Set an argument, in the place and with the dashes that it has."""
    for number, argument in enumerate(container["args"]):
        flag = argument.partition("=")[0]
        if flag.lstrip("-") == name:
            container["args"][number] = f"{flag}={value}"
            return
    container["args"].append(f"-{name}={value}")


def _manager(container: dict[str, Any], own: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    _argument(container, "feature-gates", values.get("featureGates") or "")
    port = (own.get("healthProbe") or {}).get("port", _HEALTH_PORT)
    metrics = own.get("metrics") or {}
    _argument(container, "health-probe-addr", f":{port}")
    _argument(container, "metrics-addr", f"{metrics.get('addr', '')}:{metrics.get('port', _METRICS_PORT)}")
    if own.get("resyncPeriod") is not None:
        _argument(container, "sync-period", str(own["resyncPeriod"]))
    # Ready is when the webhooks answer, not when there are metrics.
    container["readinessProbe"] = {"httpGet": {"path": "readyz", "port": port}}
    policy = ((values.get("webhookConfiguration") or {}).get("failurePolicy") or {}).get("pods", "Ignore")
    environment = {
        "WEBHOOK_CONFIGURATION_FAILURE_POLICY_PODS": policy,
        "WEBHOOK_PORT": str((own.get("webhook") or {}).get("port", chart.WEBHOOK_PORT)),
    }
    for variable in container["env"]:
        if variable["name"] in environment:
            variable["value"] = environment[variable["name"]]


def _agent(spec: dict[str, Any], container: dict[str, Any], own: Mapping[str, Any]) -> None:
    _argument(container, "feature-gates", own.get("features") or _DEFAULT_FEATURES)
    _argument(container, "addr", f":{(own.get('metrics') or {}).get('port', _AGENT_PORT)}")
    if own.get("nodeAffinity"):
        spec["affinity"] = own["nodeAffinity"]
    if own.get("runtimeClassName"):
        spec["runtimeClassName"] = own["runtimeClassName"]
    directories = own.get("hostDirs") or {}
    if directories.get("koordletSockDir"):
        _argument(container, "runtime-hooks-host-endpoint", f"{directories['koordletSockDir']}/koordlet.sock")
    for volume in spec["volumes"]:
        key = _DIRECTORIES.get(volume["name"], "")
        if directories.get(key):
            volume["hostPath"]["path"] = directories[key]
        if volume["name"] == _METRIC_VOLUME:
            kept = directories.get("koordletTSDBDir")
            volume.pop("emptyDir", None)
            volume.update({"hostPath": {"path": kept, "type": ""}} if kept else _memory())


def _memory() -> dict[str, Any]:
    return {"emptyDir": {"medium": "Memory", "sizeLimit": "150Mi"}}


def load_thresholds(item: dict[str, Any], thresholds: Mapping[str, int]) -> None:
    """Set the use of a node above which the scheduler gives it nothing more, in percent by resource."""
    (key,) = item["data"]
    config = yaml.safe_load(item["data"][key])
    for profile in config["profiles"]:
        for plugin in profile.get("pluginConfig") or ():
            if plugin["name"] == "LoadAwareScheduling" and thresholds:
                plugin["args"]["usageThresholds"] = dict(thresholds)
    item["data"][key] = yaml.safe_dump(config, sort_keys=False)

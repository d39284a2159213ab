# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Substrate `pod`: service and batch workload are pods of the tested node, held back by Koordinator or by our modules.

From mode to mode only what differs is changed: the policy in Koordinator's ConfigMap and the batch workload's pod. The
service's pod stays. Batch resources are offered in all modes, since they take half a minute to come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import overlay
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import pod_manifests, specs
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Order, Prepared, Watch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Cluster, Testbed

#: Seconds for pods to run: an image to be pulled, batch resources to be reported.
PODS_S = 180
#: Seconds for values to be as wanted: kubelet writes weights once more up to ten seconds after a pod has started.
VALUES_S = 20
#: Seconds for which no value may have changed before load is sent.
QUIET_S = 1.0
_POLICY_S = 60
_LATE_S = 3
_LABEL_LENGTH = 63
_PROGRESS = "batch-progress.txt"
_COLOCATION, _THRESHOLD = "colocation-config", "resource-threshold-config"
#: The key under which it is told whether the node's NodeSLO has the policy; it is read once, and not by samples.
_NODE_SLO = "cluster/NodeSLO"
_ARRIVED = "as the policy"


class PodWorkloadsError(Exception):
    """Pods cannot be measured on what was deployed; the text says what is missing and what to do."""


def resting_policy(modes: Sequence[Mapping[str, Any]], policies: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what Koordinator is told in modes that are not its own: batch resources are offered, all else is off."""
    for mode in modes:
        if mode["engine"] == "koordinator":
            policy = policies[str(mode["policy"])]
            return {_COLOCATION: policy[_COLOCATION]} if _COLOCATION in policy else {}
    return {}


def lifts_limits(policy: Mapping[str, Any] | None) -> bool:
    """Tell whether a policy suppresses by quota, for which the agent lifts the quotas of best-effort pods."""
    if not policy:
        return False
    threshold = overlay.strategy(policy, _THRESHOLD, {})
    return threshold.get("enable") is True and threshold.get("cpuSuppressPolicy") == "cfsQuota"


class PodWorkloads:
    """Runs the workloads as pods."""

    def __init__(
        self, testbed: Testbed, cluster: Cluster, resting: Mapping[str, Any], writes_static: bool, run_id: str
    ) -> None:
        """Remember what is deployed; ``resting`` is Koordinator's policy in modes that are not its own.

        :param writes_static: whether any mode of the run has engine static; if not, values that a policy has set on
            the node by other means are never touched.
        """
        if testbed.service.pod is None:
            raise PodWorkloadsError(
                f"{testbed.tested.name}: the service was not deployed as a pod; run provision again"
            )
        self._testbed = testbed
        self._cluster = cluster
        self._resting = dict(resting)
        self._writes_static = writes_static
        # Values of labels are shorter than names of runs may be, and end with a letter or digit.
        self._run_label = run_id[:_LABEL_LENGTH].rstrip("._-")
        self._node = testbed.tested
        self._service = pod_manifests.service(testbed, cluster, testbed.service.pod)
        self._late = ""
        self._given: Mapping[str, Any] | None = None
        self._address = ""
        self._wrote_static = False

    @property
    def processes(self) -> tuple[str, ...]:
        """Return nothing: no workload is a supervised process."""
        return ()

    def start_service(self, groups: Sequence[Mapping[str, Any]]) -> None:
        """Take away what an earlier run has left, and start the service's pod."""
        self._take_static_back()
        self._pods([self._named(pod_manifests.BATCH)], "absent")
        self._give(self._resting)
        found = self._pods([self._service_entry()], "present")
        self._address = str(found["pods"]["service"]["address"])

    def url(self, url: str) -> str:
        """Return the URL at the pod's own address where it has one, and at the host's where it shares its network."""
        pod = self._testbed.service.pod
        if pod is None or pod.host_network or not self._address:
            return url
        return url.replace(f"//{self._testbed.service.address}:", f"//{self._address}:", 1)

    def prepare(self, order: Order, lifetime_s: float) -> Prepared:
        """Give Koordinator the mode's policy, start the batch pod, and wait until the node has the values."""
        is_koordinator = order.engine == "koordinator"
        self._give(order.policy or {} if is_koordinator else self._resting)
        pods = [self._service_entry()]
        if order.aggressor is not None:
            pods.append(self._batch_entry(order, lifetime_s))
        found = self._pods(pods, "present")
        values = self._values(order, found)
        if order.engine == "static":
            values = self._write_static(order, found, values)
        arrival = self._arrival()
        policy = {
            "wanted": {**values["policy_values"], **values["unsettled"], **arrival["wanted"]},
            "applied": {**values["policy_values"], **arrival["applied"]},
            "after": arrival["applied"],
            "pods": self._told(order, found),
            "cluster": self._cluster_entry(order, found, "before"),
        }
        return Prepared(policy, self._watch(order, values))

    def batch_process(self, order: Order) -> str | None:
        """Return nothing: the batch workload is a pod."""
        return None

    def look_again(self, order: Order) -> Mapping[str, Any]:
        """Return what the cluster says of the pods and of the node after the window."""
        pods = [self._named(pod_manifests.SERVICE)]
        if order.aggressor is not None:
            pods.append(self._named(pod_manifests.BATCH))
        found = self._pods(pods, "read")
        return {
            "pods": {key: {"after": _kept(pod)} for key, pod in found["pods"].items()},
            "cluster": self._cluster_entry(order, found, "after"),
        }

    def release(self, order: Order) -> None:
        """Put the values that our modules set back, then delete the batch workload's pod."""
        self._take_static_back()
        if order.aggressor is not None:
            self._pods([self._named(pod_manifests.BATCH)], "absent")

    def stop_all(self) -> None:
        """Delete the pods, and give Koordinator the policy back that it was deployed with."""
        self._take_static_back()
        self._pods([self._named(pod_manifests.BATCH), self._named(pod_manifests.SERVICE)], "absent")
        if self._cluster.koordinator is not None:
            self._give(self._cluster.koordinator.policy)

    def _give(self, policy: Mapping[str, Any]) -> None:
        koordinator = self._cluster.koordinator
        if koordinator is None or policy == self._given:
            return
        arguments = {
            "kubectl": list(self._cluster.kubectl),
            "namespace": koordinator.namespace,
            "policy": dict(policy),
            "nodes": [self._cluster.node_name],
            "features": koordinator.features,
            "host": koordinator.host,
            "on_late": "report",
            # Who did not answer once is not waited for that long again.
            "deadline_s": _LATE_S if self._late else _POLICY_S,
        }
        self._given = None
        self._late = str(self._cluster.api.run("koordinator_policy", arguments)["late"])
        if not self._late:
            self._given = policy

    def _arrival(self) -> dict[str, dict[str, str]]:
        """Return for the policy document whether Koordinator's manager has handed the policy on to the node."""
        if self._cluster.koordinator is None:
            return {"wanted": {}, "applied": {}}
        return {"wanted": {_NODE_SLO: _ARRIVED}, "applied": {_NODE_SLO: self._late or _ARRIVED}}

    def _service_entry(self) -> dict[str, Any]:
        return {
            "key": "service",
            "manifest": self._service,
            "qos_class": "LS" if self._cluster.koordinator else "",
        }

    def _batch_entry(self, order: Order, lifetime_s: float) -> dict[str, Any]:
        aggressor = order.aggressor or {}
        name = str(aggressor["name"])
        template = self._testbed.batch.pods.get(name)
        if template is None:
            known = ", ".join(sorted(self._testbed.batch.pods)) or "none"
            raise PodWorkloadsError(
                f"aggressor {name}: has no image; images are given for {known}; add it to batch_workload_images"
            )
        placeholders = self._testbed.placeholders(self._progress)
        argv = [specs.fill(word, placeholders) for word in aggressor["argv"]]
        manifest = pod_manifests.batch(self._testbed, self._cluster, template, argv, self._progress, order.engine)
        # None outlives a controller that died.
        manifest["spec"]["activeDeadlineSeconds"] = int(lifetime_s) + PODS_S
        injected = pod_manifests.kind(order.engine) == pod_manifests.INJECTED
        return {"key": "batch", "manifest": manifest, "qos_class": "BE" if injected else ""}

    @property
    def _progress(self) -> str:
        return f"{self._testbed.batch.placeholders['directory']}/{_PROGRESS}"

    def _named(self, name: str) -> dict[str, Any]:
        keys = {pod_manifests.SERVICE: "service", pod_manifests.BATCH: "batch"}
        metadata = {"name": name, "namespace": self._cluster.namespace}
        return {"key": keys[name], "manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}

    def _pods(self, pods: Sequence[Mapping[str, Any]], state: str) -> dict[str, Any]:
        koordinator = self._cluster.koordinator
        arguments = {
            "kubectl": list(self._cluster.kubectl),
            "pods": [dict(pod) for pod in pods],
            "state": state,
            "node": self._cluster.node_name,
            "agent_namespace": koordinator.namespace if koordinator and state == "present" else "",
            "run_id": self._run_label,
            "deadline_s": PODS_S,
        }
        return self._cluster.api.run("workload_pods", arguments)

    def _values(self, order: Order, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the groups of the pods on the node, once their values are what the mode makes of them."""
        is_koordinator = order.engine == "koordinator"
        pods = [
            {
                "key": key,
                "uid": pod["uid"],
                "container_id": pod["container_id"],
                "qos": self._qos(key, order),
                "containers": pod_manifests.containers(self._testbed, order.engine)
                if key == "batch" and order.engine != "none"
                else [],
            }
            for key, pod in found["pods"].items()
        ]
        arguments = {
            "pods": pods,
            "others": found["agents"],
            "policy": dict(order.policy or {}) if is_koordinator or self._wrote_static else {},
            "moving": is_koordinator,
            "quiet_s": QUIET_S,
            "deadline_s": VALUES_S,
        }
        return self._node.host.run("pod_values", arguments)

    @staticmethod
    def _qos(key: str, order: Order) -> str:
        if key == "service":
            return "LS"
        return "" if pod_manifests.kind(order.engine) == pod_manifests.ORDINARY else "BE"

    def _write_static(self, order: Order, found: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Apply the policy to the pods' groups by our own module, and return their values anew."""
        groups = values["groups"]
        entries = [{"path": groups["service"]["pod"], "qos": "LS", "level": "pod"}]
        if "batch" in groups:
            asked = pod_manifests.containers(self._testbed, order.engine)
            entries += [
                {"path": groups["batch"]["pod"].rpartition("/")[0], "qos": "BE", "level": "tier"},
                {"path": groups["batch"]["pod"], "qos": "BE", "level": "pod", "containers": asked},
                {"path": groups["batch"]["container"], "qos": "BE", "level": "container", "containers": asked},
            ]
        arguments = {"state_dir": self._node.state_dir, "policy": dict(order.policy or {}), "groups": entries}
        self._wrote_static = True
        self._node.host.run("cgroup_policy", arguments)
        return self._values(order, found)

    def _take_static_back(self) -> None:
        if self._writes_static:
            self._node.host.run("cgroup_policy", {"state_dir": self._node.state_dir, "state": "absent"})
        self._wrote_static = False

    def _told(self, order: Order, found: Mapping[str, Any]) -> dict[str, Any]:
        lifted = lifts_limits(order.policy)
        return {
            key: {
                "expected": pod_manifests.expected(self._testbed, self._cluster, key, order.engine, lifted),
                "lacks": list(found["lacks"].get(key, ())),
                "before": _kept(pod),
                "after": None,
            }
            for key, pod in found["pods"].items()
        }

    def _cluster_entry(self, order: Order, found: Mapping[str, Any], when: str) -> dict[str, Any]:
        node = found["node"]
        entry: dict[str, Any] = {"node_ready": {when: bool(node["ready"])}}
        if order.aggressor is not None:
            for name, amount in pod_manifests.asked(self._testbed, order.engine).items():
                entry[name] = {"asked": amount, when: node[name]}
        return entry

    def _watch(self, order: Order, values: Mapping[str, Any]) -> Watch:
        groups = {key: places["container"] for key, places in values["groups"].items()}
        ours = {key: path for key, path in groups.items() if key in ("service", "batch")}
        paths = {**ours, **{f"agent/{key}": path for key, path in groups.items() if key not in ours}}
        if self._cluster.own:
            paths["cluster"] = f"{self._node.cgroup_root}/cluster"
        if self._testbed.shares_machine:
            paths["load"] = f"{self._testbed.load.cgroup_root}/load"
        work: Mapping[str, Mapping[str, str]] = {}
        if order.aggressor is not None:
            work = specs.work(order.aggressor, self._testbed.placeholders(self._progress))
        return Watch(
            groups=tuple(paths),
            group_paths=paths,
            files={**values["policy_files"], **values["moving_files"]},
            work=work,
            processes={key: {"group_path": path, "group": key} for key, path in ours.items()},
        )


def _kept(pod: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what a measurement keeps of a pod."""
    names = ("uid", "node", "phase", "reason", "container_id", "restarts", "class", "tier")
    return None if pod is None else {name: pod[name] for name in names}

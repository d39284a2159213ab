"""Koordinator's own manifests under the names and with the values of its chart. The tree here has the upstream's
shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.filter.koordinator_objects import koordinator_objects
from ansible_collections.colocation.testbed.plugins.filter.koordinator_policy import koordinator_policy
from ansible_collections.colocation.testbed.plugins.filter.koordinator_values import FilterModule, koordinator_values
from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import (
    koordinator_manifests,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import (
    koordinator_values as chart,
)

AnsibleFilterError = pytest.importorskip("ansible.errors").AnsibleFilterError

KEY = "cpuAllocatableEvictThresholdPercent"
HOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata: {{name: {name}}}
webhooks:
- name: {hook}
  failurePolicy: Fail
  clientConfig: {{service: {{name: webhook-service, namespace: system, path: {path}}}}}
- name: vnode.koordinator.sh
  failurePolicy: Fail
  clientConfig: {{service: {{name: webhook-service, namespace: system, path: /validate-node}}}}
"""
PATCH = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating-webhook-configuration}
webhooks:
- name: mpod-create.koordinator.sh
  namespaceSelector: {matchExpressions: [{key: control-plane, operator: DoesNotExist}]}
"""
MANAGER = """
apiVersion: v1
kind: Namespace
metadata: {name: system, labels: {control-plane: koordinator}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: system, creationTimestamp: null}
spec:
  replicas: 2
  template:
    spec:
      serviceAccountName: manager
      containers:
      - name: manager
        image: manager:latest
        imagePullPolicy: Always
        args: [--feature-gates=, --v=4]
        env: [{name: WEBHOOK_CONFIGURATION_FAILURE_POLICY_PODS, value: Fail}]
        readinessProbe: {httpGet: {path: metrics, port: 8080}}
"""
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: koordlet, namespace: system}
spec:
  template:
    spec:
      serviceAccountName: koordlet
      containers:
      - name: koordlet
        image: koordlet:latest
        args: ["-feature-gates=AllAlpha=true,AllBeta=true",
          -runtime-hooks-host-endpoint=/var/run/koordlet//koordlet.sock]
      volumes:
      - {name: host-kubelet-rootdir, hostPath: {path: /var/lib/kubelet/, type: ""}}
      - {name: metric-db-path, emptyDir: {sizeLimit: 150Mi}}
"""
SCHEDULER = """
apiVersion: v1
kind: ConfigMap
metadata: {name: scheduler-config, namespace: system}
data:
  koord-scheduler-config: |
    profiles:
    - pluginConfig:
      - name: LoadAwareScheduling
        args: {usageThresholds: {cpu: 0}}
"""
BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scheduler-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler"}
subjects: [{kind: ServiceAccount, name: scheduler, namespace: system}]
"""
FILES = {
    "crd/bases/slo.koordinator.sh_nodeslos.yaml": (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: nodeslos.slo.koordinator.sh, creationTimestamp: null}\nspec: {group: slo.koordinator.sh}\n"
        "status: {conditions: []}\n"
    ),
    "crd/kustomization.yaml": "resources: []\n",
    "rbac/scheduler_role_binding.yaml": BINDING,
    "rbac/auth_proxy_role.yaml": "kind: ClusterRole\nmetadata: {name: proxy-role}\n",
    "manager/manager.yaml": MANAGER,
    "manager/koordlet.yaml": AGENT,
    "manager/scheduler-config.yaml": SCHEDULER,
    "manager/descheduler-config.yaml": "kind: ConfigMap\nmetadata: {name: descheduler-config}\n",
    "manager/slo-controller-config.yaml": "kind: ConfigMap\nmetadata: {name: slo-controller-config}\n",
    "manager/koord-batch.yaml": "kind: PriorityClass\nmetadata: {name: batch}\nvalue: 5000\n",
    "webhook/manifests.yaml": HOOK.format(
        kind="MutatingWebhookConfiguration",
        name="mutating-webhook-configuration",
        hook="mpod-create.koordinator.sh",
        path="/mutate-pod",
    ),
    "webhook/patch_manifests.yaml": PATCH,
    "webhook/service.yaml": "kind: Service\nmetadata: {name: webhook-service}\nspec: {ports: [{port: 443}]}\n",
    "webhook/kustomizeconfig.yaml": "nameReference: []\n",
}
SETTINGS: dict[str, Any] = {"version": "1.8.0", "image_host": "127.0.0.1:15000", "features": "BECPUEvict=false"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def rendered(tree: Path, pull_policy: str = "IfNotPresent", **settings: Any) -> dict[tuple[str, str], dict[str, Any]]:
    values = FilterModule().filters()["koordinator_values"]({**SETTINGS, **settings})["values"]
    found = koordinator_objects(str(tree), values, pull_policy)
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


def test_names_are_those_that_the_programs_look_for(tree: Path) -> None:
    assert sorted(rendered(tree)) == [
        ("ClusterRoleBinding", "koord-scheduler-rolebinding"),
        ("ConfigMap", "koord-scheduler-config"),
        ("CustomResourceDefinition", "nodeslos.slo.koordinator.sh"),
        ("DaemonSet", "koordlet"),
        ("Deployment", "koord-manager"),
        ("MutatingWebhookConfiguration", "koordinator-mutating-webhook-configuration"),
        ("Namespace", "koordinator-system"),
        ("PriorityClass", "koord-batch"),
        ("Service", "koordinator-webhook-service"),
    ]
    binding = rendered(tree)["ClusterRoleBinding", "koord-scheduler-rolebinding"]
    assert binding["roleRef"]["name"] == "system:kube-scheduler"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "koord-scheduler", "namespace": "koordinator-system"}
    ]
    assert "namespace" not in binding["metadata"]


def test_webhooks_are_those_of_the_gates_and_open_when_they_are_down(tree: Path) -> None:
    name = ("MutatingWebhookConfiguration", "koordinator-mutating-webhook-configuration")
    (hook,) = rendered(tree)[name]["webhooks"]
    assert hook["failurePolicy"] == "Ignore"
    assert hook["clientConfig"]["service"] == {
        "name": "koordinator-webhook-service",
        "namespace": "koordinator-system",
        "path": "/mutate-pod",
    }
    assert hook["namespaceSelector"]["matchExpressions"][0]["key"] == "control-plane"
    gates = rendered(tree, manager_gates="PodMutatingWebhook=false,NodeValidatingWebhook=true")[name]["webhooks"]
    assert [item["name"] for item in gates] == ["vnode.koordinator.sh"]


def test_workloads_have_the_values(tree: Path) -> None:
    found = rendered(
        tree,
        "Never",
        replicas=2,
        host_dirs={"kubeletLibDir": "/srv/kubelet", "koordletSockDir": "/srv/koordlet"},
        resources={"manager": {"requests": {"cpu": "50m"}}},
    )
    agent = found["DaemonSet", "koordlet"]["spec"]["template"]["spec"]
    container = agent["containers"][0]
    assert container["image"] == "127.0.0.1:15000/koordinator-sh/koordlet:v1.8.0"
    assert container["imagePullPolicy"] == "Never"
    assert container["args"] == [
        "-feature-gates=BECPUEvict=false",
        "-runtime-hooks-host-endpoint=/srv/koordlet/koordlet.sock",
        "-addr=:9316",
    ]
    assert agent["volumes"][0]["hostPath"]["path"] == "/srv/kubelet"
    assert agent["volumes"][1]["emptyDir"] == {"medium": "Memory", "sizeLimit": "150Mi"}
    manager = found["Deployment", "koord-manager"]
    assert manager["spec"]["replicas"] == 2
    pod = manager["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "koord-manager"
    assert pod["containers"][0]["resources"] == {"requests": {"cpu": "50m"}}
    assert pod["containers"][0]["readinessProbe"] == {"httpGet": {"path": "readyz", "port": 8000}}
    assert pod["containers"][0]["env"][0]["value"] == "Ignore"


def test_generated_leftovers_and_what_is_not_wanted_are_left_out(tree: Path) -> None:
    found = rendered(tree)
    assert found["CustomResourceDefinition", "nodeslos.slo.koordinator.sh"]["metadata"] == {
        "name": "nodeslos.slo.koordinator.sh",
        "labels": {"app.kubernetes.io/part-of": "koordinator"},
    }
    assert "status" not in found["CustomResourceDefinition", "nodeslos.slo.koordinator.sh"]
    without = rendered(tree, components=["manager", "koordlet"], extra={"crds": {"nodeslos": False}})
    assert not [name for _kind, name in without if "scheduler" in name or "nodeslos" in name]


def test_load_thresholds_of_the_scheduler_can_be_set(tree: Path) -> None:
    values = koordinator_values(SETTINGS)["values"]
    item = next(
        item
        for item in koordinator_objects(str(tree), {**values, "loadThresholds": {"cpu": 90}})
        if item["metadata"]["name"] == "koord-scheduler-config"
    )
    config = yaml.safe_load(item["data"]["koord-scheduler-config"])
    assert config["profiles"][0]["pluginConfig"][0]["args"]["usageThresholds"] == {"cpu": 90}


@pytest.mark.parametrize(
    ("names", "key", "version", "words"),
    [
        (["nodeslos"], "", "1.7.0", "is older than koordinator_version 1.7.0 by scheduling.koordinator.sh_clusternet"),
        (["nodeslos", "clusternetworktopologies"], "", "1.8.0", "is older than koordinator_version 1.8.0 by slo.koor"),
        (["nodeslos", "clusternetworktopologies"], KEY, "1.7.0", "is newer than koordinator_version 1.7.0 by slo.ko"),
        (["nodeslos", "clusternetworktopologies"], "", "1.7.0", ""),
        (["nodeslos", "clusternetworktopologies"], KEY, "1.8.0", ""),
    ],
)
def test_sources_are_those_of_the_version(tree: Path, names: list[str], key: str, version: str, words: str) -> None:
    """What the definitions of 1.6.1, 1.7.0 and 1.8.0 are told by, among them that of NodeSLO with its new keys."""
    bases = tree / "config/crd/bases"
    for name in names:
        group = "slo" if name == "nodeslos" else "scheduling"
        text = f"kind: CustomResourceDefinition\nmetadata: {{name: {name}.{group}.koordinator.sh}}\n# {key}\n"
        (bases / f"{group}.koordinator.sh_{name}.yaml").write_text(text, encoding="utf-8")
    settings = {**SETTINGS, "version": version, "method": "manifests", "source": str(tree)}
    if not words:
        assert koordinator_values(settings)["values"]
        return
    with pytest.raises(AnsibleFilterError) as caught:
        koordinator_values(settings)
    assert words in str(caught.value)


def test_ports_levels_and_gates_reach_the_programs(tree: Path) -> None:
    extra = {
        "koordlet": {"log": {"level": 6}, "runtimeClassName": "kata"},
        "manager": {"healthProbe": {"port": 8001}, "metrics": {"port": 8081}, "resyncPeriod": "30s"},
    }
    values = koordinator_values({**SETTINGS, "method": "manifests", "extra": extra})["values"]
    found = {item["metadata"]["name"]: item for item in koordinator_objects(str(tree), values)}
    manager = found["koord-manager"]["spec"]["template"]["spec"]["containers"][0]
    assert {"-health-probe-addr=:8001", "-metrics-addr=:8081", "-sync-period=30s"} <= set(manager["args"])
    assert manager["readinessProbe"]["httpGet"]["port"] == 8001
    agent = found["koordlet"]["spec"]["template"]["spec"]
    assert agent["runtimeClassName"] == "kata"
    assert any(argument.endswith("v=6") for argument in agent["containers"][0]["args"])


def test_what_is_no_tree_is_told(tmp_path: Path, tree: Path) -> None:
    values = koordinator_values(SETTINGS)["values"]
    with pytest.raises(AnsibleFilterError, match="has no config/crd/bases"):
        koordinator_objects(str(tmp_path / "nowhere"), values)
    with pytest.raises(AnsibleFilterError, match="'Sometimes' is not known; allowed: Always, IfNotPresent, Never"):
        koordinator_objects(str(tree), values, "Sometimes")
    (tree / "config/manager/manager.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(koordinator_manifests.ManifestsError, match=r"manager\.yaml: cannot be read"):
        koordinator_manifests.load(tree)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"version": "1.6.0"}, "koordinator_version: '1.6.0' is not known; did you mean"),
        ({"components": ["manager"]}, "koordinator_components: lacks koordlet, without which nothing is held back"),
        ({"components": ["manager", "koordlet", "schedular"]}, "did you mean scheduler?"),
        ({"replicas": 0}, "koordinator_replicas: 0 is out of range"),
        ({"image_host": "https://r"}, "is no registry; write host or host:port"),
        ({"host_dirs": {"kubeletDir": "/x"}}, "koordinator_host_dirs.kubeletDir: is not known"),
        ({"host_dirs": {"kubeletLibDir": "x"}}, "is no absolute path"),
        ({"features": "BECPUSupress=true"}, "koordinator_features: 'BECPUSupress' is no feature gate"),
        ({"resources": {"koordlets": {}}}, "koordinator_resources.koordlets: is not a component"),
        ({"extra": {"koordlet": {"feature": ""}}}, "koordinator_values.koordlet.feature: is no value of chart 1.8.0"),
        ({"extra": {"manager": 1}}, "koordinator_values.manager: is a whole number, not a mapping"),
        (
            {"version": "1.7.0", "extra": {"scheduler": {"monitorEnabled": True}}},
            "koordinator_values.scheduler.monitorEnabled: is no value of chart 1.7.0",
        ),
        ({"colour": 1}, "settings are not as they must be"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        koordinator_values({**SETTINGS, **settings})
    assert words in str(caught.value)


def test_what_is_not_wanted_has_no_pods_and_what_must_be_ready_is_named() -> None:
    found = koordinator_values({**SETTINGS, "extra": {"scheduler": {"monitorEnabled": True}}})
    assert found["values"]["descheduler"]["replicas"] == 0
    assert found["values"]["scheduler"]["replicas"] == 1
    assert found["values"]["scheduler"]["monitorEnabled"] is True
    assert found["values"]["deviceDaemon"]["nodeAffinity"]
    assert found["workloads"] == ["Deployment/koord-manager", "DaemonSet/koordlet", "Deployment/koord-scheduler"]
    assert set(chart.KEYS) == {"1.7.0", "1.8.0"}


def test_defaults_prevent_what_others_had() -> None:
    defaults = yaml.safe_load((ROOT / "roles/koordinator/defaults/main.yml").read_text(encoding="utf-8"))
    assert "CgroupReconcile=false" in defaults["koordinator_features"].split(",")
    assert quantity.parse_bytes(defaults["koordinator_resources"]["koordlet"]["limits"]["memory"]) >= 512 << 20
    assert (defaults["koordinator_replicas"], defaults["koordinator_image_pull_policy"]) == (1, "IfNotPresent")


def test_policies_are_the_same_files_that_other_engines_read() -> None:
    own = {"mine": {"resource-threshold-config": {"clusterStrategy": {"enable": True}}}}
    assert koordinator_policy("koordinator")["colocation-config"]["enable"] is True
    assert koordinator_policy("slo_aware")["resource-qos-config"]
    assert koordinator_policy("mine", own) == own["mine"]
    assert koordinator_policy("") == {}
    assert koordinator_policy(own["mine"]) == own["mine"]
    with pytest.raises(AnsibleFilterError, match="did you mean koordinator"):
        koordinator_policy("koordinater")
    with pytest.raises(AnsibleFilterError, match="did you mean cpuSuppressPolicy"):
        koordinator_policy({"resource-threshold-config": {"clusterStrategy": {"cpuSupressPolicy": "cpuset"}}})


def keys(value: Any, known: Any) -> Any:
    """Return the keys of values as far down as the collection looks."""
    if not isinstance(known, dict):
        return known
    return {name: keys((value or {}).get(name), below) for name, below in known.items() if name in (value or {})}


def test_the_stand_in_for_the_chart_has_the_charts_keys() -> None:
    root = Path(__file__).resolve().parents[5]
    values = yaml.safe_load((root / "tests/support/charts/koordinator-standin/values.yaml").read_text(encoding="utf-8"))
    known = chart.KEYS["1.8.0"]
    assert keys(values, known) == known
    assert chart.values(chart.Settings("1.8.0", "r", extra=values))

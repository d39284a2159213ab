# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as users of the chart have them: those of github.com/koordinator-sh/charts, versions 1.5.0 to 1.8.0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_chart
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_values as chart

ROOT = Path(__file__).resolve().parents[5]
STAND_IN = ROOT / "tests/support/charts/koordinator-standin/values.yaml"
METHODS = ("manifests", "helm")
# Values of the chart that the stand-in leaves out.
SCHEDULER = {
    "compatible122FeatureGates": "CompatibleCSIStorageCapacity=true",
    "compatibleBelow122FeatureGates": "DisableCSIStorageCapacityInformer=true,CompatiblePodDisruptionBudget=true",
    "deviceShare": {"gpuShareUnsupportedModels": [{"vendor": "huawei", "model": "Ascend-310P3-300I-DUO"}]},
}


def whole(version: str) -> dict[str, Any]:
    """Return all values that the chart of a version lists, as somebody has them who copied its values.yaml."""
    values: dict[str, Any] = yaml.safe_load(STAND_IN.read_text(encoding="utf-8"))
    for name in ("koordlet", "manager", "scheduler", "descheduler", "deviceDaemon"):
        values[name]["image"]["tag"] = f"v{version}"
    values["scheduler"].update(SCHEDULER)
    if version == "1.7.0":
        for path in ("scheduler.deviceShare", "scheduler.monitorEnabled", "descheduler.monitorEnabled"):
            component, _dot, key = path.partition(".")
            del values[component][key]
    return values


def refused(version: str = "1.8.0", **settings: Any) -> str:
    with pytest.raises(chart.ValuesError) as caught:
        chart.values(chart.Settings(version, "r", **settings))
    return str(caught.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("version", sorted(chart.KEYS))
def test_a_copy_of_the_charts_own_values_is_good(version: str, method: str) -> None:
    settings = chart.Settings(version, "r", method=method, extra=whole(version))
    assert chart.values(settings)["manager"]["replicas"] == 2
    # What the copy switches on must be ready too.
    assert chart.workloads(settings)[-1] == "Deployment/koord-descheduler"


@pytest.mark.parametrize("older", ["1.5.0", "1.6.0", "1.7.0"])
def test_a_copy_of_an_older_charts_values_does_not_bring_its_programs(older: str) -> None:
    told = refused(extra={"koordlet": {"image": {"repository": "koordinator-sh/koordlet", "tag": f"v{older}"}}})
    assert f"koordinator_values.koordlet.image.tag: 'v{older}' is another version than koordinator_version 1.8" in told


def test_a_tag_of_ones_own_is_left_alone() -> None:
    for tag in ("v1.8.1", "1.8.0", "v1.8.0-lab", "main", ""):
        assert chart.values(chart.Settings("1.8.0", "r", image_tag=tag))["koordlet"]["image"]["tag"] == (
            tag or "v1.8.0"
        )
    assert "koordinator_image_tag: 'v1.6.1' is another version" in refused(image_tag="v1.6.1")


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"crds": {"managed": "false"}}, "crds.managed: 'false' is not a truth value; write true or false, without"),
        ({"manager": {"replicas": "1"}}, "manager.replicas: '1' is not a whole number"),
        ({"koordlet": {"features": {"BECPUEvict": True}}}, "koordlet.features: {'BECPUEvict': True} is not text"),
        ({"imagePullSecrets": {"name": "x"}}, "imagePullSecrets: {'name': 'x'} is not a list; write one entry"),
        ({"manager": {"nodeSelector": []}}, "manager.nodeSelector: [] is not a mapping"),
        ({"koordlet": {"image": {"tag": 1.8}}}, "koordlet.image.tag: 1.8 is not text; write it in quotes"),
        ({"manager": {"log": {"level": True}}}, "manager.log.level: True is not text or a whole number"),
        ({"installation": {"roleListGroups": ["apps"]}}, "roleListGroups: is among the chart's values and nothing"),
        ({"descheduler": {"featureGates": "A=true"}}, "descheduler.featureGates: is among the chart's values and no"),
        ({"installation": {"namespace": "koord"}}, "installation.namespace: 'koord' is not where this collection"),
        ({"manager": {"replicas": 0}}, "koordinator_values.manager.replicas: 0 leaves nobody"),
        ({"imageRepositoryHost": "https://r"}, "koordinator_values.imageRepositoryHost: 'https://r' is no registry"),
        (
            {"koordlet": {"hostDirs": {"kubeletLibDir": "x"}}},
            "koordinator_values.koordlet.hostDirs.kubeletLibDir: 'x' i",
        ),
        ({"koordlet": {"features": "BECPUSupress=true"}}, "koordinator_values.koordlet.features: 'BECPUSupress' is no"),
        ({"featureGates": "PodMutatingWebHook=true"}, "koordinator_values.featureGates: 'PodMutatingWebHook' is no"),
        ({"nameOverride": "x"}, "koordinator_values.nameOverride: is no value of chart 1.8.0"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_what_helm_would_ignore_or_take_otherwise_is_refused(method: str, extra: dict[str, Any], words: str) -> None:
    told = refused(method=method, extra=extra)
    assert words in told
    assert "; " not in told.replace(words, "", 1).partition("; ")[2]


@pytest.mark.parametrize(
    ("component", "values"),
    [
        ("scheduler", {"enableJobPreemption": False}),
        ("scheduler", {"deviceShare": {"gpuShareUnsupportedModels": []}}),
        ("koordlet", {"enableServiceMonitor": True}),
        ("serviceAccount", {"annotations": {"a": "b"}}),
    ],
)
def test_what_only_the_chart_can_do_is_refused_for_the_manifests(component: str, values: dict[str, Any]) -> None:
    told = refused(method="manifests", extra={component: values})
    assert f"koordinator_values.{component}.{next(iter(values))}: has no effect on Koordinator's own manifests" in told
    assert chart.values(chart.Settings("1.8.0", "r", method="helm", extra={component: values}))


@pytest.mark.parametrize("gate", ["CPUAllocatableEvict", "MemoryAllocatableEvict"])
def test_gates_are_those_of_the_version(gate: str) -> None:
    assert chart.values(chart.Settings("1.8.0", "r", features=f"{gate}=true"))
    told = refused("1.7.0", features=f"{gate}=true")
    assert f"koordinator_features: {gate} is a feature gate from 1.8.0 on, and the agent of Koordinator 1.7.0" in told
    assert "ElasticQuotaEvaluationTransformPod is a feature gate from 1.8.0 on" in refused(
        "1.7.0", manager_gates="ElasticQuotaEvaluationTransformPod=true"
    )


def test_every_kind_has_its_sentence() -> None:
    kinds = {
        koordinator_chart.lookup(koordinator_chart.KEYS["1.8.0"], path) for path in ("crds.managed", "featureGates")
    }
    assert kinds == {koordinator_chart.FLAG, koordinator_chart.TEXT}


def test_a_policy_is_validated_by_somebody() -> None:
    told = refused(validated=True)
    assert told.startswith("koordinator_validate_on_server: nobody validates while the manager's feature gate ")
    assert told.endswith("add ConfigMapValidatingWebhook=true to koordinator_manager_gates")
    assert chart.values(chart.Settings("1.8.0", "r", validated=True, manager_gates="ConfigMapValidatingWebhook=true"))

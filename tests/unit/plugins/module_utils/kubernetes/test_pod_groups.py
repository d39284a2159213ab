"""Names of pods' and containers' groups: both drivers, both versions of the hierarchy, and what is not a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, pod_cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import best_effort_root, pod_groups

UID = "0f5a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
SLICE = UID.replace("-", "_")
STATIC = "0123456789abcdef0123456789abcdef"
ID = "4f1c" * 16
BE_SLICE = f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICE}.slice"
LS_SLICE = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice"
V1 = "1 1 0:1 / {root}/cpu rw - cgroup cgroup rw,cpu\n2 1 0:2 / {root}/cpuset rw - cgroup cgroup rw,cpuset\n"
V2 = "1 1 0:1 / {root} rw - cgroup2 cgroup2 rw\n"

PODS = [
    (UID, "BestEffort", "systemd", BE_SLICE),
    (UID, "Burstable", "systemd", LS_SLICE),
    (UID, "Guaranteed", "systemd", f"kubepods.slice/kubepods-pod{SLICE}.slice"),
    (STATIC, "Burstable", "systemd", f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice"),
    (UID, "BestEffort", "cgroupfs", f"kubepods/besteffort/pod{UID}"),
    (UID, "Burstable", "cgroupfs", f"kubepods/burstable/pod{UID}"),
    (UID, "Guaranteed", "cgroupfs", f"kubepods/pod{UID}"),
    (UID.upper(), "besteffort", "cgroupfs", f"kubepods/besteffort/pod{UID}"),
]


@pytest.mark.parametrize(("uid", "qos_class", "driver", "path"), PODS)
def test_the_group_of_a_pod(uid: str, qos_class: str, driver: str, path: str) -> None:
    assert pod_groups.pod_group(uid, qos_class, driver) == path


@pytest.mark.parametrize(
    ("pod", "container_id", "driver", "path"),
    [
        (BE_SLICE, f"containerd://{ID}", "systemd", f"{BE_SLICE}/cri-containerd-{ID}.scope"),
        (BE_SLICE, ID, "systemd", f"{BE_SLICE}/cri-containerd-{ID}.scope"),
        (LS_SLICE, f"cri-o://{ID}", "systemd", f"{LS_SLICE}/crio-{ID}.scope"),
        (LS_SLICE, f"docker://{ID}", "systemd", f"{LS_SLICE}/docker-{ID}.scope"),
        (f"kubepods/besteffort/pod{UID}", f"containerd://{ID}", "cgroupfs", f"kubepods/besteffort/pod{UID}/{ID}"),
        (f"kubepods/pod{UID}", f"docker://{ID}", "cgroupfs", f"kubepods/pod{UID}/{ID}"),
        (f"kubepods/pod{UID}", f"cri-o://{ID}", "cgroupfs", f"kubepods/pod{UID}/crio-{ID}"),
    ],
)
def test_the_group_of_a_container(pod: str, container_id: str, driver: str, path: str) -> None:
    assert pod_groups.container_group(pod, container_id, driver) == path


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
@pytest.mark.parametrize("qos_class", ["Guaranteed", "Burstable", "BestEffort"])
def test_the_path_is_the_same_below_both_versions_and_is_found_again(
    tmp_path: Path, version: int, driver: str, qos_class: str
) -> None:
    pod = pod_groups.pod_group(UID, qos_class, driver)
    container = pod_groups.container_group(pod, f"containerd://{ID}", driver)
    if version == 2:
        (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    layout = cgroup.parse_layout((V1 if version == 1 else V2).format(root=tmp_path))
    places = {controller: Path(layout.path(controller, container)) for controller in ("cpu", "cpuset")}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    expected = tmp_path / ("cpuset" if version == 1 else "") / container
    assert places["cpuset"] == expected
    assert pod_cgroup.scan(layout.hierarchy("cpu").mount) == {UID: pod}
    found = best_effort_root.kubepods(layout)
    assert found == pod_groups.all_pods(driver)
    assert best_effort_root.group(found) == pod_groups.tier_group("BestEffort", driver)


@pytest.mark.parametrize(
    ("uid", "qos_class", "driver", "text"),
    [
        ("nginx-0", "Burstable", "systemd", "metadata.uid"),
        (f"../{UID}", "Burstable", "systemd", "metadata.uid"),
        (UID, "BE", "systemd", "status.qosClass"),
        (UID, "Burstable", "cgroupsfs", "cgroupDriver"),
    ],
)
def test_what_no_pod_has_is_said(uid: str, qos_class: str, driver: str, text: str) -> None:
    with pytest.raises(pod_groups.PodGroupError, match=text):
        pod_groups.pod_group(uid, qos_class, driver)


@pytest.mark.parametrize(
    ("container_id", "driver", "text"),
    [
        ("", "systemd", "containerID"),
        ("containerd://", "systemd", "containerID"),
        ("rkt://4f1c4f1c4f1c", "systemd", "containerID"),
        ("containerd://../..", "cgroupfs", "containerID"),
        (ID, "", "cgroupDriver"),
    ],
)
def test_what_no_container_has_is_said(container_id: str, driver: str, text: str) -> None:
    with pytest.raises(pod_groups.PodGroupError, match=text):
        pod_groups.container_group("kubepods", container_id, driver)

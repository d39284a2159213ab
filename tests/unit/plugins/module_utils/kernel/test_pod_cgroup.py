"""Groups of pods under both drivers of kubelet, at the depths where they are found, and names that only look alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import pod_cgroup

FIRST, SECOND = "0f5a1b2c-3d4e-5f60-7182-93a4b5c6d7e8", "1f5a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
STATIC = "0123456789abcdef0123456789abcdef"
SLICE = FIRST.replace("-", "_")


@pytest.mark.parametrize(
    "path",
    [
        f"kubepods/burstable/pod{FIRST}",
        f"kubepods/pod{FIRST}",
        f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICE}.slice",
        f"kubepods.slice/kubepods-pod{SLICE}.slice",
        f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod{SLICE}.slice",
        f"machine/kubepods/besteffort/pod{FIRST}",
    ],
)
def test_both_drivers_and_all_tiers(tmp_path: Path, path: str) -> None:
    (tmp_path / path / "container").mkdir(parents=True)
    (tmp_path / "system.slice" / "sshd.service").mkdir(parents=True)
    assert pod_cgroup.scan(str(tmp_path)) == {FIRST: path}


def test_many_pods_and_those_of_files(tmp_path: Path) -> None:
    for name in (f"pod{FIRST}", f"pod{SECOND}", f"pod{STATIC}", "podman", "podium", "other"):
        (tmp_path / "kubepods" / "burstable" / name).mkdir(parents=True)
    assert set(pod_cgroup.scan(str(tmp_path))) == {FIRST, SECOND, STATIC}


def test_a_place_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert pod_cgroup.scan(str(tmp_path / "gone")) == {}


@pytest.mark.parametrize(
    ("text", "uid"),
    [
        (FIRST, FIRST),
        (SLICE, FIRST),
        (FIRST.upper(), FIRST),
        (STATIC, STATIC),
        ("", None),
        ("pod1", None),
        ("../x", None),
    ],
)
def test_uids_as_people_and_kubelet_write_them(text: str, uid: str | None) -> None:
    assert pod_cgroup.normal(text) == uid

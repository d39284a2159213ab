"""What is refused, in one sentence each, before anything changes."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import reconcile, values
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, shaping_abilities
from tests.kernel.test_bandwidth import BATCH, LINK, Host, everything, host

__all__ = ["host"]


@pytest.mark.parametrize(
    ("pools", "classes", "shaped", "text"),
    [
        ((LINK,), (), (("gone", "link", "auto"),), "device gone: does not exist here"),
        ((LINK,), ({**BATCH, "cgroups": ["no/such"]},), (), "class batch: cgroup no/such does not exist"),
        ((LINK,), ({**BATCH, "devices": ["gone"]},), (), "class batch: device gone does not exist"),
        ((LINK,), ({**BATCH, "pool": "other"},), (), "class batch: pool 'other' does not exist"),
        ((LINK,), (), (("left", "link", "edt"),), "plane edt needs sch_fq"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_half_applied(
    host: Host, pools: Any, classes: Any, shaped: Any, text: str
) -> None:
    if "sch_fq" in text and shaping_abilities.Abilities(host.pair.run).has("fq"):
        pytest.skip("this kernel has sch_fq")
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    with pytest.raises(values.BandwidthError, match=text) as caught:
        host.apply(pools, classes, shaped)
    assert "\n" not in str(caught.value)
    assert host.picture() == before


def test_an_instance_of_another_layout_is_refused(host: Host) -> None:
    everything(host)
    opened = reconcile.open_at(host.place)
    assert opened is not None
    with contextlib.closing(opened):
        right = bpf.lookup(opened.maps["meta"], bytes(4)) or b""
        bpf.update(opened.maps["meta"], bytes(4), opened.layout["meta"].pack({"layout": 99}))
        with pytest.raises(
            values.BandwidthError, match="instance test: has layout 99, this collection 2; remove it wi"
        ):
            everything(host)
        bpf.update(opened.maps["meta"], bytes(4), right)
    assert not everything(host).changed


def test_without_root_one_sentence_says_so(host: Host) -> None:
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            everything(host)
        except values.BandwidthError as exc:
            os.write(writing, str(exc).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    assert text == "/run/colocation-testbed-bandwidth.lock: cannot be opened: Permission denied; run as root"
    assert host.picture() == before


def test_a_pool_above_the_link_is_refused(host: Host, tmp_path: Path) -> None:
    index = host.pair.indexes()["left"]
    place = tmp_path / "sys" / "class" / "net" / "left"
    place.mkdir(parents=True)
    (place / "ifindex").write_text(f"{index}\n")
    (place / "speed").write_text("100\n")
    host.host = replace(host.host, sys_root=str(tmp_path / "sys"))
    with pytest.raises(
        values.BandwidthError, match="pool link: asks for 1000000000 bit/s, but device left has a link of"
    ):
        everything(host)
    # Another namespace's device of the same name says nothing about this one.
    (place / "ifindex").write_text(f"{index + 100}\n")
    assert everything(host).changed
    host.apply((), (), ())

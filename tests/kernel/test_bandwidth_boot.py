"""The node tool makes an instance again after all of it is gone, as it is after a start of the host."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import undo
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import instance, reconcile
from ansible_collections.colocation.testbed.plugins.module_utils.node import bandwidth_apply
from ansible_collections.colocation.testbed.plugins.plugin_utils import node_bundle
from tests.kernel.test_bandwidth import BATCH, LINK, SERVICE, host
from tools.bandwidth.host import Host

__all__ = ["host"]
SHAPED = (("left", "link", "auto"), ("pod", "link", "police"))
POD = {"name": "pod", "pool": "link", "devices": ["pod"]}


def add_pod(host: Host) -> None:
    host.pair.run(["ip", "link", "add", "pod", "type", "veth", "peer", "inside"])


def forget_everything(host: Host) -> None:
    """Take away what a start of the host takes away; ``pod`` does not come back, ``left`` has another number then."""
    shutil.rmtree(Path(host.place.pins))
    for line in ("link delete left", "link delete pod", "link add left type veth peer right"):
        host.pair.run(["ip", *line.split()])


@pytest.fixture
def rebooted(host: Host) -> Host:
    add_pod(host)
    host.apply((LINK,), (BATCH, SERVICE, POD), SHAPED)
    forget_everything(host)
    return host


def test_everything_that_is_still_there_is_shaped_again(rebooted: Host) -> None:
    before = rebooted.pair.run(["tc", "-j", "qdisc", "show"]).stdout
    state = instance.read_state(rebooted.place)
    done = bandwidth_apply.apply(rebooted.place, rebooted.host)
    assert done.changed
    assert done.warnings == (
        "class pod: device pod is gone; it is left out until it is back",
        "device pod: is gone; it is shaped again when a task names it after its return",
    )
    assert {"batch", "service", "pod"} == set(rebooted.figures()["classes"])
    again = bandwidth_apply.apply(rebooted.place, rebooted.host)
    assert (again.changed, again.lines) == (False, ())
    after = instance.read_state(rebooted.place)
    assert state is not None
    assert after is not None
    assert after.devices["left/egress"]["index"] != state.devices["left/egress"]["index"]
    handlers = {**undo.Undo().handlers(), "bandwidth": lambda entry, check: reconcile.undo(entry, check, rebooted.host)}
    assert all(item.outcome.result == "undone" for item in rebooted.book.undo(handlers))
    assert rebooted.pair.run(["tc", "-j", "qdisc", "show"]).stdout == before


def test_what_comes_back_later_is_shaped_by_the_next_call(rebooted: Host) -> None:
    bandwidth_apply.apply(rebooted.place, rebooted.host)
    add_pod(rebooted)
    done = bandwidth_apply.apply(rebooted.place, rebooted.host)
    assert (done.changed, done.warnings) == (True, ())
    assert "clsact" in rebooted.pair.run(["tc", "qdisc", "show", "dev", "pod"]).stdout


def test_the_tool_itself_does_it(rebooted: Host, tmp_path: Path) -> None:
    tool, spec = tmp_path / "node.pyz", tmp_path / "spec.json"
    tool.write_bytes(node_bundle.build(ROOT).content)
    place = rebooted.place
    spec.write_text(json.dumps({"instance": place.name, "bpffs": place.bpffs, "state_dir": place.state_dir}))
    argv = rebooted.pair.argv([sys.executable, "-I", "-S", str(tool), "bandwidth-apply", "--spec", str(spec)])
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: ") == 2
    assert "clsact" in rebooted.pair.run(["tc", "qdisc", "show", "dev", "left"]).stdout
    spec.write_text("{}")
    wrong = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, cwd="/")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert "lacks instance, bpffs or state_dir" in wrong.stderr

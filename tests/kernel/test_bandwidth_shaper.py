"""Shapers put on a device of a namespace and taken off again: in every order, by the journal, and after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.shaping import qdiscs
from tools.bandwidth.namespaces import Pair

KINDS = ("ebpf", "htb", "tbf", "none")


class Shaped:
    """A device of a namespace with the module that shapes it."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair, self.state_dir = pair, str(folder)
        self.group = f"colocation-testbed-shaper-{os.getpid()}"
        self.environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'collections'}"}

    def argv(self, module: str, **options: Any) -> list[str]:
        given = json.dumps({"state_dir": self.state_dir, **options})
        return self.pair.argv([sys.executable, str(ROOT / "tests/support/run_module.py"), module, given])

    def options(self, kind: str, ingress: bool = False) -> dict[str, Any]:
        out = {"name": "bulk", "role": "offline", "limit": "80Mbit/s", "group": f"{self.group}/bulk", "ports": [5201]}
        into = {"name": "into", "direction": "ingress", "limit": "60Mbit/s", "address": "10.99.0.1", "ports": [5202]}
        classes = [out, into] if ingress else [out]
        return {"kind": kind, "instance": "shaper", "to": "10.99.0.2", "pool": {"total": "1Gbit/s"}, "classes": classes}

    def run(self, module: str = "bandwidth_shaper", **options: Any) -> dict[str, Any]:
        done = commands.run(
            self.argv(module, **options), environment={"PYTHONPATH": self.environment["PYTHONPATH"]}, check=False
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def picture(self) -> list[str]:
        """Return all that the device and the namespace have."""
        filters = ["filter", "show", "dev", "left"]
        shown = [
            self.pair.run(["tc", *words]).stdout
            for words in (["qdisc", "show"], [*filters, "ingress"], [*filters, "egress"])
        ]
        return [*shown, self.pair.run(["ip", "-br", "link", "show"]).stdout, *self.pinned()]

    @staticmethod
    def pinned() -> list[str]:
        return sorted(str(path) for path in Path("/sys/fs/bpf").glob("colocation-testbed/shaper*"))

    def groups(self) -> list[Path]:
        mount = next(item.mount for item in cgroup.detect().hierarchies if item.version == 2)
        return list(Path(mount).glob(f"{self.group}*"))


@pytest.fixture
def shaped(tmp_path: Path) -> Iterator[Shaped]:
    if not any(item.version == 2 for item in cgroup.detect().hierarchies):
        pytest.skip("needs cgroup2 mounted")
    with Pair("shaper", ipv6=False) as pair:
        made = Shaped(pair, tmp_path)
        yield made
        made.run(state="absent", instance="shaper", to="10.99.0.2")


def test_any_shaper_after_any_other_is_what_was_asked_and_nothing_is_left(shaped: Shaped) -> None:
    before = shaped.picture()
    # Each kind follows each other kind once.
    kinds = ("ebpf", "htb", "tbf", "none", "tbf", "htb", "none", "htb", "ebpf", "none", "ebpf", "tbf", "tbf", "ebpf")
    for number, kind in enumerate(kinds):
        options = shaped.options(kind, ingress=number % 2 == 0)
        done = shaped.run(**options)
        assert done.get("applied") == done.get("wanted"), done
        assert bool(done["wanted"]) == (kind != "none")
        again = shaped.run(**options)
        assert not again["changed"], again["commands"]
    assert shaped.run(state="absent", instance="shaper", to="10.99.0.2")["changed"]
    assert not shaped.run(state="absent", instance="shaper", to="10.99.0.2")["changed"]
    assert shaped.picture() == before
    assert shaped.groups() == []
    assert journal.Journal(f"{shaped.state_dir}/journal.json").entries() == ()


@pytest.mark.parametrize("kind", ["htb", "tbf"])
def test_reset_takes_a_shaper_off_from_outside_of_the_namespace(shaped: Shaped, kind: str) -> None:
    before = shaped.picture()
    shaped.run(**shaped.options(kind, ingress=True))
    book = journal.Journal(f"{shaped.state_dir}/journal.json")
    done = book.undo({qdiscs.JOURNAL_KIND: qdiscs.undo}, False)
    assert [item.outcome.result for item in done if item.entry.kind == "qdisc"] == ["undone"]
    assert shaped.picture() == before


def test_check_mode_changes_nothing_and_tells_whether_a_shaper_is_in_effect(shaped: Shaped) -> None:
    before = shaped.picture()
    for kind in KINDS:
        done = shaped.run(**shaped.options(kind), _ansible_check_mode=True)
        assert shaped.picture() == before
        assert done["changed"], kind
    shaped.run(**shaped.options("htb"))
    assert not shaped.run(**shaped.options("htb"), _ansible_check_mode=True)["changed"]
    shaped.pair.run(
        ["tc", "class", "change", "dev", "left", "parent", "b101:1", "classid", "b101:10", "htb", "rate", "9mbit"]
    )
    drifted = shaped.run(**shaped.options("htb"), _ansible_check_mode=True)
    assert drifted["changed"]
    assert drifted["applied"] != drifted["wanted"]


@pytest.mark.parametrize("kind", ["ebpf", "htb", "tbf"])
def test_afresh_the_same_shaper_is_put_on_again(shaped: Shaped, kind: str) -> None:
    shaped.run(**shaped.options(kind))
    again = shaped.run(**shaped.options(kind), fresh=True)
    assert again["changed"]
    assert again["commands"]
    assert again["applied"] == again["wanted"]
    assert shaped.run(**shaped.options(kind), fresh=True, _ansible_check_mode=True)["changed"] is False


def test_a_root_that_somebody_chose_is_never_replaced(shaped: Shaped) -> None:
    shaped.pair.run(
        [
            "tc",
            "qdisc",
            "add",
            "dev",
            "left",
            "root",
            "handle",
            "77:",
            "tbf",
            "rate",
            "1gbit",
            "burst",
            "1mb",
            "latency",
            "9ms",
        ]
    )
    before = shaped.picture()
    for kind in ("htb", "tbf", "ebpf"):
        done = shaped.run(**shaped.options(kind))
        assert done["failed"]
        assert "has root qdisc tbf 77:, which isn't the kernel's default" in done["msg"]
    assert shaped.picture()[:3] == before[:3]


def test_a_foreign_filter_keeps_the_hook_that_it_sits_at(shaped: Shaped) -> None:
    shaped.run(**shaped.options("htb", ingress=True))
    place = ["dev", "left", "ingress", "protocol", "ip", "pref", "9"]
    shaped.pair.run(["tc", "filter", "add", *place, "u32", "match", "u32", "0", "0", "classid", "1:1"])
    shaped.run(**shaped.options("none"))
    shown = shaped.picture()
    assert "clsact" in shown[0]
    assert "pref 9" in shown[1]
    assert "pref 45100" not in shown[1]


@pytest.mark.parametrize("after_s", [0.08, 0.11, 0.14, 0.18])
def test_a_kill_at_any_moment_leaves_a_journal_that_undoes_it(shaped: Shaped, after_s: float) -> None:
    before = shaped.picture()
    started = subprocess.Popen(
        shaped.argv("bandwidth_shaper", **shaped.options("htb", ingress=True)), env=shaped.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        started.wait(after_s)
    except subprocess.TimeoutExpired:
        started.send_signal(signal.SIGKILL)
    started.wait()
    shaped.run("journal_undo")
    assert shaped.picture() == before
    assert shaped.groups() == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"to": "10.99.0.1"}, "is this host's own; name the other host's"),
        ({"to": None, "device": "left9"}, "device left9: does not exist here"),
    ],
)
def test_bad_input_is_one_sentence(shaped: Shaped, change: dict[str, Any], sentence: str) -> None:
    before = shaped.picture()
    done = shaped.run(**{**shaped.options("htb"), **change})
    assert sentence in done["msg"]
    assert shaped.picture() == before

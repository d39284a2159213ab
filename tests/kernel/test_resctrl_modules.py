# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resctrl modules through Ansible, on the mounted stand-in: prediction, change, no second change, undo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.colocation.testbed.plugins.module_utils import journal, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, resctrl_mount
from tests.kernel.test_cgroup_modules import ROOT, Playbook
from tests.support.resctrl_mounted import standin

pytestmark = pytest.mark.kernel
SNAPSHOT_IGNORE = ["cgroups/*", "links/*", "mounts/*", "netns/*", "processes/*", "qdiscs/*", "routes/*", "sysctls/*"]
KOORDINATOR = [
    {"name": name, "l3_cat_range_start_percent": 0, "l3_cat_range_end_percent": end, "mba_percent": 100}
    for name, end in (("LSR", 100), ("LS", 100), ("BE", 30))
]


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)


@pytest.fixture
def point(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    with standin(tmp_path / "resctrl", "--cpus", "0-3", *getattr(request, "param", [])) as mounted:
        yield mounted


def group(playbook: Playbook, point: Path, groups: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return playbook.module("resctrl_group", mount_point=str(point), state_dir=playbook.state, groups=groups, **more)


def test_change_once_predict_and_undo_to_an_equal_host(playbook: Playbook, point: Path) -> None:
    groups = [
        *KOORDINATOR,
        {"name": "", "cpus": "0-3"},
        {"name": "web", "cpus": "1", "monitor_groups": [{"name": "m"}]},
    ]
    groups = [item for item in groups if item["name"]]
    picture = {"paths": [playbook.state], "ignore": SNAPSHOT_IGNORE}
    info = playbook.module("resctrl_info", mount_point=str(point), state_dir=playbook.state, counters=True)
    before, check, change, again, found, undone, after = playbook.run(
        playbook.module("host_snapshot", **picture),
        group(playbook, point, groups, task={"check_mode": True, "diff": True}),
        group(playbook, point, groups, task={"diff": True}),
        group(playbook, point, groups),
        info,
        playbook.module("journal_undo", state_dir=playbook.state),
        playbook.module("host_snapshot", **picture),
    )
    assert [item["changed"] for item in (check, change, again, undone)] == [True, True, False, True]
    assert check["diff"] == change["diff"]
    assert check["groups"] == change["groups"] == again["groups"]
    assert change["groups"]["BE"] == {"L3": "L3:0=f", "MB": "MB:0=100", "cpus": "", "monitor_groups": []}
    assert found["closids"] == {"total": 16, "used": 5, "free": 11}
    assert found["supported"] is True
    assert found["file_system"] == "fuse.resctrl"
    assert found["capabilities"]["l3"]["ways"] == 11
    assert found["groups"]["web"]["monitor_groups"]["m"]["counters"]["mon_L3_00"]["llc_occupancy"] == 0
    assert found["foreign_groups"] == []
    assert before["snapshot"] == after["snapshot"]
    assert before["snapshot"]["resctrl"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "../x"}, "not allowed as a name"),
    ({"name": "info"}, "not allowed as a name"),
    ({"name": "a", "l3_mask": "0x7"}, "l3_mask '0x7' is not a mask"),
    ({"name": "a", "l3_mask": "505"}, "cache mask 505 has a gap"),
    ({"name": "a", "l3_cat_range_start_percent": 10, "l3_cat_range_end_percent": 15}, "widen the range"),
    ({"name": "a", "l3_cat_range_start_percent": 60, "l3_cat_range_end_percent": 30}, "the start below the end"),
    ({"name": "a", "l3_cat_range_start_percent": 60}, "parameters are required together"),
    ({"name": "a", "mba_percent": 0}, "write 1 to 100"),
    ({"name": "a", "mba_mb_per_s": 500}, "resctrl is not mounted with mba_MBps"),
    ({"name": "a", "mba_percent": 10, "mba_mb_per_s": 500}, "mutually exclusive"),
    ({"name": "a", "cpus": "0-"}, "is not a CPU list"),
    ({"name": "a", "cpus": "7"}, "CPU 7 is not online"),
]


def test_purge_takes_back_what_is_not_named_and_leaves_what_others_made(playbook: Playbook, point: Path) -> None:
    Path(point, "theirs").mkdir()
    first, check, purged, again, gone = playbook.run(
        group(playbook, point, KOORDINATOR),
        group(playbook, point, KOORDINATOR[:1], purge=True, task={"check_mode": True}),
        group(playbook, point, KOORDINATOR[:1], purge=True),
        group(playbook, point, KOORDINATOR[:1], purge=True),
        group(playbook, point, [], purge=True),
    )
    assert [item["changed"] for item in (first, check, purged, again, gone)] == [True, True, True, False, True]
    assert set(purged["groups"]) == {"LSR"}
    made = {"LSR", "LS", "BE", "theirs"}
    assert {path.name for path in point.iterdir()} & made == {"theirs"}
    assert all(entry.kind != "resctrl" for entry in journal.Journal(f"{playbook.state}/journal.json").entries())


def test_bad_input_is_one_sentence_and_changes_nothing(playbook: Playbook, point: Path) -> None:
    each = [group(playbook, point, [item], task={"ignore_errors": True}) for item, _words in BAD]
    wrong = [{"name": "a", "mba_percent": 0}, {"name": "b", "cpus": "0-"}, {"name": "c", "l3_mask": "0x7"}]
    *results, together = playbook.run(*each, group(playbook, point, wrong, task={"ignore_errors": True}))
    for result, (_item, words) in zip(results, BAD, strict=True):
        assert words in result["msg"]
        assert "\n" not in result["msg"]
    assert [text.split(":")[0] for text in together["msg"].split("; resctrl ")] == [
        "resctrl group a",
        "group b",
        "group c",
    ]
    assert not Path(playbook.state).exists()
    assert not (point / "a").exists()


@pytest.mark.parametrize("point", [["--cdp", "--mba-mbps"]], indirect=True)
def test_other_options_of_the_mount(playbook: Playbook, point: Path) -> None:
    both = [{"name": "BE", "l3_cat_range_start_percent": 0, "l3_cat_range_end_percent": 30, "mba_mb_per_s": 900}]
    percent = [{"name": "BE", "mba_percent": 50}]
    mount = playbook.module(
        "resctrl_mount", mount_point=str(point), state_dir=playbook.state, task={"ignore_errors": True}
    )
    done, failed, skipped, mounted = playbook.run(
        group(playbook, point, both),
        group(playbook, point, percent, task={"ignore_errors": True}),
        group(playbook, point, percent, on_missing="skip"),
        mount,
    )
    assert done["options"] == ["cdp", "mba_MBps"]
    assert (point / "BE/schemata").read_text() == "L3CODE:0=f\nL3DATA:0=f\n    MB:0=858\n"
    assert "which counts in MB/s; use mba_mb_per_s; leave them out, or set on_missing to skip" in failed["msg"]
    assert [item["key"] for item in skipped["not_set"]] == ["mba_percent"]
    assert "is mounted with the options cdp,mba_MBps, but no options are asked for" in mounted["msg"]


@pytest.mark.parametrize("point", [["--amd", "--cache-ids", "0,8"]], indirect=True)
def test_bandwidth_of_amd(playbook: Playbook, point: Path) -> None:
    playbook.run(
        group(
            playbook,
            point,
            [
                {"name": "half", "mba_percent": 50},
                {"name": "free", "mba_percent": 100},
                {"name": "gb", "mba_mb_per_s": 2000},
            ],
        )
    )
    lines = [(point / name / "schemata").read_text().splitlines()[1] for name in ("half", "free", "gb")]
    assert lines == ["MB:0=80;8=80", "MB:0=2048;8=2048", "MB:0=16;8=16"]


def test_a_host_without_resctrl(playbook: Playbook, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    info = playbook.module("resctrl_info", mount_point=str(nowhere), state_dir=playbook.state)
    mount = playbook.module(
        "resctrl_mount", mount_point=str(nowhere), state_dir=playbook.state, task={"ignore_errors": True}
    )
    found, failed, skipped, absent, unmountable = playbook.run(
        info,
        group(playbook, nowhere, KOORDINATOR, task={"ignore_errors": True}),
        group(playbook, nowhere, KOORDINATOR, on_missing="skip"),
        group(playbook, nowhere, [{"name": "BE", "state": "absent"}]),
        mount,
    )
    assert (found["mounted"], found["supported"]) == (False, False)
    assert found["missing"]
    assert found["missing"][0]["why"] in failed["msg"]
    assert [item["group"] for item in skipped["not_set"]] == ["LSR", "LS", "BE"]
    assert [item["changed"] for item in (skipped, absent)] == [False, False]
    assert "there is no such directory" in unmountable["msg"]
    assert not Path(playbook.state).exists()


def test_mounting_on_the_running_kernel(tmp_path: Path) -> None:
    """With tmpfs, because no machine of the tests has resctrl: mount, persist, undo by the journal."""
    point, fstab = tmp_path / "point", tmp_path / "fstab"
    point.mkdir()
    fstab.write_text("# none\n")
    book = journal.Journal(str(tmp_path / "state/journal.json"))
    places = resctrl_mount.Places(
        fstab=str(fstab), systemd_running=str(tmp_path / "none"), fs_type="tmpfs", source="colocation-testbed-test"
    )
    mounter = resctrl_mount.Mounter(str(point), [], book, "test", places)
    tasks = mounter.mounting(persist=True)
    for task in tasks:
        task.do()
    found = mounts.at(str(point))
    assert found is not None
    assert (found.fs_type, found.source) == ("tmpfs", "colocation-testbed-test")
    assert mounter.mounting(persist=True) == []
    done = book.undo(undo.Undo().handlers())
    assert {item.outcome.result for item in done} == {"undone"}
    assert mounts.at(str(point)) is None
    assert fstab.read_text() == "# none\n"


def test_the_example_of_the_guide_works_as_written(playbook: Playbook, point: Path) -> None:
    text = (ROOT / "docs/resctrl.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"<!-- tested: groups -->\n```yaml\n(.*?)```", text, re.DOTALL)
    (task,) = yaml.safe_load(example)
    options = task["colocation.testbed.resctrl_group"]
    playbook.run(group(playbook, point, options["groups"]))
    (shown,) = re.findall(r"<!-- tested: schemata -->\n```text\n(.*?)```", text, re.DOTALL)
    lines = [f"{name}: {line}" for name in ("LS", "BE") for line in (point / name / "schemata").read_text().split()]
    assert shown.splitlines() == lines

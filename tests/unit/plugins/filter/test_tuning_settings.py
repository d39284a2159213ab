# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles of host tuning, and the list that comes of one and a user's own settings."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.filter.tuning_settings import FilterModule
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import plan, settings
from ansible_collections.colocation.testbed.plugins.plugin_utils import tuning_profiles
from tests.support.fake_host import FakeHost

tuning_settings = FilterModule().filters()["tuning_settings"]
NAMES = tuning_profiles.names(ROOT)


def test_the_default_changes_nothing():
    assert tuning_settings("none", [], "0") == []


def test_own_settings_take_the_place_of_the_profiles():
    own = [{"kind": "thp", "name": "enabled", "value": "never"}, {"kind": "sysctl", "name": "vm.x", "value": 1}]
    found = tuning_settings("latency", own, "")
    assert [item for item in found if item["kind"] == "thp" and item["name"] == "enabled"] == own[:1]
    assert found[-2:] == own
    assert all(item["on_missing"] == "skip" for item in found[:-2])


def test_interrupts_only_with_housekeeping_cpus():
    assert [item["value"] for item in tuning_settings("latency", [], "0-1") if item["kind"] == "irq_affinity"] == [
        "0-1",
        "0-1",
    ]
    assert not [item for item in tuning_settings("latency", [], "") if item["kind"] == "irq_affinity"]


def test_refusals():
    with pytest.raises(AnsibleFilterError, match="host_tuning_profile: 'fast' is not one of latency, none"):
        tuning_settings("fast", [], "")
    with pytest.raises(AnsibleFilterError, match=r"host_tuning_settings\[0\]: 'vm.x=1' is no mapping"):
        tuning_settings("none", ["vm.x=1"], "")


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_applies_and_says_why(tmp_path, name):
    profile = tuning_profiles.load(ROOT, name)
    assert profile.description
    for item in (*profile.settings, *profile.interrupts):
        assert item["why"].endswith(".")
        assert item["source"].startswith("https://")
    given, problems = settings.parse(tuning_settings(name, [], "0"), False, "fail")
    assert problems == []
    rows = plan.plan(given, problems, FakeHost(tmp_path).roots, {}).rows
    assert {row.setting.index for row in rows} == set(range(len(given)))
    assert [row for row in rows if row.state == "missing"] == []

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device of a route, and what shaping needs, from what programs print; nothing is run here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, routes, shaping_facts

ROUTE = '[{"dst":"198.18.0.2","dev":"ct0","prefsrc":"198.18.0.1","flags":[],"uid":0,"cache":[]}]'


def test_the_device_is_that_of_the_route():
    asked = []

    def run(argv):
        asked.append(argv)
        return ROUTE

    assert routes.device_to("198.18.0.2", run) == "ct0"
    assert asked == [["ip", "-j", "route", "get", "198.18.0.2"]]


def test_an_address_of_the_host_itself_is_refused():
    with pytest.raises(routes.RouteError, match="is an address of this host itself"):
        routes.device_to("198.18.0.1", lambda argv: ROUTE.replace("ct0", "lo"))


@given(st.text())
def test_any_other_output_is_refused_with_a_sentence(text):
    with pytest.raises(routes.RouteError, match=r"route to x: ip printed no device"):
        routes.device_to("x", lambda argv: text)


def test_names_are_resolved_and_unknown_ones_refused():
    assert routes.resolve("198.18.0.2") == "198.18.0.2"
    with pytest.raises(routes.RouteError, match=r"route to 'no such name': has no address here"):
        routes.resolve("no such name")


@pytest.mark.parametrize("status", [0, 1])
def test_shaping_is_tried_in_a_namespace_that_goes(tmp_path, status):
    (tmp_path / "filesystems").write_text("nodev\tbpf\n\text4\n")
    layout = cgroup.Layout("hybrid", (cgroup.Hierarchy("/c/cpu", 1, ("cpu",)), cgroup.Hierarchy("/c/2", 2, ())))
    tried = []

    def run(argv, **options):
        tried.append((list(argv), options["input_text"].split()[:2]))
        return commands.Result(tuple(argv), status, "", "")

    found = shaping_facts.collect(layout, run, str(tmp_path))
    assert found == {"bpf_file_system": True, "cgroup2": "/c/2", "clsact": status == 0}
    assert tried == [(["unshare", "--net", "tc", "-batch", "-"], ["qdisc", "add"])]


def test_a_host_without_anything_says_so(tmp_path):
    def missing(argv, **options):
        raise commands.CommandError("tc is not there")

    found = shaping_facts.collect(None, missing, str(tmp_path))
    assert found == {"bpf_file_system": False, "cgroup2": None, "clsact": False}

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd unit, read back with the rules of systemd.syntax(7)."""

from __future__ import annotations

import configparser
import re

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs
from ansible_collections.colocation.testbed.plugins.module_utils.node import unit

WORD = re.compile(r'"((?:[^"\\]|\\.)*)"(?: |\Z)')
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\t": "\t"}


def words(line: str) -> list[str]:
    """Split a quoted command line as systemd does: unescape, then specifiers, then variables."""
    found = []
    while line:
        match = WORD.match(line)
        assert match, line
        text = re.sub(r"\\.", lambda item: UNESCAPED[item[0]], match[1])
        assert "%" not in text.replace("%%", "")
        assert "$" not in text.replace("$$", "")
        found.append(text.replace("%%", "%").replace("$$", "$"))
        line = line[match.end() :]
    return found


def parsed(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str
    parser.read_string(text)
    return parser


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\0", categories=["L", "N", "P", "S"])), min_size=1
    )
)
def test_any_argv_is_read_back_unchanged(argv):
    line = " ".join(unit.quote(word) for word in argv)
    assert words(line) == argv


def test_control_characters_stay_on_the_line():
    assert words(unit.quote("a\nb\tc")) == ["a\nb\tc"]
    assert "\n" not in unit.quote("a\nb")


def test_the_supervisor_is_the_main_process_and_gets_the_stop_signal_alone():
    spec = specs.ProcessSpec("web", ("nginx",), "/s", stop_timeout_s=20)
    text = parsed(unit.render(spec, ["/usr/bin/python3", "-I", "/s/node.pyz", "supervise", "--spec", "/s/a b.json"]))
    service = text["Service"]
    assert words(service["ExecStart"])[-1] == "/s/a b.json"
    assert service["KillMode"] == "mixed"
    assert float(service["TimeoutStopSec"]) > spec.stop_timeout_s
    assert service["Restart"] == "no"
    assert text["Unit"]["CollectMode"] == "inactive-or-failed"


def test_names():
    assert unit.name("nginx") == "colocation-testbed-nginx.service"
    assert unit.name("nginx", "tested") == "colocation-testbed-tested-nginx.service"
    assert unit.path(unit.name("nginx")) == "/run/systemd/system/colocation-testbed-nginx.service"

"""Classes of HTB read from the kernel itself: what tc(8) prints of them, for every kind of class that we make."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import tree
from tools.bandwidth.host import Host
from tools.bandwidth.namespaces import Pair
from tools.bandwidth.program_cost import many_prefixes

READ = """
import json, socket
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import htb_classes
print(json.dumps([tree.shown_of(item) for item in htb_classes.read(socket.if_nametoindex("left"))]))
"""
POOLS = (
    {"name": "link", "total": "1Gbit/s", "waterline": "200Mbit/s", "low": "20Mbit/s", "high": "80Mbit/s"},
    {"name": "link", "total": "1Gbit/s", "shares": "strict"},
    {"name": "link", "total": "1Gbit/s", "shares": "weights"},
    # More than 32 bits of bytes a second.
    {"name": "link"},
)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Pair("htb", ipv6=False) as pair:
        made = Host(pair, tmp_path)
        yield made
        made.clear()


def read_here(pair: Pair) -> set[tree.Shown]:
    environment = {"PYTHONPATH": f"{ROOT / 'collections'}", "PATH": os.environ["PATH"]}
    shown = pair.run([sys.executable, "-c", READ], environment=environment).stdout
    return {tuple(item) for item in json.loads(shown)}


@pytest.mark.parametrize("pool", POOLS)
def test_the_kernels_answer_is_what_tc_prints(host: Host, pool: dict[str, str]) -> None:
    assert read_here(host.pair) == set()
    # More than one answer of the kernel holds.
    classes = tuple(
        {**item, "priority": number % 3, "role": "offline" if number % 2 else "online"}
        for number, item in enumerate(many_prefixes(300))
    )
    host.apply((pool,), classes, (("left", "link", "htb"),))
    printed = tree.parse_classes(host.pair.run(["tc", "-d", "class", "show", "dev", "left"]).stdout)
    assert read_here(host.pair) == printed
    assert len(printed) > len(classes)

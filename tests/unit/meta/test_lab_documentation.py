"""The inventories that docs/lab.md shows for booted hosts are ones that make them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tooling import ROOT, run

from ansible_collections.colocation.testbed.plugins.filter.lab_hosts import lab_hosts
from ansible_collections.colocation.testbed.plugins.module_utils.lab import topology

TEXT = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
LAB_OPTIONS = yaml.safe_load((ROOT / "roles/lab/meta/argument_specs.yml").read_text(encoding="utf-8"))
OPTIONS = LAB_OPTIONS["argument_specs"]["main"]["options"]


@pytest.mark.parametrize(
    ("heading", "driver", "taps"),
    [("## Booted hosts", "uml", ["ct1", "ct2"]), ("### Several CPUs", "qemu", ["ct1"])],
    ids=["uml", "qemu"],
)
def test_the_inventory_shown_makes_guests(tmp_path: Path, heading: str, driver: str, taps: list[str]) -> None:
    shown = TEXT.partition(heading)[2].partition("```yaml\n")[2].partition("```")[0]
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(shown, encoding="utf-8")
    listing = json.loads(run(["ansible-inventory", "-i", inventory, "--list"]))
    variables = listing["_meta"]["hostvars"]
    hosts = lab_hosts(listing["lab"]["hosts"], variables)
    lab = topology.build_for_guests(
        [topology.Host(host["name"], host["address"]) for host in hosts],
        OPTIONS["lab_subnet"]["default"],
        topology.Names(OPTIONS["lab_namespace_prefix"]["default"], OPTIONS["lab_link_prefix"]["default"]),
        OPTIONS["lab_mtu_bytes"]["default"],
    )
    assert [tap.name for tap in lab.taps] == taps
    for name in listing["lab"]["hosts"]:
        own = {key: value for key, value in variables[name].items() if key.startswith("lab_")}
        assert set(own) <= set(OPTIONS)
        assert own["lab_driver"] == driver
        access = f"{OPTIONS['lab_state_dir']['default']}/ssh"
        assert variables[name]["ansible_ssh_common_args"] == f"-F {access}/config -o ControlPath={access}/control/%h"


def test_every_option_for_guests_is_explained_there_or_in_the_readme() -> None:
    readme = (ROOT / "roles/lab/README.md").read_text(encoding="utf-8")
    assert [name for name in OPTIONS if name not in readme + TEXT] == []

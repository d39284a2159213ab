"""The hosts of the lab after converge."""

import json
import os
from pathlib import Path

FACTS = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "facts.json"


def test_address_and_link(node, node_vars):
    links = {link["ifname"]: link for link in json.loads(node.check_output("ip -j addr"))}
    assert set(links) == {"lo", "ct0"}
    assert "UP" in links["lo"]["flags"]
    assert "UP" in links["ct0"]["flags"]
    assert node_vars["ansible_host"] in [address["local"] for address in links["ct0"]["addr_info"]]


def test_every_host_has_cpus_of_its_own(node, node_vars):
    root = f"colocation-testbed-molecule/{node.backend.name}"
    path = next(
        candidate
        for candidate in (f"/sys/fs/cgroup/cpuset/{root}/cpuset.cpus", f"/sys/fs/cgroup/{root}/cpuset.cpus")
        if node.file(candidate).exists
    )
    assert node.file(path).content_string.strip() == node_vars["node_cpus"]


def test_nothing_of_the_lab_is_in_the_network_of_the_machine():
    assert "198.18.66." not in os.popen("ip -br addr").read()

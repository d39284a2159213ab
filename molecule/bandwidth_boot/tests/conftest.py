"""What the tests of this scenario ask of the guest: root qdiscs by device, and the devices in the state file."""

import json

import pytest

STATE = "/var/lib/colocation-testbed/bandwidth-main.json"


@pytest.fixture
def kinds(node):
    """Root qdiscs by device."""
    shown = json.loads(node.check_output("tc -j qdisc show"))
    return {item["dev"]: item["kind"] for item in shown if item.get("root")}


@pytest.fixture
def state(node):
    """The state file."""
    return json.loads(node.file(STATE).content_string)

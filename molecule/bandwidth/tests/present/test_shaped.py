"""On a host with systemd and sch_fq: departure times both ways, classes by control group and annotation, and a unit."""

import json

STATE = "/var/lib/colocation-testbed"
UNIT = "colocation-testbed-bandwidth-main.service"


def kinds(node):
    """Return root qdiscs by device."""
    shown = json.loads(node.check_output("tc -j qdisc show"))
    return {item["dev"]: item["kind"] for item in shown if item.get("root")}


def test_departure_times_hold_both_ways(node):
    devices = json.loads(node.file(f"{STATE}/bandwidth-main.json").content_string)["devices"]
    assert {key: raw["chosen"] for key, raw in devices.items()} == {"vec0/egress": "edt", "vec0/ingress": "edt"}
    intermediate = devices["vec0/ingress"]["intermediate"]
    assert kinds(node) == {**kinds(node), "vec0": "fq", intermediate: "fq"}
    assert not [name for name in kinds(node) if name.startswith("ifb")]


def test_the_connection_that_manages_it_is_counted_both_ways(node):
    classes = json.loads(node.file(f"{STATE}/bandwidth-main.json").content_string)["classes"]
    assert set(classes) == {"management", "arriving", "shop.web:egress"}
    shown = json.loads(node.check_output("tc -s -j qdisc show dev vec0 root"))
    assert shown[0]["packets"] > 0


def test_the_unit_is_there_and_can_be_reloaded(node):
    assert node.check_output(f"systemctl is-enabled {UNIT}") == "enabled"
    assert node.check_output(f"systemctl is-active {UNIT}") == "active"
    assert node.run(f"systemctl reload {UNIT}").rc == 0
    assert node.check_output(f"systemctl show --property=Result --value {UNIT}") == "success"

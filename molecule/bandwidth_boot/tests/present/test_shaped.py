"""On a host with systemd and sch_fq: departure times both ways, classes by control group and annotation, and a unit."""

import json

UNIT = "colocation-testbed-bandwidth-main.service"


def test_departure_times_hold_both_ways(state, kinds):
    devices = state["devices"]
    assert {key: raw["chosen"] for key, raw in devices.items()} == {"vec0/egress": "edt", "vec0/ingress": "edt"}
    assert (kinds["vec0"], kinds[devices["vec0/ingress"]["intermediate"]]) == ("fq", "fq")
    assert not [name for name in kinds if name.startswith("ifb")]


def test_classes_are_those_of_inventory_and_annotation(node, state):
    assert set(state["classes"]) == {"management", "arriving", "shop.web:egress"}
    shown = json.loads(node.check_output("tc -s -j qdisc show dev vec0 root"))
    assert shown[0]["packets"] > 0


def test_the_unit_is_there_and_can_be_reloaded(node):
    assert node.check_output(f"systemctl is-enabled {UNIT}") == "enabled"
    assert node.check_output(f"systemctl is-active {UNIT}") == "active"
    assert node.run(f"systemctl reload {UNIT}").rc == 0
    assert node.check_output(f"systemctl show --property=Result --value {UNIT}") == "success"

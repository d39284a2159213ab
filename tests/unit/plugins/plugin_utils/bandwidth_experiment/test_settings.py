"""Arguments of the bandwidth experiment: what is out of range is said with variable, value, range and reason."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.modules import bandwidth_matrix
from ansible_collections.colocation.testbed.plugins.plugin_utils import documented
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import manifest, settings
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import End, Ends
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import SettingsError

SPEC = documented.argument_spec(bandwidth_matrix.DOCUMENTATION)
GOOD = {name: option.get("default") for name, option in SPEC.items()} | {"tested": ["a"], "load": ["b"]}
HOSTS = {"a": {"kernel": "6.1", "cpu_model": "x", "measured_cpus": "0"}}


def made(**changes: Any) -> settings.BandwidthSettings:
    return settings.from_arguments({**GOOD, **changes})


def test_the_defaults_are_allowed() -> None:
    wanted = made()
    assert (wanted.blocks, wanted.shapers) == (3, ("ebpf", "htb", "tbf", "none"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"window_s": 0}, r"bandwidth_matrix_window_s is 0: allowed are 1 to 3600 \(shorter windows hold too little"),
        ({"blocks": None}, "bandwidth_matrix_blocks is null: give it a value"),
        ({"shapers": []}, "bandwidth_matrix_shapers is empty: name at least one"),
        ({"shapers": ["cake"]}, "bandwidth_matrix_shapers holds 'cake': allowed are ebpf, htb, tbf, none"),
        ({"select": []}, "bandwidth_matrix_select is empty"),
        ({"run_id": "a/b"}, "bandwidth_matrix_run_id is 'a/b': allowed are letters"),
        ({"tested": ["a", "c"]}, "inventory group 'tested' has 2 hosts"),
        ({"port": 80}, "bandwidth_matrix_port is 80: allowed are 1024 to"),
    ],
)
def test_what_is_not_allowed_is_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        made(**changes)


def ends(state_dir: str = "/state") -> Ends:
    node = Node(None, state_dir, "ct", "0", "1", "/usr/bin/python3", "supervised")  # type: ignore[arg-type]
    return Ends(End(node, "192.0.2.1"), End(node, "192.0.2.2"))


def test_a_run_is_the_same_by_what_it_measures_and_not_by_where_it_is_kept() -> None:
    mark = manifest.fingerprint(made(), {"s": 1}, HOSTS, ends())
    elsewhere = made(results_dir="elsewhere", run_id="x", resume=False)
    assert manifest.fingerprint(elsewhere, {"s": 1}, HOSTS, ends()) == mark
    assert manifest.fingerprint(made(window_s=9), {"s": 1}, HOSTS, ends()) != mark
    assert manifest.fingerprint(made(), {"s": 2}, HOSTS, ends()) != mark
    assert manifest.fingerprint(made(), {"s": 1}, HOSTS, ends("/other")) != mark


def test_objectives_are_those_of_the_plane() -> None:
    raw = {"accuracy_pct_min": {"edt": 99.5, "htb": 98}, "apply_ms_max": 50, "cpu_ratio_htb_max": {"edt": 1}}
    assert manifest.objectives(raw, "htb") == {"accuracy_pct_min": 98.0, "apply_ms_max": 50.0}
    assert manifest.objectives(raw, "police") == {"apply_ms_max": 50.0}


def test_planes_are_those_of_the_directions_that_are_used() -> None:
    def scenarios(direction: str) -> dict[str, Any]:
        return {"s": {"cases": {"c": {"classes": {"k": {"direction": direction}}}}}}

    assert manifest.used_planes(scenarios("egress"), {"egress": "edt", "ingress": "police"}) == {"egress": "edt"}
    assert manifest.used_planes(scenarios("ingress"), {}) == {"ingress": "htb"}

"""What the user may ask of the matrix, and the sentence for everything else."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import settings

GOOD = {
    "tested": ["t"],
    "load": ["l"],
    "substrate": "process",
    "modes": ["baseline", "slo_aware"],
    "load_points": [0.25, 0.5],
    "aggressors": ["ffmpeg"],
    "blocks": 3,
    "window_s": 10,
    "warmup_s": 2,
    "repeat_cap": 3,
    "seed": 0,
    "load_kind": "open_loop",
    "load_threads": 1,
    "load_connections": 40,
    "peak_rps": 0,
    "peak_window_s": 4,
    "hold_pm_qos": True,
    "limits": {"steal": 0.5},
    "results_dir": "results",
    "run_id": "",
    "resume": True,
}


def test_good_arguments_become_settings():
    made = settings.from_arguments(GOOD)
    assert made.tested == "t"
    assert made.load_points == (0.25, 0.5)
    assert made.limits == {"steal": 0.5}
    assert made.results_dir.endswith("/results")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("tested", [], ["'tested'", "0 hosts", "exactly one"]),
        ("load", ["a", "b"], ["'load'", "2 hosts", "a, b"]),
        ("blocks", -1, ["matrix_blocks is -1", "0 to 1000"]),
        ("window_s", 1, ["matrix_window_s is 1", "2 to 3600"]),
        ("load_points", [0.5, 1.0], ["matrix_load_points", "1.0", "below 1"]),
        ("load_points", [], ["matrix_load_points is empty"]),
        ("modes", [], ["matrix_modes is empty"]),
        ("modes", ["a", "a"], ["matrix_modes", "twice"]),
        ("load_connections", 0, ["matrix_load_connections is 0", "1 to 65535"]),
        ("limits", {"steal": "high"}, ["matrix_limits.steal", "'high'", "number"]),
        ("limits", {"steal": True}, ["matrix_limits.steal", "True"]),
        ("load_points", [0.5, "a"], ["matrix_load_points", "'a'", "above 0"]),
        ("modes", None, ["matrix_modes is null", "default"]),
        ("run_id", "../up", ["matrix_run_id", "'../up'", "letters"]),
    ],
)
def test_bad_arguments_get_one_sentence(name, value, words):
    with pytest.raises(settings.SettingsError) as caught:
        settings.from_arguments({**GOOD, name: value})
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text


def test_all_problems_are_told_at_once():
    with pytest.raises(settings.SettingsError) as caught:
        settings.from_arguments({**GOOD, "blocks": -1, "seed": -1, "load_points": [1.5, "a", -1]})
    assert len(caught.value.problems) == 5


@pytest.mark.parametrize("connections", [2, 42])
def test_every_thread_gets_as_many_connections(connections):
    words = f"load_connections is {connections}, which matrix_load_threads 4 does not divide"
    with pytest.raises(settings.SettingsError, match=words):
        settings.from_arguments({**GOOD, "load_threads": 4, "load_connections": connections})

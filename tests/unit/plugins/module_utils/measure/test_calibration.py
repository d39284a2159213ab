"""The judge judged: noise must not be found, a known slowdown must."""

from __future__ import annotations

import math
import random

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import calibration


def mode(name, shift_pct, scatter=0.01, blocks=20, slowdown_pct=0.0, seed=1):
    source = random.Random(f"{name}{seed}")
    ratios = tuple(source.gauss(math.log1p(shift_pct / 100), scatter) for _ in range(blocks))
    return calibration.Mode(name, slowdown_pct, dict.fromkeys(calibration.METRICS, ratios))


@pytest.fixture(scope="module")
def result():
    modes = [
        mode("baseline_again", 0.0),
        mode("slow_5", 5.0, slowdown_pct=5.0),
        mode("slow_20", 20.0, slowdown_pct=20.0),
    ]
    return calibration.calibrate(modes, 20)


def test_noise_is_found_no_more_often_than_the_level_says(result):
    rates = [entry["found_pct"] for item in result["aa"] for entry in item["permuted"]]
    assert len(rates) == 3 * 4
    assert sum(rates) / len(rates) <= result["tolerated_pct"] < 8
    assert result["trusted"] is True


def test_known_slowdowns_are_found_with_their_size(result):
    found = {item["mode"]: item for item in result["slowdowns"] if item["metric"] == "p99_us"}
    for name, size in (("slow_5", 5.0), ("slow_20", 20.0)):
        assert found[name]["found"]
        assert found[name]["change_pct"]["low"] < size < found[name]["change_pct"]["high"]
        assert found[name]["subsets"][-1] == {"blocks": 20, "found_pct": 100.0}


def test_detectable_effect_is_given_for_each_number_of_blocks(result):
    for by_blocks in result["detectable_pct"].values():
        assert list(by_blocks) == ["3", "5", "10", "20"]
        assert list(by_blocks.values()) == sorted(by_blocks.values(), reverse=True)


def test_sentences_say_what_was_found(result):
    text = " ".join(result["sentences"])
    assert "A service slowed by 5 % was found in P50" in text
    assert "The smallest change of P99 that is found four times of five here: 3 blocks" in text


def test_a_bias_between_the_two_names_is_found():
    """The second of two equal modes is 3 % slower, always: exchanging labels cannot show it, the comparison does."""
    found = calibration.calibrate([mode("baseline_again", 3.0)], 20)
    assert all(item["found"] for item in found["aa"])
    assert "differed in baseline_again in P50" in found["sentences"][1]


def test_a_slowdown_that_is_not_found_costs_the_trust():
    noisy = [mode("baseline_again", 0.0, scatter=0.5), mode("slow_20", 20.0, scatter=0.5, blocks=10, slowdown_pct=20.0)]
    found = calibration.calibrate(noisy, 10)
    assert found["trusted"] is False
    assert any("20 % was not found" in sentence for sentence in found["sentences"])


def test_what_is_lacking_is_named():
    with pytest.raises(calibration.CalibrationError, match="baseline_again"):
        calibration.calibrate([mode("slow_5", 5.0, slowdown_pct=5.0)], 20)
    with pytest.raises(calibration.CalibrationError, match="2 pairs"):
        calibration.calibrate([mode("baseline_again", 0.0, blocks=2)], 2)


def test_few_pairs_cannot_tell():
    found = calibration.calibrate([mode("baseline_again", 0.0, blocks=5)], 5)
    assert found["trusted"] is None
    assert "measure more blocks" in found["sentences"][0]

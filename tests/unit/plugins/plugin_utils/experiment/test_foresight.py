"""What is said of a run before it begins."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import foresight


def test_the_assumption_comes_before_the_forecast(tmp_path):
    found = foresight.detectable(str(tmp_path), {}, 6)
    text = foresight.sentence(6, found)
    assert text.startswith("forecast: if baselines repeat within 1.5 % here (no earlier run tells), 6 blocks can find")
    assert text.endswith("; the report says what this run could find")


@pytest.mark.parametrize("spread", [0.004, 0.02, 0.3])
def test_the_spread_of_an_earlier_run_is_told(spread):
    values = {name: statistics.detectable_pct(spread * 2**0.5, 6) for name in foresight.METRICS}
    text = foresight.sentence(6, {**values, "from": "20261201T000000Z"})
    shown = f"{100 * spread:.1f} %"
    assert f"as in run 20261201T000000Z (within {shown} at P90 and {shown} at P99), 6 blocks" in text


@pytest.mark.parametrize("blocks", [1, 2])
def test_too_few_blocks_are_told(tmp_path, blocks):
    assert "a verdict needs at least 3" in foresight.sentence(blocks, foresight.detectable(str(tmp_path), {}, blocks))

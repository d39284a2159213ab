from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import plots, svg
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval, Mode
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import CLASSES, CpuSeries

MODES = [Mode(f"mode{i}", i, i == 0, "", "none", "") for i in range(9)]
TAILS = plots.tail_grid(5000)


def distribution(name="one", title="A title", factor=1.0):
    curves = [
        plots.Curve(mode, (1 + mode.colour) * factor / TAILS**0.3, 0.9 / TAILS**0.3, 20 / TAILS**0.3) for mode in MODES
    ]
    return plots.latency_distribution(curves, TAILS, title, name, narrow=False)


def pairing():
    panel = plots.Pairs("P99", (1, 2, 4), (1.0, -2.0, 3.5), Interval(0.8, -0.4, 2.0), 5.0)
    return plots.paired_changes([panel, panel], MODES[2], "Pairs", "pairs")


def cpu():
    share = {name: np.full(4, 20.0) for name in CLASSES}
    series = CpuSeries(np.arange(5.0), share, np.array([1.0, 2.0, 3.0, 2.0]))
    return plots.cpu_classes(series, (0.0, 4.0), 5.0, "CPU", "cpu")


@pytest.mark.parametrize("draw", [distribution, pairing, cpu])
def test_figure_follows_the_theme_and_is_the_same_twice(draw):
    drawn = draw()
    assert drawn == draw()
    root = ElementTree.fromstring(drawn.replace("&nbsp;", " "))
    assert root.attrib["role"] == "img"
    assert root.find("title").text == root.attrib["aria-label"]
    colours = set(re.findall(r"#[0-9a-fA-F]{6}\b|rgb\([^)]*\)", drawn))
    assert colours == set(), "every colour is a variable of the page"
    assert "var(--" in drawn
    assert "font-family" not in drawn
    assert "<text" in drawn
    assert "20" not in re.findall(r"<dc:date>([^<]*)", drawn)


def test_user_settings_of_matplotlib_do_not_reach_the_figure():
    before = distribution()
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert distribution() == before


def test_ids_of_two_figures_do_not_meet():
    ids = [set(re.findall(r' id="([^"]+)"', distribution(name))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]
    drawn = distribution("one")
    assert set(re.findall(r"url\(#([^)]+)\)", drawn)) <= ids[0]


def test_title_is_escaped():
    assert "<script>" not in distribution(title="<script>alert(1)</script>")


def test_latency_axis_is_logarithmic_only_where_it_must_be():
    def ticks(most):
        curve = plots.Curve(
            MODES[0], np.linspace(1.0, most, len(TAILS)), np.ones(len(TAILS)), np.full(len(TAILS), most)
        )
        return re.findall(
            r"<text[^>]*>([\d.,\u202f]+)</text>", plots.latency_distribution([curve], TAILS, "t", "n", True)
        )

    assert {"5", "10"} <= set(ticks(100.0))
    assert "0" in ticks(10.0)


def test_every_place_has_its_line_style_and_colour():
    assert len({(svg.mode_colour(mode.colour), str(svg.mode_dash(mode.colour))) for mode in MODES[:8]}) == 8
    assert svg.mode_colour(8) == svg.mode_colour(0)

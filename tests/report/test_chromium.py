"""The report as people see it: in a browser, on a phone and a desk, dark and light, without a network."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import build, digest
from tests.report import browser as chromium
from tests.support import synthetic_bandwidth_run
from tests.support.synthetic_pods import POD_MODES
from tests.support.synthetic_readings import THREE_MODES, Behaviour, Options
from tests.support.synthetic_run import make_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(chromium.missing() is not None, reason=str(chromium.missing()))

SIZES = {"phone": (360, 740), "desk": (1280, 900)}
RUNS = {
    "plain": Options(run_id="plain", blocks=3, window_s=3.0, steal=(("slo_aware", 2),)),
    "harsh": Options(
        run_id="harsh",
        blocks=4,
        window_s=3.0,
        noise=0.2,
        modes={**THREE_MODES, "colocation": Behaviour(latency_factor=60.0)},
    ),
    "pods": Options(run_id="pods", blocks=3, window_s=3.0, pods=True, modes=POD_MODES),
    "invalid": Options(run_id="invalid", blocks=3, window_s=3.0, pm_qos_held=False),
    "grid": Options(
        run_id="grid",
        blocks=3,
        window_s=2.0,
        load_points=(0.25, 0.5, 0.75),
        aggressors=("ffmpeg", "a-batch-workload-with-a-long-name"),
        modes={**THREE_MODES, "a_mode_with.a-very-long-name_that-somebody-made-up": Behaviour(latency_factor=1.3)},
    ),
}
BANDWIDTH_RUNS = {
    "bandwidth": synthetic_bandwidth_run.Options(run_id="bandwidth"),
    "bandwidth_invalid": synthetic_bandwidth_run.Options(
        run_id="bandwidth_invalid", faults={("class_count", "ebpf", block): "receiver_busy" for block in (1, 2, 3)}
    ),
}
PAGES = list(itertools.product([*RUNS, *BANDWIDTH_RUNS], SIZES, ("light", "dark")))
CONTRAST = """
const seen = [];
const luminance = (rgb) => {
  const part = rgb.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
};
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const paint = (colours) => {
  canvas.clearRect(0, 0, 1, 1);
  colours.forEach((colour) => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); });
  return Array.from(canvas.getImageData(0, 0, 1, 1).data.slice(0, 3));
};
document.querySelectorAll(arguments[0]).forEach((element) => {
  if (!element.offsetParent || !element.textContent.trim()) return;
  const behind = [];
  for (let at = element; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
  const under = paint(behind);
  const ink = paint([...behind, getComputedStyle(element).color]);
  const [high, low] = [luminance(ink), luminance(under)].sort((a, b) => b - a);
  seen.push([(high + 0.05) / (low + 0.05), element.className + ": " + element.textContent.trim().slice(0, 30)]);
});
return seen;
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "MOST_CARDS_FOR_MODE", 2)
        for name, options in RUNS.items():
            run = make_run(tmp_path_factory.mktemp("results") / name, options)
            build.write(build.build(run.path))
            made[name] = run.path / "report.html"
    for name, asked in BANDWIDTH_RUNS.items():
        folder = tmp_path_factory.mktemp("results") / name
        build.write(build.build(synthetic_bandwidth_run.make_bandwidth_run(folder, asked).path))
        made[name] = folder / "report.html"
    return made


@pytest.fixture(scope="module")
def page() -> Iterator[chromium.Browser]:
    with chromium.Browser() as browser:
        yield browser


@pytest.mark.parametrize("name", RUNS)
def test_the_table_of_modes_fits_a_desk(page, reports, name):
    page.resize(*SIZES["desk"])
    page.open(reports[name], "light")
    of_modes = "Array.from(document.querySelectorAll('.scroll')).filter((part) => part.querySelector('.modes'))"
    widths = page.run(
        f"return {of_modes}.filter((part) => part.offsetParent).map((p) => [p.scrollWidth, p.clientWidth])"
    )
    assert widths
    assert all(needed <= there for needed, there in widths)


@pytest.mark.parametrize(
    ("name", "size", "theme"), list(itertools.product([*RUNS, *BANDWIDTH_RUNS], SIZES, ("light", "dark")))
)
def test_page_opens_clean_and_never_scrolls_sideways(page, reports, tmp_path, name, size, theme):
    page.resize(*SIZES[size])
    page.open(reports[name], theme)
    assert page.console() == []
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    wide = "return [document.documentElement.scrollWidth, innerWidth]"
    scroll, inner = page.run(wide)
    assert inner == SIZES[size][0]
    assert scroll <= inner
    page.run("document.querySelectorAll('details').forEach((part) => { part.open = true; });")
    scroll, inner = page.run(wide)
    assert scroll <= inner, "unfolded parts scroll within themselves"
    background = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) < 200) == (theme == "dark")
    page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000


@pytest.mark.parametrize(("name", "size"), list(itertools.product(("plain", "bandwidth"), SIZES)))
def test_text_of_figures_can_be_read(page, reports, name, size):
    page.resize(*SIZES[size])
    page.open(reports[name])
    heights = page.run(
        "return Array.from(document.querySelectorAll('svg.plot text')).filter((t) => t.getBoundingClientRect().width)"
        ".map((t) => [parseFloat(getComputedStyle(t).fontSize), t.getScreenCTM()])"
        ".map(([size, matrix]) => size * Math.hypot(matrix.c, matrix.d));"
    )
    assert heights
    assert min(heights) >= 7.5


@pytest.mark.parametrize(("name", "theme"), list(itertools.product(("grid", "bandwidth"), ("light", "dark"))))
def test_text_has_contrast(page, reports, name, theme):
    page.resize(*SIZES["desk"])
    page.open(reports[name], theme)
    seen = page.run(CONTRAST, "p, h1, h2, h3, th, td, dd, dt, li, .chip, .interval, .description, summary, option")
    poor = [entry for entry in seen if entry[0] < 4.5]
    assert len(seen) > 100
    assert poor == []


def test_theme_is_switched_and_kept(page, reports):
    page.resize(*SIZES["desk"])
    page.open(reports["plain"], "light")
    read = "return getComputedStyle(document.body).backgroundColor"
    before = page.run(read)
    page.run("document.getElementById('theme').click()")
    after = page.run(read)
    assert after != before
    page.open(reports["plain"], "light")
    assert page.run(read) == after
    page.run("document.getElementById('theme').click(); localStorage.clear();")
    assert page.run(read) == before


def test_chooser_shows_one_condition_at_a_time(page, reports):
    page.resize(*SIZES["desk"])
    page.open(reports["grid"])
    shown = (
        "return Array.from(new Set(Array.from(document.querySelectorAll('[data-condition]'))"
        ".filter((part) => part.offsetParent).map((part) => part.dataset.condition)));"
    )
    assert len(page.run(shown)) == 1
    page.run(
        "const chooser = document.getElementById('condition-chooser'); chooser.value = 'c4';"
        "chooser.dispatchEvent(new Event('change'));"
    )
    assert page.run(shown) == ["c4"]


def test_measurement_chooser_shows_one_chart_a_card(page, reports):
    page.resize(*SIZES["desk"])
    page.open(reports["plain"])
    count = (
        "return Array.from(document.querySelectorAll('.card.cpu')).map((card) => "
        "Array.from(card.querySelectorAll('.chart')).filter((chart) => chart.offsetParent).length);"
    )
    assert page.run(count) == [1, 1, 1]
    page.run(
        "const chooser = document.querySelectorAll('.chart-chooser')[2]; chooser.selectedIndex = 1;"
        "chooser.dispatchEvent(new Event('change'));"
    )
    assert page.run(count) == [1, 1, 1]
    assert page.run("return document.querySelectorAll('.card.cpu')[2].querySelectorAll('.chart')[0].hidden")


def test_everything_is_there_without_scripts(page, reports):
    page.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(reports["grid"])
        hidden = page.run("return document.querySelectorAll('[data-condition][hidden], [data-chart][hidden]').length")
        assert hidden == 0
    finally:
        page.cdp("Emulation.setScriptExecutionDisabled", value=False)

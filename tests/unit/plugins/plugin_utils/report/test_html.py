from __future__ import annotations

import re

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import html, page
from tests.support.strict_page import Page

from .conftest import KINDS, LONG


@pytest.fixture(scope="session")
def page_of(run_of, summary_of):
    made = {}

    def render(kind):
        if kind not in made:
            made[kind] = html.render(run_of(kind), summary_of(kind))
        return made[kind]

    return render


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_page_is_whole_and_needs_no_network(page_of, summary_of, kind):
    page = Page(page_of(kind))
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith(("#", "data:,")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert "url(http" not in page_of(kind)
    assert not any(key.startswith("on") for key, _ in page.attributes)
    assert "{{" not in page_of(kind)
    words = " ".join(page.words.split())
    assert " ".join(summary_of(kind)["verdict"]["sentence"].split()) in words
    for reason in summary_of(kind)["verdict"]["reasons"]:
        assert " ".join(reason.split()) in words
    for section in ("guards", "failed", "hosts", "versions", "repeat"):
        assert section in page.ids
    assert not re.search(r"\b(nan|None|inf)\b", page.words)


def test_page_is_a_pure_function_of_the_run(run_of, summary_of, page_of):
    assert html.render(run_of("good"), summary_of("good")) == page_of("good")


def test_names_of_users_stay_text(page_of):
    page = page_of("grid")
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt; &amp; &quot;quoted&quot;" in page
    assert LONG in page


def test_only_a_grid_has_a_chooser_and_a_heat_map(page_of):
    assert 'id="condition-chooser"' in page_of("grid")
    assert 'class="heat"' in page_of("grid")
    assert 'id="condition-chooser"' not in page_of("good")
    assert 'class="heat"' not in page_of("good")


def test_figures_stand_in_the_page_with_their_numbers(page_of):
    page = page_of("good")
    assert page.count('class="plot wide"') == page.count('class="plot narrow"') == 1
    assert page.count("<caption>Change against the block&#x27;s baseline") == 2
    assert page.count('class="card cpu"') == 3
    assert "The same in numbers" in page


def test_invalid_run_is_greyed_and_says_why(page_of):
    assert '<body class="invalid">' in page_of("invalid")
    assert "A guard tripped" in page_of("invalid")
    assert '<body class="valid">' in page_of("good")


def test_pods_that_were_not_injected_are_the_first_words_of_the_page(page_of):
    page = page_of("not_injected")
    assert "<h1>invalid: pods not injected: batch lacks label koordinator.sh/qosClass=BE" in page
    assert '<body class="invalid">' in page


def test_the_quota_is_drawn_once_for_each_mode_that_has_one(page_of, summary_of):
    page = page_of("pods")
    assert page.count('class="card quota"') == 1
    assert page.count("quota of best effort and CPU use of the service in CPUs") == 2, "label and title of one drawing"
    for item in summary_of("pods")["best_effort"]:
        assert item["sentence"] in page
    assert page.count('<td data-label="when">before the load</td>') == 4
    assert page.count('<td data-label="when">window</td>') == 3
    assert 'id="best-effort"' not in page_of("good")


def test_setup_says_what_the_workloads_ran_on_and_what_a_shared_machine_means(page_of):
    shared, apart = page_of("pods"), page_of("apart")
    for text in ("v1.34.2", "containerd 2.1.6", "tested-node", "1.8.0, installed from its own manifests", "cgroupfs"):
        assert text in shared
    assert "Load generator and control plane ran on the tested machine: what they used" in shared
    assert "not those of a cluster whose load comes from elsewhere" in shared
    assert "Load generator and control plane ran on other machines" in apart
    assert "ran on the tested machine" not in apart
    assert "process: host processes in control groups of our own" in page_of("good")


def test_a_run_of_pods_stands_beside_the_published_one(page_of):
    page = page_of("pods")
    assert page.count("published, other hardware") == 3
    for figure in ("29.6", "65.1", "64.8", "+7.7", "+2.8", "+16.0", "+3.2"):
        assert figure in page


def test_partial_run_says_so(page_of):
    assert "Partial run." in page_of("partial")
    assert "Partial run." not in page_of("good")


def test_nothing_measured_shows_no_invented_numbers(page_of):
    page = page_of("empty")
    assert "Inconclusive" in page or "Invalid" in page
    assert 'class="big figure">\u2013<' in page or 'class="tiles"' not in page


def test_lost_cells_are_dashes_and_their_measurements_listed(page_of, summary_of):
    page = page_of("lost")
    lost = next(cell for cell in summary_of("lost")["cells"] if cell["mode"] == "slo_aware")
    assert lost["kept"] == 0
    assert "0 used" in page
    assert f"{lost['measured']} of " in page


def test_published_rows_are_marked(page_of):
    page = page_of("good")
    assert page.count("published, other hardware") == 3
    for figure in ("29.6", "65.1", "64.8", "+7.7", "+2.8", "+16.0", "+3.2"):
        assert figure in page


def test_calibration_replaces_the_tiles(page_of, summary_of):
    page = page_of("calibration")
    assert 'id="calibration"' in page
    assert 'class="tiles"' not in page
    for sentence in summary_of("calibration")["calibration"]["sentences"]:
        assert sentence.split(";")[0][:40] in page


def test_missing_template_is_one_sentence(run_of, summary_of, monkeypatch, tmp_path):
    monkeypatch.setattr(page, "TEMPLATES", tmp_path)
    with pytest.raises(page.ReportError, match=r"style\.css: the report's template cannot be read"):
        html.render(run_of("good"), summary_of("good"))

"""The page of a bandwidth run: strict markup, every section, the same bytes again, nothing unescaped."""

from __future__ import annotations

import copy
import re

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import html, names, view
from tests.support.strict_page import Page

from .conftest import KINDS

DRAWN = ("good", "busy", "partial", "empty", "silent", "flapping")


@pytest.fixture(scope="session")
def page_of(run_of, view_of):
    made = {}

    def make(kind):
        if kind not in made:
            made[kind] = html.render(run_of(kind), view_of(kind))
        return made[kind]

    return make


@pytest.mark.parametrize("kind", DRAWN)
def test_markup_is_strict(kind, page_of):
    assert kind in KINDS
    parsed = Page(page_of(kind))
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)


def test_the_page_has_every_section(page_of):
    ids = re.findall(r'<section id="(\w+)"', page_of("good"))
    assert ids == [
        "rates", "settling", "objectives", "count", "cost", "latency", "scenarios", "guards", "failed", "published",
        "shaping", "hosts", "settings", "versions", "repeat",
    ]  # fmt: skip


def test_the_page_is_the_same_again(page_of, run_of, view_of):
    assert html.render(run_of("good"), view_of("good")) == page_of("good")


def test_the_page_needs_no_network(page_of):
    text = page_of("good")
    assert "default-src 'none'" in text
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)


def test_impossible_figures_are_marked_with_the_reason(page_of):
    text = page_of("good")
    assert text.count("<span>impossible</span>") == 3
    assert "at most 941.5 Mbit/s of TCP payload" in text


def test_published_rows_stand_beside_this_runs(page_of):
    text = page_of("good")
    row = re.search(r"<tr><th scope=\"row\">200 pods</th>.*?</tr>", text).group()
    assert "98.8" in row
    assert re.search(r'class="figure">99\.9\d', row)


def test_what_is_no_evidence_is_marked(page_of):
    text = page_of("busy")
    assert "no evidence" in text
    assert '<body class="invalid">' in text


def test_a_run_without_measurements_has_a_page(page_of):
    text = page_of("empty")
    assert "cut short" in text
    assert 'id="rates"' not in text
    assert 'class="tiles"' not in text


def test_names_are_escaped(run_of, summary_of):
    run = run_of("single")
    manifest = copy.deepcopy(run.manifest)
    manifest["scenarios"]["single_priority"]["title"] = "<img src=x onerror=alert(1)>"
    text = html.render(run, view.build(summary_of("single"), manifest))
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text


def test_classes_say_what_packets_they_have(page_of):
    assert ">TCP, IPv4<" in page_of("good")
    assert names.traffic("udp", "ipv6") == "UDP, IPv6"

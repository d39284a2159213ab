"""The service's pages and what a slow one weighs."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.filter.service_pages import (
    FilterModule,
    service_pages,
    slower_size,
)


def test_pages_and_urls():
    pages = FilterModule().filters()["service_pages"](72_000, [5, "20"], 7)
    assert pages == {
        "files": [
            {"path": "html/index.html", "text_bytes": 72_000, "text_seed": 7},
            {"path": "html/slow-5", "text_bytes": 76_450, "text_seed": 7},
            {"path": "html/slow-20", "text_bytes": 89_800, "text_seed": 7},
        ],
        "slow_urls": {"5": "/slow-5", "20": "/slow-20"},
    }


@pytest.mark.parametrize(
    ("page_bytes", "slow", "message"),
    [
        (10, [], "latency_service_page_bytes: 10 is not a whole number from 1000 to 100000000"),
        ("83k", [], "latency_service_page_bytes: '83k'"),
        (1e5, [], "latency_service_page_bytes: 100000.0"),
        (72_000, [0], "latency_service_slow_pages_pct: 0 is not a whole number from 1 to 1000"),
        (72_000, [2.5], "latency_service_slow_pages_pct: 2.5"),
    ],
)
def test_refuses_with_a_sentence(page_bytes, slow, message):
    with pytest.raises(AnsibleFilterError) as caught:
        service_pages(page_bytes, slow, 1)
    assert message in str(caught.value)


def cost(size_bytes):
    return size_bytes + 12_500 + 4_500 * max(0, size_bytes // 32_768 - 1)


@given(st.integers(1_000, 1_000_000), st.integers(1, 300))
def test_a_slow_page_costs_what_it_should_or_less_by_one_move_of_the_window(size_bytes, pct):
    wanted = cost(size_bytes) * (1 + pct / 100)
    found = slower_size(size_bytes, pct)
    assert wanted - 4_501 <= cost(found) <= wanted + 1
    assert found > size_bytes or wanted - cost(size_bytes) < 4_501


def test_a_cost_that_cannot_be_had_ends_before_the_move():
    assert slower_size(80_000, 20) == 98_303

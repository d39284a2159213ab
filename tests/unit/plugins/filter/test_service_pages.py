"""The service's pages and what a slow one weighs."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.filter.service_pages import FilterModule, service_pages


def test_pages_and_urls():
    pages = FilterModule().filters()["service_pages"](83_000, [5, "20"], 7)
    assert pages == {
        "files": [
            {"path": "html/index.html", "text_bytes": 83_000, "text_seed": 7},
            {"path": "html/slow-5", "text_bytes": 87_650, "text_seed": 7},
            {"path": "html/slow-20", "text_bytes": 101_600, "text_seed": 7},
        ],
        "slow_urls": {"5": "/slow-5", "20": "/slow-20"},
    }


@pytest.mark.parametrize(
    ("page_bytes", "slow", "message"),
    [
        (10, [], "latency_service_page_bytes: 10 is not a whole number from 1000 to 100000000"),
        ("83k", [], "latency_service_page_bytes: '83k'"),
        (1e5, [], "latency_service_page_bytes: 100000.0"),
        (83_000, [0], "latency_service_slow_pages_pct: 0 is not a whole number from 1 to 1000"),
        (83_000, [2.5], "latency_service_slow_pages_pct: 2.5"),
    ],
)
def test_refuses_with_a_sentence(page_bytes, slow, message):
    with pytest.raises(AnsibleFilterError) as caught:
        service_pages(page_bytes, slow, 1)
    assert message in str(caught.value)

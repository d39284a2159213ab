# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: service_pages
short_description: Say which pages the latency service needs
version_added: 0.1.0
description:
  - Returns the page of a given size, and for each slowdown one that costs so many percent more CPU time a request.
  - A slow page is a longer text of the same kind. As a request also costs what does not depend on the page, the text
    grows by somewhat more than the percentage.
positional: _input, slow_pages_pct, seed
options:
  _input:
    description: Size of the page in bytes.
    type: int
    required: true
  slow_pages_pct:
    description: Slowdowns in percent, from 1 to 1000.
    type: list
    elements: int
    required: true
  seed:
    description: Seed of the text.
    type: int
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show the pages
  ansible.builtin.debug:
    msg: "{{ 83000 | colocation.testbed.service_pages([5, 20], 1) }}"
"""

RETURN = r"""
_value:
  description: C(files) for M(colocation.testbed.file_tree), and C(slow_urls), the path of each slow page by percentage.
  type: dict
  sample:
    files:
      - {path: html/index.html, text_bytes: 83000, text_seed: 1}
      - {path: html/slow-5, text_bytes: 87650, text_seed: 1}
    slow_urls: {"5": /slow-5}
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What a request costs beside compression (parsing, headers, system calls), as the size of text that costs the same to
# compress at level 4. Measured; see docs/workloads.md.
FIXED_COST_BYTES = 10_000
SLOWDOWN_RANGE_PCT = (1, 1000)
PAGE_RANGE_BYTES = (1_000, 100_000_000)


def service_pages(page_bytes: int, slow_pages_pct: Sequence[int], seed: int) -> dict[str, Any]:
    """Return files and URLs of the service's pages. Raises AnsibleFilterError for sizes that cannot be."""
    size = _whole(page_bytes, "latency_service_page_bytes", PAGE_RANGE_BYTES)
    files = [{"path": "html/index.html", "text_bytes": size, "text_seed": int(seed)}]
    urls = {}
    for written in slow_pages_pct:
        pct = _whole(written, "latency_service_slow_pages_pct", SLOWDOWN_RANGE_PCT)
        slow = size + round((size + FIXED_COST_BYTES) * pct / 100)
        files.append({"path": f"html/slow-{pct}", "text_bytes": slow, "text_seed": int(seed)})
        urls[str(pct)] = f"/slow-{pct}"
    return {"files": files, "slow_urls": urls}


def _whole(value: Any, name: str, allowed: tuple[int, int]) -> int:
    written = str(value)
    number = int(written) if written.isascii() and written.isdigit() else -1
    if not allowed[0] <= number <= allowed[1]:
        raise AnsibleFilterError(
            f"{name}: {value!r} is not a whole number from {allowed[0]} to {allowed[1]}; correct it"
        )
    return number


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"service_pages": service_pages}

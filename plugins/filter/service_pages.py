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
  - A slow page is a longer text of the same kind. Its size follows from a model of what a request costs, which was
    measured at compression level 4. The playbook calibrate measures what it really costs.
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
    msg: "{{ 72000 | colocation.testbed.service_pages([5, 20], 1) }}"
"""

RETURN = r"""
_value:
  description: C(files) for M(colocation.testbed.file_tree), and C(slow_urls), the path of each slow page by percentage.
  type: dict
  sample:
    files:
      - {path: html/index.html, text_bytes: 72000, text_seed: 1}
      - {path: html/slow-5, text_bytes: 76450, text_seed: 1}
    slow_urls: {"5": /slow-5}
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils import ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What a request costs beside compressing its text (parsing, headers, system calls), and what zlib costs each time that
# its window is moved (every 32 KiB after the first two), both as the size of text that costs the same to compress.
# Measured at level 4, see docs/workloads.md.
REQUEST_COST_BYTES = 12_500
MOVE_COST_BYTES = 4_500
WINDOW_BYTES = 32_768


def service_pages(page_bytes: int, slow_pages_pct: Sequence[int], seed: int) -> dict[str, Any]:
    """Return files and URLs of the service's pages. Raises AnsibleFilterError for sizes that cannot be."""
    size = _whole(page_bytes, "latency_service_page_bytes", ranges.PAGE_BYTES)
    files = [{"path": "html/index.html", "text_bytes": size, "text_seed": int(seed)}]
    urls = {}
    for written in slow_pages_pct:
        pct = _whole(written, "latency_service_slow_pages_pct", ranges.SLOWDOWN_PCT)
        slow = {"path": f"html/slow-{pct}", "text_bytes": slower_size(size, pct), "text_seed": int(seed)}
        files.append(slow)
        urls[str(pct)] = f"/slow-{pct}"
    return {"files": files, "slow_urls": urls}


def slower_size(size_bytes: int, slowdown_pct: int) -> int:
    """Return the size of a page whose requests cost so many percent more than those of a page of ``size_bytes``.

    A cost between those of the last size before a move of the window and of the first one after it cannot be had: the
    page then ends before the move and costs somewhat less.
    """
    budget = (size_bytes + REQUEST_COST_BYTES + MOVE_COST_BYTES * _moves(size_bytes)) * (100 + slowdown_pct) / 100
    moves = _moves(size_bytes)
    while True:
        size = round(budget - REQUEST_COST_BYTES - MOVE_COST_BYTES * moves)
        if _moves(size) == moves:
            return size
        if _moves(size) < moves:
            return (moves + 1) * WINDOW_BYTES - 1
        moves += 1


def _moves(size_bytes: int) -> int:
    return max(0, size_bytes // WINDOW_BYTES - 1)


def _whole(value: Any, name: str, allowed: tuple[int, int]) -> int:
    number = ranges.whole(value)
    if number is None or not ranges.is_inside(number, allowed):
        raise AnsibleFilterError(
            f"{name}: {value!r} is not a whole number from {allowed[0]} to {allowed[1]}; correct it"
        )
    return number


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"service_pages": service_pages}

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device that has an address, and the address of IPv6 by which the same link reaches it (ip-address(8))."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class LinkAddressError(Exception):
    """What iproute2 printed is not understood; the text says why and what to do."""


def find(shown: str, address: str) -> tuple[str, str]:
    """Return device and IPv6 address in the output of ``ip -j addr show``, empty texts for what is not there.

    An address that is valid everywhere comes before one of the link alone; one that is still being checked for
    duplicates, or is about to be given up, is none. Raises LinkAddressError.
    """
    try:
        links = [item for item in json.loads(shown) if item]
        own = next((item for item in links if any(_is(one, address) for one in item["addr_info"])), None)
        if own is None:
            return "", ""
        usable = [one for one in own["addr_info"] if one["family"] == "inet6" and _usable(one)]
        ordered = sorted(usable, key=lambda one: one["scope"] != "global")
        return str(own["ifname"]), str(ordered[0]["local"]) if ordered else ""
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise LinkAddressError(
            f"ip -j addr show: unexpected output ({exc!r}); iproute2 of Debian 12 or later is needed"
        ) from exc


def _is(one: Mapping[str, Any], address: str) -> bool:
    return bool(one["family"] == "inet" and one["local"] == address)


def _usable(one: Mapping[str, Any]) -> bool:
    return one["scope"] in ("global", "link") and not any(
        one.get(flag) for flag in ("tentative", "dadfailed", "deprecated", "temporary")
    )


def checking(shown: str) -> bool:
    """Tell whether any address is still being checked for duplicates, which takes a second or two. Raises as find()."""
    try:
        return any(one.get("tentative") for item in json.loads(shown) for one in item.get("addr_info", ()))
    except (ValueError, TypeError, AttributeError) as exc:
        raise LinkAddressError(f"ip -j addr show: unexpected output ({exc!r}); update iproute2") from exc

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a percentage of the last-level cache and of the memory bandwidth is on a host, as Koordinator computes it.

Units: cache masks are whole numbers with one bit for each way; bandwidth is what the host's own schemata count in.
"""

from __future__ import annotations

INTEL, AMD = "intel", "amd"
# An L3 domain of AMD's Milan moves 25 GB/s, of which Koordinator shares out 80 %, in units of 1/8 GB/s.
_AMD_UNITS = 160


class ResctrlPolicyError(Exception):
    """A percentage has no meaning on this host; the text says which, why, and what to write."""


def contiguous(mask: int) -> bool:
    """Tell whether the set bits of a mask are next to each other; a mask without bits is not."""
    return mask > 0 and (mask // (mask & -mask)) & (mask // (mask & -mask) + 1) == 0


def cat_mask(root_mask: int, start_percent: int, end_percent: int, min_cbm_bits: int = 1) -> int:
    """Return the ways from ``start_percent`` to ``end_percent`` of the root group's mask.

    Koordinator: with w ways, from bit ceil(w·start/100) up to, without, bit ceil(w·end/100). Raises ResctrlPolicyError
    for percentages that are not 0 <= start < end <= 100, a root mask with gaps or without bit 0, and a range of fewer
    ways than the hardware takes (``info/L3/min_cbm_bits``).
    """
    if not 0 <= start_percent < end_percent <= 100:
        raise ResctrlPolicyError(
            f"cache from {start_percent} % to {end_percent} %: is no range; write 0 to 100, the start below the end"
        )
    if not contiguous(root_mask) or not root_mask & 1:
        raise ResctrlPolicyError(
            f"cache mask {root_mask:x} of the root group: is not contiguous from bit 0 on, so a percentage of it has "
            "no meaning; give the mask itself"
        )
    ways = root_mask.bit_length()
    low, high = (-(-ways * percent // 100) for percent in (start_percent, end_percent))
    if high - low < max(min_cbm_bits, 1):
        raise ResctrlPolicyError(
            f"cache from {start_percent} % to {end_percent} %: is {high - low} of {ways} ways, and this host takes no "
            f"fewer than {max(min_cbm_bits, 1)}; widen the range"
        )
    return (1 << high) - (1 << low)


def mba_value(percent: int, vendor: str, root_default: int = 100, granularity: int = 10, minimum: int = 10) -> int:
    """Return the number for a line ``MB:`` of the schemata that stands for a percentage of the memory bandwidth.

    Intel: the percentage, rounded up to ``granularity`` (``info/MB/bandwidth_gran``). AMD: units of 1/8 GB/s, 160 of
    them being 100 %, rounded down; 100 % is no limit, which is what the root group has (``root_default``). Not below
    ``minimum`` (``info/MB/min_bandwidth``), not above ``root_default``. Raises ResctrlPolicyError for an unknown vendor
    and percentages outside 1..100, which Koordinator leaves unapplied.
    """
    if not 1 <= percent <= 100:
        raise ResctrlPolicyError(f"memory bandwidth of {percent} %: is not possible; write 1 to 100")
    if vendor not in (INTEL, AMD):
        raise ResctrlPolicyError(
            f"memory bandwidth on a CPU of vendor {vendor!r}: its unit is not known; allowed: {INTEL}, {AMD}"
        )
    if percent == 100:
        return root_default
    step = max(granularity, 1)
    exact = -(-percent // step) * step if vendor == INTEL else _AMD_UNITS * percent // 100
    return min(max(exact, minimum), root_default)

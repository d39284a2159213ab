"""What tests hold measured rates and times to: a limit is exact upwards, and only a busy machine keeps far below it."""

from __future__ import annotations

#: A rate below this share of what was allowed is no slow machine any more: something holds the traffic back.
STARVED_SHARE = 0.2
STARVED_PCT = 100 * (STARVED_SHARE - 1)


def kept(rate: float, limit: float, above: float = 1.06) -> bool:
    """Tell whether a measured rate keeps to its limit, of which it may be `above` times as much at most."""
    return STARVED_SHARE * limit < rate < above * limit

"""Times as the API writes them."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_ladder


def test_times_of_the_api_are_understood() -> None:
    assert koordinator_ladder.seconds("1970-01-01T00:00:10Z") == 10
    assert koordinator_ladder.seconds("1970-01-01T00:00:10.250000Z") == 10.25
    assert koordinator_ladder.seconds("1970-01-01T00:00:10.5Z") == 10.5
    assert koordinator_ladder.seconds(None) is None

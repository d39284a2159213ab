"""What tune shows of a policy."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.filter.policy_table import FilterModule

STATES = [
    {"key": "a.b", "state": "supported", "reason": ""},
    {"key": "a.c", "state": "unsupported", "reason": "needs readings at run time"},
    {"key": "a.d", "state": "degraded", "reason": "a fixed ceiling"},
]


def test_keys_that_are_not_as_asked_for_are_shown_with_their_reasons():
    assert FilterModule().filters()["policy_table"](STATES) == [
        "1 key supported, 1 degraded, 1 unsupported",
        "degraded     a.d",
        "             a fixed ceiling",
        "unsupported  a.c",
        "             needs readings at run time",
    ]


def test_a_policy_that_is_honoured_is_one_line():
    assert FilterModule().filters()["policy_table"](STATES[:1]) == ["1 key supported, 0 degraded, 0 unsupported"]

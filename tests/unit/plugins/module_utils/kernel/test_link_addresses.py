"""The device that has an address, and its address of IPv6: what is valid everywhere first, what is in doubt never."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import link_addresses
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.link_addresses import LinkAddressError

LINK = {"family": "inet6", "local": "fe80::1", "scope": "link"}
EVERYWHERE = {"family": "inet6", "local": "2001:db8::1", "scope": "global"}


def shown(*more: dict[str, Any]) -> str:
    own = {"family": "inet", "local": "192.0.2.1", "scope": "global"}
    other = {"ifname": "eth1", "addr_info": [{"family": "inet6", "local": "2001:db8::9", "scope": "global"}]}
    return json.dumps([other, {}, {"ifname": "eth0", "addr_info": [own, *more]}])


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((LINK, EVERYWHERE), "2001:db8::1"),
        ((LINK,), "fe80::1"),
        ((LINK, {**EVERYWHERE, "temporary": True}), "fe80::1"),
        ((LINK, {**EVERYWHERE, "deprecated": True}), "fe80::1"),
        (({**LINK, "tentative": True},), ""),
        (({**LINK, "dadfailed": True},), ""),
        (({**LINK, "scope": "host"},), ""),
        ((), ""),
    ],
)
def test_the_best_address_of_the_same_device_is_taken(more: tuple[dict[str, Any], ...], expected: str) -> None:
    assert link_addresses.find(shown(*more), "192.0.2.1") == ("eth0", expected)


def test_an_address_that_nobody_has_is_no_error() -> None:
    assert link_addresses.find(shown(LINK), "192.0.2.77") == ("", "")


def test_what_is_still_being_checked_is_told() -> None:
    assert link_addresses.checking(shown({**LINK, "tentative": True}))
    assert not link_addresses.checking(shown(LINK))


@pytest.mark.parametrize("text", ["", "[1]", '[{"ifname": "a", "addr_info": [{}]}]'])
def test_other_output_is_one_sentence(text: str) -> None:
    with pytest.raises(LinkAddressError, match="unexpected output"):
        link_addresses.find(text, "192.0.2.1")

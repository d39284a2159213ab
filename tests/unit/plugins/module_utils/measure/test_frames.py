"""The share of payload in what is counted: the figures of the reference, and what holds for all lengths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure import frames

PROTOCOLS = st.sampled_from(["tcp", "udp"])
MTUS = st.integers(min_value=200, max_value=65_535)


@pytest.mark.parametrize(
    ("accounting", "mtu_bytes", "segments", "share"),
    [
        ("wire", 1500, 1, 0.9564),
        ("l1", 1500, 1, 0.9415),
        ("l1", 9000, 1, 0.9900),
        ("skb", 1500, 1, 0.9564),
        ("skb", 1500, 2, 0.9777),
        ("skb", 1500, 16, 0.9972),
        ("skb", 1500, 44, 0.9990),
        ("payload", 1500, 1, 1.0),
    ],
)
def test_shares_of_the_table(accounting, mtu_bytes, segments, share):
    found = frames.payload_share(accounting, mtu_bytes=mtu_bytes, segments=segments)
    assert found == pytest.approx(share, abs=5e-5)


def test_a_full_frame_of_tcp_has_1448_bytes_of_payload_in_1514():
    assert frames.segment_bytes() == 1448
    assert frames.payload_share("wire") == 1448 / 1514
    assert frames.segment_bytes("udp") == 1472


def test_no_receiver_can_count_more_than_the_line_carries():
    assert frames.most_goodput_bps(1e9) == pytest.approx(941.5e6, abs=0.05e6)


@given(PROTOCOLS, MTUS, st.integers(min_value=1, max_value=64))
def test_what_is_counted_more_leaves_less_payload(protocol, mtu_bytes, segments):
    shares = [
        frames.payload_share(name, protocol, mtu_bytes, segments=segments) for name in ("l1", "wire", "skb", "payload")
    ]
    assert shares == sorted(shares)
    assert all(0.0 < share <= 1.0 for share in shares)


@given(st.integers(min_value=1, max_value=1451), st.sampled_from(sorted(frames.IP_BYTES)))
def test_of_a_longer_datagram_more_is_payload(message_bytes, family):
    shorter, longer = (
        frames.class_share("wire", {"protocol": "udp", "message_bytes": length}, family)
        for length in (message_bytes, message_bytes + 1)
    )
    assert 0.0 < shorter < longer < 1.0
    assert frames.class_share("wire", {"protocol": "tcp"}, family) == (1448 if family == "ipv4" else 1428) / 1514


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"accounting": "line"}, "accounting 'line': must be one of wire, l1, skb, payload"),
        ({"accounting": "wire", "protocol": "sctp"}, "protocol 'sctp': must be tcp or udp"),
        ({"accounting": "wire", "mtu_bytes": 52}, "MTU 52: leaves no room for payload; must be more than 52 bytes"),
        ({"accounting": "skb", "segments": 0}, "segments 0: must be 1 or more"),
    ],
)
def test_bad_input_is_one_sentence(given_, text):
    with pytest.raises(frames.FramesError, match="^" + text.replace("?", r"\?") + "$"):
        frames.payload_share(**given_)

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who listens where: parser, and a socket of this test's own."""

from __future__ import annotations

import os
import socket

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import listeners

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LINE = (
    "   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000  0 {inode} 1 0 100\n"
)


@given(
    st.dictionaries(st.integers(1, 65535), st.integers(1, 2**32), max_size=6), st.sampled_from(["00000000", "0" * 32])
)
def test_listening_sockets_by_port(wanted, address):
    lines = [LINE.format(address=address, port=port, state="0A", inode=inode) for port, inode in wanted.items()]
    other = LINE.format(address=address, port=7, state="01", inode=1)
    assert listeners.parse_listeners(HEAD + other + "".join(lines)) == wanted


@given(st.text(max_size=300))
def test_anything_is_parsed_without_an_error(text):
    assert isinstance(listeners.parse_listeners(text), dict)


def test_finds_the_process_behind_a_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert listeners.find_listener(port) is None
        server.listen()
        found = listeners.find_listener(port)
    assert (found.port, found.pid) == (port, os.getpid())


def test_an_owner_that_is_hidden(tmp_path):
    (tmp_path / "self" / "net").mkdir(parents=True)
    (tmp_path / "self" / "net" / "tcp").write_text(HEAD + LINE.format(address="0" * 8, port=80, state="0A", inode=5))
    assert listeners.find_listener(80, str(tmp_path)) == listeners.Listener(80, None, "?")

# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions under which a process counts as started, with servers of this test's own."""

from __future__ import annotations

import http.server
import socket
import ssl
import subprocess
import threading

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.node import ready


@pytest.fixture
def server():
    """An HTTP server that answers 200 on / and 404 elsewhere."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made.server_address[1]
        made.shutdown()
        thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_nothing_to_wait_for_holds_at_once():
    condition = ready.from_params(None)
    assert condition.holds()
    assert condition.describe() == "nothing to wait for"


def test_tcp_port(server):
    assert ready.Ready(tcp_port=server).holds()
    assert not ready.Ready(tcp_port=free_port()).holds()


def test_http(server):
    assert ready.Ready(http_url=f"http://127.0.0.1:{server}/").holds()
    assert not ready.Ready(http_url=f"http://127.0.0.1:{server}/missing").holds()
    assert not ready.Ready(http_url=f"http://127.0.0.1:{free_port()}/").holds()


def test_file_and_all_conditions_must_hold(server, tmp_path):
    path = tmp_path / "ready"
    condition = ready.Ready(tcp_port=server, file=str(path))
    assert not condition.holds()
    path.touch()
    assert condition.holds()


def test_other_schemes_are_refused():
    with pytest.raises(ready.ReadyError, match="only http:// and https://"):
        ready.from_params({"http_url": "ftp://127.0.0.1/", "tcp_port": None})


def test_https_is_asked_without_verifying(server, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made_by = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-days", "1"]
    subprocess.run([*made_by, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as made:
        made.socket = context.wrap_socket(made.socket, server_side=True)
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        assert ready.from_params({"http_url": f"https://127.0.0.1:{made.server_address[1]}/"}).holds()
        assert not ready.from_params({"http_url": f"https://127.0.0.1:{made.server_address[1]}/none"}).holds()
        made.shutdown()
        thread.join()
    assert not ready.from_params({"http_url": f"https://127.0.0.1:{server}/"}).holds()


def test_command(tmp_path):
    condition = ready.from_params({"command": ["test", "-e", str(tmp_path / "there")]})
    assert not condition.holds()
    (tmp_path / "there").touch()
    assert condition.holds()
    assert condition.describe() == f"test -e {tmp_path}/there ends with status 0"
    assert not ready.from_params({"command": ["/no/such/program"]}).holds()


def test_a_taken_port_is_one_sentence(server):
    with pytest.raises(
        ready.ReadyError, match=r"process web: port \d+ is taken by process \d+ .*set web_port to a free"
    ):
        ready.check_port("web", ready.Ready(tcp_port=server), "web_port")
    ready.check_port("web", ready.Ready(tcp_port=free_port()), "web_port")
    ready.check_port("web", ready.Ready(), "web_port")

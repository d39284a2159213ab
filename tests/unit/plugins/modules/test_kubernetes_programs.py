"""Programs that somebody brings: in a directory, or by address from a server on the loopback interface.

The programs are stand-ins: scripts that print a version, and ELF headers without anything behind them.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import struct
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import programs
from ansible_collections.colocation.testbed.plugins.modules import kubernetes_programs

KUBELET = {"name": "kubelet", "version_argv": ["--version"], "exactly": "v1.34.4", "setting": "kubernetes_version"}
CONTAINERD = {"name": "containerd", "version_argv": ["--version"], "at_least": "2.0"}


def script(text: str) -> bytes:
    return f"#!/bin/sh\necho '{text}'\n".encode()


def elf(machine: int, order: str = "<") -> bytes:
    head = b"\x7fELF" + bytes([2, 1 if order == "<" else 2, 1]) + bytes(9)
    return head + struct.pack(f"{order}HH", 2, machine) + bytes(44)


def put(directory: Path, name: str, content: bytes, mode: int = 0o755) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def _run(**args: Any) -> dict[str, Any]:
        with patch_module_args(args), pytest.raises(SystemExit):
            kubernetes_programs.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return _run


class Server:
    """A directory that is served on the loopback interface."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.asked = directory, list[str]()
        directory.mkdir()
        handler = functools.partial(_handler(self.asked), directory=str(directory))
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def source(self, name: str, content: bytes, file: str = "", **more: str) -> dict[str, str]:
        put(self.directory, file or name, content)
        url = f"http://127.0.0.1:{self.http.server_port}/{file or name}"
        return {"name": name, "url": url, "sha256": hashlib.sha256(content).hexdigest(), **more}


def _handler(asked: list[str]) -> type[SimpleHTTPRequestHandler]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_words: Any) -> None:
            asked.append(self.path)

    return Quiet


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    found = Server(tmp_path / "served")
    yield found
    found.http.shutdown()
    found.http.server_close()


def test_programs_in_a_directory_are_taken_as_they_are(run: Any, tmp_path: Path) -> None:
    bin_dir = tmp_path / "bin"
    put(bin_dir, "kubelet", script("Kubernetes v1.34.4"))
    put(bin_dir, "containerd", script("containerd github.com/containerd/containerd/v2 2.1.6 "))
    result = run(directory=str(bin_dir), programs=[KUBELET, CONTAINERD])
    assert (result["changed"], result["versions"]) == (False, {"kubelet": "1.34.4", "containerd": "2.1.6"})


@pytest.mark.parametrize(
    ("content", "mode", "text"),
    [
        (None, 0, "program kubelet: is not in {bin}; put it there"),
        (script("Kubernetes v1.33.1"), 0o755, "is version 1.33.1, and v1.34.4 is needed; bring that one, or set kuber"),
        (script("no words"), 0o755, "is version 'no words', and v1.34.4 is needed"),
        (script("Kubernetes v1.34.4"), 0o644, "may not be executed; run: chmod +x {bin}/kubelet"),
        (b"<html>Not found</html>", 0o755, "is no program (neither ELF nor a script)"),
        (elf(183), 0o755, "is for aarch64, and this host is x86_64; bring the one for x86_64"),
        (elf(22, ">"), 0o755, "is for s390x, and this host is x86_64"),
        (elf(9999), 0o755, "is for machine 9999, and this host is x86_64"),
    ],
)
def test_what_is_wrong_with_a_program_is_one_sentence(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, mode: int, text: str
) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "v", "x86_64")))
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    if content is not None:
        put(bin_dir, "kubelet", content, mode)
    message = run(directory=str(bin_dir), programs=[KUBELET])["msg"]
    assert text.format(bin=bin_dir) in message
    assert "; ".join(message.split("; ")[2:]) == ""


def test_an_old_runtime_and_all_that_is_wrong_are_told_at_once(run: Any, tmp_path: Path) -> None:
    put(tmp_path / "bin", "containerd", script("containerd github.com/containerd/containerd 1.6.20~ds1"))
    message = run(directory=str(tmp_path / "bin"), programs=[KUBELET, CONTAINERD], advice="bring it")["msg"]
    assert "program kubelet: is not in" in message
    assert "containerd: is version 1.6.20, and 2.0 or newer is needed" in message


def test_a_program_of_this_machine_is_one(tmp_path: Path) -> None:
    header = Path("/proc/self/exe").read_bytes()[:20]
    assert os.uname().machine in (programs.machine_of(header) or ())
    assert programs.machine_of(b"\x7fELF") is None


def archive(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as handle:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        handle.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def test_programs_are_fetched_once_also_out_of_an_archive(run: Any, tmp_path: Path, server: Server) -> None:
    urls = [
        server.source("kubelet", script("Kubernetes v1.34.4")),
        server.source(
            "containerd", archive("./bin/containerd", script("containerd 2.1.6")), "c.tgz", member="bin/containerd"
        ),
    ]
    args = {"directory": str(tmp_path / "cache" / "bin"), "programs": [KUBELET, CONTAINERD], "urls": urls}
    predicted = run(**args, _ansible_check_mode=True, _ansible_diff=True)
    assert (predicted["changed"], server.asked) == (True, [])
    assert not (tmp_path / "cache").exists()
    done = run(**args)
    assert (done["changed"], done["versions"]) == (True, {"kubelet": "1.34.4", "containerd": "2.1.6"})
    assert run(**args)["changed"] is False
    assert server.asked == ["/kubelet", "/c.tgz"]
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["bin", "lock"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"sha256": "0" * 64}, "has the SHA-256 {right}, not 0000"),
        ({"url": "http://127.0.0.1:9/kubelet"}, "program kubelet: http://127.0.0.1:9/kubelet: <urlopen error"),
        ({"member": "bin/kubelet"}, "is no archive of tar"),
    ],
)
def test_what_cannot_be_fetched_leaves_nothing(
    run: Any, tmp_path: Path, server: Server, change: dict[str, str], text: str
) -> None:
    right = server.source("kubelet", script("Kubernetes v1.34.4"))
    args = {"directory": str(tmp_path / "cache" / "bin"), "programs": [KUBELET]}
    message = run(**args, urls=[{**right, **change}])["msg"]
    assert text.format(right=right["sha256"]) in message
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (script("Kubernetes v1.33.1"), "is version 1.33.1, and v1.34.4 is needed"),
        (b"<html>moved</html>", "is no program"),
        (elf(258), "is for loongarch64, and this host is"),
    ],
)
def test_what_was_fetched_and_is_wrong_leaves_nothing(
    run: Any, tmp_path: Path, server: Server, content: bytes, text: str
) -> None:
    urls = [server.source("kubelet", content)]
    message = run(directory=str(tmp_path / "cache" / "bin"), programs=[KUBELET], urls=urls)["msg"]
    assert text in message
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("urls", "text"),
    [
        ([{"name": "../kubelet", "url": "http://x", "sha256": "0" * 64}], "is not the name of a program"),
        ([{"name": "kubelet", "url": "file:///etc/passwd", "sha256": "0" * 64}], "does not begin with http://"),
        ([{"name": "kubelet", "url": "http://x", "sha256": "abc"}], "print it with sha256sum"),
        ([{"name": "kubelet", "url": "http://x", "sha256": "0" * 64}] * 2, "two entries have the same name"),
        ([{"name": "etcd", "url": "http://x", "sha256": "0" * 64}], "program kubelet: has no address; put it there"),
    ],
)
def test_wrong_addresses_are_refused_before_anything_is_asked(
    run: Any, tmp_path: Path, urls: list[dict[str, str]], text: str
) -> None:
    assert text in run(directory=str(tmp_path / "cache" / "bin"), programs=[KUBELET], urls=urls)["msg"]
    assert not (tmp_path / "cache").exists()

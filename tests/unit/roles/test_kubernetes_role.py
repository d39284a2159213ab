"""Data of role kubernetes as it comes out for each provider, and its programs from a directory or by address.

The programs are stand-ins that print a version; the play, the role and its modules are the real ones.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import threading
import tomllib
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tooling import ROOT

from tests.support import small_play

ROLE = "colocation.testbed.kubernetes"
VERSIONS = {
    "kubelet": "Kubernetes v1.34.4",
    "kubeadm": "v1.34.4",
    "kubectl": "Client Version: v1.34.4",
    "containerd": "containerd github.com/containerd/containerd/v2 2.1.6 ",
    "containerd-shim-runc-v2": "containerd-shim-runc-v2:\n  Version:  2.1.6",
    "crictl": "crictl version v1.34.0",
    "kube-proxy": "Kubernetes v1.34.4",
    "etcd": "etcd Version: 3.6.16",
    "kube-apiserver": "Kubernetes v1.34.4",
    "kube-controller-manager": "Kubernetes v1.34.4",
    "kube-scheduler": "Kubernetes v1.34.4",
}
DUMP = "{'files': __kubernetes_files, 'node': __kubernetes_node_defaults, 'deployed': __kubernetes_deployed}"


def settings(place: Path, **more: Any) -> dict[str, Any]:
    known = {"node_deployed": {"state_dir": str(place / "state")}, "kubernetes_provider": "processes"}
    return {**known, "kubernetes_cache_dir": str(place / "cache"), "ansible_host": "198.18.0.1", **more}


@pytest.mark.parametrize("provider", ["processes", "kubeadm"])
def test_every_file_of_a_node_is_well_formed(tmp_path: Path, provider: str) -> None:
    dump, copied = tmp_path / "dump.json", tmp_path / "roles" / "kubernetes"
    # Only tasks inside of a role see its variables and templates; so a copy of it gets one that writes them down.
    shutil.copytree(ROOT / "roles" / "kubernetes", copied)
    (tmp_path / "files").symlink_to(ROOT / "files")
    content = {"content": f"{{{{ {DUMP} | to_json }}}}", "dest": str(dump), "mode": "0644"}
    (copied / "tasks" / "dump.yml").write_text(json.dumps([{"ansible.builtin.copy": content}]))
    task = {"ansible.builtin.include_role": {"name": "kubernetes", "tasks_from": "dump.yml"}}
    facts = {"cap_sys_resource": False, "oom_score_adj": 0, "online_cpus": "0-1"}
    variables = settings(
        tmp_path, kubernetes_provider=provider, __kubernetes_host_facts=facts, __kubernetes_bin_dir="/b"
    )
    status, text = small_play.play(tmp_path, [task], variables)
    assert status == 0, text
    found = json.loads(dump.read_text())
    files = {item["path"]: item["content"] for item in found["files"]}
    for path, body in files.items():
        if path.endswith(".toml"):
            assert tomllib.loads(body)
        elif path.endswith((".yaml", ".conflist")):
            assert all(isinstance(item, dict) for item in yaml.safe_load_all(body))
    kinds = [item["kind"] for item in yaml.safe_load_all(files["kubeadm/config.yaml"])]
    assert kinds == ["InitConfiguration", "ClusterConfiguration", "KubeletConfiguration", "KubeProxyConfiguration"]
    assert found["deployed"]["runtime"]["version"] == "2.1.6"
    assert found["node"]["kubelet"]["flags"]["oom-score-adj"] == 0


def write(directory: Path, **changes: str | None) -> dict[str, bytes]:
    """Make stand-ins for all programs, with another version for some, and without those that are None."""
    directory.mkdir(parents=True)
    known = {**VERSIONS, **changes}
    bodies = {name: f"#!/bin/sh\necho '{said}'\n".encode() for name, said in known.items() if said is not None}
    for name, body in bodies.items():
        (directory / name).write_bytes(body)
        (directory / name).chmod(0o755)
    return bodies


def bring(place: Path, source: str, **more: Any) -> tuple[int, str]:
    role = {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "programs.yml"}}
    shown = {"ansible.builtin.debug": {"msg": "programs are in {{ __kubernetes_bin_dir }}"}}
    return small_play.play(place, [role, shown], settings(place, kubernetes_programs_source=source, **more))


def test_programs_of_a_directory_are_used_where_they_are(tmp_path: Path) -> None:
    write(tmp_path / "bin")
    status, text = bring(tmp_path, "directory", kubernetes_programs_directory=str(tmp_path / "bin"))
    assert status == 0, text
    assert f"programs are in {tmp_path}/bin" in " ".join(text.split())


def test_wrong_programs_of_a_directory_are_told_at_once(tmp_path: Path) -> None:
    old = "containerd github.com/containerd/containerd 1.6.20~ds1"
    write(tmp_path / "bin", containerd=old, etcd=None, kubelet="Kubernetes v1.33.0")
    status, text = bring(tmp_path, "directory", kubernetes_programs_directory=str(tmp_path / "bin"))
    said = " ".join(text.split())
    assert status == 2
    assert "program etcd: is not in" in said
    assert "put it there, or correct kubernetes_programs_directory" in said
    assert "kubelet: is version 1.33.0, and v1.34.4 is needed; bring that one, or set kubernetes_version" in said
    assert "containerd: is version 1.6.20, and 2.0 or newer is needed" in said
    assert not (tmp_path / "state").exists()


def test_programs_of_packages_are_checked_when_these_are_installed(tmp_path: Path) -> None:
    write(tmp_path / "bin", **{"kube-apiserver": None})
    places = {"kubernetes_programs_directory": str(tmp_path / "bin"), "kubernetes_programs_packages": ["bash", "dash"]}
    status, text = bring(tmp_path, "packages", **places)
    assert status == 2
    assert "kube-apiserver: is not in" in text
    assert "add its package to kubernetes_programs_packages" in " ".join(text.split())


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Serve a directory on the loopback interface."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def test_programs_by_address_are_fetched_into_the_cache(tmp_path: Path, served: str) -> None:
    bodies = write(tmp_path / "served")
    urls = [
        {"name": name, "url": f"{served}/{name}", "sha256": hashlib.sha256(body).hexdigest()}
        for name, body in bodies.items()
    ]
    wrong = [{**urls[0], "sha256": "0" * 64}, *urls[1:]]
    status, text = bring(tmp_path, "url", kubernetes_programs_urls=wrong)
    assert status == 2
    assert "has the SHA-256" in text
    assert [path.name for path in (tmp_path / "cache").glob("url-*/*")] == ["lock"]
    status, text = bring(tmp_path, "url", kubernetes_programs_urls=urls)
    assert status == 0, text
    (made,) = (tmp_path / "cache").glob("url-*/bin")
    assert {path.name for path in made.iterdir()} == set(VERSIONS)

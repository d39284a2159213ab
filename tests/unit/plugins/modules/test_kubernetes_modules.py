"""The modules of clusters, run in this process with stand-ins for their programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_build
from ansible_collections.colocation.testbed.plugins.modules import (
    go_programs,
    kubeadm_phases,
    kubernetes_info,
    kubernetes_pki,
    mount_namespace,
    oci_image,
)

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def _run(module: Any, **arguments: Any) -> dict[str, Any]:
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)

    return _run


def script(path: Path, text: str) -> str:
    """Write a shell script and return its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def group(**changed: Any) -> dict[str, Any]:
    programs = {"saw": {"package": "example.org/saw"}}
    return {"name": "tools", "go_mod": "module x\n\ngo 1.25.0\n", "go_sum": "", "programs": programs, **changed}


def test_programs_are_built_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_build, "_MIN_FREE_BYTES", 0)
    (tmp_path / "bin").mkdir()
    write = 'while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\n" > "$2/saw"; chmod +x "$2/saw"'
    script(tmp_path / "bin/go", f'[ "$1" = version ] && exit 0\n{write}')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    options = {"groups": [group()], "cache_dir": str(tmp_path / "cache")}
    predicted = run(go_programs, **options, _ansible_check_mode=True)
    assert (predicted["changed"], predicted["built"]) == (True, ["tools"])
    assert not (tmp_path / "cache").exists()
    first = run(go_programs, **options)
    assert (first["changed"], first["bin_dir"]) == (True, predicted["bin_dir"])
    assert Path(first["programs"]["saw"]).is_file()
    assert not run(go_programs, **options)["changed"]


def test_a_bad_group_and_a_bad_number_are_refused(run: Run, tmp_path: Path) -> None:
    failed = run(go_programs, groups=[group(programs={})], cache_dir=str(tmp_path))
    assert failed["msg"] == "group tools: it has no programs; complete it"
    assert "nice is from 0 to 19" in run(go_programs, groups=[group()], cache_dir=str(tmp_path), nice=99)["msg"]


def test_phases_run_once_for_a_configuration(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("a")
    kubeadm = script(tmp_path / "kubeadm", f'echo "$*" >> {tmp_path}/calls; touch {tmp_path}/made')
    options = {
        "kubeadm": [kubeadm],
        "config": str(config),
        "phases": [["init", "phase", "certs", "all"]],
        "record": str(tmp_path / "done"),
        "creates": [str(tmp_path / "made")],
    }
    assert run(kubeadm_phases, **options, _ansible_check_mode=True)["changed"]
    assert not (tmp_path / "calls").exists()
    assert run(kubeadm_phases, **options)["ran"] == ["init phase certs all"]
    assert not run(kubeadm_phases, **options)["changed"]
    config.write_text("b")
    assert run(kubeadm_phases, **options)["changed"]
    assert (tmp_path / "calls").read_text() == f"init phase certs all --config {config}\n" * 2


def test_a_phase_that_fails_is_done_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a")
    options = {"config": str(tmp_path / "config"), "phases": [["init"]], "record": str(tmp_path / "done")}
    failed = run(kubeadm_phases, kubeadm=[script(tmp_path / "bad", "echo no >&2; exit 1")], **options)
    assert "ended with status 1: no" in failed["msg"]
    assert run(kubeadm_phases, kubeadm=["true"], **options)["changed"]


def test_certificates_need_their_directory_in_the_configuration(run: Run, tmp_path: Path) -> None:
    failed = run(kubernetes_pki, kubeadm="/bin/true", config="kind: x\n", directory=str(tmp_path / "cp"))
    assert "has no line 'certificatesDir" in failed["msg"]


def test_certificates_are_predicted(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "cp"
    options = {"kubeadm": "/none", "config": f"certificatesDir: {folder}/pki\n", "directory": str(folder)}
    found = run(kubernetes_pki, **options, _ansible_check_mode=True)
    assert (found["changed"], found["reason"]) == (True, "there are none")
    assert found["kubeconfigs"]["admin"] == f"{folder}/admin.conf"


def test_a_namespace_is_predicted(run: Run, tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "ns/mnt"), "state_dir": str(tmp_path), "_ansible_check_mode": True}
    found = run(mount_namespace, **options, root=str(tmp_path / "root"), paths=["/run/nowhere"])
    assert found["changed"]
    assert found["prefix"] == ["nsenter", f"--mount={tmp_path}/ns/mnt"]
    assert not run(mount_namespace, **options, state="absent")["changed"]
    assert "paths needs root" in run(mount_namespace, **options, paths=["/run/nowhere"])["msg"]


def test_images_are_predicted_without_a_registry(run: Run) -> None:
    layer = {"files": [{"path": "/x", "content": "y"}]}
    options = {"registry": "127.0.0.1:9", "images": [{"repository": "a", "layers": [layer]}]}
    found = run(oci_image, **options, _ansible_check_mode=True)
    assert found["images"] == [{"reference": "127.0.0.1:9/a:latest", "pushed": True}]
    assert "does not answer" in run(oci_image, **options)["msg"]
    bad = {"registry": "x", "images": [{"repository": "a", "layers": [{"directories": {"/x": "rwx"}}]}]}
    assert run(oci_image, **bad)["msg"] == "/x: mode 'rwx' is not octal; write it quoted, like '0644'"


def test_a_cluster_without_kubeconfig(run: Run, tmp_path: Path) -> None:
    failed = run(kubernetes_info, kubeconfig=str(tmp_path / "none"))
    assert failed["msg"] == f"kubeconfig {tmp_path}/none: is not there; correct kubernetes_kubeconfig"

"""Certificates are made once, by a stand-in for kubeadm that writes the files that the real one writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import pki


class Kubeadm:
    """Writes what is missing, as kubeadm does, with a number that tells which call made it."""

    def __init__(self, wanted: pki.Pki) -> None:
        self.wanted, self.count = wanted, 0

    def __call__(self, argv: Sequence[str], **_options: Any) -> commands.Result:
        self.count += 1
        if "certs" in argv:
            paths = [path for path in self.wanted.wanted if path.startswith(self.wanted.certificates)]
        elif argv[1] == "init":
            paths = [self.wanted.kubeconfigs[argv[4]]]
        else:
            return commands.Result(tuple(argv), 0, f"user {argv[argv.index('--client-name') + 1]}", "")
        for path in map(Path, paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(str(self.count))
        return commands.Result(tuple(argv), 0, "", "")


@pytest.fixture
def wanted(tmp_path: Path) -> pki.Pki:
    folder = str(tmp_path / "cp")
    users = (pki.User("kube-proxy", "system:kube-proxy"),)
    return pki.Pki("/bin/kubeadm", f"kind: x\ncertificatesDir: {folder}/pki\n", folder, users)


def test_made_once(wanted: pki.Pki) -> None:
    assert pki.reason(wanted) == "there are none"
    pki.make(wanted, Kubeadm(wanted))
    assert pki.reason(wanted) == ""
    assert Path(wanted.kubeconfigs["kube-proxy"]).read_text() == "user system:kube-proxy"
    assert Path(wanted.directory, pki.CONFIG).stat().st_mode & 0o777 == 0o600


def test_a_changed_configuration_keeps_the_authorities(wanted: pki.Pki) -> None:
    kubeadm = Kubeadm(wanted)
    pki.make(wanted, kubeadm)
    changed = pki.Pki(wanted.kubeadm, wanted.config + "# more\n", wanted.directory, wanted.users)
    assert pki.reason(changed) == "their configuration has changed"
    ca, leaf = Path(wanted.certificates, "ca.crt"), Path(wanted.certificates, "apiserver.crt")
    before = (ca.read_text(), leaf.read_text())
    pki.make(changed, kubeadm)
    assert ca.read_text() == before[0]
    assert leaf.read_text() != before[1]


def test_a_new_user_costs_the_others_nothing(wanted: pki.Pki) -> None:
    kubeadm = Kubeadm(wanted)
    pki.make(wanted, kubeadm)
    users = (*wanted.users, pki.User("kubelet-b", "system:node:b", ("system:nodes",)))
    more = pki.Pki(wanted.kubeadm, wanted.config, wanted.directory, users)
    assert (pki.reason(more), [user.name for user in pki.new_users(more)]) == ("", ["kubelet-b"])
    count = kubeadm.count
    pki.make(more, kubeadm)
    assert kubeadm.count == count + 1
    assert pki.new_users(more) == []
    assert Path(more.kubeconfigs["kubelet-b"]).read_text() == "user system:node:b"


def test_what_is_missing_or_due_is_made_anew(wanted: pki.Pki) -> None:
    pki.make(wanted, Kubeadm(wanted))
    made_s = json.loads(Path(wanted.directory, pki.RECORD).read_text())["made_s"]
    assert pki.reason(wanted, made_s + 299 * 86400) == ""
    assert "two months" in pki.reason(wanted, made_s + 301 * 86400)
    Path(wanted.certificates, "etcd/peer.key").unlink()
    assert pki.reason(wanted).endswith("etcd/peer.key is missing")


def test_an_interrupted_run_is_done_again(wanted: pki.Pki) -> None:
    def dies(argv: Sequence[str], **_options: Any) -> commands.Result:
        raise commands.CommandError("killed")

    pki.make(wanted, Kubeadm(wanted))
    changed = pki.Pki(wanted.kubeadm, wanted.config + "# more\n", wanted.directory, wanted.users)
    with pytest.raises(commands.CommandError):
        pki.make(changed, dies)
    assert pki.reason(changed) == "there are none"


def test_half_an_authority_is_not_replaced(wanted: pki.Pki) -> None:
    pki.make(wanted, Kubeadm(wanted))
    Path(wanted.certificates, "ca.key").unlink()
    with pytest.raises(pki.PkiError, match=r"ca\.key: is missing while ca\.crt is there"):
        pki.make(wanted, Kubeadm(wanted))


def test_what_is_wrong_with_the_request(wanted: pki.Pki) -> None:
    with pytest.raises(pki.PkiError, match="has no line 'certificatesDir"):
        pki.check(pki.Pki("k", "kind: x\n", wanted.directory))
    with pytest.raises(pki.PkiError, match="user admin: is there twice"):
        pki.check(pki.Pki("k", wanted.config, wanted.directory, (pki.User("admin", "a"),)))
    pki.check(wanted)

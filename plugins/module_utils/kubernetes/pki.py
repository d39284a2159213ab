# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates and kubeconfigs of a cluster by the phases of kubeadm, made once and made anew when they must be."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files

RECORD = "record.json"
CONFIG = "kubeadm.yaml"
# Users that kubeadm has phases for, with the names of their files.
PHASES = ("admin", "super-admin", "controller-manager", "scheduler", "kubelet")
# kubeadm makes certificates for a year; they are made anew well before.
_RENEW_AFTER_S = 300 * 86400
_TIMEOUT_S = 120.0
_AUTHORITY = ("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt", "etcd/ca.key")
_SERVICE_ACCOUNTS = ("sa.key", "sa.pub")
_LEAVES = (
    "apiserver",
    "apiserver-kubelet-client",
    "apiserver-etcd-client",
    "front-proxy-client",
    "etcd/server",
    "etcd/peer",
    "etcd/healthcheck-client",
)

Run = Callable[..., commands.Result]


class PkiError(Exception):
    """Certificates could not be made; the text says which, why and what to do."""


@dataclass(frozen=True)
class User:
    """Somebody with a kubeconfig of their own: file name without suffix, client name, groups."""

    name: str
    client_name: str
    groups: tuple[str, ...] = ()

    @property
    def identity(self) -> list[str]:
        """Return what the certificate says: name, then groups."""
        return [self.client_name, *self.groups]


@dataclass(frozen=True)
class Pki:
    """What is wanted: kubeadm's program and configuration text, the directory for all, users beside the usual ones."""

    kubeadm: str
    config: str
    directory: str
    users: tuple[User, ...] = ()

    @property
    def certificates(self) -> str:
        """Return the directory of the certificates; the configuration must name the same one."""
        return os.path.join(self.directory, "pki")

    @property
    def kubeconfigs(self) -> dict[str, str]:
        """Return the path of each user's kubeconfig."""
        names = [*PHASES, *(user.name for user in self.users)]
        return {name: os.path.join(self.directory, f"{name}.conf") for name in names}

    @property
    def digest(self) -> str:
        """Return what changes when certificates must be made anew."""
        return hashlib.sha256(self.config.encode()).hexdigest()

    @property
    def wanted(self) -> list[str]:
        """Return every file that must be there, without those of other users."""
        pairs = [f"{name}.{suffix}" for name in _LEAVES for suffix in ("crt", "key")]
        below = [os.path.join(self.certificates, name) for name in (*_AUTHORITY, *_SERVICE_ACCOUNTS, *pairs)]
        return [*below, *(self.kubeconfigs[name] for name in PHASES)]


def check(pki: Pki) -> None:
    """Raise PkiError where the configuration puts certificates elsewhere, or a user's name is taken."""
    if f"certificatesDir: {pki.certificates}\n" not in pki.config:
        raise PkiError(f"kubeadm configuration: has no line 'certificatesDir: {pki.certificates}'; add it")
    names = [*PHASES, *(user.name for user in pki.users)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PkiError(f"user {twice[0]}: is there twice; choose another name")


def reason(pki: Pki, now_s: float | None = None) -> str:
    """Return why certificates must be made, an empty text where all are there and good for long enough."""
    record = _record(pki)
    if not record:
        return "there are none"
    lacking = [path for path in pki.wanted if not os.path.isfile(path)]
    if lacking:
        return f"{lacking[0]} is missing"
    if record["digest"] != pki.digest:
        return "their configuration has changed"
    age_s = (time.time() if now_s is None else now_s) - record["made_s"]
    return "they are due in less than two months" if age_s > _RENEW_AFTER_S else ""


def _record(pki: Pki) -> dict[str, Any]:
    """Return what was made when and for whom, nothing where there is no sound record."""
    try:
        raw = files.read_json(os.path.join(pki.directory, RECORD))
        return {"digest": str(raw["digest"]), "made_s": float(raw["made_s"]), "users": dict(raw["users"])}
    except (files.FilesError, KeyError, TypeError, ValueError):
        return {}


def new_users(pki: Pki) -> list[User]:
    """Return the users who lack a kubeconfig, or have one under another name or with other groups."""
    known = _record(pki).get("users", {})
    return [
        user
        for user in pki.users
        if known.get(user.name) != user.identity or not os.path.isfile(pki.kubeconfigs[user.name])
    ]


def make(pki: Pki, run: Run = commands.run) -> None:
    """Make what is missing or due; users that are new get their kubeconfig, and nothing else is touched for them.

    Authorities and the key of service accounts are kept, so that what they signed stays good. The record is written
    last: an interrupted run is done again. Raises PkiError, CommandError, FilesError.
    """
    os.makedirs(pki.directory, mode=0o700, exist_ok=True)
    record = os.path.join(pki.directory, RECORD)
    users, made_s = new_users(pki), _record(pki).get("made_s", 0.0)
    if reason(pki):
        users, made_s = list(pki.users), time.time()
        files.restore(record, None)
        _make_signed(pki, run)
    for user in users:
        groups = [word for group in user.groups for word in ("--org", group)]
        text = _phase(pki, ["kubeconfig", "user", "--client-name", user.client_name, *groups], run)
        files.write_atomic(pki.kubeconfigs[user.name], text, 0o600)
    known = {user.name: user.identity for user in pki.users}
    files.write_json(record, {"digest": pki.digest, "made_s": made_s, "users": known}, 0o600)


def _make_signed(pki: Pki, run: Run) -> None:
    """Make everything that the authorities sign anew, and the authorities where they are missing."""
    kept = {os.path.join(pki.certificates, name) for name in (*_AUTHORITY, *_SERVICE_ACCOUNTS)}
    _require_pairs(pki)
    for path in pki.wanted:
        if path not in kept:
            files.restore(path, None)
    files.write_atomic(os.path.join(pki.directory, CONFIG), pki.config, 0o600)
    _phase(pki, ["init", "phase", "certs", "all"], run)
    for name in PHASES:
        _phase(pki, ["init", "phase", "kubeconfig", name, "--kubeconfig-dir", pki.directory], run)
    lacking = [path for path in pki.wanted if not os.path.isfile(path)]
    if lacking:
        raise PkiError(f"{lacking[0]}: kubeadm did not make it; is {pki.kubeadm} of a supported version?")


def _require_pairs(pki: Pki) -> None:
    for names in (_AUTHORITY[0:2], _AUTHORITY[2:4], _AUTHORITY[4:6], _SERVICE_ACCOUNTS):
        there = [os.path.isfile(os.path.join(pki.certificates, name)) for name in names]
        if any(there) and not all(there):
            lost = names[there.index(False)]
            raise PkiError(
                f"{pki.certificates}/{lost}: is missing while {names[there.index(True)]} is there; restore it, or "
                "remove the cluster (kubernetes_state: absent) and make it anew"
            )


def _phase(pki: Pki, argv: Sequence[str], run: Run) -> str:
    config = os.path.join(pki.directory, CONFIG)
    return run([pki.kubeadm, *argv, "--config", config], timeout_s=_TIMEOUT_S).stdout

#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wrk_build
short_description: Build the HTTP load generator wrk from pinned source
version_added: 0.1.0
description:
  - Fetches wrk's source, compiles it in a private directory and installs it below C(wrk) in O(state_dir).
  - Each version and source has a directory of its own, with a C(build.json) that says what was built from what.
  - The one that was asked for last is always found under C(wrk/current/wrk).
  - Puts scripts for wrk beside it, where O(scripts) holds some.
  - What is there and still reports its version is not built again. A changed pin (O(version), O(commit), O(sha256)) is.
  - The system's LuaJIT and OpenSSL are used where their headers are installed, otherwise those that upstream bundles.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is fetched in check mode, so it can't tell whether a source is reachable.
  diff_mode:
    support: full
options:
  state:
    description: Whether a wrk should be there. V(absent) removes every build.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: State directory of the host; its journal records what is made.
    type: path
    default: /var/lib/colocation-testbed
  source:
    description:
      - Where the source comes from.
      - V(auto) tries V(git) and takes V(debian_source) where that can't be reached; RV(note) then says so.
      - V(git) fetches O(commit) from O(git_url).
      - V(url) downloads the tarball O(url), checked against O(sha256).
      - V(path) unpacks the tarball O(path) that is on the host, checked against O(sha256) where given.
      - V(debian_source) fetches the distribution's source package with an apt configuration of its own, so that the
        host's stays as it is. The archive's signatures are checked with the host's keyrings.
      - V(package) takes the wrk of the distribution's package, which must be installed.
    type: str
    choices: [auto, git, url, path, debian_source, package]
    default: auto
  version:
    description: Version that O(commit) or the tarball holds. A source of the distribution has its own.
    type: str
    default: 4.2.0
  commit:
    description:
      - Full commit id for source V(git). It is a checksum of the content; names can be moved, and are not taken.
    type: str
    default: a211dd5a7050b1f9e8a9870b95513060e72ac4a0
  git_url:
    description: Repository for source V(git).
    type: str
    default: https://github.com/wg/wrk.git
  git_timeout_s:
    description: Seconds that fetching from O(git_url) may take.
    type: int
    default: 20
  url:
    description: Address of a tarball for source V(url).
    type: str
    default: ""
  sha256:
    description: SHA-256 of the tarball in hexadecimal digits. Required for source V(url).
    type: str
    default: ""
  path:
    description: Tarball on the host for source V(path).
    type: str
    default: ""
  scripts:
    description: Scripts for wrk, file name to content. They are kept in C(wrk/scripts), and others there are removed.
    type: dict
    default: {}
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Build wrk from its repository, or from Debian's source where that can't be reached
  colocation.testbed.wrk_build:

- name: Build wrk from a tarball that is on the host already
  colocation.testbed.wrk_build:
    source: path
    path: /srv/wrk-4.2.0.tar.gz
    sha256: e255f696bff6e329f5d19091da6b06164b8d59d62cc9e673625bdcd27fe7bdad
"""

RETURN = r"""
wrk:
  description: The wrk that is there, as in its C(build.json). In check mode only what is known beforehand.
  returned: O(state=present)
  type: dict
  contains:
    path: {description: Where it is always found., type: str, sample: /var/lib/colocation-testbed/wrk/current/wrk}
    scripts: {description: Directory of the scripts., type: str, sample: /var/lib/colocation-testbed/wrk/scripts}
    source: {description: Source that it was built from., type: str, sample: debian_source}
    version: {description: Version that it reports., type: str, sample: 4.1.0-3}
    commit: {description: Commit id for source V(git)., type: str}
    sha256: {description: SHA-256 of the tarball or of the source package's description., type: str}
    origin: {description: Address that the source came from., type: str, sample: http://deb.debian.org/debian bookworm}
    compiler: {description: Compiler., type: str, sample: "cc (Debian 12.2.0-14+deb12u1) 12.2.0"}
    libraries: {description: Where LuaJIT and OpenSSL came from., type: dict, sample: {luajit: system 2.1.0-beta3}}
    time: {description: When it was built (UTC)., type: str, sample: "2026-10-01T12:00:00Z"}
built:
  description: Whether it was compiled now. A build that is there already may only be chosen again.
  returned: O(state=present)
  type: bool
pending:
  description: Whether something was to be done, also in check mode.
  returned: O(state=present)
  type: bool
note:
  description: One line about a source that could not be used, or an empty text.
  returned: O(state=present)
  type: str
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.wrk import build, record, source
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.record import Build, Request, Store

_BY = "wrk_build"
_REQUEST = ("source", "version", "commit", "git_url", "git_timeout_s", "url", "sha256", "path")
_TREE = {"tree": True}
_UNKNOWN = Build("", "", "", "", "", "", "", {}, "", None)


def facts(store: Store, found: Build | None, request: Request) -> dict[str, Any]:
    """Return what a user of wrk needs to know; before it is built, what is known of the request."""
    known: dict[str, Any] = {"path": store.program, "scripts": store.scripts}
    if found is None:
        return {**known, "source": request.source, "version": request.version}
    return {**known, **{key: value for key, value in asdict(found).items() if key != "program"}}


def resolve(request: Request) -> Request:
    """Check the request and complete it by the checksum of a tarball on the host. Raises RecordError, SourceError."""
    record.check(request)
    if request.source == "path":
        return replace(request, sha256=source.check_sum(request.path, request.sha256, request.path))
    return request


def find(builds: tuple[Build, ...], request: Request, current: Build | None) -> Build | None:
    """Return a build that satisfies the request, the chosen one first, then git's."""
    fitting = [item for item in builds if record.satisfies(item, request)]
    fitting.sort(key=lambda item: (item != current, item.source != "git"))
    return fitting[0] if fitting else None


def lines(found: Build | None, scripts: Mapping[str, str]) -> str:
    """Return what the diff shows: the build, and a digest of each script, which is ours and nobody's to review."""
    build_line = f"wrk {found.version} from {found.source}\n" if found else ""
    return build_line + "".join(f"{name}: {_digest(text)}\n" for name, text in sorted(scripts.items()))


def _digest(text: str) -> str:
    content = text.encode("utf-8")
    return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()[:16]}"


def present(module: AnsibleModule, store: Store, request: Request, book: journal.Journal) -> dict[str, Any]:
    """Choose a build that is there, or make one."""
    request = resolve(request)
    wanted_scripts = record.checked_scripts(module.params["scripts"])
    current, scripts = store.current(), store.read_scripts()
    found = find(store.builds(), request, current)
    pending = found is None or found != current or scripts != wanted_scripts
    result: dict[str, Any] = {"changed": pending, "pending": pending, "built": found is None, "note": ""}
    if pending and not module.check_mode:
        if found is None:
            build.check_tools(request)
        book.record("directory", store.root, _TREE, _BY)
        os.makedirs(store.root, exist_ok=True)
        if found is None:
            found, result["note"] = build.build(request, store)
        store.choose(found)
        store.write_scripts(wanted_scripts)
    expected = found or replace(_UNKNOWN, version=request.version, source=request.source)
    diff = {"before": lines(current, scripts), "after": lines(expected, wanted_scripts)}
    return {**result, "wrk": facts(store, found, request), "diff": diff}


def absent(module: AnsibleModule, store: Store, book: journal.Journal) -> dict[str, Any]:
    """Remove every build, and the journal's entry for them."""
    there = os.path.isdir(store.root)
    before = lines(store.current(), store.read_scripts()) if there else ""
    if there and not module.check_mode:
        shutil.rmtree(store.root)
        book.forget("directory", store.root)
    return {"changed": there, "diff": {"before": before, "after": ""}}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "source": {
                "type": "str",
                "choices": ["auto", "git", "url", "path", "debian_source", "package"],
                "default": "auto",
            },
            "version": {"type": "str", "default": "4.2.0"},
            "commit": {"type": "str", "default": "a211dd5a7050b1f9e8a9870b95513060e72ac4a0"},
            "git_url": {"type": "str", "default": "https://github.com/wg/wrk.git"},
            "git_timeout_s": {"type": "int", "default": 20},
            "url": {"type": "str", "default": ""},
            "sha256": {"type": "str", "default": ""},
            "path": {"type": "str", "default": ""},
            "scripts": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    store = Store(os.path.join(module.params["state_dir"], "wrk"))
    try:
        book = journal.of(module.params["state_dir"])
        if module.params["state"] == "present":
            result = present(module, store, Request(**{name: module.params[name] for name in _REQUEST}), book)
        else:
            result = absent(module, store, book)
    except (
        build.BuildError,
        source.SourceError,
        record.RecordError,
        commands.CommandError,
        files.FilesError,
        journal.JournalError,
    ) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"wrk: {exc.filename or store.root}: {exc.strerror}; check its mode and the free space")
    module.exit_json(**result)


if __name__ == "__main__":
    main()

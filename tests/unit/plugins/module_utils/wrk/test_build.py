"""Compiling and installing, with a source tree whose Makefile writes a shell script instead of compiling C."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.wrk import build, record, source
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.record import Request, Store

MAKEFILE = """\
wrk:
\t@printf '#!/bin/sh\\necho "wrk %s [epoll] flags: %s"\\nexit 1\\n' '$(VER)' '$(CFLAGS) $(WITH_LUAJIT)' > wrk
\t@chmod +x wrk
"""
LUAJIT = build.Library("luajit", True, "system 2.1", "-I/usr/include/luajit-2.1")
OPENSSL = build.Library("openssl", True, "system 3.0")


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system has both libraries, whatever this machine has."""
    monkeypatch.setattr(build, "system_library", lambda name: {"luajit": LUAJIT, "openssl": OPENSSL}[name])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    root = tmp_path / "wrk"
    root.mkdir()
    return Store(str(root))


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    """A request for a tarball that compiles at once."""
    return Request("path", "4.2.0", path=make_tarball(tmp_path, MAKEFILE))


def make_tarball(tmp_path: Path, makefile: str) -> str:
    tree = tmp_path / "tree" / "wrk-4.2.0"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "wrk.c").touch()
    (tree / "Makefile").write_text(makefile)
    path = tmp_path / "wrk.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, "wrk-4.2.0")
    return str(path)


def test_installs_program_and_record(asked: Request, store: Store) -> None:
    made, note = build.build(asked, store)
    assert (made.name, note) == ("4.2.0-path", "")
    assert store.builds() == (made,)
    assert store.current() == made
    assert made.libraries == {"luajit": "system 2.1", "openssl": "system 3.0"}
    assert made.compiler
    printed = commands.run([store.program, "-v"], check=False).stdout
    assert "-I/usr/include/luajit-2.1" in printed
    assert "/usr" in printed.split()[-1]
    assert sorted(path.name for path in Path(store.root).iterdir()) == ["4.2.0-path", "current"]


def test_a_second_build_replaces_the_first(asked: Request, store: Store) -> None:
    build.build(asked, store)
    made, _ = build.build(asked, store)
    assert store.builds() == (made,)


@pytest.mark.parametrize(
    ("makefile", "said"),
    [
        ("wrk:\n\t@echo 'fatal error: luajit.h: No such file' >&2; exit 1\n", "compiling .* failed"),
        ("wrk:\n\t@true\n", "reports version '', not 4.2.0"),
        (MAKEFILE.replace("$(VER)", "9"), "reports version '9', not 4.2.0"),
    ],
)
def test_a_failed_build_leaves_the_store_as_it_was(
    tmp_path: Path, asked: Request, store: Store, makefile: str, said: str
) -> None:
    before, _ = build.build(asked, store)
    with pytest.raises(build.BuildError, match=said):
        build.build(replace(asked, path=make_tarball(tmp_path, makefile)), store)
    assert store.current() == before
    assert sorted(path.name for path in Path(store.root).iterdir()) == ["4.2.0-path", "current"]


def test_auto_falls_back_and_says_so(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "debian"
    (tree / "src").mkdir(parents=True)
    (tree / "Makefile").write_text(MAKEFILE)

    def debian(_work_dir: str, _root: str) -> source.Tree:
        return source.Tree(str(tree), "debian_source", "4.1.0-3", "http://deb.example/debian bookworm", sha256="0" * 64)

    monkeypatch.setattr(source, "from_debian", debian)
    request = Request("auto", "4.2.0", commit="b" * 40, git_url="file:///nowhere")
    made, note = build.build(request, store)
    assert made.name == "4.1.0-3-debian_source"
    assert made.stands_in_for == {"version": "4.2.0", "commit": "b" * 40}
    assert record.satisfies(made, request)
    assert note.startswith(
        "wrk 4.1.0-3 was built from Debian's source package instead of 4.2.0 from git: wrk: git fetch: "
    )


def test_auto_without_any_source_names_both(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def debian(_work_dir: str, _root: str) -> source.Tree:
        raise source.SourceError("wrk: debian_source: no archive")

    monkeypatch.setattr(source, "from_debian", debian)
    with pytest.raises(source.SourceError, match=r"git fetch: .* And in its place: wrk: debian_source: no archive"):
        build.build(Request("auto", "4.2.0", commit="b" * 40, git_url="file:///nowhere"), store)


def test_packaged_wrk_is_linked(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = tmp_path / "packaged"
    packaged.write_text("#!/bin/sh\necho 'wrk debian/4.1.0-3+b2 [epoll] Copyright'\nexit 1\n")
    packaged.chmod(0o755)
    monkeypatch.setattr(build, "PACKAGED", str(packaged))
    made, _ = build.build(Request("package", "4.2.0"), store)
    assert made.name == "4.1.0-3+b2-package"
    assert Path(store.program).resolve() == packaged
    assert store.builds() == (made,)


def test_package_that_is_not_installed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "PACKAGED", "/nowhere/wrk")
    with pytest.raises(build.BuildError, match="install the package wrk"):
        build.build(Request("package", "4.2.0"), store)


@pytest.mark.parametrize(
    ("kind", "present", "said"),
    [
        ("path", {"make"}, "cc not found on this host, which source path needs"),
        ("path", set(), "cc, make not found"),
        ("git", {"cc", "make"}, "git not found"),
        ("debian_source", {"cc", "make", "apt-get"}, "dpkg-source not found"),
        ("auto", {"cc"}, "make not found"),
    ],
)
def test_missing_programs_are_named(kind: str, present: set[str], said: str) -> None:
    with pytest.raises(build.BuildError, match=said):
        build.check_tools(Request(kind, "4.2.0"), lambda name: name if name in present else None)


@pytest.mark.parametrize(("kind", "present"), [("auto", {"cc", "make"}), ("package", set())])
def test_nothing_is_missing(kind: str, present: set[str]) -> None:
    build.check_tools(Request(kind, "4.2.0"), lambda name: name if name in present else None)


def test_bundled_library_is_taken_from_the_tree(tmp_path: Path) -> None:
    tree = source.Tree(str(tmp_path), "git", "4.2.0", "https://x.example")
    with pytest.raises(build.BuildError, match=r"neither the system nor https://x.example has openssl"):
        build.bundled_library("openssl", tree)
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps" / "openssl-1.1.1i.tar.gz").touch()
    found = build.bundled_library("openssl", tree)
    assert found.description == "bundled openssl-1.1.1i.tar.gz"
    argv, environment = build.make_command(tree, [LUAJIT, found], 2)
    assert argv == ["make", "-j2", "VER=4.2.0", "WITH_LUAJIT=/usr"]
    assert environment == {"CFLAGS": "-DluaL_reg=luaL_Reg -I/usr/include/luajit-2.1"}

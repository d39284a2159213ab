"""Fetching source trees from tarballs, a repository, an HTTP server, and what apt leaves."""

from __future__ import annotations

import functools
import http.server
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.wrk import source
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.record import Request

ASKED = Request(source="path", version="4.2.0")


def tarball(path: Path, names: tuple[str, ...] = ("wrk-4.2.0/Makefile", "wrk-4.2.0/src/wrk.c")) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name), BytesIO(b""))
    return path


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def git(directory: Path, *arguments: str) -> str:
    options = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    argv = ["git", "-C", str(directory), *options, *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> tuple[str, str]:
    """A repository that looks like wrk's: its address and the id of its first commit, which is no branch's tip."""
    path = tmp_path / "repository"
    (path / "src").mkdir(parents=True)
    (path / "src" / "wrk.c").write_text("first")
    (path / "Makefile").write_text("")
    git(path, "init", "--quiet")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    first = git(path, "rev-parse", "HEAD")
    (path / "src" / "wrk.c").write_text("second")
    git(path, "commit", "-qam", "second")
    return f"file://{path}", first


def test_tarball_on_the_host(tmp_path: Path, work_dir: Path) -> None:
    path = tarball(tmp_path / "wrk.tar.gz")
    tree = source.fetch(replace(ASKED, path=str(path)), str(work_dir))
    assert (tree.source, tree.version, tree.sha256) == ("path", "4.2.0", source.sha256_of(str(path)))
    assert Path(tree.directory, "src", "wrk.c").is_file()


def test_tarball_with_another_checksum_is_not_unpacked(tmp_path: Path, work_dir: Path) -> None:
    path = tarball(tmp_path / "wrk.tar.gz")
    with pytest.raises(source.SourceError, match=r"has the SHA-256 [0-9a-f]{64}, not 0{64}; correct sha256"):
        source.fetch(replace(ASKED, path=str(path), sha256="0" * 64), str(work_dir))
    assert list(work_dir.iterdir()) == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("wrk-4.2.0/Makefile",), "has no src/wrk.c, so it is not wrk's source"),
        (("a/Makefile", "b/Makefile"), "holds 2 directories at its top"),
        (("Makefile",), "holds 0 directories at its top"),
        (("wrk/Makefile", "../outside"), "outside"),
    ],
)
def test_tarballs_that_are_not_wrk(tmp_path: Path, work_dir: Path, names: tuple[str, ...], said: str) -> None:
    path = tarball(tmp_path / "x.tar.gz", names)
    with pytest.raises(source.SourceError, match=said):
        source.fetch(replace(ASKED, path=str(path)), str(work_dir))
    assert not (work_dir / "outside").exists()


def test_members_are_checked_by_a_python_without_filters(
    tmp_path: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)  # 3.11.4 brought it
    for name in ("../outside", "/outside"):
        with pytest.raises(source.SourceError, match="no source tarball needs"):
            source.from_path(replace(ASKED, path=str(tarball(tmp_path / "x.tar.gz", (name,)))), str(work_dir))
        (work_dir / "tarball").rmdir()
    assert source.from_path(replace(ASKED, path=str(tarball(tmp_path / "y.tar.gz"))), str(work_dir)).version == "4.2.0"


def test_a_file_that_is_no_tarball(tmp_path: Path, work_dir: Path) -> None:
    path = tmp_path / "wrk.tar.gz"
    path.write_text("<html>not found</html>")
    with pytest.raises(source.SourceError, match="cannot be unpacked"):
        source.fetch(replace(ASKED, path=str(path)), str(work_dir))


def test_git_fetches_a_commit_by_its_id(repository: tuple[str, str], work_dir: Path) -> None:
    url, commit = repository
    tree = source.fetch(Request("git", "4.2.0", commit=commit, git_url=url), str(work_dir))
    assert (tree.commit, tree.origin) == (commit, url)
    assert Path(tree.directory, "src", "wrk.c").read_text() == "first"


@pytest.mark.parametrize(("commit", "url"), [("b" * 40, None), (None, "file:///nowhere")])
def test_git_failures_are_one_sentence(
    repository: tuple[str, str], work_dir: Path, commit: str | None, url: str | None
) -> None:
    request = Request("git", "4.2.0", commit=commit or repository[1], git_url=url or repository[0])
    with pytest.raises(source.SourceError, match=r"^wrk: git fetch: .*; check git_url and commit") as caught:
        source.fetch(request, str(work_dir))
    assert "\n" not in str(caught.value)


def test_git_that_is_too_slow(repository: tuple[str, str], work_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = commands.run

    def slow(argv: list[str], **options: object) -> commands.Result:
        if "fetch" in argv:
            argv = ["sleep", "60"]
        return real(argv, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(commands, "run", slow)
    with pytest.raises(source.SourceError, match="did not end within 1 s"):
        source.fetch(Request("git", "4.2.0", commit="b" * 40, git_url="file:///x", git_timeout_s=1), str(work_dir))


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Serve directories on loopback; returns their address."""
    servers: list[http.server.ThreadingHTTPServer] = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_arguments: object) -> None:
            pass

    def start(directory: Path) -> str:
        handler = functools.partial(Quiet, directory=str(directory))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_download(tmp_path: Path, work_dir: Path, serve: Callable[[Path], str]) -> None:
    path = tarball(tmp_path / "wrk.tar.gz")
    request = Request("url", "4.2.0", url=serve(tmp_path) + "/wrk.tar.gz", sha256=source.sha256_of(str(path)))
    assert source.fetch(request, str(work_dir)).origin == request.url


def test_download_of_something_else(tmp_path: Path, work_dir: Path, serve: Callable[[Path], str]) -> None:
    tarball(tmp_path / "wrk.tar.gz")
    with pytest.raises(source.SourceError, match="correct sha256"):
        source.fetch(Request("url", "4.2.0", url=serve(tmp_path) + "/wrk.tar.gz", sha256="0" * 64), str(work_dir))


def test_download_that_is_not_there(tmp_path: Path, work_dir: Path, serve: Callable[[Path], str]) -> None:
    with pytest.raises(source.SourceError, match="404"):
        source.fetch(Request("url", "4.2.0", url=serve(tmp_path) + "/x.tar.gz", sha256="0" * 64), str(work_dir))


def test_apt_is_asked_with_lists_and_sources_of_its_own(
    tmp_path: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What apt is given, and what is made of what it leaves. The real thing runs in the molecule scenario."""
    root = tmp_path / "root"
    (root / "etc/apt").mkdir(parents=True)
    (root / "etc/apt/sources.list").write_text("deb http://deb.example/debian bookworm main\n")
    asked: list[list[str]] = []

    def apt(argv: list[str], **options: object) -> commands.Result:
        asked.append(argv)
        if "source" in argv:
            tree = Path(str(options["directory"]))
            (tree / "wrk-4.1.0/src").mkdir(parents=True)
            (tree / "wrk-4.1.0/Makefile").touch()
            (tree / "wrk-4.1.0/src/wrk.c").touch()
            (tree / "wrk_4.1.0-3.dsc").write_text("Format: 3.0 (quilt)\nVersion: 1:4.1.0-3\nMaintainer: x\n")
        return commands.Result(tuple(argv), 0, "", "")

    monkeypatch.setattr(commands, "run", apt)
    tree = source.from_debian(str(work_dir), str(root))
    assert (tree.source, tree.version) == ("debian_source", "4.1.0-3")
    assert tree.origin == "http://deb.example/debian bookworm"
    assert [argv[-1] for argv in asked] == ["update", "wrk"]
    assert all(argv[3] == f"{work_dir}/apt.conf" for argv in asked)
    assert "Types: deb-src\nURIs: http://deb.example/debian\n" in (work_dir / "sources/wrk.sources").read_text()
    settings = (work_dir / "apt.conf").read_text()
    for name in ("Dir::Etc::sourceparts", "Dir::State::lists", "Dir::Cache"):
        assert f'{name} "{work_dir}/' in settings
    assert "#clear APT::Update::Post-Invoke;" in settings


@given(st.from_regex(r"([0-9]:)?[0-9][0-9a-z.+~-]{0,20}", fullmatch=True), st.text("abc: \n"), st.text("abc: \n"))
def test_version_in_a_description(version: str, before: str, after: str) -> None:
    found = source.parse_dsc_version(f"{before}\nVersion: {version}\n{after}")
    assert found == version.rpartition(":")[2]


@given(st.text().filter(lambda text: "Version" not in text))
def test_description_without_a_version(text: str) -> None:
    with pytest.raises(source.SourceError, match="no Version field"):
        source.parse_dsc_version(text)

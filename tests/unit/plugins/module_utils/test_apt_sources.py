"""The host's package sources, as apt reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import apt_sources
from ansible_collections.colocation.testbed.plugins.module_utils.apt_sources import Archive

DEB822 = """\
Types: deb
# http://snapshot.example/
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb deb-src
URIs: http://deb.debian.org/debian-security http://mirror.example/debian-security
Suites: bookworm-security
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: https://off.example
Suites: bookworm
Components: main
Enabled: no
"""
DEBIAN = Archive(("http://deb.debian.org/debian",), ("bookworm",), ("main",))
WORD = st.text("abcdefgh0123456789.-+", min_size=1, max_size=12).map(lambda text: "x" + text)
ARCHIVES = st.builds(
    Archive,
    st.lists(WORD.map(lambda host: f"http://{host}/debian"), min_size=1, max_size=3).map(tuple),
    st.lists(WORD, min_size=1, max_size=3).map(tuple),
    st.lists(WORD, max_size=3).map(tuple),
    st.one_of(st.just(""), WORD.map(lambda name: f"/usr/share/keyrings/{name}.gpg")),
)


def test_deb822() -> None:
    first, second = apt_sources.parse_deb822(DEB822)
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    assert first == Archive(DEBIAN.uris, ("bookworm", "bookworm-updates"), ("main",), keyring)
    assert second.uris[1] == "http://mirror.example/debian-security"
    assert second.components == ("main", "contrib")
    assert second.signed_by.splitlines()[1:3] == [" -----BEGIN PGP PUBLIC KEY BLOCK-----", " ."]


def test_one_line_entries() -> None:
    text = """\
# deb http://no.example bookworm main
deb http://deb.debian.org/debian bookworm main
deb [arch=amd64 signed-by=/etc/apt/keyrings/x.gpg] https://x.example/apt bookworm main contrib # mine
deb-src http://deb.debian.org/debian bookworm main
deb cdrom:
"""
    assert apt_sources.parse_list(text) == [
        DEBIAN,
        Archive(("https://x.example/apt",), ("bookworm",), ("main", "contrib"), "/etc/apt/keyrings/x.gpg"),
    ]


@given(ARCHIVES)
def test_what_is_rendered_is_read_back_once_it_offers_packages(archive: Archive) -> None:
    text = archive.render()
    assert text.startswith("Types: deb-src\n")
    assert apt_sources.parse_deb822(text) == []
    assert apt_sources.parse_deb822(text.replace("Types: deb-src", "Types: deb")) == [archive]


@given(st.text())
def test_parsers_take_any_text(text: str) -> None:
    for archive in apt_sources.parse_deb822(text) + apt_sources.parse_list(text):
        assert archive.uris
        assert archive.suites


def test_other_archives_are_left_out() -> None:
    node = Archive(("https://deb.nodesource.com/node_20.x",), ("nodistro",), ("main",))
    cloud = Archive(("https://packages.example",), ("cloud-sdk-bookworm",), ("main",))
    updates = Archive(DEBIAN.uris, ("bookworm", "bookworm-updates"), ("main",))
    assert apt_sources.of_release([node, DEBIAN, cloud, updates], "bookworm") == [DEBIAN, updates]
    assert apt_sources.of_release([node], "bookworm") == [node], "better an odd archive than none"


def test_release_of_a_host(tmp_path: Path) -> None:
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text('NAME="Debian"\nVERSION_CODENAME=bookworm\n')
    (tmp_path / "etc/apt/sources.list.d/debian.sources").write_text(DEB822)
    (tmp_path / "etc/apt/sources.list.d/old.list.save").write_text("deb http://old.example bookworm main\n")
    (tmp_path / "etc/apt/sources.list").write_text("deb http://other.example trixie main\n")
    assert [archive.suites[0] for archive in apt_sources.read(str(tmp_path))] == ["bookworm", "bookworm-security"]


def test_a_host_without_archives(tmp_path: Path) -> None:
    with pytest.raises(apt_sources.AptSourcesError, match="names no archive"):
        apt_sources.read(str(tmp_path))

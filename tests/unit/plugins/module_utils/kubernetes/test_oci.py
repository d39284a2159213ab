"""Images are packed and pushed to a registry of this test's own, which keeps what it gets in a dictionary."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import json
import shutil
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    oci_image,
    oci_layer,
    oci_registry,
)


class Store:
    """What the registry has, and how many blobs were sent to it."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.sent = 0


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def registry(store: Store) -> Iterator[oci_registry.Registry]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_GET(self) -> None:
            if self.path == "/v2/":
                self.answer(200)
            elif self.path in store.manifests:
                self.answer(200, store.manifests[self.path])
            else:
                self.answer(404)

        def do_HEAD(self) -> None:
            self.answer(200 if self.path.rpartition("/")[2] in store.blobs else 404)

        def do_POST(self) -> None:
            self.answer(202, Location="/upload/1?state=x")

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.startswith("/upload/1?state=x&digest="):
                digest = self.path.partition("digest=")[2]
                right = digest == f"sha256:{hashlib.sha256(body).hexdigest()}"
                store.blobs[digest] = body
                store.sent += 1
                self.answer(201 if right else 400, b"" if right else b"digest is wrong")
            else:
                store.manifests[self.path] = body
                self.answer(201)

        def log_message(self, *_arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield oci_registry.Registry(f"127.0.0.1:{made.server_address[1]}")
        made.shutdown()
        thread.join()


def image(**changed: Any) -> oci_image.Image:
    layer = oci_layer.Wanted(files=(oci_layer.File("/etc/motd", content="hello\n"),), directories={"/tmp": 0o1777})
    given: dict[str, Any] = {"repository": "a/b", "tag": "1", "layers": (layer,), "config": {"Cmd": ["x"]}, **changed}
    return oci_image.Image(**given)


def push(wanted: oci_image.Image, registry: oci_registry.Registry) -> bool:
    layers = [oci_layer.collect(layer) for layer in wanted.layers]
    digest = oci_image.recipe(wanted, layers)
    if oci_image.is_there(wanted, digest, registry):
        return False
    oci_image.push(wanted, layers, digest, registry)
    return True


def test_an_image_is_pushed_once_and_again_when_it_changes(registry: oci_registry.Registry, store: Store) -> None:
    assert push(image(), registry)
    assert not push(image(), registry)
    manifest = json.loads(store.manifests["/v2/a/b/manifests/1"])
    (layer,) = manifest["layers"]
    packed = store.blobs[layer["digest"]]
    assert layer["size"] == len(packed)
    config = json.loads(store.blobs[manifest["config"]["digest"]])
    assert config["config"] == {"Cmd": ["x"]}
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(gzip.decompress(packed)).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        found = {member.name: member for member in archive}
        assert sorted(found) == ["etc", "etc/motd", "tmp"]
        assert (found["tmp"].mode, found["etc/motd"].mtime, found["etc/motd"].uid) == (0o1777, 0, 0)
        handle = archive.extractfile("etc/motd")
        assert handle is not None
        assert handle.read() == b"hello\n"
    sent = store.sent
    # The layer is the same: only configuration and manifest are new.
    assert push(image(config={"Cmd": ["y"]}), registry)
    assert store.sent == sent + 1


def test_a_blob_is_refused_when_it_is_not_what_it_says(registry: oci_registry.Registry) -> None:
    with pytest.raises(oci_registry.RegistryError, match=r"answered 400 about the blob .* digest is wrong"):
        registry.put_blob("a", "sha256:0", b"x")


def test_a_registry_that_is_not_there() -> None:
    gone = oci_registry.Registry("127.0.0.1:9")
    assert not gone.answers()
    with pytest.raises(oci_registry.RegistryError, match=r"registry 127\.0\.0\.1:9: does not answer .* is it running"):
        gone.manifest("a", "1")


def test_a_program_comes_with_its_libraries(tmp_path: Path) -> None:
    found = oci_layer.collect(oci_layer.Wanted(programs=("cat",)))
    assert found["usr/bin/cat"].source == shutil.which("cat") or found["usr/bin/cat"].source.endswith("/cat")
    assert any(path.endswith("/libc.so.6") for path in found)
    assert (found["lib64"].kind, found["lib64"].link) == ("link", "usr/lib64")
    assert all(not path.startswith(("lib/", "bin/")) for path in found)
    with (tmp_path / "layer").open("wb") as handle:
        assert oci_layer.pack(found, handle).size_bytes == (tmp_path / "layer").stat().st_size


def test_an_interpreter_comes_with_its_library_and_runs_by_it(tmp_path: Path) -> None:
    found = oci_layer.collect(oci_layer.Wanted(interpreters=("/usr/bin/python3",)))
    assert not [path for path in found if "__pycache__" in path or "/test/" in path]
    with (tmp_path / "layer").open("wb") as handle:
        oci_layer.pack(found, handle)
    root = tmp_path / "root"
    root.mkdir()
    commands.run(["tar", "-xzf", str(tmp_path / "layer"), "-C", str(root)])
    loader = next(path for path in found if path.startswith("usr/lib64/ld-") or "/ld-linux" in path)
    libraries = next(path for path in found if path.endswith("/libc.so.6")).rpartition("/")[0]
    code = "import ctypes, hashlib, json, lzma, os, ssl, zoneinfo; print(os.__file__)"
    argv = [str(root / loader), "--library-path", str(root / libraries), str(root / "usr/bin/python3"), "-c", code]
    done = commands.run(argv, environment={"PYTHONHOME": str(root / "usr")})
    assert Path(done.stdout.strip()).is_relative_to(root)


def test_equal_content_gives_equal_layers(tmp_path: Path) -> None:
    digests = []
    for name in ("a", "b"):
        source = tmp_path / name
        source.mkdir()
        (source / "x").write_text("same")
        layer = oci_layer.collect(oci_layer.Wanted(files=(oci_layer.File("/data", source=str(source)),)))
        with (tmp_path / f"{name}.tar").open("wb") as handle:
            digests.append(oci_layer.pack(layer, handle))
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (oci_layer.Wanted(programs=("no-such-program",)), "program no-such-program: is not on this host"),
        (oci_layer.Wanted(files=(oci_layer.File("/x", source="/no/such"),)), "/no/such: is not on this host"),
        (oci_layer.Wanted(directories={"/": 0o755}), "image path '/': is none"),
        (oci_layer.Wanted(links={"/a/../../b": "c"}), "is none"),
    ],
)
def test_what_is_wrong_with_a_layer(wanted: oci_layer.Wanted, text: str) -> None:
    with pytest.raises(oci_layer.LayerError, match=text):
        oci_layer.collect(wanted)


def test_a_library_that_is_missing_is_named(tmp_path: Path) -> None:
    def run(argv: Any, **_options: Any) -> commands.Result:
        return commands.Result(tuple(argv), 0, "\tlibodd.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n", "")

    with pytest.raises(oci_layer.LayerError, match=r"needs libodd\.so\.1, which this host lacks"):
        oci_layer.libraries("/x", run)


@pytest.mark.parametrize(
    ("changed", "text"),
    [({"repository": "Upper"}, "is no name such as"), ({"tag": "-"}, "is no name"), ({"layers": ()}, "has no layers")],
)
def test_what_is_wrong_with_an_image(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(oci_image.ImageError, match=text):
        oci_image.check([image(**changed)])
    with pytest.raises(oci_image.ImageError, match="is there twice"):
        oci_image.check([image(), image()])

"""Build the BPF objects of files/bpf and write down what they were built from: `make bpf`.

The compiler is pinned, because another version gives other bytes; with the same one the objects are equal to the byte.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import platform
import re
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Iterator
from pathlib import Path

COMPILER = "clang-14"
VERSION = "14.0.6"
SOURCES = Path("files/bpf")
BUILT = SOURCES / "built"
MANIFEST = "manifest.json"
EMBEDDED = Path("plugins/module_utils/bandwidth/objects.py")
# Fetching atomics are of the third instruction set (Linux 5.12); the other variant does without, with spin locks (5.1).
VARIANTS = {"atomic": ("-mcpu=v3",), "spin": ("-mcpu=v2", "-DVARIANT_SPIN")}
FLAGS = ("-target", "bpf", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fno-ident")


class BuildError(Exception):
    """The objects cannot be built; the text says why and what to do."""


def compiler_version(compiler: str = COMPILER) -> str | None:
    """Return the version of the compiler, None when it isn't there."""
    try:
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"clang version ([0-9.]+)", done.stdout)
    return found[1] if found else None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources(root: Path) -> Iterator[Path]:
    """Yield the files that the objects are made from, by name."""
    yield from sorted([*(root / SOURCES).glob("*.c"), *(root / SOURCES).glob("*.h")])


def build(root: Path, target: Path) -> None:
    """Compile all variants into a directory, with the manifest. Raises BuildError."""
    found = compiler_version()
    if found != VERSION:
        raise BuildError(
            f"{COMPILER}: version {VERSION} is needed, found {found}; install Debian 12's package {COMPILER}"
        )
    headers = f"/usr/include/{platform.machine()}-linux-gnu"
    target.mkdir(parents=True, exist_ok=True)
    for name, flags in VARIANTS.items():
        # Relative paths, so that none of this machine's gets into the object.
        argv = [
            COMPILER,
            *FLAGS,
            *flags,
            f"-I{headers}",
            "-c",
            "bandwidth.c",
            "-o",
            str((target / f"{name}.o").resolve()),
        ]
        done = subprocess.run(argv, cwd=root / SOURCES, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise BuildError(f"{name}.o: {COMPILER} failed:\n{done.stderr}")
    manifest = {
        "compiler": f"{COMPILER} {VERSION}",
        "flags": {name: [*FLAGS, *flags] for name, flags in VARIANTS.items()},
        "objects": {f"{name}.o": digest(target / f"{name}.o") for name in VARIANTS},
        "sources": {path.name: digest(path) for path in sources(root)},
    }
    (target / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def embedded(root: Path) -> str:
    """Return a Python file with the objects in it: modules then need no file beside them on the host."""
    licence = (root / "plugins/module_utils/bandwidth/values.py").read_text(encoding="utf-8").splitlines()[:3]
    lines = [
        *licence,
        '"""The compiled objects of files/bpf/built, compressed. Written by `make bpf`, not by hand."""',
        "",
        "from __future__ import annotations",
        "",
        "import base64",
        "import zlib",
        "",
        "_TEXTS = {",
    ]
    for name in VARIANTS:
        packed = zlib.compress((root / BUILT / f"{name}.o").read_bytes(), 9)
        wrapped = textwrap.wrap(base64.b64encode(packed).decode("ascii"), 110)
        lines += [f'    "{name}": (', *(f'        "{line}"' for line in wrapped), "    ),"]
    lines += [
        "}",
        "",
        "",
        "def variants() -> list[tuple[str, bytes]]:",
        '    """Return the variants by name, the preferred one first."""',
        "    return [(name, zlib.decompress(base64.b64decode(text))) for name, text in _TEXTS.items()]",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Build into the repository."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    root = Path(__file__).resolve().parents[1]
    try:
        build(root, root / BUILT)
    except BuildError as exc:
        print(exc, file=sys.stderr)
        return 1
    (root / EMBEDDED).write_text(embedded(root), encoding="utf-8")
    for name in VARIANTS:
        print(f"{BUILT / name}.o  sha256 {digest(root / BUILT / f'{name}.o')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

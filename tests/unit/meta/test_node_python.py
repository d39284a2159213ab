"""Code for managed nodes runs with their oldest Python, 3.9."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from tooling import IMPORT_PREFIX, ROOT, files_below, pythons, relative

# plugins/module_utils/measure judges on the controller, but is kept to the same floor: one rule is easier than two.
NODE_CODE = files_below("plugins/modules", "plugins/module_utils", "files/node", suffix=".py")
IMPORTABLE = files_below("plugins/module_utils", suffix=".py")


@pytest.fixture(scope="module")
def python39() -> Path:
    """An interpreter of Python 3.9."""
    found = next(pythons(9), None)
    if found is None:
        pytest.skip("no Python 3.9 on PATH or in ~/.pyenv/versions: the syntax was checked by ast instead")
    return found


@pytest.mark.parametrize("path", NODE_CODE, ids=relative)
def test_parses_as_python_39(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    ast.parse(source, filename=str(path), feature_version=(3, 9))
    future = "from __future__ import annotations"
    assert not source.strip() or future in source, f"add {future}"


def test_compiles_with_python_39(python39: Path) -> None:
    code = "import sys\nfor name in sys.argv[1:]: compile(open(name, encoding='utf-8').read(), name, 'exec')"
    argv = [str(python39), "-c", code, *map(str, NODE_CODE)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_libraries_import_with_python_39_alone(python39: Path) -> None:
    """Importing finds what parsing can't: a union of types evaluated at run time, a library that 3.9 lacks."""
    names = [IMPORT_PREFIX + relative(path).removesuffix(".py").replace("/", ".") for path in IMPORTABLE]
    names = [name.removesuffix(".__init__") for name in names]
    code = "import importlib, sys\nfor name in sys.argv[2:]: importlib.import_module(name)"
    code = f"import sys; sys.path.insert(0, sys.argv[1])\n{code}"
    argv = [str(python39), "-I", "-B", "-c", code, str(ROOT / "collections"), *names]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr

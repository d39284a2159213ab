"""Imports point downwards only, as docs/architecture.md says."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from tooling import IMPORT_PREFIX, ROOT, files_below, relative

UTILS = "plugins.module_utils"
SHARED = f"{UTILS}.*"  # the files directly in module_utils; those of BASE lie below the kernel files, the rest above
BASE = {f"{UTILS}.{name}" for name in ("commands", "files", "journal", "pseudotext", "quantity")}
CONTROLLER_PACKAGES = {"ansible", "jinja2", "jsonschema", "matplotlib", "numpy", "yaml"}

# Folder -> (what of the collection, what from outside the standard library). The longest matching folder counts.
LAYERS: dict[str, tuple[set[str], set[str]]] = {
    "plugins/module_utils": ({SHARED, f"{UTILS}.kernel"}, set()),
    "plugins/module_utils/kernel": (BASE | {f"{UTILS}.kernel"}, set()),
    "plugins/module_utils/policy": ({f"{UTILS}.quantity", f"{UTILS}.policy", f"{UTILS}.bandwidth.values"}, set()),
    "plugins/module_utils/measure": ({f"{UTILS}.quantity", f"{UTILS}.measure"}, set()),
    "plugins/module_utils/shaping": ({SHARED, f"{UTILS}.kernel", f"{UTILS}.bandwidth", f"{UTILS}.shaping"}, set()),
    "plugins/module_utils/node": ({SHARED, f"{UTILS}.kernel", f"{UTILS}.node", f"{UTILS}.bandwidth"}, set()),
    "plugins/modules": ({UTILS}, {"ansible.module_utils"}),
    "plugins/connection": ({UTILS}, {"ansible"}),
    "plugins/inventory": ({UTILS, "plugins.plugin_utils"}, {"ansible"}),
    "plugins/doc_fragments": (set(), set()),
    "plugins/filter": ({UTILS, "plugins.plugin_utils"}, {"ansible"}),
    # An action reads its options from the documentation of the module of the same name.
    "plugins/action": ({UTILS, "plugins.plugin_utils", "plugins.modules"}, {"ansible"}),
    "plugins/plugin_utils": ({UTILS, "plugins.plugin_utils"}, CONTROLLER_PACKAGES),
    "files/node": ({f"{UTILS}.node"}, set()),
}
# A folder of module_utils that isn't named above may use all shared parts and kernel files.
OTHER_UTILS = ({SHARED, f"{UTILS}.kernel", f"{UTILS}.policy"}, set[str]())
SOURCES = files_below("plugins", "files", suffix=".py")


def layer(path: str) -> tuple[set[str], set[str]]:
    """Return what the file at a path of the repository may import."""
    if path.removesuffix(".py").replace("/", ".") in BASE:
        return BASE, set()
    folder = str(Path(path).parent)
    while folder not in LAYERS:
        if folder.startswith("plugins/module_utils/") and folder.count("/") == 2:
            own = folder.replace("/", ".")
            return OTHER_UTILS[0] | {own}, OTHER_UTILS[1]
        folder = str(Path(folder).parent)
        if folder == ".":
            raise AssertionError(f"{path} lies in no layer: name its folder in LAYERS and in docs/architecture.md")
    return LAYERS[folder]


def imports(source: str) -> set[str]:
    """Return the dotted names that a source imports; `from a import b` gives a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise AssertionError(f"line {node.lineno}: a relative import; write {IMPORT_PREFIX}…")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def allowed(name: str, patterns: set[str]) -> bool:
    for pattern in patterns:
        if pattern == SHARED:
            rest = name.removeprefix(f"{UTILS}.")
            if rest != name and (ROOT / "plugins" / "module_utils" / f"{rest.split('.')[0]}.py").is_file():
                return True
        elif name == pattern or name.startswith(f"{pattern}."):
            return True
    return False


def violations(path: str, source: str) -> list[str]:
    """Return the imports of a source that its layer forbids."""
    own, outside = layer(path)
    found = []
    for name in sorted(imports(source)):
        if name.startswith(IMPORT_PREFIX):
            if not allowed(name.removeprefix(IMPORT_PREFIX), own):
                found.append(name)
        elif name.split(".")[0] not in sys.stdlib_module_names and not allowed(name, outside):
            found.append(name)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_imports_point_downwards(path: Path) -> None:
    assert violations(relative(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("plugins/module_utils/kernel/x.py", f"from {IMPORT_PREFIX}plugins.module_utils.policy import y"),
        ("plugins/module_utils/kernel/x.py", "import yaml"),
        ("plugins/module_utils/kernel/x.py", f"from {IMPORT_PREFIX}plugins.module_utils import undo"),
        ("plugins/module_utils/journal.py", f"from {IMPORT_PREFIX}plugins.module_utils.kernel import procfs"),
        ("plugins/module_utils/x.py", "from ansible.module_utils.basic import AnsibleModule"),
        ("plugins/modules/x.py", f"from {IMPORT_PREFIX}plugins.plugin_utils import y"),
        ("plugins/modules/x.py", "import ansible.plugins"),
        ("plugins/module_utils/measure/x.py", "import numpy"),
    ],
)
def test_an_import_upwards_would_be_found(path: str, line: str) -> None:
    assert violations(path, line)

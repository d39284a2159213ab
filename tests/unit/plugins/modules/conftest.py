"""Modules run in this process as they would on a managed node."""

from __future__ import annotations

import pytest
from ansible.module_utils import _internal


@pytest.fixture(autouse=True)
def on_a_managed_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget that the process has loaded controller code, which other tests do: that would print warnings."""
    monkeypatch.setattr(_internal, "is_controller", False)

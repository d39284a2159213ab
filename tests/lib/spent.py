"""Where the time of a session went: seconds by folder, and by file where one is worth a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

#: A file, or a scenario, that takes less is only counted with its folder.
_WORTH_S = 20.0


class Spent:
    """Seconds of set-up, test and tear-down, for each test's folder and file."""

    def __init__(self) -> None:
        """Nothing was spent yet."""
        self._folders: dict[str, float] = defaultdict(float)
        self._parts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, nodeid: str, seconds: float) -> None:
        """Count a phase of the test `tests/<folder>/…/<file>.py::<name>`; a scenario counts by its parameter."""
        path, _, name = nodeid.partition("::")
        parts = path.split("/")
        folder = parts[1] if len(parts) > 2 else parts[0]
        self._folders[folder] += seconds
        scenario = name.partition("[")[2].rstrip("]") if folder in ("molecule", "gates", "latest") else ""
        self._parts[folder][scenario or parts[-1]] += seconds

    def lines(self) -> Iterable[str]:
        """Return the folders, dearest first, each followed by its dear files."""
        for folder, seconds in sorted(self._folders.items(), key=lambda item: -item[1]):
            yield f"{seconds / 60:5.1f} min  {folder}"
            for part, spent in sorted(self._parts[folder].items(), key=lambda item: -item[1]):
                if spent >= _WORTH_S and part != folder:
                    yield f"{'':11}{spent / 60:5.1f}  {part}"

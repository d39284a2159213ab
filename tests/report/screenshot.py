#!/usr/bin/env python3
"""Make a picture of a run's report: screenshot.py RUN_DIR OUT.png [--theme dark] [--width 1200] [--height 1500]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.report.browser import Browser, BrowserError


def main() -> int:
    """Open RUN_DIR/report.html and write the picture; 0 is the full height."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--theme", choices=["light", "dark"], default="light")
    parser.add_argument("--width", type=int, default=1200, help="CSS pixels")
    parser.add_argument("--height", type=int, default=0, help="CSS pixels from the top; 0 takes the whole page")
    parser.add_argument("--scale", type=float, default=1.0, help="pixels of the picture for each CSS pixel")
    arguments = parser.parse_args()
    report = arguments.run_dir / "report.html"
    if not report.is_file():
        print(f"{report}: not found; make it with the playbook report", file=sys.stderr)
        return 1
    try:
        with Browser(arguments.width, 900) as browser:
            browser.open(report, arguments.theme)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            browser.screenshot(arguments.out, height_px=arguments.height or None, scale=arguments.scale)
    except BrowserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

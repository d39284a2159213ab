"""Headless Chromium by the WebDriver protocol: Debian's `chromium` and `chromium-driver`, no Python package."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

START_S = 30.0
CALL_S = 60.0


class BrowserError(Exception):
    """The browser cannot be used: text = what: why; do this."""


def missing() -> str | None:
    """Say which program is missing, None when the browser can be started."""
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(program) is None:
            return f"{program}: not found; install it with apt-get install {package}"
    return None


class Browser:
    """One headless page. Use it as a context manager: the driver and the browser end with it."""

    def __init__(self, width_px: int = 1200, height_px: int = 900) -> None:
        """Choose the size of the window in CSS pixels."""
        self._size = (width_px, height_px)
        self._port = _free_port()
        self._session = ""
        self._driver: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Browser:
        """Start the driver and the browser."""
        problem = missing()
        if problem:
            raise BrowserError(problem)
        argv = ["chromedriver", f"--port={self._port}", "--silent"]
        self._driver = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait_for_driver()
            self._session = self._call("POST", "/session", _capabilities())["sessionId"]
            self.resize(*self._size)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the browser, then the driver."""
        try:
            self._call("DELETE", f"/session/{self._session}")
        finally:
            self._stop()

    def open(self, path: Path, theme: str = "light") -> None:
        """Open a file as a reader with this colour scheme would."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.cdp("Emulation.setEmulatedMedia", features=features)
        self._do("POST", "/url", {"url": path.resolve().as_uri()})

    def resize(self, width_px: int, height_px: int) -> None:
        """Set the size of the page as a device has it, phones included."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width_px,
            height=height_px,
            deviceScaleFactor=1,
            mobile=width_px < 600,
        )

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page and return its value."""
        return self._do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def console(self) -> list[str]:
        """Return what the page wrote to the console, and failed loads, since the last call."""
        entries = self._do("POST", "/se/log", {"type": "browser"})
        return [f"{entry['level']}: {entry['message']}" for entry in entries]

    def screenshot(self, path: Path, full: bool = True, height_px: int | None = None, scale: float = 1.0) -> None:
        """Write a picture of the page: all of it, or from the top down to a height."""
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        shown = height if full and height_px is None else (height_px or self.run("return innerHeight"))
        clip = {"x": 0, "y": 0, "width": width, "height": shown, "scale": scale}
        taken = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(taken["data"]))

    def cdp(self, command: str, **parameters: Any) -> Any:
        """Call the DevTools protocol."""
        return self._do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _do(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, f"/session/{self._session}{path}", body)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=CALL_S) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(f"{method} {path}: the driver refused: {error.read().decode()[:500]}") from error

    def _wait_for_driver(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise BrowserError(f"chromedriver: not ready after {START_S:g} s; start it by hand") from error
            time.sleep(0.05)

    def _stop(self) -> None:
        if self._driver is not None:
            self._driver.terminate()
            self._driver.wait(timeout=10)


def _capabilities() -> dict[str, Any]:
    # Root in a container has no user namespaces for the sandbox; /dev/shm may be 64 MB there.
    arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"]
    options = {"binary": shutil.which("chromium"), "args": [*arguments, "--force-color-profile=srgb"]}
    always = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    return {"capabilities": {"alwaysMatch": always}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

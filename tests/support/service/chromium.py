"""A client of Debian's Chromium through chromedriver (W3C WebDriver over HTTP)."""

import base64
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from support.patience import seconds, until
from support.service import components

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
"""Run headless, as any user, without network requests of the browser itself."""

DESKTOP, PHONE = (1280, 900), (360, 740)


class Browser:
    """A browser window with a fresh profile."""

    def __init__(self, driver: httpx.Client, folder: Path, *, javascript: bool) -> None:
        self._driver = driver
        options = {
            "binary": components.require("chromium"),
            "args": [*FLAGS, f"--user-data-dir={folder}"],
            "prefs": {"profile.managed_default_content_settings.javascript": 1 if javascript else 2},
        }
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._post("/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"/session/{made['sessionId']}"

    def open(self, address: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> None:
        """Show the page at this address in a window of this size, in pixels."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self._execute("Emulation.setDeviceMetricsOverride", metrics)
        self.media("", dark=dark)
        self._post(f"{self._session}/url", {"url": address})

    def media(self, kind: str, *, dark: bool = False) -> None:
        """Emulate the medium `print` or `screen`, and the preference for dark colours."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._execute("Emulation.setEmulatedMedia", {"media": kind, "features": [scheme]})

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        return self._post(f"{self._session}/execute/sync", {"script": f"return ({script})", "args": []})

    def wait_until(self, script: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds(60)
        while not self.evaluate(script):
            assert time.monotonic() < end, f"still false: {script}"
            time.sleep(0.05)

    def move_mouse(self, x: float, y: float) -> None:
        """Move the mouse to a position in pixels of the window."""
        self._execute("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def press(self, key: str) -> None:
        """Press and release a key, such as Enter or Escape."""
        for kind in ("rawKeyDown", "keyUp"):
            self._execute("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key})

    def save_screenshot(self, path: Path) -> None:
        """Save the full page as PNG."""
        shot = self._execute("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
        path.write_bytes(base64.b64decode(shot["data"]))

    def save_pdf(self, path: Path) -> None:
        """Save the printed page as PDF on A4."""
        path.write_bytes(base64.b64decode(until(self._print)))

    def _print(self) -> str | None:
        """Return the PDF in base64; None if the page took more than ChromeDriver's 10 seconds."""
        sheet = {"width": 21.0, "height": 29.7}
        try:
            pdf: str = self._post(f"{self._session}/print", {"page": sheet, "background": True})
        except RuntimeError as error:
            if not str(error).startswith("timeout"):
                raise
            return None
        return pdf

    def console_messages(self) -> list[str]:
        """Return the new messages of the console since the last call."""
        entries = self._post(f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]

    def close(self) -> None:
        self._driver.delete(self._session)

    def _execute(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._post(f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._driver.post(path, json=body).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(answer["message"])
        return answer


@contextmanager
def open_browser(folder: Path, *, javascript: bool = True) -> Iterator[Browser]:
    """Yield a browser with its profile in `folder`; skip or fail the test if Chromium is not installed."""
    with start_driver() as driver:
        browser = Browser(driver, folder / "profile", javascript=javascript)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def start_driver() -> Iterator[httpx.Client]:
    port = components.free_port()
    command: Sequence[str] = [components.require("chromedriver"), f"--port={port}", "--log-level=OFF"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=seconds(60)) as client:
            while not components.reachable(port):
                assert process.poll() is None, "chromedriver ended"
                time.sleep(0.05)
            yield client
    finally:
        process.terminate()
        process.wait()

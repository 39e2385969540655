"""A headless Chromium, as Debian ships it; nothing is downloaded."""

import base64
import json
import os
import shutil
import warnings
from pathlib import Path

import pytest

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")


class Chromium:
    """A browser that opens one file after another, remembers what it was asked for and takes screenshots."""

    def __init__(self, folder):
        if not (DRIVER and BROWSER):
            missing = " and ".join(n for n, p in (("chromium", BROWSER), ("chromium-driver", DRIVER)) if not p)
            pytest.skip(f"needs a browser: apt-get install {missing} (Debian packages)")
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for switch in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
            options.add_argument(f"--{switch}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
        self.folder = Path(os.environ.get("TKMEANS_SCREENSHOTS", folder))
        self.folder.mkdir(parents=True, exist_ok=True)

    def quit(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the driver's own sockets
            self.driver.quit()

    def command(self, name, **options):
        """Chromium's own protocol."""
        return self.driver.execute_cdp_cmd(name, options)

    def open(self, path, *, width=1200, height=900, phone=False, dark=False):
        """Open a file; complaints of the browser fail the test."""
        self.command("Emulation.setTouchEmulationEnabled", enabled=phone, maxTouchPoints=2 if phone else 1)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # a click must not meet a page that glides
        self.command("Emulation.setEmulatedMedia", features=[scheme, still])
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)  # what came before is forgotten
        self.driver.get(path.as_uri())
        complaints = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        assert not complaints
        return self

    def requests(self):
        """Every address the page has asked for since it was opened."""
        heard = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in heard if m["method"] == "Network.requestWillBeSent"]

    def ask(self, script, *args):
        """The value of a JavaScript expression."""
        return self.driver.execute_script(f"return {script}", *args)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        return self.ask("[...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def settle(self):
        """Let what was asked for be drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def shot(self, name):
        """A picture of the whole page for a person to look at."""
        self.settle()
        width, height = self.ask("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 9000), "scale": 1}
        taken = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        (self.folder / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))

    def print(self, name):
        """The page as it prints."""
        taken = self.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        (self.folder / f"{name}.pdf").write_bytes(base64.b64decode(taken["data"]))
        return base64.b64decode(taken["data"])

"""How large the report of a big fit is, and how quickly a browser opens it.

python -m benchmarks.report [docs/benchmarks/report.md]

Needs Debian's chromium and chromium-driver. Fails if the page of 100 000 rows is larger than 5 MB or takes
longer than 2 s to open: from the start of the navigation until everything is drawn and the page can be used.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import hold_to_the_bar, markdown, publish
from tests.support.chromium_browser import Chromium
from tkmeans import TKMeans, write_report
from tkmeans.datasets import make_contaminated

CASES = {
    "1 000 x 2, K = 5": (1000, 2, 5),
    "100 000 x 2, K = 15": (100_000, 2, 15),
    "100 000 x 20, K = 10": (100_000, 20, 10),
}
MOST_MEGABYTES, MOST_SECONDS = 5.0, 2.0
PHONE = 4  # times slower than this machine, as Chromium's own tools put it


def seconds_to_open(browser: Chromium, path: Path, repeats: int) -> float:
    """The least of several openings, until the page is complete and its picture drawn."""
    seen = []
    for _ in range(repeats):
        browser.open(path)
        browser.settle()
        loaded = browser.ask("performance.getEntriesByType('navigation')[0].loadEventEnd")
        seen.append(max(loaded, browser.ask("performance.getEntriesByName('drawn').at(-1).startTime")) / 1000)
    return min(seen)


def main(path: Path | None = None, repeats: int = 5) -> None:
    """Measure, publish, and fail above the bar."""
    rows, missed = [], []
    with tempfile.TemporaryDirectory() as folder:
        browser = Chromium(folder)
        for name, (n, p, k) in CASES.items():
            X, _ = make_contaminated(n, k, p, outlier_fraction=0.01, outlier_range=5.0, random_state=0)
            model = TKMeans(k, random_state=0).fit(X)
            start = time.process_time()
            names = [f"sample {i:06}" for i in range(len(X))]
            page = write_report(Path(folder) / "report.html", model, X, row_names=names)
            written = time.process_time() - start
            megabytes, seconds = page.stat().st_size / 1e6, seconds_to_open(browser, page, repeats)
            browser.command("Emulation.setCPUThrottlingRate", rate=PHONE)
            slow = seconds_to_open(browser, page, 2)
            browser.command("Emulation.setCPUThrottlingRate", rate=1)
            rows.append([name, f"{megabytes:.2f} MB", f"{written:.1f} s", f"{seconds:.2f} s", f"{slow:.2f} s"])
            if megabytes > MOST_MEGABYTES or seconds > MOST_SECONDS:
                missed.append(f"{name}: {megabytes:.2f} MB, {seconds:.2f} s")
        browser.quit()
    header = ["rows x columns", "size", "written in (CPU)", "opens in", f"opens in, processor {PHONE} times slower"]
    words = (
        "The report of a fit with 1 % of outliers and a name for every row, in headless Chromium, from disk: until all "
        f"is drawn and can be used, the least of {repeats}. Made by `python -m benchmarks.report`.\n\n"
    )
    publish("The report", words + markdown(header, rows), path)
    hold_to_the_bar(missed)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

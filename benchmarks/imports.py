"""What importing costs: the native extension alone, in fresh processes.

python -m benchmarks.imports
"""

from __future__ import annotations

import re
import subprocess
import sys

LIMIT = 5.0  # milliseconds


def extension_milliseconds() -> float:
    """The time Python's own clock gives to the extension module, without what it is imported after."""
    command = [sys.executable, "-X", "importtime", "-c", "import tkmeans.engines.native"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"import time: +(\d+) \| +\d+ \| +tkmeans\.engines\.native\._native", told)[1]) / 1000


def main(repeats: int = 7) -> None:
    """Print it, and fail above the limit."""
    least = min(extension_milliseconds() for _ in range(repeats))
    print(f"importing the native extension takes {least:.2f} ms")
    if least > LIMIT:
        raise SystemExit(f"more than {LIMIT} ms")


if __name__ == "__main__":
    main()

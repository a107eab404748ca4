"""`make bench`: run every measurement, print a table, write `benchmarks/results.json`."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import sys
from importlib import import_module
from pathlib import Path

MODULES = (
    "start_up",
    "calls",
    "growth",
    "tokens",
    "gate",
    "files",
    "terminal",
    "scripts",
    "places",
    "agent",
    "chat",
    "traces",
    "mcp_client",
    "mcp_server",
    "finding",
    "install",
)


def main(chosen: list[str]) -> int:
    """Run the named measurements, or all; 1 when one is past its limit."""
    results = []
    for name in chosen or MODULES:
        for row in import_module(f"benchmarks.{name}").rows():
            limit = "" if row.limit is None else f"≤ {row.limit:g}"
            mark = "" if row.limit is None else "ok" if row.holds else "TOO MUCH"
            print(f"{row.what:52} {row.value:10.2f} {row.unit:13} {limit:8} {mark}", flush=True)
            results.append({**row._asdict(), "holds": row.holds})
    machine = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "processor": _processor(),
    }
    place = Path(__file__).parent / "results.json"
    place.write_text(json.dumps({"machine": machine, "rows": results}, indent=1) + "\n")
    return int(not all(result["holds"] for result in results))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

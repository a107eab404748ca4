"""Measurements of `system_info`, one function per section."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.core import ToolContext

# Load is a rate: it takes two looks, this far apart.
_BETWEEN_SECONDS = 0.2


def _system(_: ToolContext, __: int) -> dict[str, Any]:
    info = {
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "host": platform.node(),
        "python": platform.python_version(),
        "uptime_hours": round((time.time() - psutil.boot_time()) / 3600, 1),
    }
    battery = getattr(psutil, "sensors_battery", lambda: None)()
    if battery is not None:
        info["battery_percent"] = round(battery.percent)
        info["plugged_in"] = battery.power_plugged
    heat: dict[str, Any] = getattr(psutil, "sensors_temperatures", dict)()
    hottest = [r.current for readings in heat.values() for r in readings if r.current is not None]
    if hottest:
        info["hottest_celsius"] = max(hottest)
    return info


def _cpu(ctx: ToolContext, _: int) -> dict[str, Any]:
    psutil.cpu_percent(percpu=True)
    ctx.cancellation.wait(_BETWEEN_SECONDS)
    per_core = psutil.cpu_percent(percpu=True)
    load = os.getloadavg() if hasattr(os, "getloadavg") else ()
    return {
        "cores": psutil.cpu_count(),
        "percent": round(sum(per_core) / max(len(per_core), 1), 1),
        "percent_per_core": per_core,
        "load_average": [round(value, 2) for value in load],
    }


def _memory(_: ToolContext, __: int) -> dict[str, Any]:
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return {
        "total_gb": _gb(memory.total),
        "available_gb": _gb(memory.available),
        "used_percent": memory.percent,
        "swap_used_gb": _gb(swap.used),
        "swap_total_gb": _gb(swap.total),
    }


def _disk(ctx: ToolContext, _: int) -> list[dict[str, Any]]:
    paths = dict.fromkeys([*(p.mountpoint for p in psutil.disk_partitions()), ctx.workspace])
    disks: list[dict[str, Any]] = []
    for path in paths:
        try:
            usage = psutil.disk_usage(path)
        except OSError as error:
            disks.append({"path": path, "error": error.strerror})
            continue
        disks.append(
            {
                "path": path,
                "total_gb": _gb(usage.total),
                "free_gb": _gb(usage.free),
                "used_percent": usage.percent,
            }
        )
    return disks


def _network(_: ToolContext, __: int) -> dict[str, Any]:
    counters = psutil.net_io_counters(pernic=True)
    addresses = {
        name: [a.address for a in entries if a.family.name in ("AF_INET", "AF_INET6")]
        for name, entries in psutil.net_if_addrs().items()
    }
    return {
        name: {
            "addresses": addresses.get(name, []),
            "sent_mb": round(count.bytes_sent / 1e6, 1),
            "received_mb": round(count.bytes_recv / 1e6, 1),
        }
        for name, count in counters.items()
    }


def _processes(ctx: ToolContext, top: int) -> dict[str, Any]:
    processes = list(psutil.process_iter())
    for process in processes:
        _percent(process)
    ctx.cancellation.wait(_BETWEEN_SECONDS)
    busy = sorted(((_percent(p), p) for p in processes), key=lambda pair: -pair[0])
    return {"count": len(processes), "busiest": [_line(p, cpu) for cpu, p in busy[:top]]}


def _percent(process: psutil.Process) -> float:
    try:
        return process.cpu_percent()
    except psutil.Error:
        return 0.0


def _line(process: psutil.Process, cpu: float) -> dict[str, Any]:
    # A process may end, or be somebody else's, at any moment.
    try:
        with process.oneshot():
            return {
                "pid": process.pid,
                "name": process.name(),
                "cpu_percent": cpu,
                "memory_mb": round(process.memory_info().rss / 1e6, 1),
                "user": process.username(),
            }
    except psutil.Error as error:
        return {"pid": process.pid, "cpu_percent": cpu, "error": type(error).__name__}


def _gb(count: int) -> float:
    return round(count / 1e9, 2)


SECTIONS: dict[str, Callable[[ToolContext, int], Any]] = {
    "system": _system,
    "cpu": _cpu,
    "memory": _memory,
    "disk": _disk,
    "network": _network,
    "processes": _processes,
}


def measure(section: str, ctx: ToolContext, top: int) -> Any:
    """One section; where the system does not tell, why it does not."""
    try:
        return SECTIONS[section](ctx, top)
    except (OSError, RuntimeError, NotImplementedError, psutil.Error) as error:
        return {"error": f"{type(error).__name__}: {error}"}

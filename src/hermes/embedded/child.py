"""Engine process: holds the model and answers requests, one JSON line each way."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import json
import os
import queue
import signal
import socket
import sys
import tempfile
import threading
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
# Interval of the CPU load measurement.
_LOOK_SECONDS = 0.15
# More threads are limited by memory bandwidth.
_MOST_THREADS = 8
_DAY = 86_400


class _Out:
    """Writes lines to the client; the output of the engine goes to stderr."""

    def __init__(self) -> None:
        self._handle = os.dup(1)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def __call__(self, **fields: Any) -> None:
        data = json.dumps(fields).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._handle, data) :]


def main() -> None:
    """Load the model, then answer requests until the input ends."""
    _end_with_parent()
    say = _Out()
    settings = json.loads(sys.stdin.buffer.readline() or b"{}")
    if not settings:
        return
    asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    cancelled: set[int] = set()
    threading.Thread(target=_listen, args=(asked, cancelled), daemon=True).start()
    began = time.monotonic()
    threads = int(settings.get("threads") or 0) or _free_cores()
    try:
        server = _load(settings, threads)
    except (ImportError, RuntimeError, ValueError, OSError) as error:
        say(failed=f"{type(error).__name__}: {error}"[:300])
        return
    say(ready=round(time.monotonic() - began, 2), threads=threads)
    while True:
        request = asked.get()
        try:
            _answer(server, request["id"], request["ask"], say, cancelled)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            say(id=request["id"], failed=f"{error}"[:500])


def _end_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _listen(asked: queue.SimpleQueue[dict[str, Any]], cancelled: set[int]) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "cancel" in message:
            cancelled.add(message["cancel"])
        else:
            asked.put(message)
    # Not an exception: the engine would not notice it in the middle of a token.
    os._exit(0)


def _load(settings: dict[str, Any], threads: int) -> Any:
    if settings.get("engine"):
        sys.path.insert(0, settings["engine"])
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.n_ctx = settings["window"]
    prefixes = settings.get("prefixes") or []
    # One slot per prefix and one for the rest; they share the context window.
    params.n_parallel = len(prefixes) + 1
    params.kv_unified = True
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 0
    params.n_gpu_layers = 0
    if not hasattr(socket, "AF_UNIX"):
        # The engine listens on a socket in any case; the key is secret.
        params.api_keys = [os.urandom(16).hex()]
        return xllamacpp.Server(params)
    # The engine listens on a socket in any case: in a private folder, which is removed.
    with tempfile.TemporaryDirectory(prefix="hermes-model-") as folder:
        params.hostnames = [os.path.join(folder, "s.sock")]
        keep = settings.get("keep") or ""
        if keep:
            params.slot_save_path = os.path.join(keep, "")
        server = xllamacpp.Server(params)
        if keep:
            for slot, prefix in enumerate(prefixes):
                _prepare(server, slot, prefix, keep, params.hostnames[0])
            _tidy(keep, {_name(prefix) for prefix in prefixes})
        with contextlib.suppress(FileNotFoundError):
            os.unlink(params.hostnames[0])
    return server


def _prepare(server: Any, slot: int, prefix: str, keep: str, address: str) -> None:
    """Load a prefix into a slot: from its file, or by reading it and saving the file."""
    name = _name(prefix)
    path = os.path.join(keep, name)
    if os.path.exists(path) and _slot(address, slot, "restore", name):
        return
    ask = {"prompt": prefix, "n_predict": 0, "max_tokens": 0, "id_slot": slot}
    server.handle_completions({**ask, "stream": True, "cache_prompt": True}, lambda _: None)
    draft = f"{name}.{os.getpid()}"
    if _slot(address, slot, "save", draft):
        os.replace(os.path.join(keep, draft), path)


def _name(prefix: str) -> str:
    return hashlib.sha256(prefix.encode()).hexdigest()[:24] + ".prefix"


def _tidy(keep: str, names: set[str]) -> None:
    """Remove the files of unused prefixes."""
    with os.scandir(keep) as entries:
        for entry in entries:
            if entry.name not in names and entry.stat().st_mtime < time.time() - _DAY:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)


def _slot(address: str, slot: int, action: str, name: str) -> bool:
    """Save or restore the cache of a slot; whether it worked."""
    body = json.dumps({"filename": name}).encode()
    head = (
        f"POST /slots/{slot}?action={action} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            line.sendall(head.encode() + body)
            answer = line.makefile("rb").readline()
    except OSError:
        return False
    return b" 200 " in answer


def _answer(server: Any, number: int, ask: dict[str, Any], say: _Out, cancelled: set[int]) -> None:
    last: dict[str, Any] = {}
    failed = ""

    def on_chunk(chunk: dict[str, Any]) -> bool:
        nonlocal last, failed
        if "error" in chunk or not chunk.get("choices"):
            failed = str(chunk.get("error") or chunk.get("message") or chunk)[:500]
            return True
        last = chunk
        if text := chunk["choices"][0].get("text"):
            say(id=number, text=text)
        return number in cancelled

    if number not in cancelled:
        server.handle_completions({**ask, "stream": True, "cache_prompt": True}, on_chunk)
    if failed:
        say(id=number, failed=failed)
        return
    times = last.get("timings") or {}
    choice = (last.get("choices") or [{}])[0]
    say(
        id=number,
        done={
            "finish": choice.get("finish_reason") or "stop",
            "read": times.get("prompt_n", 0),
            "cached": times.get("cache_n", 0),
            "written": times.get("predicted_n", 0),
        },
    )


def _free_cores() -> int:
    """The number of free cores; more threads would only spin."""
    cores = os.cpu_count() or 1
    try:
        before = _idle()
        time.sleep(_LOOK_SECONDS)
        after = _idle()
        share = (after[0] - before[0]) / max(after[1] - before[1], 1)
        free = cores * share
    except (OSError, ValueError, IndexError):
        free = cores - os.getloadavg()[0] if hasattr(os, "getloadavg") else cores / 2
    return max(1, min(int(free + 0.4), cores, _MOST_THREADS))


def _idle() -> tuple[int, int]:
    """Ticks of all cores so far: idle and total."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


if __name__ == "__main__":
    main()

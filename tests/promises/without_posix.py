"""Run in an interpreter of its own: Hermes where the system is none of Unix's kin.

What only Unix has is taken out of the standard library, the way it is missing on Windows; then
every module is imported and tools that read are called. Prints what went wrong, as JSON.
"""

from __future__ import annotations

import asyncio  # noqa: F401 - parts of the standard library that have forms for each system
import concurrent.futures
import importlib
import json
import multiprocessing  # noqa: F401
import os
import pkgutil
import signal
import sys
import tarfile  # noqa: F401
import tempfile
import webbrowser  # noqa: F401

import prompt_toolkit.shortcuts  # noqa: F401
import psutil  # noqa: F401

import mcp  # noqa: F401 - libraries that have forms for each system of their own

_MODULES = "fcntl pwd grp resource termios pty tty syslog readline"
_OF_OS = """
    fork getuid geteuid getgid getegid getgroups setsid getpgid getpgrp killpg setuid setgid
    O_NOFOLLOW O_DIRECTORY O_NONBLOCK O_CLOEXEC O_PATH mkfifo mknod chown lchown fchown fchmod
    getxattr setxattr listxattr removexattr openpty forkpty wait3 wait4 waitid WNOHANG pidfd_open
    sched_getaffinity getloadavg uname statvfs fstatvfs sysconf posix_spawn pread pwrite nice
    getpriority setpriority ttyname tcgetpgrp memfd_create sendfile posix_fadvise register_at_fork
"""
_OF_SIGNAL = """
    SIGKILL SIGHUP SIGCHLD SIGUSR1 SIGUSR2 SIGALRM SIGWINCH SIGTSTP SIGCONT SIGSTOP SIGPIPE SIGQUIT
    SIGTTIN SIGTTOU pthread_sigmask setitimer
"""
# Started as programs of their own, by backends that only Linux has.
_PROGRAMS = ("hermes.environments.host.guardian",)
_CALLS = (
    ("read_file", {"path": "a.txt"}),
    ("search_files", {"pattern": "needle", "path": "."}),
    ("search_files", {"pattern": "a*", "target": "files", "path": "."}),
    ("directory_list", {"path": "."}),
    ("file_diff", {"path": "a.txt", "text": "other"}),
    ("write_file", {"path": "b.txt", "content": "text"}),
    ("patch", {"path": "a.txt", "old_string": "needle", "new_string": "thread"}),
    ("todo", {}),
    ("tool_search", {"query": "read a file"}),
)


def _take_away() -> None:
    for name in _MODULES.split():
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in ((os, _OF_OS), (signal, _OF_SIGNAL)):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)


def _imports() -> list[str]:
    import hermes

    failed = []
    for info in pkgutil.walk_packages(hermes.__path__, "hermes."):
        if info.name in _PROGRAMS or info.name.endswith(".__main__"):
            continue
        try:
            importlib.import_module(info.name)
        except (ImportError, AttributeError) as error:
            failed.append(f"{info.name}: {error}")
    return failed


def _calls() -> list[str]:
    from hermes.core import ToolCall
    from hermes.runtime.app import default_app

    with open("a.txt", "w", encoding="utf-8") as file:
        file.write("a needle\n")
    app = default_app()
    outcomes = [app.runtime.call_sync(ToolCall(name, dict(given))) for name, given in _CALLS]
    app.runtime.close()
    return [f"{one.tool}: {one.content}" for one in outcomes if one.status != "ok"]


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(1) as pool, tempfile.TemporaryDirectory() as folder:
        pool.submit(int).result()
        os.environ["HERMES_HOME"] = os.path.join(folder, "home")
        os.mkdir(os.path.join(folder, "work"))
        os.chdir(os.path.join(folder, "work"))
        _take_away()
        print(json.dumps({"imports": _imports(), "calls": _calls()}))
        os.chdir(folder)

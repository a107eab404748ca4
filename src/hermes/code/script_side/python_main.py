"""Runs a Python script: compile it, execute it as `__main__`, print its last expression.

This file is executed as text, behind assignments of SCRIPT, CLIENT and CHANNEL. It imports nothing
that most scripts do not need: start-up counts.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST, without the import


def run(script: str, client: str, channel: Mapping[str, str]) -> int:
    """Run a script; its exit code."""
    import os

    namespace = vars(sys.modules["__main__"])
    kept = {"__name__": "__main__", "__builtins__": __builtins__, "__file__": "script.py"}
    namespace.clear()
    namespace.update(kept)
    # The program itself came by standard input.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - open as long as the process
    sys.argv = ["script.py"]
    sys.path.insert(0, "")
    sys.meta_path.insert(0, _Modules(client, channel))
    try:
        tree: Any = compile(script, "script.py", "exec", _ONLY_TREE)
        last = None
        if tree.body and type(tree.body[-1]).__name__ == "Expr":
            import _ast

            last = _ast.Expression(tree.body.pop().value)
        exec(compile(tree, "script.py", "exec"), namespace)
        if last is not None:
            value = eval(compile(last, "script.py", "eval"), namespace)
            if value is not None:
                print(value if isinstance(value, str) else repr(value))
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - reported, and the exit code
        _report(error, script)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


class _Modules:
    """Finder of `hermes_tools`; hides the program's own package, which is of no use here."""

    def __init__(self, client: str, channel: Mapping[str, str]) -> None:
        self.client = client
        self.channel = channel

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "hermes" or name.startswith("hermes."):
            raise ModuleNotFoundError(
                "the program's own package can't be imported in a script; "
                "its tools are in hermes_tools",
                name=name,
            )
        if name != "hermes_tools":
            return None
        from importlib.machinery import ModuleSpec

        loader: Any = self
        return ModuleSpec(name, loader)

    def create_module(self, spec: ModuleSpec) -> None:
        """A plain module."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["CHANNEL"] = self.channel
        # A module of the project must not take the place of one of the standard library.
        kept, sys.path = sys.path, [folder for folder in sys.path if folder]
        try:
            exec(compile(self.client, "hermes_tools.py", "exec"), vars(module))
        finally:
            sys.path = kept


def _report(error: BaseException, script: str) -> None:
    """The traceback without our own frames."""
    import linecache
    import traceback

    linecache.cache["script.py"] = (len(script), None, script.splitlines(True), "script.py")
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != "script.py":
        trace = trace.tb_next
    sys.stdout.flush()
    stack = traceback.TracebackException(type(error), error, trace)
    ours = ("hermes_tools.py", "<string>")
    for entry in (stack, stack.__cause__, stack.__context__):
        if entry is not None:
            frames = [frame for frame in entry.stack if frame.filename not in ours]
            entry.stack = traceback.StackSummary.from_list(frames)
    sys.stderr.write("".join(stack.format()))


_given = globals()
if "SCRIPT" in _given:
    sys.exit(run(_given.pop("SCRIPT"), _given.pop("CLIENT"), _given.pop("CHANNEL")))

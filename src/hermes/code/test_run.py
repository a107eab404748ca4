"""Test runners of the project: choose one, run a selection, and read its report.

Reports for machines (JUnit, JSON) come before the text that a runner prints.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import msgspec

from hermes.code import project
from hermes.code.project import Program
from hermes.core.entry import ToolResult
from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hermes.code.project import Project
    from hermes.core.context import ToolContext

_PY = ("pytest.ini", r"pyproject.toml:^\[tool\.pytest", r"setup.cfg:^\[tool:pytest",
       r"tox.ini:^\[pytest", "conftest.py", "tests/conftest.py")  # fmt: skip
# In order of preference. `{report}` is a file for the report, `{select}` the chosen tests.
RUNNERS = (
    Program("pytest", (), _PY, "-v --tb=short --junitxml={report} {select}"),
    Program("vitest", (), ("vitest.config.ts", "vitest.config.js", "vitest.config.mts",
                           'package.json:"vitest"'),
            "run --reporter=verbose --reporter=json --outputFile.json={report} {select}"),
    Program("jest", (), ("jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs",
                         "jest.config.json", 'package.json:"jest"'),
            "--json --outputFile={report} {select}"),
    Program("go test", (), ("go.mod",), "test -json {select}", program="go"),
    Program("cargo test", (), ("Cargo.toml",), "test --no-fail-fast {select}", program="cargo"),
    Program("node --test", (), (r'package.json:"test": *"node --test',),
            "--test --test-reporter=spec --test-reporter-destination=stdout "
            "--test-reporter=junit --test-reporter-destination={report} {select}", program="node"),
    Program("unittest", (), (), "-m unittest -v {select}", program="python3", default=True),
    Program("make test", (), (r"Makefile:^test:",), "test", program="make"),
)  # fmt: skip
# Between what a runner prints and its report.
_MARK = "----8<---- report of the test runner ----8<----"
_MOST_FAILURES = 20
_TRACEBACK = 1_500


class Failure(msgspec.Struct, omit_defaults=True):
    """A failed test: its name, where it failed, the assertion, and the end of the traceback."""

    test: str
    message: str = ""
    where: str = ""
    traceback: str = ""


class Report(msgspec.Struct):
    """The counts of a run, and its failures."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[Failure] = []


def plan(
    ctx: ToolContext,
    runner: str | None,
    paths: Sequence[str],
    name: str | None,
    select: str,
) -> tuple[Program, str, list[str]]:
    """The runner, its command, and notes."""
    there = project.look(ctx, RUNNERS)
    program = _runner(there, runner)
    words, notes = _selection(program, there, paths, name, select)
    path = there.programs[program.executable]
    if program.name == "unittest":
        path = there.programs.get("python3", path)
    command = f"{shlex.quote(path)} {program.command.replace('{select}', words)}".strip()
    if "{report}" not in command:
        return program, command, notes
    body = command.replace("{report}", '"$report"')
    return (
        program,
        (
            f"report=$(mktemp); {body}; code=$?; printf '\\n%s\\n' {shlex.quote(_MARK)}; "
            'cat "$report"; rm -f "$report"; exit $code'
        ),
        notes,
    )


def run_tests(
    ctx: ToolContext,
    runner: str | None,
    paths: Sequence[str],
    name: str | None,
    select: str,
    *,
    timeout: float,
) -> ToolResult:
    """Run tests; counts and failures."""
    program, command, notes = plan(ctx, runner, paths, name, select)
    result = project.run(ctx, command, timeout=timeout)
    printed, _, text = result.stdout.partition(_MARK)
    report = _read(program, text.strip(), f"{printed}\n{result.stderr}")
    data: dict[str, Any] = {
        "runner": program.name,
        "passed": report.passed,
        "failed": report.failed,
        "skipped": report.skipped,
        "seconds": round(result.duration, 1),
    }
    if report.failures:
        shown = report.failures[:_MOST_FAILURES]
        data["failures"] = [msgspec.to_builtins(failure) for failure in shown]
    if result.timed_out:
        last = [line for line in printed.splitlines() if line.strip()][-1:]
        return ToolResult(
            data,
            error=f"stopped after {result.duration:.0f} s; what had run is counted",
            hint=f"Allow more time, or select fewer tests. Last line: {' '.join(last)[:200]}",
            notes=notes,
        )
    if result.exit_code and not report.failed:
        # It broke before or beside the tests: a missing import, a syntax error.
        data["exit_code"] = result.exit_code
        data["output"] = "\n".join([printed.strip(), result.stderr.strip()]).strip()[-4_000:]
    if not report.passed + report.failed + report.skipped and not result.exit_code:
        notes.append("no test was run")
    return ToolResult(data, notes=notes)


def _runner(there: Project, wanted: str | None) -> Program:
    usable = [one for one in RUNNERS if one.executable in there.programs]
    if wanted:
        for one in usable:
            if one.name == wanted:
                return one
        raise ToolError(
            f"{wanted} can't be run here",
            hint=f"Found: {', '.join(one.name for one in usable) or 'no test runner'}.",
        )
    for one in usable:
        if there.markers.intersection(one.markers):
            return one
    for one in usable:
        # Nothing is configured: pytest runs tests of unittest too.
        if one.name == "pytest" or one.default:
            return one
    raise ToolError(
        "no test runner was found",
        hint=f"Install or configure one of {', '.join(one.name for one in RUNNERS)}.",
    )


def _selection(
    program: Program, there: Project, paths: Sequence[str], name: str | None, select: str
) -> tuple[str, list[str]]:
    """The arguments that choose tests, and notes on what can't be chosen."""
    words, notes = [path if not path.startswith("-") else f"./{path}" for path in paths], []
    if select == "changed" and not paths:
        changed = list(there.changed)
        if program.name == "jest" and changed:
            words = ["--findRelatedTests", *changed]
        elif program.name == "vitest" and changed:
            words = ["related", *changed]
        else:
            words = [path for path in changed if _is_test(path)]
            if not words:
                notes.append("no test file was changed: all tests were run")
    if select == "failed":
        options = {"pytest": ["--last-failed"], "jest": ["--onlyFailures"]}.get(program.name)
        if options is None:
            notes.append(f"{program.name} does not remember what failed: all tests were run")
        words += options or []
    if name:
        words += [part.replace("{name}", name) for part in _BY_NAME.get(program.name, ("{name}",))]
    if program.name == "go test" and not paths:
        words.append("./...")
    return shlex.join(words), notes


_BY_NAME: dict[str, tuple[str, ...]] = {
    "pytest": ("-k", "{name}"),
    "unittest": ("-k", "{name}"),
    "jest": ("-t", "{name}"),
    "vitest": ("-t", "{name}"),
    "go test": ("-run", "{name}"),
    "node --test": ("--test-name-pattern={name}",),
    "make test": (),
}


def _is_test(path: str) -> bool:
    return re.search(r"(^|/)test_|_test\.|\.test\.|\.spec\.|(^|/)tests?/", path) is not None


# -- reports ----------------------------------------------------------------------------------


def _read(program: Program, text: str, printed: str) -> Report:
    read = _READERS.get(program.name)
    try:
        return read(text or printed) if read is not None else _from_text(printed)
    except (ET.ParseError, msgspec.DecodeError, KeyError, TypeError):
        # Stopped, or broken before a report was written.
        return _from_text(printed)


def _from_junit(text: str) -> Report:
    report = Report()
    # Without a document type no entity is expanded.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ET.ParseError("a document type in a report")
    for case in ET.fromstring(text).iter("testcase"):
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        trouble = case.find("failure")
        if trouble is None:
            trouble = case.find("error")
        if trouble is not None:
            report.failed += 1
            report.failures.append(_failure(name, trouble.get("message") or "", trouble.text or ""))
        elif case.find("skipped") is not None:
            report.skipped += 1
        else:
            report.passed += 1
    return report


def _from_jest(text: str) -> Report:
    data = msgspec.json.decode(text)
    report = Report(data["numPassedTests"], data["numFailedTests"], data["numPendingTests"])
    for file in data["testResults"]:
        for case in file["assertionResults"]:
            if case["status"] == "failed":
                trace = "\n".join(case["failureMessages"])
                message = trace.partition("\n    at ")[0]
                report.failures.append(_failure(case["fullName"], message, trace))
        if file["status"] == "failed" and not file["assertionResults"]:
            report.failed += 1
            report.failures.append(_failure(file["name"], file.get("message", ""), ""))
    return report


def _from_go(text: str) -> Report:
    report, output = Report(), dict[str, str]()
    for line in text.splitlines():
        event = msgspec.json.decode(line) if line.startswith("{") else {}
        name = event.get("Test")
        if name is None:
            continue
        test = f"{event['Package']}.{name}"
        if event["Action"] == "output":
            output[test] = output.get(test, "") + event["Output"]
        elif event["Action"] == "pass":
            report.passed += 1
        elif event["Action"] == "skip":
            report.skipped += 1
        elif event["Action"] == "fail":
            report.failed += 1
            report.failures.append(_failure(test, "", output.get(test, "")))
    return report


_TEXT_LINE = re.compile(
    r"^(?:test )?(?P<test>\S.*?)\s+(?:\.\.\. )?(?P<end>ok|PASSED|FAILED|FAIL|ERROR|SKIPPED|XFAIL"
    r"|skipped\b.*|ignored|failed)(?:\s+\[.*\])?$",
    re.MULTILINE,
)
_UNITTEST = re.compile(
    r"^=+\n(?:FAIL|ERROR): (?P<test>.+)\n-+\n(?P<trace>(?:.*\n)*?)(?=^(?:=|-){20,})", re.MULTILINE
)
_CARGO = re.compile(r"^---- (?P<test>\S+) stdout ----\n(?P<trace>(?:.+\n)*)", re.MULTILINE)


def _from_text(text: str) -> Report:
    """Counts and failures from what unittest, pytest -v and cargo print."""
    report = Report()
    for match in _TEXT_LINE.finditer(text):
        end = match["end"].lower()
        if end in ("ok", "passed"):
            report.passed += 1
        elif end.startswith(("skip", "ignored", "xfail")):
            report.skipped += 1
        else:
            report.failed += 1
    for match in (*_UNITTEST.finditer(text), *_CARGO.finditer(text)):
        lines = match["trace"].strip().splitlines()
        last = lines[-1] if lines else ""
        report.failures.append(_failure(match["test"].partition("\n")[0], last, match["trace"]))
    return report


_WHERE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)|(?P<path>[^\s:(]+):(?P<at>\d+)')


def _failure(test: str, message: str, trace: str) -> Failure:
    """A failure with the last place of the traceback that is in the project."""
    where = ""
    for match in _WHERE.finditer(trace):
        path = match["file"] or match["path"]
        if not re.search(r"site-packages|node_modules|node:|/usr/lib|/lib/python|internal/", path):
            path = path.removeprefix("file://")
            place = os.path.relpath(path) if os.path.isabs(path) else path
            where = f"{place}:{match['line'] or match['at']}"
            if "node" in trace or "    at " in trace:
                # Node names the innermost frame first.
                break
    trace = trace.strip()
    if len(trace) > _TRACEBACK:
        trace = f"…{trace[-_TRACEBACK:]}"
    return Failure(test, message.strip()[:1_000], where, trace if trace != message.strip() else "")


_READERS: dict[str, Callable[[str], Report]] = {
    "pytest": _from_junit,
    "node --test": _from_junit,
    "jest": _from_jest,
    "vitest": _from_jest,
    "go test": _from_go,
}

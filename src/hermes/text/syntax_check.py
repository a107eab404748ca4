"""Syntax check of source and data files after an edit (Python, JSON, TOML, YAML, …)."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_WHOLE = 40_000  # characters of Python that are read in a few milliseconds
_LONGEST = {"python": 1_000_000, "json": 4_000_000, "yaml": 60_000, "toml": 60_000}
_LANGUAGES = {
    "py": "python",
    "pyi": "python",
    "pyw": "python",
    "json": "json",
    "ipynb": "json",
    "webmanifest": "json",
    "geojson": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
}
_CONTINUING = frozenset({"else", "elif", "except", "finally", "case"})
_quiet = threading.Lock()  # the list of warning filters belongs to the whole process


def check_syntax(path: str, text: str) -> str | None:
    """The first problem, as "line 12: …", of a Python, JSON, YAML or TOML file; None if none.

    A file of another kind, and one too large to be read in passing, has no problem.
    """
    language = _language(path)
    if not language or len(text) > _LONGEST[language]:
        return None
    return _CHECKS[language](text.removeprefix("\ufeff"))


def check_syntax_change(path: str, before: str, after: str) -> str | None:
    """The first problem that an edit has brought; None where the file had one already."""
    language = _language(path)
    if not language or before == after:
        return None
    first = 0
    if language == "python" and len(after) > _WHOLE:
        before, after, first = _blocks(before, after)
    problem = check_syntax(path, after)
    if problem is None or check_syntax(path, before) is not None:
        return None
    return _moved(problem, first)


def _blocks(before: str, after: str) -> tuple[str, str, int]:
    """The outermost statements that an edit touched, before and after, and the lines above.

    They start and end with lines without indentation. Where such a line is inside a literal, the
    cut part did not parse before either, and no problem is reported.
    """
    old, new = before.split("\n"), after.split("\n")
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first = head
    while first > 0 and not (first < limit and old[first] == new[first] and _opens(old, first)):
        first -= 1
    while tail > 0 and not _opens(old, len(old) - tail):
        tail -= 1
    return (
        "\n".join(old[first : len(old) - tail]) + "\n",
        "\n".join(new[first : len(new) - tail]) + "\n",
        first,
    )


def _opens(lines: list[str], index: int) -> bool:
    """Whether a statement at the margin begins here."""
    line = lines[index]
    if not line or not (line[0].isalpha() or line[0] in "_@"):
        return False
    above = lines[index - 1] if index else ""
    word = line.split("(", 1)[0].split(":", 1)[0].split(" ", 1)[0]
    return not above.startswith("@") and word not in _CONTINUING and not above.endswith("\\")


def _language(path: str) -> str:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return _LANGUAGES.get(name.rsplit(".", 1)[-1].lower(), "") if "." in name else ""


def _python(text: str) -> str | None:
    import warnings

    try:
        # Reading a text may warn, of an odd escape for one; that is not what is asked here.
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<text>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return _line(error.lineno or 1, error.msg)
    except ValueError as error:
        return _line(1, str(error))
    except (RecursionError, MemoryError):
        return None  # nested deeper than this reader goes
    return None


def _json(text: str) -> str | None:
    import json

    try:
        json.loads(text, parse_int=str)
    except json.JSONDecodeError as error:
        return _line(error.lineno, error.msg)
    except RecursionError:
        return None
    return None


def _yaml(text: str) -> str | None:
    import yaml

    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None and len(text) > _LONGEST["yaml"] // 20:
        return None
    try:
        for _ in yaml.parse(text, Loader=loader or yaml.SafeLoader):
            pass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return _line(mark.line + 1 if mark else 1, error.problem or error.context or "not YAML")
    except yaml.reader.ReaderError as error:
        return _line(1, str(error).split("\n", 1)[0])
    except RecursionError:
        return None
    return None


def _toml(text: str) -> str | None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        digits = place.removeprefix("line ").split(",", 1)[0]
        line = int(digits) if digits.isdecimal() else text.count("\n") + 1
        return _line(line, message)
    except (RecursionError, ValueError):
        return None
    return None


_CHECKS: dict[str, Callable[[str], str | None]] = {
    "python": _python,
    "json": _json,
    "yaml": _yaml,
    "toml": _toml,
}


def _line(number: int, message: str) -> str:
    return f"line {number}: {' '.join(message.split())[:200]}"


def _moved(problem: str, lines: int) -> str:
    number, _, message = problem.removeprefix("line ").partition(": ")
    return f"line {int(number) + lines}: {message}"

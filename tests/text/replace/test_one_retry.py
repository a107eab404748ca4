"""A refusal is enough to get it right at the next try, without reading the file again."""

from __future__ import annotations

import json
import random
import re

import pytest
from tests.corpus import each

from hermes.core import coerce_tool_args
from hermes.core.errors import EditError
from hermes.text.replace.engine import replace_text

PYTHON = """\
import os
import sys

class Reader:
    def __init__(self, path):
        self.path = path
        self.lines = []

    def load(self):
        with open(self.path) as stream:
            self.lines = stream.readlines()
        return len(self.lines)

    def close(self):
        self.lines = []

class Writer:
    def __init__(self, path):
        self.path = path
        self.count = 0

    def close(self):
        self.count = 0
        return "done – “really”"
"""
TABS = 'func main() {\n\tfor i := 0; i < 10; i++ {\n\t\tprintln(i)\n\t}\n\tprintln("end")\n}\n'
TABLE = "".join(f"| item {n} | {n * 7} | shelf {n % 3} |\n" for n in range(40))
CONFIG = '[server]\nhost = "localhost"\nport = 8080\n\n[client]\nhost = "localhost"\nport = 9090\n'
LONG = "start\n" + "key = " + "v" * 900 + " = 17\nend\n"
RETURNS = PYTHON.replace("\n", "\r\n")
NO_MATCH = [
    (PYTHON, "        self.path = paths", "self.path = paths", "self.path = str(path)"),
    (PYTHON, "    def load(self, again):", "def load(self, again):", "def load(self, more):"),
    (PYTHON, "with open(self.path) as file:", "as file:", "as source:"),
    (PYTHON, "            self.lines = stream.readline()", "readline()", "read().split()"),
    (PYTHON, "        return len(self.line)", "return len(self.line)", "return 1"),
    (PYTHON, "        self.count = 1\n        return", "= 1", "= 2"),
    (PYTHON, "class Writer(Base):", "Writer(Base)", "Copier"),
    (PYTHON, "import os\nimport system", "import system", "import re"),
    (PYTHON, 'return "done - really"', "really", "truly"),
    (PYTHON, "    def load(self):\n        with open(path) as stream:", "open(path)", "open(1)"),
    (PYTHON, "        self.path = path\n        self.count = 1\n", "1", "5"),
    (PYTHON, "class Reader:\n    def __init__(self, name):", "name", "place"),
    (PYTHON, "        self.lines = []\n    def load(self):", "load", "read"),
    (PYTHON, "import os\nimport re\nimport sys", "import os", "import json"),
    (RETURNS, "        return len(self.line)", "self.line", "self.rows"),
    (RETURNS, "    def load(self):\n        with open(path) as stream:", "path", "1"),
    (TABS, "    for i := 0; i < 20; i++ {", "20", "30"),
    (TABS, "\tfor i := 1; i < 10; i++ {\n\t\tprintln(i)", "println(i)", "print(i)"),
    (TABS, '\tprintln("ends")', "ends", "over"),
    (TABS, "func start() {", "start", "begin"),
    (TABLE, "| item 17 | 118 | shelf 2 |", "118", "120"),
    (TABLE, "| item 23 | 161 | shelf 1 |", "shelf 1", "shelf 9"),
    (TABLE, "| thing 31 | 217 | shelf 1 |", "217", "218"),
    (CONFIG, "port = 8081", "8081", "8082"),
    (CONFIG, "[client]\nhost = 'local'", "local", "remote"),
    (CONFIG, "[servers]\nhost", "[servers]", "[main]"),
    (LONG, "key = " + "v" * 900 + " = 18", "= 18", "= 19"),
    (LONG, "key = " + "v" * 899 + " = 17", "= 17", "= 19"),
    ("caf\u00e9 = 1\nbar = 2\n", "cafe = 1", "1", "3"),
    ("pr\u0456ce = 10\n", "price = 10", "10", "20"),
    ("a\u00a0b = one\n", "a b = two", "two", "three"),
    ("x = it’s\n", "x = it`s", "x", "y"),
]
AMBIGUOUS = [
    (PYTHON, "    def close(self):", "close", "finish"),
    (PYTHON, "        self.lines = []", "[]", "list()"),
    (PYTHON, "    def __init__(self, path):\n        self.path = path", "path", "place"),
    (PYTHON, "self.path = path", "self.path", "self.place"),
    (RETURNS, "    def close(self):", "close", "finish"),
    (CONFIG, 'host = "localhost"', "localhost", "remote"),
    (CONFIG, "host", "host", "name"),
    (TABLE, "shelf 2", "shelf 2", "shelf 5"),
    ("a\nb\nx = 1\nc\nb\nx = 1\nd\n", "x = 1", "1", "2"),
    ("{\n  a: 1\n},\n{\n  a: 1\n}\n", "  a: 1", "1", "2"),
]


def shown_lines(error: EditError) -> list[list[str]]:
    """The numbered lines of a hint, block by block."""
    blocks: list[list[str]] = [[]]
    for line in (error.hint or "").split("\n"):
        numbered = re.match(r"\d+\|(.*)", line, re.DOTALL)
        if numbered:
            blocks[-1].append(numbered[1])
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def retry(text: str, old: str, change: tuple[str, str]) -> str | None:
    """The text after one more try that takes old from the hint, and nothing from the file."""
    with pytest.raises(EditError) as caught:
        replace_text(text, old, old.replace(*change))
    blocks = shown_lines(caught.value)
    if not blocks:
        return None
    copied = "\n".join(blocks[0])
    try:
        return replace_text(text, copied, copied + "\nadded").text
    except EditError:
        return None


def test_one_retry_is_enough_for_nine_of_ten_refusals() -> None:
    cases = [*NO_MATCH, *AMBIGUOUS]

    failed = [
        old for text, old, *change in cases if retry(text, old, (change[0], change[1])) is None
    ]

    assert len(cases) >= 40
    assert len(failed) <= len(cases) // 10, failed


@each(("text", "old", "before", "after"), NO_MATCH)
def test_no_match_changes_nothing_and_names_the_place(
    text: str, old: str, before: str, after: str
) -> None:
    with pytest.raises(EditError) as caught:
        replace_text(text, old, old.replace(before, after))

    assert re.search(r"Nearest text: lines? \d+", str(caught.value))
    assert "Differences" in (caught.value.hint or "")


@pytest.mark.parametrize(("text", "old", "before", "after"), AMBIGUOUS)
def test_ambiguity_lists_every_place_with_its_line(
    text: str, old: str, before: str, after: str
) -> None:
    with pytest.raises(EditError) as caught:
        replace_text(text, old, old.replace(before, after))

    places = re.findall(r"^  line (\d+): ", str(caught.value), re.MULTILINE)
    assert len(places) == text.replace("\r\n", "\n").count(old)


def test_white_space_that_differs_is_made_visible() -> None:
    with pytest.raises(EditError) as caught:
        replace_text("if a:\n\tfoo = bar1\n", "if a:\n    foo = bar2", "x")

    assert "file: →foo·=·bar1" in (caught.value.hint or "")
    assert "sent: ····foo·=·bar2" in (caught.value.hint or "")


def test_a_removal_that_was_not_made_is_not_called_made() -> None:
    text = "def f(items):\n    audit(items, level=2)\n    return calculate_total(items)\n"

    with pytest.raises(EditError) as caught:
        replace_text(
            text,
            "    audit(items, level=1)\n    return calculate_total(items)\n",
            "    return calculate_total(items)\n",
        )

    assert "already" not in str(caught.value)


def test_two_hundred_awkward_strings_arrive_as_they_were_meant() -> None:
    chance = random.Random(46)
    pieces = [
        "\\",
        "\\\\",
        "\\n",
        "\n",
        '"',
        "'",
        "$'…'",
        "\u2028",
        "\u2029",
        "😀",
        "\t",
        "`",
        "\\u0041",
    ]
    pieces += [
        "\\t",
        "${x}",
        "%s",
        "&amp;",
        "é",
        "\x0c",
        "\x85",
        "</s>",
        "a",
        " ",
        "1",
        "{}",
        "\\\n",
    ]
    schema = {
        "type": "object",
        "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
        "required": ["old", "new"],
    }
    for number in range(200):
        meant = "".join(chance.choice(pieces) for _ in range(chance.randint(1, 30)))
        sent = json.dumps({"old": f"<{number}>", "new": meant}, ensure_ascii=number % 2 == 0)

        arguments = coerce_tool_args(schema, sent)
        result = replace_text(f"before\n<{number}>\nafter\n", arguments["old"], arguments["new"])
        back = (
            replace_text(result.text, meant, "<>").text if result.text.count(meant) == 1 else None
        )

        assert result.text == f"before\n{meant}\nafter\n"
        assert back in (None, "before\n<>\nafter\n")

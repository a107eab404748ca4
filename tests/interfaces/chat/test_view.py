"""What an answer looks like: the real chat in a real pty, its screen compared as text."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from tests.interfaces.chat.conftest import Begin

from hermes.testing import Call, ScriptedModel, Turn

ANSWER = """\
# Plan

Some **bold** words and `code`, in a line that is long enough to be wrapped in a narrow window.

1. first
2. second
   - nested

```python
def f(x):
    return x * 2
```

| name | size |
|------|------|
| a    | 10   |

The end."""

AT_80 = """\
Plan

Some bold words and code, in a line that is long enough to be wrapped in a
narrow window.

 1 first
 2 second
    • nested

│ def f(x):
│     return x * 2

 name  size
 ────────────
 a     10

The end."""

AT_40 = """\
Plan

Some bold words and code, in a line
that is long enough to be wrapped in a
narrow window.

 1 first
 2 second
    • nested

│ def f(x):
│     return x * 2

 name  size
 ────────────
 a     10

The end."""


def plain(text: str) -> str:
    """The lines without the blanks that nobody sees, rules drawn as one kind of line."""
    lines = [re.sub("[-━─]{3,}", "────────────", line.rstrip()) for line in text.split("\n")]
    return re.sub(r"\n{2,}", "\n\n", "\n".join(lines)).strip()


@pytest.mark.parametrize(("columns", "shown"), [(80, AT_80), (40, AT_40)])
def test_markdown_is_rendered_as_it_streams(
    model: ScriptedModel, begin: Begin, columns: int, shown: str
) -> None:
    model.add(Turn(ANSWER, piece=5, delay=0.002))
    chat = begin(columns=columns)

    chat.enter("make a plan")
    text = chat.until(lambda text: text.endswith("The end.\n❯"))

    answer = text.partition("\n\nPlan")[2].rpartition("\n❯")[0]
    assert plain(f"Plan{answer}") == plain(shown)


def test_without_colour_nothing_is_coloured(model: ScriptedModel, begin: Begin) -> None:
    model.add(Turn(ANSWER, calls=[Call("read_file", {"path": "no"})]), "Done.")
    chat = begin(env={"NO_COLOR": "1"})

    chat.enter("make a plan")
    chat.until("Done.")

    codes = {
        int(n)
        for found in re.findall(rb"\x1b\[([0-9;]*)m", chat.raw)
        for n in found.split(b";")
        if n
    }
    assert not {code for code in codes if 30 <= code <= 49 or 90 <= code <= 107}
    assert chat.styles == {"default"}


def test_with_colour_a_diff_is_coloured(model: ScriptedModel, begin: Begin, hermes: Any) -> None:
    (hermes.folder / "a.txt").write_text("one\ntwo\n")
    edit = {"path": "a.txt", "old_string": "two", "new_string": "three"}
    model.add(Turn(calls=[Call("patch", edit)]), "Done.")
    chat = begin()

    chat.enter("edit it")
    text = chat.until("Done.")

    assert re.search(r"✓ 🔧 +patch a\.txt [\d.]+ s \[1\]", text)
    assert "  -two\n  +three" in text
    assert {"red", "green"} <= chat.styles


def test_nothing_that_a_model_or_a_tool_says_speaks_to_the_terminal(
    model: ScriptedModel, begin: Begin, hermes: Any
) -> None:
    evil = "\x1b]0;owned\x07 \x1b[2J\x1b[31mred \x9b31m \x1b]8;;http://x\x1b\\link \u202eabc\r gone"
    (hermes.folder / "evil.txt").write_text(evil)
    model.add(
        Turn(
            f"Say {evil}\n\n```sh\n{evil}\n```\n", calls=[Call("read_file", {"path": "evil.txt"})]
        ),
        Turn(calls=[Call("terminal", {"command": f"echo '{evil}'"})]),
        Turn(calls=[Call("clarify", {"question": f"q {evil}", "choices": [evil]})]),
        "All is well.",
    )
    chat = begin()

    chat.enter(f"look \x1b[200~{evil}\x1b[201~")
    chat.until("[N]o" if "[N]o" in chat.text else "q ")
    chat.enter("1")
    chat.until("All is well.")
    chat.enter("/expand 1")
    chat.until("[1]")
    chat.enter("/expand 2")
    chat.until("[2]")

    assert b"\x1b]" not in chat.raw
    assert b"\x1b[2J" not in chat.raw
    assert "\x9b".encode() not in chat.raw
    assert "\u202e".encode() not in chat.raw
    assert b"\x07" not in chat.raw


def test_a_secret_is_not_shown(model: ScriptedModel, begin: Begin) -> None:
    secret = "sk-proj-" + "a1B2" * 12
    model.add(Turn(f"The key is {secret} and more.\n\nDone.", piece=4, delay=0.002))
    chat = begin()

    chat.enter("which key")
    chat.until("Done.")

    assert secret.encode() not in chat.raw


def test_a_broken_stream_is_said_to_be_void(model: ScriptedModel, begin: Begin) -> None:
    model.add(Turn("Half of an answer.\n\nAnd then", piece=6, break_after=4), "The whole answer.")
    chat = begin()

    chat.enter("tell me")
    text = chat.until("The whole answer.")

    assert "asking again" in text


def test_an_error_of_the_provider_is_one_line_and_the_chat_goes_on(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add(Turn(status=401, error="bad key"), "Better now.")
    chat = begin()

    chat.enter("hello")
    text = chat.until("bad key")
    chat.until(lambda text: text.endswith("❯"))
    chat.enter("hello again")
    chat.until("Better now.")

    assert "✗ openai answered 401: bad key" in text
    assert "Traceback" not in text


def test_the_window_may_change_its_size(model: ScriptedModel, begin: Begin) -> None:
    words = " ".join(f"word{number}" for number in range(30))
    model.add(words, words)
    chat = begin(columns=80)
    chat.enter("first")
    chat.until("word29")

    chat.resize(40, 20)
    chat.enter("second")
    text = chat.until(lambda text: "word29" in text.rpartition("❯ second")[2])

    after = text.rpartition("❯ second")[2].splitlines()
    assert max(map(len, after)) <= 40


def test_the_list_of_what_is_to_do_is_shown_when_it_changes(
    model: ScriptedModel, begin: Begin
) -> None:
    todos = [{"content": "look"}, {"content": "mend", "status": "in_progress"}]
    model.add(Turn(calls=[Call("todo", {"todos": todos})]), "Planned.")
    chat = begin()

    chat.enter("plan")
    text = chat.until("Planned.")

    assert "[ ] look\n  [>] mend" in text


def test_a_result_can_be_looked_at_again(model: ScriptedModel, begin: Begin, hermes: Any) -> None:
    (hermes.folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(30)))
    model.add(Turn(calls=[Call("read_file", {"path": "a.txt"})]), "Read.")
    chat = begin()
    chat.enter("read")
    chat.until("Read.")

    chat.type("\x0f")
    chat.until("30|line 29")
    chat.enter("/expand 7")
    text = chat.until("there is no call 7")

    assert " 1|line 0" in text


def test_what_others_print_becomes_part_of_the_chat(begin: Begin) -> None:
    stray = (
        "import sys, threading, time\n"
        "def late(before=sys.stderr):\n"
        "    while sys.stderr is before: time.sleep(0.05)\n"
        "    print('stray \\x1b[2J words', file=sys.stderr)\n"
        "threading.Thread(target=late, daemon=True).start()\n"
        "from hermes.__main__ import main; sys.exit(main())"
    )
    chat = begin(command=[sys.executable, "-c", stray])

    text = chat.until("stray")
    chat.until(lambda text: text.endswith("❯"))

    assert "words" in text
    assert b"\x1b[2J" not in chat.raw

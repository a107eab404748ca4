"""Reading patches: both styles, as tools and models write them, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus import each

from hermes.core.errors import EditError
from hermes.text.patches.parse import parse_patch, paths_of

GIT = """\
diff --git a/src/x.py b/src/x.py
index 0fdf397..91ac79b 100644
--- a/src/x.py
+++ b/src/x.py
@@ -1,3 +1,3 @@ def f():
 a
-b
+B
 c
diff --git a/tool.sh b/tool.sh
old mode 100644
new mode 100755
diff --git a/old name.txt b/new name.txt
similarity index 83%
rename from old name.txt
rename to new name.txt
--- a/old name.txt\t
+++ b/new name.txt\t
@@ -2 +2 @@
-e
+E
diff --git a/fresh.txt b/fresh.txt
new file mode 100644
index 0000000..6bdd452
--- /dev/null
+++ b/fresh.txt
@@ -0,0 +1,2 @@
+n
+m
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
diff --git "a/\\303\\244.txt" "b/\\303\\244.txt"
--- "a/\\303\\244.txt"
+++ "b/\\303\\244.txt"
@@ -1 +1 @@
-a
+b
"""
ENVELOPE = """\
*** Begin Patch
*** Add File: notes/new.txt
+first
+
+third
*** Update File: src/app.py
*** Move to: src/main.py
@@ class A:
@@     def run(self):
-        return 1
+        return 2
@@
 last
+more
*** End of File
*** Delete File: old.txt
*** End Patch
"""


def problem(text: str) -> str:
    """What is said about a patch that can't be read."""
    with pytest.raises(EditError) as caught:
        parse_patch(text)
    assert caught.value.hint
    assert paths_of(text) == []
    return str(caught.value)


def test_a_diff_of_git_is_read_with_all_its_headers() -> None:
    found = [(p.action, p.path, p.move_to, p.mode, len(p.hunks)) for p in parse_patch(GIT)]

    assert found == [
        ("update", "src/x.py", None, None, 1),
        ("update", "tool.sh", None, 0o100755, 0),
        ("update", "old name.txt", "new name.txt", None, 1),
        ("add", "fresh.txt", None, 0o100644, 1),
        ("delete", "gone.txt", None, None, 1),
        ("update", "ä.txt", None, None, 1),
    ]


def test_the_other_style_is_read_with_moves_headings_and_the_end_of_file() -> None:
    add, update, delete = parse_patch(ENVELOPE)

    assert (add.action, add.path, add.hunks[0].new) == (
        "add",
        "notes/new.txt",
        ["first", "", "third"],
    )
    assert (update.path, update.move_to) == ("src/app.py", "src/main.py")
    assert [hunk.headings for hunk in update.hunks] == [["class A:", "def run(self):"], []]
    assert [hunk.at_end for hunk in update.hunks] == [False, True]
    assert (delete.action, delete.path, delete.hunks) == ("delete", "old.txt", [])


def test_paths_say_what_would_be_done_to_them() -> None:
    assert paths_of(ENVELOPE) == [
        ("write", "notes/new.txt"),
        ("delete", "src/app.py"),
        ("write", "src/main.py"),
        ("delete", "old.txt"),
    ]
    assert ("delete", "old name.txt") in paths_of(GIT)
    assert ("write", "new name.txt") in paths_of(GIT)


@each(
    ("old", "new", "path"),
    [
        ("a/x.py", "b/x.py", "x.py"),
        ("x.py", "x.py", "x.py"),
        ("a/x.py", "a/x.py", "a/x.py"),
        (
            "src/x.py\t2026-01-01 10:00:00.000000000 +0000",
            "src/x.py\t2026-01-02 10:00:00",
            "src/x.py",
        ),
        ("x.py 2026-01-01 10:00:00", "x.py 2026-01-02 10:00:00", "x.py"),
        ("x.py.orig", "x.py", "x.py"),
        ("/abs/x.py", "/abs/x.py", "/abs/x.py"),
        ("a/../up.py", "b/../up.py", "../up.py"),
        ('"a/tab\\there"', '"b/tab\\there"', "tab\there"),
        ("a/two words.py", "b/two words.py", "two words.py"),
        ("a/ends with one \t", "b/ends with one \t", "ends with one "),
        (" begins with one\t", " begins with one\t", " begins with one"),
    ],
)
def test_names_lose_what_is_not_theirs(old: str, new: str, path: str) -> None:
    (patch,) = parse_patch(f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n")

    assert patch.path == path


@pytest.mark.parametrize(
    "opening",
    ["@@ -1,2 +1,2 @@", "@@ -1,9 +1,1 @@", "@@ @@", "@@", "@@ ... @@", "@@ -1 +1 @@ def f():"],
)
def test_line_counts_may_be_wrong_or_missing(opening: str) -> None:
    (patch,) = parse_patch(f"--- a/x\n+++ b/x\n{opening}\n a\n-b\n+c\n")

    assert patch.hunks[0].old == ["a", "b"]
    assert patch.hunks[0].new == ["a", "c"]


@pytest.mark.parametrize("text", [GIT, ENVELOPE])
def test_carriage_returns_fences_and_a_byte_order_mark_make_no_difference(text: str) -> None:
    expected = paths_of(text)

    assert paths_of(text.replace("\n", "\r\n")) == expected
    assert paths_of(f"```diff\n{text}```\n") == expected
    assert paths_of("\ufeff" + text) == expected


@pytest.mark.parametrize(("line", "path"), [("a/x a/x", "a/x"), ("a/x b/x", "x"), ("i/x w/x", "x")])
@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_comes_or_goes_keeps_a_folder_that_looks_like_a_prefix(
    line: str, path: str, gone: bool
) -> None:
    name = line.split()[0 if gone else 1]
    names = f"--- {name}\n+++ /dev/null" if gone else f"--- /dev/null\n+++ {name}"
    mark, opening = ("-", "-1 +0,0") if gone else ("+", "-0,0 +1")

    (patch,) = parse_patch(f"diff --git {line}\n{names}\n@@ {opening} @@\n{mark}text\n")

    assert (patch.path, patch.action) == (path, "delete" if gone else "add")


def test_only_the_lines_of_a_new_file_may_end_with_carriage_returns() -> None:
    head = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n"
    envelope = "*** Begin Patch\n*** Add File: x\n+a\r\n+b\r\n*** End Patch\n"
    known = {
        f"{head}+a\r\n+b\r\n": True,
        f"{head}+a\r\n+b\n\\ No newline at end of file\n": True,
        f"{head}+a\r\n+b\n": False,
        f"{head}+a\n+b\n": False,
        f"{head}+a\n+b\n".replace("\n", "\r\n"): False,
        envelope: True,
        envelope.replace("\r\n", "\n"): False,
    }

    assert {text: parse_patch(text)[0].returns for text in known} == known


def test_a_mail_is_read_without_its_message_and_signature() -> None:
    mail = (
        "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n- a point\n--- not a header\n---\n"
        " x | 2 +-\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n-- \n2.40.1\n\n"
    )

    (patch,) = parse_patch(mail)

    assert patch.hunks[0].lines == [(" ", "a"), ("-", "b"), ("+", "c")]


def test_lines_that_look_like_headers_are_lines_where_the_counts_say_so() -> None:
    (patch,) = parse_patch(
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n--- old\n+++ new\n@@ -9 +9 @@\n-y\n+z\n"
    )

    assert patch.hunks[0].lines == [(" ", "a"), ("-", "-- old"), ("+", "++ new")]
    assert patch.hunks[1].start == 9


def test_only_line_feeds_end_lines() -> None:
    odd = "a\u2028b\x0cc\x85d\x1ce"
    (patch,) = parse_patch(f"*** Begin Patch\n*** Add File: x\n+{odd}\n*** End Patch")

    assert patch.hunks[0].new == [odd]


@each(
    ("text", "words"),
    [
        ("", ["empty"]),
        (" \n\t\n", ["empty"]),
        ("hello\n", ["line 1", "--- a/path", "*** Begin Patch"]),
        ("```diff\n```", ["line 1"]),
        ("@@ -1 +1 @@\n-a\n+b\n", ["line 1", "--- a/path"]),
        ("--- a/x\n@@ -1 +1 @@\n-a\n+b\n", ["line 2", "+++ b/path"]),
        ("--- a/x\n+++ b/x\n", ["line 3", "@@"]),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", ["line 3"]),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n b\n", ["line 3", "`-` or `+`"]),
        ("--- a/x\n+++ b/x\n@@\n a\nb\n+c\n", ["line 5", "`b`"]),
        ("--- x\n+++ y\n@@\n-a\n+b\n", ["line 1", "`x`", "`y`"]),
        ("--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n+cut in the mid", ["line 5", "cut off"]),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n a\n+b\n", ["line 3", "new file"]),
        (
            "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n",
            ["link"],
        ),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", ["line 2", "binary"]),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", ["line 2", "copy"]),
        ("diff --git a/x b/x\n", ["line 1", "no change"]),
        ("*** Begin Patch\n*** End Patch\n", ["no file"]),
        ("*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n", ["cut off", "*** End Patch"]),
        ("*** Begin Patch\n*** Update File: x\n*** End Patch", ["line 2", "no change"]),
        ("*** Begin Patch\n*** Update File:\n@@\n-a\n*** End Patch", ["line 2", "path"]),
        ("*** Begin Patch\n*** Change File: x\n*** End Patch", ["line 2", "*** Add File"]),
        ("*** Begin Patch\n*** Update File: x\n@@\na\n+b\n*** End Patch", ["line 4", "`a`"]),
        ("*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch", ["line 3"]),
        ("*** Begin Patch\n*** Add File: x\nfoo\n*** End Patch", ["line 3", "`+`"]),
        ("*** Begin Patch\n*** Delete File: x\n-a\n*** End Patch", ["line 3"]),
        ("*** Begin Patch\n*** Delete File: x\n*** End Patch\nrm -rf\n", ["line 4"]),
        ("*** Update File: x\n@@\n-a\n+b\n*** End Patch", ["*** Begin Patch"]),
    ],
)
def test_what_can_not_be_read_is_refused_with_its_line(text: str, words: list[str]) -> None:
    message = problem(text)

    for word in words:
        assert word in message


marks = st.sampled_from(
    ["*** Begin Patch", "*** End Patch", "*** Update File: x", "*** Add File: y", "@@", "@@ -1 +1 @@",
     "--- a/x", "+++ b/x", "diff --git a/x b/x", "+a", "-a", " a", "", "\\ No newline", "```", "-- ",
     "rename from x", "rename to y", "new file mode 100644", "*** Move to: z", "*** End of File"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(marks | st.text(max_size=8), max_size=14))
def test_any_text_is_read_or_refused_and_paths_agree(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        patches = parse_patch(text)
    except EditError:
        assert paths_of(text) == []
        return

    named = {path for _, path in paths_of(text)}
    assert named == {p.path for p in patches} | {p.move_to for p in patches if p.move_to}

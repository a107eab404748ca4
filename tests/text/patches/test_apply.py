"""Applying hunks: all of them in their places, or none."""

from __future__ import annotations

import pytest
from tests.corpus import each

from hermes.core.errors import EditError
from hermes.text.patches.apply import apply_hunks
from hermes.text.patches.model import Applied
from hermes.text.patches.parse import parse_patch

TWO = """\
import os

class A:
    def run(self):
        x = 1
        return x

class B:
    def run(self):
        x = 1
        return x
"""


def envelope(*hunks: str) -> str:
    return "*** Begin Patch\n*** Update File: f\n" + "".join(hunks) + "*** End Patch\n"


def unified(*hunks: str) -> str:
    return "--- a/f\n+++ b/f\n" + "".join(hunks)


def apply(text: str, patch: str) -> Applied:
    (file,) = parse_patch(patch)
    return apply_hunks(text, file.hunks)


def refused(text: str, patch: str) -> str:
    with pytest.raises(EditError) as caught:
        apply(text, patch)
    assert caught.value.hint
    return f"{caught.value}\n{caught.value.hint}"


def test_a_heading_tells_equal_places_apart() -> None:
    patch = envelope("@@ class B:\n     def run(self):\n-        x = 1\n+        x = 2\n")

    result = apply(TWO, patch)

    assert result.strategies == ["exact"]
    assert result.text == TWO[: TWO.index("class B")] + TWO[TWO.index("class B") :].replace(
        "1", "2"
    )
    assert apply(result.text, patch).already


def test_the_stated_line_decides_only_where_it_fits_exactly() -> None:
    hunk = "@@ -{0},3 +{0},3 @@\n     def run(self):\n-        x = 1\n+        x = 7\n         return x\n"

    assert apply(TWO, unified(hunk.format(9))).text.count("x = 7") == 1
    assert "class B" in apply(TWO, unified(hunk.format(9))).text.split("x = 7")[0]
    for wrong in (1, 5, 8, 10, 40):
        message = refused(TWO, unified(hunk.format(wrong)))
        assert "line 4" in message
        assert "class A:" in message
        assert "line 9" in message
        assert "class B:" in message


def test_a_wrong_number_does_not_matter_where_the_lines_are_unique() -> None:
    patch = unified("@@ -70,2 +70,3 @@\n import os\n+import sys\n \n")

    assert apply(TWO, patch).text == TWO.replace("import os\n", "import os\nimport sys\n")


def test_the_order_of_hunks_tells_equal_places_apart() -> None:
    change = "@@\n-        x = 1\n+        x = 2\n"

    assert apply(TWO, envelope(change, change)).text == TWO.replace("x = 1", "x = 2")
    second = apply(TWO, envelope("@@\n class B:\n+    size = 1\n", change))
    assert second.text.index("x = 2") > second.text.index("size = 1")
    assert "order" in refused(
        TWO, envelope("@@\n class B:\n+    b = 1\n", "@@\n class A:\n+    a = 1\n")
    )


def test_a_tab_at_the_start_of_a_line_is_context_that_lost_its_mark() -> None:
    text = "f {\n\ta()\n\tb()\n}\n"

    for patch in (envelope("@@\n\ta()\n-\tb()\n+\tc()\n"), unified("@@\n\ta()\n-\tb()\n+\tc()\n")):
        assert apply(text, patch).text == text.replace("b()", "c()")


def test_hunks_may_share_lines_of_context() -> None:
    text = "a\nb\nc\nd\ne\n"

    result = apply(text, envelope("@@\n a\n-b\n+B\n c\n", "@@\n c\n-d\n+D\n e\n"))

    assert result.text == "a\nB\nc\nD\ne\n"


def test_one_hunk_without_a_place_leaves_everything_alone() -> None:
    message = refused(
        TWO,
        envelope(
            "@@\n import os\n+import sys\n",
            "@@\n class B:\n+    b = 1\n",
            "@@\n class C:\n+    c = 1\n",
        ),
    )

    assert "hunk 3" in message
    assert "line 9 of the patch" in message


@pytest.mark.parametrize(
    ("text", "hunk", "expected", "strategy"),
    [
        (
            "f:\n\tx = 1\n\ty\n",
            "@@\n f:\n-    x = 1\n+    x = 2\n+    z\n     y\n",
            "f:\n\tx = 2\n\tz\n\ty\n",
            "indentation",
        ),
        ("a  \nb\n", "@@\n a\n-b\n+c\n", "a  \nc\n", "trailing-whitespace"),
        ("f(a,b)\ng()\n", "@@\n f(a, b)\n-g()\n+h()\n", "f(a,b)\nh()\n", "whitespace"),
        ("say “hi”\nb\n", '@@\n say "hi"\n-b\n+c\n', "say “hi”\nc\n", "typography"),
        (
            "    if a:\n        b()\n",
            "@@\n if a:\n-    b()\n+    c()\n",
            "    if a:\n        c()\n",
            "indentation",
        ),
    ],
)
def test_differences_without_meaning_are_bridged(
    text: str, hunk: str, expected: str, strategy: str
) -> None:
    result = apply(text, envelope(hunk))

    assert (result.text, result.strategies) == (expected, [strategy])
    assert apply(expected, envelope(hunk)).already


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nnew\r\nc\r\n"),
        ("\ufeffa\nb\nc\n", "\ufeffa\nB\nnew\nc\n"),
        ("a\nb\nc", "a\nB\nnew\nc"),
        ("a\r\nb\nc\r\n", "a\r\nB\nnew\nc\r\n"),
        ("a\rb\rc\r", "a\rB\rnew\rc\r"),
    ],
)
@pytest.mark.parametrize("carriage", [False, True])
def test_line_endings_marks_and_the_last_line_stay(before: str, after: str, carriage: bool) -> None:
    patch = unified("@@ -1,3 +1,4 @@\n a\n-b\n+B\n+new\n c\n")

    result = apply(before, patch.replace("\n", "\r\n") if carriage else patch)

    assert result.text == after


def test_the_final_line_end_changes_only_where_the_patch_says_so() -> None:
    bare = "\\ No newline at end of file\n"

    assert apply("a\nb", envelope("@@\n a\n-b\n+c\n")).text == "a\nc"
    assert apply("a\nb", envelope("@@\n b\n+c\n")).text == "a\nb\nc"
    assert apply("a\nb", envelope("@@\n a\n-b\n")).text == "a"
    assert apply("a\nb\n", unified(f"@@ -1,2 +1,2 @@\n a\n-b\n+c\n{bare}")).text == "a\nc"
    assert apply("a\nb", unified(f"@@ -1,2 +1,2 @@\n a\n-b\n{bare}+b\n")).text == "a\nb\n"


def test_new_and_emptied_files() -> None:
    assert apply("", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n").text == "a\nb\n"
    assert (
        apply("", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n").text
        == "a"
    )
    assert apply("a\nb\n", "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n").text == ""
    assert apply_hunks("as it is", []).text == "as it is"


@each(
    "hunk",
    [
        "@@ class C:\n     def run(self):\n-        x = 1\n+        x = 2\n",
        "@@ import os\n@@ class Missing\n-        x = 1\n+        x = 2\n",
        "@@ class B:\n-import os\n+import sys\n",
        "@@ class B:\n+    y = 1\n",
        "@@\n     def run(self):\n-        x = 1\n+        x = 2\n",
        "@@\n class B:\n     def run(self):\n-        x = 2\n+        x = 3\n",
        "@@\n class B:\n-    def walk(self):\n+    def fly(self):\n",
        "@@\n class B:\n-        x = 1\n+        x = 2\n",
        "@@\n-import os\n+import sys\n*** End of File\n",
        "@@ class B:\n     def run(self):\n-        x = 1\n+        # ... existing code ...\n",
        "@@\n-import os.path\n \n class A:\n",
        "@@\n-import os\n+import os\n",
    ],
)
def test_a_near_miss_changes_nothing(hunk: str) -> None:
    refused(TWO, envelope(hunk))


def test_a_patch_sent_twice_is_recognised() -> None:
    cases = [
        (TWO, unified("@@ -1,2 +1,3 @@\n import os\n+import sys\n \n")),
        (TWO, envelope("@@\n+import sys\n import os\n")),
        (
            TWO,
            envelope(
                "@@\n import os\n+import sys\n",
                "@@ class B:\n     def run(self):\n-        x = 1\n+        x = 2\n",
            ),
        ),
        ("a\nb\nc\n", envelope("@@\n a\n-b\n+B\n c\n")),
        ("a\nbeta()\nc\n", envelope("@@\n a\n-beta()\n c\n")),
        (
            TWO,
            unified(
                "@@ -9,3 +9,3 @@\n     def run(self):\n-        x = 1\n+        x = 7\n         return x\n"
            ),
        ),
        (TWO, envelope("@@\n-        return x\n+        return y\n*** End of File\n")),
        ("", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
    ]
    for text, patch in cases:
        once = apply(text, patch)
        again = apply(once.text, patch)
        assert not once.already
        assert (again.already, again.text) == (True, once.text), patch


def test_a_patch_that_is_half_applied_is_refused_with_the_half() -> None:
    first, second = "@@\n import os\n+import sys\n", "@@\n class B:\n+    size = 1\n"

    half = apply(TWO, envelope(first)).text

    assert "hunk 1 (line 3 of the patch) is already applied" in refused(
        half, envelope(first, second)
    )


def test_long_files_with_long_lines_change_in_one_place() -> None:
    lines = [f"{number} " + "x" * 5_000 for number in range(5_000)]
    text = "\n".join(lines) + "\n"
    old = lines[4_899]

    result = apply(text, unified(f"@@ -4900 +4900 @@\n-{old}\n+{old} changed\n"))

    assert result.text == text.replace(old, old + " changed")

"""read_file, write_file and patch: nothing lost, nothing guessed, everything said."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.tools.bench import Bench

from hermes.stores.checkpoints.checkpoint_store import checkpoints

# -- read_file ------------------------------------------------------------------------------------


def test_a_file_is_read_with_line_numbers(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("one\ntwo\nthree\n")

    answer = bench("read_file", path="a.txt", offset=2, limit=1)

    assert "two" in answer["content"]
    assert "one" not in answer["content"]
    assert answer["total_lines"] == 3
    assert answer["next_offset"] == 3


def test_a_negative_offset_reads_the_end(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))

    answer = bench("read_file", path="a.txt", offset=-2)

    assert "line 99" in answer["content"]
    assert "line 100" in answer["content"]
    assert "line 98" not in answer["content"]


def test_a_missing_file_names_its_neighbours(bench: Bench) -> None:
    (bench.work / "config.yaml").write_text("")

    answer = bench("read_file", path="confg.yaml")

    assert "confg.yaml" in answer["error"]
    assert "config.yaml" in answer["hint"]


def test_what_is_no_text_is_named(bench: Bench) -> None:
    (bench.work / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    (bench.work / "folder").mkdir()
    os.mkfifo(bench.work / "pipe")

    picture = bench("read_file", path="a.png")
    assert "a.png is png" in picture["error"]
    assert "1,032 bytes" in picture["error"] or "1032" in picture["error"]
    assert "directory_list" in bench("read_file", path="folder")["hint"]
    assert "pipe" in bench("read_file", path="pipe")["error"]
    assert "error" in bench("read_file", path="/dev/zero")
    assert "error" in bench("read_file", path="/proc/self/environ")


def test_a_hint_names_a_tool_only_if_it_is_offered(bench: Bench) -> None:
    (bench.work / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    (bench.work / "a.zip").write_bytes(b"PK\x05\x06" + bytes(18))

    assert "hint" not in bench("read_file", path="a.png")
    assert "file_compress" in bench("read_file", path="a.zip")["hint"]

    bench.context.services.offer = bench.app.offer(["file"], None)
    bench.context.services.offer.reachable -= {"file_compress"}
    assert "hint" not in bench("read_file", path="a.zip")

    bench.context.services.offer = None
    bench.app.runtime.registry.register(
        "vision_analyze", "vision", {}, lambda **_: None, description="Look at a picture."
    )
    hint = bench("read_file", path="a.png")["hint"]
    bench.app.runtime.registry.deregister("vision_analyze")
    assert "vision_analyze" in hint


def test_files_that_are_made_while_they_are_read_are_read_whole(bench: Bench) -> None:
    # Longer than the first look on most machines, and without a size.
    answer = bench("read_file", path="/proc/crypto", limit=3)

    assert answer["total_lines"] == len(Path("/proc/crypto").read_text().splitlines())


def test_an_unchanged_page_is_not_shown_twice_unless_asked_for(bench: Bench) -> None:
    path = bench.work / "a.txt"
    path.write_text("".join(f"some line of text {n}\n" for n in range(500)))
    first = bench("read_file", path="a.txt")

    again = bench("read_file", path="a.txt")
    os.utime(path, (1, 1))
    touched = bench("read_file", path="a.txt")
    forced = bench("read_file", path="a.txt", force=True)
    path.write_text(path.read_text() + "more\n")
    changed = bench("read_file", path="a.txt")

    assert "unchanged since call s1-1" in again["note"]
    assert "unchanged since call s1-1" in touched["note"]
    assert forced["content"] == first["content"]
    assert "more" in changed["content"]


def test_a_huge_file_is_read_a_page_at_a_time_in_little_memory(bench: Bench) -> None:
    path = bench.work / "huge"
    line = b"x" * 99 + b"\n"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(line * 10_000)
    script = (
        "import json, resource, sys\n"
        "from hermes.core import ToolCall\n"
        "from hermes.runtime.app import App\n"
        "app = App()\n"
        "def call(path):\n"
        "    return json.loads(app.runtime.call_sync(\n"
        "        ToolCall('read_file', {'path': path, 'limit': 10})).content)\n"
        "call('small')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "answer = call('huge')\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(json.dumps([answer['total_lines'], after - before]))\n"
    )
    (bench.work / "small").write_text("small\n")

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    lines, grown = json.loads(done.stdout)
    assert lines == 2_000_000
    assert grown < 30 * 1024


# -- write_file -----------------------------------------------------------------------------------


def test_a_new_file_is_made_with_its_folders(bench: Bench) -> None:
    answer = bench("write_file", path="a/b/c.txt", content="hello\n")

    assert answer == {"path": "a/b/c.txt", "bytes": 6, "lines": 1, "created": True}
    assert (bench.work / "a/b/c.txt").read_bytes() == b"hello\n"


def test_a_stale_write_is_refused_and_shows_what_changed(bench: Bench) -> None:
    path = bench.work / "a.txt"
    path.write_text("one\ntwo\n")
    bench("read_file", path="a.txt")
    path.write_text("one\nTWO by the person\n")

    refused = bench("write_file", path="a.txt", content="mine\n")

    assert "changed since you read it" in refused["error"]
    assert "TWO by the person" in refused["error"]
    assert path.read_text() == "one\nTWO by the person\n"
    bench("read_file", path="a.txt")
    assert "diff" in bench("write_file", path="a.txt", content="mine\n")
    assert path.read_text() == "mine\n"


def test_a_notebook_that_changed_since_it_was_read_is_not_written_over(bench: Bench) -> None:
    file = bench.work / "a.ipynb"
    cells = {"cells": [{"cell_type": "markdown", "metadata": {}, "source": "one"}]}
    whole = {**cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    file.write_text(json.dumps(whole))

    assert "one" in bench("read_file", path="a.ipynb")["content"]
    file.write_text(json.dumps(whole).replace("one", "by the person"))
    refused = bench("write_file", path="a.ipynb", content="{}")

    assert "changed" in refused["error"]
    assert "by the person" in refused["error"]
    assert "by the person" in file.read_text()


def test_a_file_that_is_gone_can_be_made_anew_after_a_look(bench: Bench) -> None:
    file = bench.work / "a.txt"
    file.write_text("one\n")
    bench("read_file", path="a.txt")
    file.unlink()

    refused = bench("write_file", path="a.txt", content="two\n")
    bench("read_file", path="a.txt")
    made = bench("write_file", path="a.txt", content="two\n")

    assert "removed" in refused["error"]
    assert made["created"]
    assert file.read_text() == "two\n"


def test_times_alone_never_count_as_a_change(bench: Bench) -> None:
    path = bench.work / "a.txt"
    path.write_text("one\n")
    bench("read_file", path="a.txt")
    for when in (1, time.time() - 2, time.time() + 2):
        os.utime(path, (when, when))

        assert "error" not in bench("write_file", path="a.txt", content=f"{when}\n")


def test_of_two_writers_the_second_is_told_who_won(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("old\n")
    one, two = bench.another("s1", agent="root/1"), bench.another("s1", agent="root/2")
    one("read_file", path="a.txt")
    two("read_file", path="a.txt")

    won = one("write_file", path="a.txt", content="by the first\n")
    lost = two("write_file", path="a.txt", content="by the second\n")

    assert "error" not in won
    assert "root/1" in lost["error"]
    assert (bench.work / "a.txt").read_text() == "by the first\n"


def test_mode_and_link_stay(bench: Bench) -> None:
    script = bench.work / "run.sh"
    script.write_text("echo old\n")
    script.chmod(0o755)
    (bench.work / "link.sh").symlink_to("run.sh")

    bench("write_file", path="link.sh", content="echo new\n")

    assert (bench.work / "link.sh").is_symlink()
    assert script.read_text() == "echo new\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755


def test_a_hard_linked_file_is_refused_with_the_reason(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("shared\n")
    os.link(bench.work / "a.txt", bench.work / "b.txt")

    refused = bench("write_file", path="a.txt", content="mine\n")

    assert bench.status == "refused"
    assert "hard link" in refused["error"]
    assert (bench.work / "b.txt").read_text() == "shared\n"


def test_a_large_file_does_not_shrink_by_accident(bench: Bench) -> None:
    path = bench.work / "a.py"
    path.write_text("".join(f"value_{n} = {n}\n" for n in range(2_000)))

    refused = bench("write_file", path="a.py", content="value_1 = 2\n")
    elided = bench(
        "write_file", path="a.py", content="value_1 = 2\n# ... rest of the code unchanged ...\n"
    )
    told = bench("write_file", path="a.py", content="value_1 = 2\n", allow_shrink=True)

    assert "shrink" in refused["error"]
    assert "stands for more" in elided["error"]
    assert told["lines"] == 1


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("\ufeffäa\n".encode("utf-16-le"), "öb\n", "\ufefföb\n".encode("utf-16-le")),
        ("straße und bäume\n".encode("latin-1"), "Größe\n", "Größe\n".encode("latin-1")),
        (b"a\r\nb\nc\r\n", "a\nX\nc\n", b"a\r\nX\r\nc\r\n"),
    ],
)
def test_line_ends_and_encoding_stay(bench: Bench, before: bytes, after: str, kept: bytes) -> None:
    (bench.work / "a.txt").write_bytes(before)

    bench("write_file", path="a.txt", content=after)

    assert (bench.work / "a.txt").read_bytes() == kept


@pytest.mark.parametrize("before", [b"", b"one line"])
@pytest.mark.parametrize("after", ["a\r\nb\r\n", "a\rb", "a\nb\n"])
def test_where_there_are_no_line_ends_none_are_kept(
    bench: Bench, before: bytes, after: str
) -> None:
    (bench.work / "a.bat").write_bytes(before)

    bench("write_file", path="a.bat", content=after)

    assert (bench.work / "a.bat").read_bytes() == after.encode()


def test_a_folder_is_no_name_for_a_file(bench: Bench) -> None:
    patch = "*** Begin Patch\n*** Add File: new/\n+x\n*** End Patch\n"

    answers = [
        bench("write_file", path="new/", content="x"),
        bench("write_file", path="new/.", content="x"),
        bench("patch", mode="patch", patch=patch),
    ]

    assert all("names a folder" in answer["error"] for answer in answers)
    assert os.listdir(bench.work) == []


def test_every_text_arrives_as_it_was_meant(bench: Bench) -> None:
    chance = random.Random(7)
    pieces = [
        "\\",
        "\\\\n",
        '"',
        "'",
        "$'\\x41'",
        "\u2028",
        "😀",
        "\\u0041",
        "`",
        "\t",
        "\x1b[0m",
        "{}",
    ]
    for _ in range(100):
        text = "".join(chance.choice(pieces) for _ in range(30)) + "\n"

        bench("write_file", path="t.txt", content=text)

        assert (bench.work / "t.txt").read_bytes() == text.encode()


def test_a_full_disk_leaves_the_old_content(bench: Bench, tmp_path: Path) -> None:
    small = bench.work / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True)
    try:
        (small / "a.txt").write_text("old\n")

        refused = bench("write_file", path="small/a.txt", content="x" * 200_000)
        fits = bench("write_file", path="small/a.txt", content="new\n")

        assert "disk is full" in refused["error"]
        assert "intact" in refused["error"]
        assert "error" not in fits
        assert sorted(os.listdir(small)) == ["a.txt"]
        assert (small / "a.txt").read_text() == "new\n"
    finally:
        subprocess.run(["umount", str(small)], check=True)


WRITER = """
import sys
from hermes.core import ToolCall
from hermes.runtime.app import App
app = App()
for n in range(10_000):
    for name in "abcd":
        text = f"{n:08d}" * 4000 + "\\n"
        app.runtime.call_sync(ToolCall("write_file", {"path": name, "content": text}))
    print(n, flush=True)
"""


def test_kill_during_writes_leaves_old_or_new(bench: Bench) -> None:
    chance = random.Random(3)
    for _ in range(6):
        writer = subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.random() * 0.2)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()

        for name in "abcd":
            text = (bench.work / name).read_text()
            assert text == text[:8] * 4000 + "\n"
    assert {name for name in os.listdir(bench.work) if not name.startswith(".hermes-")} == set(
        "abcd"
    )


# -- patch ----------------------------------------------------------------------------------------


def test_a_piece_of_text_is_replaced(bench: Bench) -> None:
    (bench.work / "a.py").write_text("def f():\n    return 1\n")

    answer = bench("patch", path="a.py", old_string="return 1", new_string="return 2")

    assert answer["replacements"] == 1
    assert "+    return 2" in answer["diff"]
    assert (bench.work / "a.py").read_text() == "def f():\n    return 2\n"


def test_a_patch_twice_is_recognised(bench: Bench) -> None:
    (bench.work / "a.py").write_text("x = 1\ny = 2\n")

    bench("patch", path="a.py", old_string="y = 2", new_string="y = 5")

    again = bench("patch", path="a.py", old_string="y = 2", new_string="y = 5")

    assert again["already_applied"] is True
    assert (bench.work / "a.py").read_text() == "x = 1\ny = 5\n"


def test_a_broken_edit_warns_and_is_kept(bench: Bench) -> None:
    (bench.work / "a.json").write_text('{"a": 1}\n')

    answer = bench("patch", path="a.json", old_string="1}", new_string="1")

    assert "no longer parses" in answer["warning"]
    assert (bench.work / "a.json").read_text() == '{"a": 1\n'


def test_a_patch_over_several_files_is_all_or_nothing(bench: Bench) -> None:
    for name in "abc":
        (bench.work / name).write_text(f"{name} one\n{name} two\n")
    good = "--- a/{0}\n+++ b/{0}\n@@ -1,2 +1,2 @@\n {0} one\n-{0} two\n+{0} 2\n"
    bad = "--- a/c\n+++ b/c\n@@ -1,2 +1,2 @@\n c one\n-c three\n+c 3\n"

    refused = bench("patch", mode="patch", patch=good.format("a") + good.format("b") + bad)

    assert "c:" in refused["error"]
    assert [(bench.work / n).read_text() for n in "abc"] == [f"{n} one\n{n} two\n" for n in "abc"]

    done = bench("patch", mode="patch", patch=good.format("a") + good.format("b"))

    assert [file["path"] for file in done["files"]] == ["a", "b"]
    assert (bench.work / "b").read_text() == "b one\nb 2\n"


def test_a_patch_makes_moves_and_deletes_files(bench: Bench) -> None:
    (bench.work / "old.txt").write_text("one\ntwo\n")
    (bench.work / "gone.txt").write_text("bye\n")
    text = (
        "*** Begin Patch\n*** Add File: sub/new.txt\n+hello\n"
        "*** Update File: old.txt\n*** Move to: moved.txt\n@@\n one\n-two\n+2\n"
        "*** Delete File: gone.txt\n*** End Patch\n"
    )

    answer = bench("patch", mode="patch", patch=text)

    assert "error" not in answer
    assert (bench.work / "sub/new.txt").read_text() == "hello\n"
    assert (bench.work / "moved.txt").read_text() == "one\n2\n"
    assert sorted(os.listdir(bench.work)) == ["moved.txt", "sub"]


def test_a_new_file_has_the_line_ends_that_the_patch_gives_it(bench: Bench) -> None:
    diff = "--- /dev/null\n+++ b/a.bat\n@@ -0,0 +1,2 @@\n+one\r\n+two\r\n"

    bench("patch", mode="patch", patch=diff)
    again = bench("patch", mode="patch", patch=diff)

    assert (bench.work / "a.bat").read_bytes() == b"one\r\ntwo\r\n"
    assert again["files"][0]["already_applied"]


def test_a_diff_deletes_only_the_file_that_it_shows(bench: Bench) -> None:
    file = bench.work / "a.txt"
    file.write_text("one\ntwo\n")
    diff = "--- a/a.txt\n+++ /dev/null\n@@ -1,{0} +0,0 @@\n{1}"

    other = bench("patch", mode="patch", patch=diff.format(2, "-three\n-four\n"))
    part = bench("patch", mode="patch", patch=diff.format(1, "-one\n"))

    assert "three" in other["error"] or "not found" in other["error"]
    assert "more than" in part["error"]
    assert file.read_text() == "one\ntwo\n"
    assert bench("patch", mode="patch", patch=diff.format(2, "-one\n-two\n"))["files"] == [
        {"path": "a.txt", "deleted": True}
    ]
    assert not file.exists()


def test_a_patch_that_deleted_and_moved_is_recognised_when_it_comes_twice(bench: Bench) -> None:
    (bench.work / "old.txt").write_text("one\n")
    (bench.work / "gone.txt").write_text("gone\n")
    text = (
        "*** Begin Patch\n*** Delete File: gone.txt\n*** Update File: old.txt\n"
        "*** Move to: new.txt\n@@\n-one\n+two\n*** End Patch\n"
    )

    bench("patch", mode="patch", patch=text)
    again = bench("patch", mode="patch", patch=text)
    never = bench("patch", mode="patch", patch=text.replace("gone.txt", "other.txt"))

    assert [one["already_applied"] for one in again["files"]] == [True, True]
    assert "other.txt is not there" in never["error"]
    assert (bench.work / "new.txt").read_text() == "two\n"


def test_a_patch_that_fits_again_by_coincidence_is_not_applied_twice(bench: Bench) -> None:
    file = bench.work / "a.txt"
    file.write_text("same\n" * 9)
    diff = "--- a/a.txt\n+++ b/a.txt\n@@ -2,3 +2,2 @@\n same\n-same\n same\n"

    first = bench("patch", mode="patch", patch=diff)
    again = bench("patch", mode="patch", patch=diff)
    other = bench.another("s2")("patch", mode="patch", patch=diff)

    assert "already_applied" not in first["files"][0]
    assert again["files"] == other["files"] == [{"path": "a.txt", "already_applied": True}]
    assert file.read_text() == "same\n" * 8


def test_a_patch_makes_a_file_executable_for_those_who_may_read_it(bench: Bench) -> None:
    file = bench.work / "run.sh"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o600)
    lines = "diff --git a/run.sh b/run.sh\nold mode 100{0}\nnew mode 100{1}\n"

    made = bench("patch", mode="patch", patch=lines.format(644, 755))
    mode = stat.S_IMODE(file.stat().st_mode)
    again = bench("patch", mode="patch", patch=lines.format(644, 755))
    back = bench("patch", mode="patch", patch=lines.format(755, 644))

    assert made["files"] == [{"path": "run.sh", "mode": "700"}]
    assert mode == 0o700
    assert again["files"] == [{"path": "run.sh", "already_applied": True}]
    assert back["files"] == [{"path": "run.sh", "mode": "600"}]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_a_failed_patch_did_before_is_put_back_whole(bench: Bench) -> None:
    script, text = bench.work / "run.sh", bench.work / "text"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o750)
    text.write_text("one\n")
    for file in (script, text):
        os.utime(file, (1_000, 1_000))
    # The second new file needs a folder where the first one is.
    patch = (
        "*** Begin Patch\n*** Delete File: run.sh\n*** Update File: text\n@@\n-one\n+two\n"
        "*** Add File: made/a\n+new\n*** Add File: made/a/b\n+new\n*** End Patch\n"
    )

    answer = bench("patch", mode="patch", patch=patch)

    assert "not a folder" in answer["error"]
    assert sorted(os.listdir(bench.work)) == ["run.sh", "text"]
    assert script.stat().st_mode & 0o777 == 0o750
    assert text.read_text() == "one\n"
    assert (script.stat().st_mtime, text.stat().st_mtime) == (1_000, 1_000)
    assert not checkpoints().turns()


def test_the_gate_judges_every_file_of_a_patch(bench: Bench) -> None:
    text = "*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File: ../../out.txt\n+x\n*** End Patch\n"

    bench("patch", mode="patch", patch=text)

    assert bench.status == "refused"
    assert not (bench.work / "ok.txt").exists()


@pytest.mark.parametrize("tool", ["read_file", "write_file", "patch"])
def test_links_to_guarded_places_are_refused(
    bench: Bench, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "person"
    (person / ".ssh").mkdir(parents=True)
    keys = person / ".ssh" / "authorized_keys"
    keys.write_text("key\n")
    monkeypatch.setenv("HOME", str(person))
    (bench.work / "notes.txt").symlink_to(keys)
    (bench.work / "folder").symlink_to(person / ".ssh")
    more = {
        "read_file": {},
        "write_file": {"content": "x"},
        "patch": {"old_string": "key", "new_string": "x"},
    }[tool]

    from hermes.runtime.app import App

    app = App()
    person_bench = Bench(app, bench.work)
    for path in ("notes.txt", "folder/authorized_keys", str(keys), "~/.ssh/authorized_keys"):
        person_bench(tool, path=path, **more)

        assert person_bench.status == "refused", path
    assert keys.read_text() == "key\n"
    app.close()


def test_a_hundred_patches_at_once(bench: Bench) -> None:
    from hermes.core import ToolCall

    for n in range(100):
        (bench.work / f"{n}.txt").write_text(f"number {n}\n")
    calls = [
        ToolCall(
            "patch",
            {"path": f"{n}.txt", "old_string": f"number {n}", "new_string": f"NUMBER {n}"},
            id=str(n),
        )
        for n in range(100)
    ]

    outcomes = bench.app.runtime.call_many_sync(calls, bench.context)

    assert {outcome.status for outcome in outcomes} == {"ok"}
    for n in range(100):
        assert (bench.work / f"{n}.txt").read_text() == f"NUMBER {n}\n"


def test_parallel_edits_of_one_file_are_all_kept(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("".join(f"line {n}\n" for n in range(20)))
    others = [bench.another(f"p{n}") for n in range(20)]

    def edit(n: int) -> None:
        others[n]("patch", path="a.txt", old_string=f"line {n}\n", new_string=f"LINE {n}\n")

    threads = [threading.Thread(target=edit, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (bench.work / "a.txt").read_text() == "".join(f"LINE {n}\n" for n in range(20))


def test_only_the_changed_bytes_of_a_long_file_change(bench: Bench) -> None:
    lines = [f"{n} " + "x" * 5_000 + "\n" for n in range(5_000)]
    path = bench.work / "long.txt"
    path.write_text("".join(lines))

    bench("patch", path="long.txt", old_string="\n4900 x", new_string="\nEDITED x")

    lines[4_900] = lines[4_900].replace("4900", "EDITED", 1)
    assert path.read_text() == "".join(lines)


def test_the_diff_of_a_write_shows_what_the_file_says_now(bench: Bench) -> None:
    (bench.work / "a.txt").write_bytes(b"one\ntwo\n")

    answer = bench("write_file", path="a.txt", content="one\r\nthree\r\n")

    assert (bench.work / "a.txt").read_bytes() == b"one\nthree\n"
    assert answer["bytes"] == len(b"one\nthree\n")
    assert answer["diff"].startswith("+1 -1 lines")
    assert "␍" not in answer["diff"]

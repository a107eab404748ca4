"""What a command did can be taken back, like what a file tool did."""

from __future__ import annotations

import os

from tests.tools.bench import Bench

from hermes.stores.checkpoints.checkpoint_store import Checkpoints, checkpoints


def _say_yes(_: object) -> str:
    return "once"


def test_a_deleted_folder_comes_back(bench: Bench) -> None:
    build = bench.work / "build"
    (build / "deep").mkdir(parents=True)
    (build / "a.bin").write_bytes(bytes(range(256)))
    (build / "deep" / "b.sh").write_text("echo\n")
    (build / "deep" / "b.sh").chmod(0o750)
    (build / "link").symlink_to("a.bin")
    bench.context.approver = _say_yes

    bench("terminal", command="rm -rf build; echo new > made.txt")
    assert os.listdir(bench.work) == ["made.txt"]
    report = checkpoints().undo(below=str(bench.work))

    assert report.complete
    assert sorted(os.listdir(bench.work)) == ["build"]
    assert (build / "a.bin").read_bytes() == bytes(range(256))
    assert (build / "deep" / "b.sh").stat().st_mode & 0o777 == 0o750
    assert os.readlink(build / "link") == "a.bin"


def test_a_command_that_only_reads_keeps_nothing(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("text\n")

    bench("terminal", command="cat a.txt | wc -l")

    assert not (bench.app.home and os.path.exists(os.path.join(bench.app.home, "checkpoints")))


def test_a_folder_that_the_person_filled_since_is_not_removed(bench: Bench) -> None:
    bench("terminal", command="mkdir out && echo agent > out/a.txt")
    (bench.work / "out" / "mine.txt").write_text("by the person\n")

    checkpoints().undo(below=str(bench.work))

    assert os.listdir(bench.work / "out") == ["mine.txt"]


def test_what_a_background_command_did_is_undone_after_its_end(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("old\n")

    started = bench("terminal", command="sleep 0.6; rm a.txt; echo new > b.txt", background=True)
    bench("process", action="wait", name=started["name"])
    report = checkpoints().undo(below=str(bench.work), force=True)

    assert "notes" not in started
    assert report.complete
    assert os.listdir(bench.work) == ["a.txt"]
    assert (bench.work / "a.txt").read_text() == "old\n"


def test_what_a_background_command_did_so_far_is_undone_while_it_runs(bench: Bench) -> None:
    (bench.work / "a.txt").write_text("old\n")

    started = bench("terminal", command="rm a.txt; echo gone; sleep 60", background=True)
    bench("process", action="wait", name=started["name"], pattern="gone")
    with Checkpoints() as another:
        report = another.undo(below=str(bench.work))
    bench("process", action="kill", name=started["name"])

    assert report.complete
    assert os.listdir(bench.work) == ["a.txt"]

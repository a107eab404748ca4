"""search_files and directory_list, called as a model calls them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.files.search.conftest import make
from tests.tools.bench import Bench


@pytest.fixture(params=["ripgrep", "python"])
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ripgrep installed, and without."""
    if request.param == "python":
        monkeypatch.setattr("hermes.files.search.ripgrep.find_ripgrep", lambda: None)


@pytest.mark.usefixtures("engines")
class TestWithAndWithoutRipgrep:
    def test_lines_are_grouped_by_file(self, bench: Bench) -> None:
        make(bench.work, {"a.py": "x\nneedle\nneedle\n", "sub/b.py": "needle\n"})

        answer = bench("search_files", pattern="needle")

        assert answer == {
            "matches": "a.py:2: needle\n  3: needle\nsub/b.py:1: needle",
            "total_matches": 3,
            "files_matched": 2,
            "files_scanned": 2,
        }

    def test_a_word_is_found_in_whatever_encoding(self, bench: Bench) -> None:
        line = "Die Größe der Tür wird hier gemessen.\n"
        make(bench.work, {name: line.encode(name) for name in ("latin-1", "utf-8", "utf-16-le")})

        answer = bench("search_files", pattern="Größe")

        shown = line.strip()
        assert answer == {
            "matches": f"latin-1:1: {shown}\nutf-16-le:1: {shown}\nutf-8:1: {shown}",
            "total_matches": 3,
            "files_matched": 3,
            "files_scanned": 3,
        }

    def test_a_file_is_called_as_it_was_asked_for(self, bench: Bench) -> None:
        make(bench.work, {"sub/real.txt": "needle\n"})
        (bench.work / "link").symlink_to("sub/real.txt")

        assert bench("search_files", pattern="needle", path="link")["matches"] == "link:1: needle"

    @pytest.mark.parametrize("pattern", ["a\0b", "\ud800", "\\x00", "[\\x00]"])
    def test_what_no_text_has_is_no_pattern(self, bench: Bench, pattern: str) -> None:
        make(bench.work, {"a": "needle\n"})

        answer = bench("search_files", pattern=pattern)

        assert "error" in answer or answer["total_matches"] == 0
        assert "failed" not in answer.get("error", "")

    def test_lines_around_are_marked(self, bench: Bench) -> None:
        make(bench.work, {"a": "1\n2\nneedle\n4\n5\n6\n7\nneedle\n"})

        answer = bench("search_files", pattern="needle", context=1)

        assert answer["matches"] == "a:2- 2\n  3: needle\n  4- 4\n  --\n  7- 7\n  8: needle"

    def test_paths_can_be_used_in_the_next_call(self, bench: Bench) -> None:
        make(bench.work, {"sub/deep/a.txt": "needle\n"})

        for path in ("sub", "./sub/", "sub/deep/a.txt", str(bench.work / "sub")):
            line = bench("search_files", pattern="needle", path=path)["matches"]
            named = line.partition(":")[0]
            assert (bench.work / named).samefile(bench.work / "sub/deep/a.txt")

    @pytest.mark.parametrize(
        ("output", "field", "text"),
        [("files", "files", "a\nb"), ("count", "counts", "a: 2\nb: 1")],
    )
    def test_files_and_counts_alone(self, bench: Bench, output: str, field: str, text: str) -> None:
        make(bench.work, {"a": "needle\nneedle\n", "b": "needle\n"})

        assert bench("search_files", pattern="needle", output=output)[field] == text

    @pytest.mark.parametrize(
        ("files", "arguments", "said"),
        [
            ({".h/a": "needle"}, {}, "1 hidden (hidden=true)"),
            ({"o/a": "needle", ".ignore": "o/"}, {}, "1 ignored (ignored=true)"),
            ({"a": b"needle\0"}, {}, "1 binary (binary=true)"),
            ({"a.py": "x"}, {"glob": "*.rs"}, "no file fits the glob"),
            ({"a": "foo"}, {"pattern": r"foo\|bar"}, "alternatives are written"),
        ],
    )
    def test_nothing_says_what_was_looked_at(
        self, bench: Bench, files: dict[str, str | bytes], arguments: dict[str, str], said: str
    ) -> None:
        make(bench.work, files)

        answer = bench("search_files", **{"pattern": "needle", **arguments})

        assert answer["total_matches"] == 0
        assert "files_scanned" in answer
        assert said in f"{answer.get('skipped')} {answer.get('note')}"

    def test_a_closed_file_is_neither_shown_nor_counted(self, bench: Bench) -> None:
        home = Path(bench.app.home)
        make(home, {".env": "needle=hush\n"})
        make(bench.work, {"a": "needle\n"})

        for output in ("content", "files", "count"):
            answer = bench(
                "search_files", pattern="needle", path=str(home.parent), hidden=True, output=output
            )
            assert (answer["total_matches"], answer["files_matched"]) == (1, 1)
            assert "1 matching files are withheld" in answer["note"]
            assert ".env" not in str(answer)
            assert "hush" not in str(answer)

        assert (
            ".env"
            not in bench(
                "search_files", pattern=".env", target="files", path=str(home), hidden=True
            )["paths"]
        )
        assert ".env" not in bench("directory_list", path=str(home), hidden=True)["tree"]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"pattern": "a("}, "character 2"),
            ({"pattern": "a", "glob": "["}, "character 1"),
            ({"pattern": "a", "path": "nowhere"}, "no such file"),
            ({"pattern": ""}, "empty"),
            ({"pattern": "a\nb"}, "by line"),
        ],
    )
    def test_what_can_not_be_searched_is_an_error(
        self, bench: Bench, arguments: dict[str, str], said: str
    ) -> None:
        assert said in bench("search_files", **arguments)["error"]

    def test_time_that_is_up_is_said(self, bench: Bench) -> None:
        make(bench.work, {f"{n}": "needle\n" for n in range(300)})

        answer = bench("search_files", pattern="needle", timeout=0.000001)

        assert "stopped after 1e-06 s" in answer["note"]
        assert "files scanned" in answer["note"]


def test_folders_are_found_and_marked(bench: Bench) -> None:
    make(bench.work, {"src/a.txt": "", "empty/": ""})

    assert bench("search_files", pattern="src", target="files")["paths"].startswith("src/\n")
    assert bench("search_files", pattern="empty", target="files")["paths"] == "empty/"


def test_a_typo_is_said_to_be_one(bench: Bench) -> None:
    make(bench.work, {"configuration.yaml": ""})

    answer = bench("search_files", pattern="confguratoin.yaml", target="files")

    assert answer["paths"] == "configuration.yaml"
    assert "spelled alike" in answer["note"]


def test_other_names_of_the_tools_work(bench: Bench) -> None:
    make(bench.work, {"a.txt": "needle\n"})

    for name in ("search", "file_search"):
        assert bench(name, pattern="needle")["total_matches"] == 1
    assert bench("list_directory")["tree"] == "a.txt  7B"


def test_a_folder_is_listed_by_pages(bench: Bench) -> None:
    make(bench.work, {f"{n:03}": "" for n in range(30)})

    first = bench("directory_list", limit=20)
    second = bench("directory_list", limit=20, offset=first["next_offset"])

    assert (first["tree"] + "\n" + second["tree"]).split("\n") == [f"{n:03}  0B" for n in range(30)]
    assert "next_offset" not in second


def test_a_file_is_not_listed(bench: Bench) -> None:
    make(bench.work, {"a": ""})

    assert "no folder" in bench("directory_list", path="a")["error"]
    assert "no such" in bench("directory_list", path="b")["error"]


def test_pipes_are_listed_as_what_they_are(bench: Bench) -> None:
    os.mkfifo(bench.work / "pipe")

    answer = bench("directory_list")

    assert answer["tree"] == "pipe  pipe"
    assert "note" not in answer

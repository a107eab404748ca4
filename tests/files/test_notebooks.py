"""Notebooks, as one reads them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.files.notebooks import read_notebook

PICTURE = base64.b64encode(bytes(1_000)).decode()
CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "naïve 你好"]},
    {
        "cell_type": "code",
        "execution_count": 7,
        "source": "print(1)\n1 / 0",
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["10%\r", "100%\n", "1\n"]},
            {
                "output_type": "display_data",
                "data": {"image/png": PICTURE, "text/plain": ["<Figure>"]},
            },
            {
                "output_type": "execute_result",
                "data": {"application/json": {"a": [1, 2]}, "text/html": "<b>bold</b>"},
            },
            {
                "output_type": "error",
                "ename": "ZeroDivisionError",
                "evalue": "division by zero",
                "traceback": ["\x1b[0;31m----\x1b[0m", "line 2"],
            },
        ],
    },
]


def made(cells: Any) -> bytes:
    """A notebook file."""
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4}).encode()


def test_cells_are_numbered_with_source_and_outputs() -> None:
    book = read_notebook(made(CELLS))

    assert (book.cells, book.language, book.note) == (2, "python", "")
    assert book.text.startswith(
        "# cell 1: markdown\n# Title\nnaïve 你好\n\n# cell 2: code, run 7\n"
    )
    assert "print(1)\n1 / 0\n# -> stdout\n100%\n1\n" in book.text
    assert "# -> display\n<Figure>\n[image/png, 1,000 bytes]" in book.text
    assert "bold" in book.text
    assert "# -> error ZeroDivisionError: division by zero\n----\nline 2" in book.text
    assert PICTURE not in book.text


def test_long_outputs_are_shortened_and_say_so() -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "a" * 50_000 + "END"}

    book = read_notebook(made([{"cell_type": "code", "source": "", "outputs": [output]}]))

    assert len(book.text) < 2_200
    assert "characters left out" in book.text
    assert "END" in book.text


def test_older_notebooks_with_sheets_are_read() -> None:
    output = {"output_type": "pyout", "prompt_number": 3, "text": ["42"], "png": PICTURE}
    cell = {"cell_type": "code", "input": ["6 * 7"], "prompt_number": 3, "outputs": [output]}
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}]}).encode()

    book = read_notebook(data)

    assert book.text == (
        "# cell 1: code, run 3\n6 * 7\n# -> result\n42\n[image/png, 1,000 bytes]\n"
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"cells": 3}', b'{"cells": [1]}', b'{"a": 1}', b"\xff\xfe\x00",
     b"[" * 100_000, made(CELLS)[:-9]],
)  # fmt: skip
def test_a_broken_notebook_is_shown_as_text_with_a_note(data: bytes) -> None:
    book = read_notebook(data)

    assert "shown as text" in book.note
    assert book.cells == 0
    assert book.text.encode() == data or data == b"\xff\xfe\x00"


def test_numbers_that_json_lacks_do_no_harm() -> None:
    value = {"output_type": "display_data", "data": {"application/x": {"y": float("nan")}}}

    book = read_notebook(made([{"cell_type": "code", "source": "x", "outputs": [value]}]))

    assert not book.note
    assert "[application/x, " in book.text


MEMBERS = [
    "cell_type", "source", "outputs", "output_type", "data", "text", "name", "attachments",
    "traceback", "text/plain", "image/png", "worksheets", "cells",
]  # fmt: skip
anything = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.lists(st.fixed_dictionaries({"outputs": st.lists(anything)}) | anything))
def test_whatever_cells_hold_nothing_fails(cells: list[Any]) -> None:
    book = read_notebook(made(cells))

    assert book.text or book.note or not cells

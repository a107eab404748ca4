"""Docstrings: what the model reads, and what describes which parameter."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.errors import RegistrationError
from hermes.core.schema import function_schema
from hermes.core.schema.docstrings import parse


def test_a_google_docstring_is_split_into_text_and_descriptions() -> None:
    text, described = parse("""Read a file.

    It keeps: every byte.
        Indented more.

    Args:
        path (str, optional): Where: the file
            lies on disk.
        mode (dict[str, tuple(int)]): One of
            - a: first
            - b: second
              and more
        *rest: All others.

            A second paragraph.
        x, y: Both.

    Returns:
        Nothing: at all.

    Raises:
        ValueError: when it must.
    """)

    assert text == "Read a file.\n\nIt keeps: every byte.\n    Indented more."
    assert described == {
        "path": "Where: the file lies on disk.",
        "mode": "One of\n- a: first\n- b: second and more",
        "rest": "All others.\nA second paragraph.",
        "x": "Both.",
        "y": "Both.",
    }


@pytest.mark.parametrize("title", ["Args", "Arguments", "Parameters", "ARGS"])
def test_each_title_of_the_section_is_known(title: str) -> None:
    assert parse(f"Do.\n\n{title}:\n  a: One.\n") == ("Do.", {"a": "One."})


def test_tabs_and_a_first_line_of_its_own_make_no_difference() -> None:
    assert parse("\n\tDo.\n\n\tArgs:\n\t\ta: One.\n\t") == ("Do.", {"a": "One."})
    assert parse(" Do.\n\n    Args:\n        a: One.\n    ") == ("Do.", {"a": "One."})


def test_text_after_the_sections_belongs_to_no_parameter() -> None:
    assert parse("Do.\n\nArgs:\n    a: One.\n\nNote: slow.\n") == ("Do.", {"a": "One."})


def test_fields_and_underlined_sections_are_read_too() -> None:
    assert parse("""Do.

    :param int a: One
        and more.
    :param b: Two.
    :returns: x
    """) == ("Do.", {"a": "One and more.", "b": "Two."})
    assert parse("""Do.

    Parameters
    ----------
    a : int
        One
        and more.
    b
        Two: colon.

    Returns
    -------
    int
        Nothing.
    """) == ("Do.", {"a": "One and more.", "b": "Two: colon."})


@pytest.mark.parametrize("text", [None, "", "  ", "\n\n"])
def test_no_text_is_no_text(text: str | None) -> None:
    assert parse(text) == ("", {})


@pytest.mark.parametrize("text", ["Returns: the sum.", "Args are not here: x.", "Parameters\n\nx"])
def test_ordinary_sentences_are_not_sections(text: str) -> None:
    assert parse(text) == (text, {})


def test_a_result_in_one_line_is_not_for_the_model() -> None:
    assert parse("Add.\n\nReturns: the sum.\n") == ("Add.", {})


def test_describing_a_parameter_that_does_not_exist_is_refused() -> None:
    def tool(path: str) -> None:
        """Read.

        Args:
            file: Where it is.
        """

    with pytest.raises(RegistrationError, match="'file'") as caught:
        function_schema(tool)
    assert "Args" in (caught.value.hint or "")


def test_what_keyword_arguments_are_described_as_is_shown() -> None:
    def tool(path: str, **options: Any) -> None:
        """Read.

        Args:
            path: Where it is.
            depth: How far.
            **options: Any other.
        """

    properties = function_schema(tool).parameters["properties"]

    assert properties["depth"] == {"description": "How far."}
    assert "options" not in properties

"""A session leaves as one text, whole, harmless and without secrets."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.model_protocol import Image, Message, ToolUse, Usage
from hermes.stores.sessions import Session, Sessions, SessionsError

HOSTILE = '<script>alert(1)</script> " onload="x" \x1b[31m </pre><img src=x onerror=y> ```'
SECRET = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"  # made up


@pytest.fixture
def spoken(session: Session) -> Session:
    """A session with a bit of everything, none of it friendly."""
    session.append(Message("user", HOSTILE, images=(Image("image/png", "aGk="),)))
    call = ToolUse("c", "write_file", json.dumps({"content": HOSTILE}))
    session.append(Message("assistant", "", (call,), reasoning=HOSTILE), usage=Usage(3, 4))
    seq = session.intend("t", "c", "write_file", {"content": HOSTILE}, "write")
    session.outcome(seq, "error", HOSTILE * 20, 0.5)
    session.append(Message("tool", HOSTILE * 20, call_id="c", name=HOSTILE))
    session.note(HOSTILE, {"answer": HOSTILE})
    session.append(Message("user", "x", images=(Image("text/html", "<b>"),)))
    session.append(Message("user", f"export OPENAI_API_KEY={SECRET}"))
    return session


class Page(HTMLParser):
    """Which elements a browser would see, and what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def _page(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    return page


def test_json_holds_everything(store: Sessions, spoken: Session) -> None:
    exported = json.loads(store.export(spoken.id, "json"))

    kinds = [entry["kind"] for entry in exported["journal"]]
    assert kinds == ["user", "assistant", "intent", "outcome", "tool", "note", "user", "user"]
    assert exported["messages"][0]["text"] == HOSTILE
    assert exported["journal"][1]["usage"] == {"input": 3, "output": 4}
    assert exported["session"]["id"] == spoken.id


@pytest.mark.parametrize("form", ["json", "md", "html"])
def test_secrets_leave_only_when_asked_for(form: str, store: Sessions, spoken: Session) -> None:
    assert SECRET not in store.export(spoken.id, form)
    assert SECRET in store.export(spoken.id, form, raw=True)


def test_a_page_runs_nothing_and_needs_nothing(store: Sessions, spoken: Session) -> None:
    text = store.export(spoken.id, "html")

    page = _page(text)

    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "a", "form", "base"}
    assert [attributes["src"] for tag, attributes in page.tags if tag == "img"] == [
        "data:image/png;base64,aGk="
    ]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert "alert(1)" in page.text
    assert "\x1b" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=\"(?!data:image/)", text)


@given(said=st.text(max_size=60))
def test_a_page_says_any_text_as_it_was_said(
    said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Sessions(tmp_path_factory.mktemp("page") / "state.db") as store:
        session = store.begin(workspace="/w", model="m", front_door="test", title="t")
        session.append(Message("assistant", said))

        page = _page(store.export(session.id, "html", raw=True))

        shown = "".join(c if c >= " " or c in "\t\n" else "\ufffd" for c in said)
        assert shown.strip() in page.text
        assert [tag for tag, _ in page.tags].count("article") == 1


def test_a_block_in_markdown_can_not_be_closed_from_inside(
    store: Sessions, session: Session
) -> None:
    session.append(Message("tool", "a\n```\n# not a title\n````\nb", call_id="c", name="cat"))

    lines = store.export(session.id, "md").splitlines()

    fences = [number for number, line in enumerate(lines) if line == "`````"]
    assert len(fences) == 2
    assert fences[0] < lines.index("# not a title") < fences[1]


def test_an_unknown_form_is_refused(store: Sessions, spoken: Session) -> None:
    with pytest.raises(SessionsError, match="no export as 'pdf'"):
        store.export(spoken.id, "pdf")

"""A secret goes to the model as a placeholder, and back to where it came from only."""

from __future__ import annotations

import json
import pickle
import string
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.safety.placeholders import Origin, Used, Vault, origin_of
from hermes.safety.placeholders import vault as vault_module
from hermes.safety.placeholders.format import placeholders_in
from hermes.safety.redaction import redact

TOKEN = "ghp_" + "aB3dE6gH9jK2" * 3
ENV = f"GITHUB_TOKEN={TOKEN}\nDB_PASSWORD='s3cr3t \"pass\\\\word'\nPORT=8080\n"

VALUES = st.text(string.ascii_letters + string.digits + "!#%+-_/@", min_size=8, max_size=60).filter(
    lambda text: any(map(str.isdigit, text)) and any(map(str.isalpha, text))
)


def seen(vault: Vault, text: str, path: Path, session: str = "s") -> str:
    origin = origin_of("read_file", [("read", str(path))])
    return vault.mask(text, session=session, origin=origin)


def test_a_value_has_one_placeholder_in_a_session_and_another_in_the_next(tmp_path: Path) -> None:
    vault = Vault()
    file = tmp_path / ".env"

    first = seen(vault, f"token {TOKEN} here", file)
    again = seen(vault, f"x={TOKEN}", file)
    other = seen(vault, f"token {TOKEN} here", file, session="t")

    assert TOKEN not in first + again + other
    assert placeholders_in(first) == placeholders_in(again)
    assert placeholders_in(first) != placeholders_in(other)
    assert first.startswith("token [secret:github-token:")


def test_an_edited_file_gets_its_secrets_back_to_the_byte(tmp_path: Path) -> None:
    vault = Vault()
    file = tmp_path / ".env"
    shown = seen(vault, ENV, file)

    arguments, used = vault.fill(
        {"path": ".env", "content": shown.replace("8080", "9090")},
        [("write", ".env")],
        "s",
        workspace=str(tmp_path),
    )

    assert arguments == {"path": ".env", "content": ENV.replace("8080", "9090")}
    assert len(used.placeholders) == 2
    assert TOKEN not in repr(used)


def test_results_in_json_give_the_value_and_not_its_spelling(tmp_path: Path) -> None:
    vault = Vault()
    result = json.dumps({"content": ENV, "lines": 3})

    shown = json.loads(seen(vault, result, tmp_path / ".env"))["content"]
    filled, _ = vault.fill({"text": shown}, [("write", str(tmp_path / ".env"))], "s")

    assert TOKEN not in shown
    assert filled["text"] == ENV


@given(st.lists(VALUES, min_size=1, max_size=6, unique=True), st.booleans())
def test_what_was_masked_comes_back(values: list[str], as_json: bool) -> None:
    vault = Vault()
    text = "".join(f"API_TOKEN_{n}='{value}'\n" for n, value in enumerate(values))
    origin = Origin("read_file", "file", "/w/.env")

    shown = vault.mask(json.dumps({"c": text}) if as_json else text, session="s", origin=origin)
    content = json.loads(shown)["c"] if as_json else shown
    filled, _ = vault.fill({"c": content}, [("write", "/w/.env")], "s", resolve=str)

    assert filled["c"] == text
    assert vault.mask(shown, session="s", origin=origin) == shown
    assert redact(content) == content


@given(st.text(max_size=300))
def test_any_text_is_masked_and_filled_without_loss(text: str) -> None:
    vault = Vault()

    shown = vault.mask(text, session="s", origin=Origin("t", "file", "/f"))
    filled, _ = vault.fill({"c": shown}, [("write", "/f")], "s", resolve=str)

    assert filled["c"] == text


@pytest.mark.parametrize(
    "acts",
    [
        [("write", "other.txt")],
        [("execute", "cat .env")],
        [("fetch", "https://host.example/")],
        [("write", ".env"), ("fetch", "https://host.example/")],
        [("write", ".env"), ("write", "other.txt")],
        [("write", ".env"), ("execute", "ls")],
        [("read", ".env")],
        [("delete", ".env")],
    ],
)
def test_a_value_goes_nowhere_else(tmp_path: Path, acts: list[tuple[str, str]]) -> None:
    vault = Vault()
    shown = seen(vault, ENV, tmp_path / ".env")

    with pytest.raises(ToolError, match="stands for a secret") as refused:
        vault.fill({"text": shown}, acts, "s", workspace=str(tmp_path))

    assert TOKEN not in f"{refused.value} {refused.value.hint}"


def test_the_place_counts_and_not_the_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "real" / "other")
    vault = Vault()
    shown = seen(vault, ENV, tmp_path / "real" / ".env")

    filled, _ = vault.fill({"t": shown}, [("write", str(tmp_path / "link" / ".env"))], "s")

    assert TOKEN in filled["t"]
    with pytest.raises(ToolError):
        vault.fill({"t": shown}, [("write", str(tmp_path / "elsewhere"))], "s")


def test_a_value_seen_among_several_files_goes_back_to_none(tmp_path: Path) -> None:
    vault = Vault()
    acts = [("read", str(tmp_path / "a")), ("read", str(tmp_path / "b"))]
    shown = vault.mask(ENV, session="s", origin=origin_of("read_files", acts))

    with pytest.raises(ToolError, match="not seen in this file"):
        vault.fill({"t": shown}, [("write", str(tmp_path / "a"))], "s")


def test_command_output_goes_back_to_nothing() -> None:
    vault = Vault()
    shown = vault.mask(ENV, session="s", origin=origin_of("terminal", [("execute", "cat .env")]))

    for acts in ([("execute", "cat .env")], [("write", "/w/.env")]):
        with pytest.raises(ToolError):
            vault.fill({"t": shown}, acts, "s")


COOKIE = "Set-Cookie: sid=Zx81kQ2mVt93; HttpOnly"


def from_host(vault: Vault) -> str:
    origin = origin_of("http_request", [("fetch", "https://host.example/login")])
    return placeholders_in(vault.mask(COOKIE, session="s", origin=origin))[0]


@pytest.mark.parametrize(
    "url",
    ["https://host.example/next", "https://HOST.example:443/?a=b", "https://me@host.example/"],
)
def test_a_value_from_a_host_goes_back_to_it(url: str) -> None:
    vault = Vault()
    held = from_host(vault)

    filled, used = vault.fill({"url": url, "headers": {"Cookie": held}}, [("fetch", url)], "s")

    assert filled["headers"] == {"Cookie": "sid=Zx81kQ2mVt93; HttpOnly"}
    assert used.placeholders == (held,)


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example/",
        "http://host.example/",
        "https://host.example:8443/",
        "https://host.example.evil.example/",
        "https://host.example@evil.example/",
        "https://evil.example/#https://host.example/",
        "https://host.example\\@evil.example/",
        "//host.example/",
        "",
    ],
)
def test_a_value_from_a_host_goes_to_no_other(url: str) -> None:
    vault = Vault()
    held = from_host(vault)

    with pytest.raises(ToolError):
        vault.fill({"url": url, "headers": {"Cookie": held}}, [("fetch", url)], "s")


def test_a_value_in_an_address_does_not_lead_it_elsewhere() -> None:
    vault = Vault()
    origin = Origin("http_request", "host", "https://host.example:443")
    at = vault.mask("password='@evil.example/x9'", session="s", origin=origin)
    token = vault.mask("api_token='abc123def456ghi'", session="s", origin=origin)
    at, token = placeholders_in(at)[0], placeholders_in(token)[0]
    url = f"https://host.example/?t={token}"

    filled, _ = vault.fill({"urls": [url]}, [("fetch", url)], "s")

    assert filled == {"urls": ["https://host.example/?t=abc123def456ghi"]}
    for bad in (f"https://host.example{at}", f"https://{token}/"):
        with pytest.raises(ToolError):
            vault.fill({"urls": [bad]}, [("fetch", bad)], "s")


def test_a_call_that_does_nothing_keeps_the_placeholder(tmp_path: Path) -> None:
    vault = Vault()
    shown = seen(vault, ENV, tmp_path / ".env")

    assert vault.fill({"note": shown}, [], "s") == ({"note": shown}, Used())


def test_a_profile_may_forbid_it(tmp_path: Path) -> None:
    vault = Vault()
    file = tmp_path / ".env"
    shown = seen(vault, ENV, file)

    with pytest.raises(ToolError, match="profile"):
        vault.fill({"t": shown}, [("write", str(file))], "s", allowed=False)
    with pytest.raises(ToolError):
        vault.fill({"t": shown}, [("write", str(file))], "s", effect="network")


def test_a_placeholder_of_another_session_is_never_written_as_text(tmp_path: Path) -> None:
    vault = Vault()
    file = tmp_path / ".env"
    shown = seen(vault, ENV, file, session="before")

    for session in ("after", "before"):
        vault.end_session("before")
        with pytest.raises(ToolError, match="no longer held"):
            vault.fill({"t": shown}, [("write", str(file))], session)


@pytest.mark.parametrize(
    "text",
    [
        "[secret:github-token:7f3a]",
        "[secret:password:aaaaaaaaaa]",
        "[secret:x]",
        "[SECRET:a:bbbbbbbbbb]",
        "see [secret: a note]",
    ],
)
def test_text_that_looks_like_a_placeholder_is_text(text: str) -> None:
    vault = Vault()

    assert not vault.has_placeholder(text)
    assert vault.fill({"t": text}, [("write", "/f")], "s")[0] == {"t": text}


def test_old_strings_of_a_patch_are_filled_too(tmp_path: Path) -> None:
    vault = Vault()
    file = tmp_path / "config.yaml"
    shown = seen(vault, "db:\n  password: x9Kq2Lm4Tz\n", file)
    arguments: dict[str, Any] = {
        "path": str(file),
        "edits": [{"old_string": shown, "new_string": shown.replace("db", "database")}],
    }

    filled, _ = vault.fill(arguments, [("write", str(file)), ("read", str(file))], "s")

    assert filled["edits"][0]["old_string"] == "db:\n  password: x9Kq2Lm4Tz\n"
    assert vault.has_placeholder(arguments["edits"][0]["old_string"])


def test_a_numbered_listing_gives_a_key_without_the_numbers(tmp_path: Path) -> None:
    vault = Vault()
    body = [f"{'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC' * 2}{n:02}" for n in range(12)]
    lines = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----", ""]
    listing = "\n".join(f"{n:6}|{line}" for n, line in enumerate(lines, 8))
    file = tmp_path / "key.pem"

    shown = seen(vault, json.dumps({"content": listing}), file)
    held = placeholders_in(shown)[0]
    text = f"-----BEGIN PRIVATE KEY-----{held}-----END PRIVATE KEY-----\n"
    filled, _ = vault.fill({"t": text}, [("write", str(file))], "s")

    assert filled["t"] == "\n".join(lines)


def test_a_number_under_a_secret_name_stays_a_number(tmp_path: Path) -> None:
    vault = Vault()
    file = tmp_path / "c.json"
    text = '{"password": 12345678, "port": 1}'

    shown = seen(vault, text, file)
    filled, _ = vault.fill({"t": shown}, [("write", str(file))], "s")

    assert "12345678" not in shown
    assert filled["t"] == text


def test_the_result_of_a_filled_call_shows_none_of_it(tmp_path: Path) -> None:
    vault = Vault()
    file = tmp_path / "a.yaml"
    shown = seen(vault, "password: swordfish\n", file)
    acts = [("write", str(file))]
    _, used = vault.fill({"t": shown}, acts, "s")

    error = json.dumps({"error": "no such text: swordfish at line 1"})
    masked = vault.mask(error, session="s", origin=origin_of("patch", acts), used=used)

    assert "swordfish" not in masked
    assert placeholders_in(masked) == placeholders_in(shown)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_module, "MOST_VALUES", 5)
    monkeypatch.setattr(vault_module, "MOST_SESSIONS", 3)
    vault = Vault()
    origin = Origin("t", "file", "/f")

    shown = [vault.mask(f"password='aB3dE6gH9j{n}'", session="s", origin=origin) for n in range(9)]
    for n in range(2):
        vault.mask("password='aB3dE6gH9jX'", session=f"other {n}", origin=origin)

    assert vault.fill({"t": shown[-1]}, [("write", "/f")], "s")[1].placeholders
    with pytest.raises(ToolError, match="no longer held"):
        vault.fill({"t": shown[0]}, [("write", "/f")], "s")
    vault.mask("password='aB3dE6gH9jX'", session="one more", origin=origin)
    vault.mask("password='aB3dE6gH9jX'", session="and one", origin=origin)
    with pytest.raises(ToolError, match="no longer held"):
        vault.fill({"t": shown[-1]}, [("write", "/f")], "s")


def test_a_vault_stays_in_its_process() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Vault())


def test_many_threads_agree_on_a_placeholder() -> None:
    vault = Vault()
    found: set[str] = set()

    def work() -> None:
        for n in range(20):
            origin = Origin("t", "file", f"/{n}")
            found.add(vault.mask(f"see {TOKEN}", session="s", origin=origin))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 1

"""A masked value can go back to where it was read, and nowhere else."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tests.tools.bench import Bench
from tests.tools.conftest import bench

__all__ = ["bench"]

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PLACEHOLDER = re.compile(r"\[secret:[^\]]+\]")


@pytest.fixture
def masked(bench: Bench) -> str:
    (bench.work / "settings.ini").write_text(f"host = example.org\ntoken = {TOKEN}\n")
    answer = bench("read_file", path="settings.ini")
    found = PLACEHOLDER.search(answer["content"])
    assert TOKEN not in json.dumps(answer)
    assert found
    return found[0]


def test_a_value_goes_back_to_its_file(bench: Bench, masked: str) -> None:
    bench(
        "patch",
        path="settings.ini",
        old_string=f"host = example.org\ntoken = {masked}",
        new_string=f"host = other.example\ntoken = {masked}",
    )
    assert bench.status == "ok"
    assert (bench.work / "settings.ini").read_text() == f"host = other.example\ntoken = {TOKEN}\n"

    bench("read_file", path="settings.ini")
    answer = bench("write_file", path="settings.ini", content=f"token = {masked}\nhost = x\n")

    assert (bench.work / "settings.ini").read_text() == f"token = {TOKEN}\nhost = x\n"
    assert TOKEN not in json.dumps(answer)


def test_a_value_goes_nowhere_else(bench: Bench, masked: str) -> None:
    refused = bench("write_file", path="copy.ini", content=f"token = {masked}\n")

    assert "can't be used here" in refused["error"]
    assert not (bench.work / "copy.ini").exists()


def test_another_session_can_not_use_it(bench: Bench, masked: str) -> None:
    other = bench.another("s2")

    refused = other("write_file", path="settings.ini", content=f"token = {masked}\n")

    assert "can't be used here" in refused["error"]
    assert TOKEN in (bench.work / "settings.ini").read_text()


def test_the_value_is_in_no_record(bench: Bench, masked: str, tmp_path: Path) -> None:
    bench("write_file", path="settings.ini", content=f"token = {masked}\n")
    bench.app.close()

    audit = (tmp_path / "home" / "audit" / "audit.jsonl").read_text()
    assert TOKEN not in audit
    assert masked in audit
    assert os.path.exists(tmp_path / "home" / "checkpoints")


def test_a_profile_may_forbid_it(bench: Bench, masked: str) -> None:
    from hermes.safety.permissions import Profile

    bench.context.profiles = (Profile("careful", allow=("*",), deny=("secret:use",)),)

    refused = bench("write_file", path="settings.ini", content=f"token = {masked}\n")

    assert "profile" in refused["error"]


def test_a_value_stays_masked_under_another_name(bench: Bench) -> None:
    (bench.work / ".env").write_text("DB_PASSWORD=hunter2secretvalue\n")
    answer = bench("read_file", path=".env")
    found = PLACEHOLDER.search(answer["content"])
    assert found

    bench("patch", path=".env", old_string=f"DB_PASSWORD={found[0]}", new_string=f"NOTE={found[0]}")
    shown = bench("read_file", path=".env", force=True)
    cut = bench("terminal", command="cut -c 6- .env")

    assert (bench.work / ".env").read_text() == "NOTE=hunter2secretvalue\n"
    assert "hunter2" not in json.dumps(shown)
    assert "hunter2" not in json.dumps(cut)


def test_a_piece_of_a_private_key_is_as_secret_as_the_whole(bench: Bench) -> None:
    import base64
    import random

    body = base64.b64encode(random.Random(5).randbytes(900)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    key = ["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"]
    (bench.work / "key.pem").write_text("\n".join(key) + "\n")

    answers = [
        bench("read_file", path="key.pem", offset=4, limit=3),
        bench("search_files", pattern="[a-z]", path="key.pem", offset=3, limit=3),
        bench("file_diff", path="key.pem", text="\n".join([*key[:5], "x", *key[6:]]), context=1),
        bench("patch", path="key.pem", old_string=f"{lines[4][:-3]}xyz", new_string="y"),
        bench("terminal", command="sed -n 5,7p key.pem"),
        bench("read_file", path="key.pem"),
    ]

    for answer in answers:
        for line in lines[:-1]:
            assert line not in json.dumps(answer), answer

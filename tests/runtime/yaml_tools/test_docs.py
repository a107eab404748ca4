"""The examples in docs/yaml-tools.md do what the page says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[3] / "docs" / "yaml-tools.md"


def test_the_examples_work(bench: Any, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_TOKEN", "a-token-for-the-weather")
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q"], cwd=bench.folder, check=True)
    message = [*git, "commit", "-q", "--allow-empty", "-m", "Begin here"]
    subprocess.run(message, cwd=bench.folder, check=True)
    (bench.folder / "words.txt").write_text("one -x\ntwo\nthree -x\n")
    server.answer("/v1/Rome", {"days": [{"summary": "sun"}, {"summary": "rain"}]})
    fields = {"summary": "Broken", "status": {"name": "open"}}
    server.answer("/search", {"issues": [{"key": "A-1", "fields": fields}]})

    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for number, block in enumerate(blocks):
        bench.register(block.replace("https://api.example", server.url), f"{number}.yaml")

    assert bench.registry.names() == ["count_lines", "find_issue", "git_log", "weather"]
    assert bench.call("weather", city="Rome").value == ["sun", "rain"]
    assert server.seen[0]["path"] == "/v1/Rome?days=3"
    assert server.seen[0]["headers"]["authorization"] == "Bearer a-token-for-the-weather"
    assert bench.call("find_issue", project="P", text="it").value == "A-1: Broken (open)"
    assert server.seen[1]["path"] == "/search?project=P"
    assert server.seen[1]["body"] == '{"text":"it"}'
    assert "Begin here" in bench.call("git_log", author="Ada").value["stdout"]
    counted = bench.call("count_lines", word="-x", file="words.txt")
    assert counted.value["stdout"] == "2\n"

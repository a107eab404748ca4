"""What is noted for other programs about commands beside."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hermes.core.paths import home_path
from hermes.environments.host import process_listing


def test_a_notice_from_before_the_machine_was_started_says_nothing(home: Path) -> None:
    path = process_listing.publish_notice("web", "errand", "sleep 1", remote="", pids=[os.getpid()])
    assert [one.name for one in process_listing.notices()] == ["web"]

    kept = Path(path)
    said = json.loads(kept.read_text())
    said["labels"] = {name: f"{value}-before" for name, value in said["labels"].items()}
    kept.write_text(json.dumps(said))

    assert process_listing.notices() == []


def test_words_about_all_of_some_processes_are_taken_down(home: Path) -> None:
    path = process_listing.publish_notice(
        "web", "errand", "sleep 1", remote="", pids=[7_000_001, 7_000_002]
    )
    for pid in (7_000_001, 7_000_002):
        process_listing.record_killer(pid, "a person")

    assert process_listing.take_killer([7_000_001, 7_000_002]) == "a person"
    assert process_listing.take_killer([7_000_001, 7_000_002]) == ""
    process_listing.remove_notice(path)
    assert os.listdir(home_path("run")) == []

"""Programs that take all the sources of a folder and run them: `go run ./cmd/tool`, `cargo run`.

Only what the command text itself has put into that folder is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.scripts import judge_script

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

# What their sources end with, and the language that these are read as.
FOLDER_RUNNERS = {
    "go": (".go", "go"),
    "cargo": (".rs", "rust"),
    "dotnet": (".cs", "c"),
    "swift": (".swift", "c"),
    "zig": (".zig", "c"),
    "dart": (".dart", "c"),
    "mix": (".exs", "elixir"),
    "gradle": (".java", "java"),
    "gradlew": (".java", "java"),
    "mvn": (".java", "java"),
}
_RUNS = frozenset(("run", "build-run", "exec:java", "bootRun", "spring-boot:run"))


def run_folder(command: Command, judge: Judge) -> None:
    """Judge the sources that this text wrote to the folder that a program runs."""
    ending, language = FOLDER_RUNNERS[command.name]
    operands, scope = command.operands, command.scope
    if not any(word.text in _RUNS for word in operands[:2]):
        return
    named = [scope.absolute(word.text) for word in operands[1:] if word.text[:1] in (".", "/")]
    folders = tuple(place.rstrip("/") + "/" for place in named) or (scope.cwd.rstrip("/") + "/",)
    for place, known in list(scope.written.items()):
        if place.endswith(ending) and place.startswith(folders) and known.text:
            judge_script(known.text, command, judge, language)

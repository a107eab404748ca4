"""Assignments of variables that change the programs, libraries or rights of later commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.path_classes import absolute, in_workspace, is_temporary
from hermes.safety.shell.read_only import changes_meaning
from hermes.safety.shell.scope import HOLE, names

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.scope import Scope
    from hermes.safety.shell.word_builder import Word

_INJECTED = names(
    "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_FORCE_FLAT_NAMESPACE BASH_ENV PERL5OPT "
    "PERL5DB RUBYOPT "
    "PYTHONSTARTUP PYTHONINSPECT GCONV_PATH LD_PROFILE_OUTPUT LD_DYNAMIC_WEAK PYTHONHOME "
    "COR_PROFILER"
)
_LIBRARY_PATHS = names(
    "LD_LIBRARY_PATH DYLD_LIBRARY_PATH PATH PERL5LIB RUBYLIB NODE_PATH PYTHONPATH LD_RUN_PATH "
    "RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTC CARGO_BUILD_RUSTC_WRAPPER PYTHONUSERBASE "
    "GIT_EXEC_PATH GIT_TEMPLATE_DIR ZDOTDIR"
)
_OPTIONS_THAT_LOAD = {
    "NODE_OPTIONS": ("--require", "-r ", "--import", "--loader", "--experimental-loader"),
    "JAVA_TOOL_OPTIONS": ("-javaagent", "-agentpath", "-agentlib"),
    "_JAVA_OPTIONS": ("-javaagent", "-agentpath", "-agentlib"),
}
# Programs that other programs start; a value with more than a name is a command in itself.
_RUN_LATER = names(
    "GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_PAGER PAGER MANPAGER EDITOR VISUAL GIT_EDITOR "
    "GIT_SEQUENCE_EDITOR PROMPT_COMMAND GIT_ASKPASS SSH_ASKPASS BROWSER LESSOPEN LESSCLOSE "
    "RSYNC_RSH "
    "GIT_PROXY_COMMAND SUDO_ASKPASS TAR_OPTIONS"
)
_GATE = frozenset(("HERMES_HOME", "HERMES_PERMISSIONS", "HERMES_PROFILE"))


def judge_assignment(name: str, word: Word, scope: Scope, judge: Judge) -> None:
    """Report an assignment that is dangerous in itself."""
    text = word.text
    if changes_meaning(name):
        judge.reads_only = False
    if name in _INJECTED:
        if text:
            judge.report("loader.injection", word.origin, f"{name}={text}", scope=scope)
    elif name in _OPTIONS_THAT_LOAD:
        if any(option in text for option in _OPTIONS_THAT_LOAD[name]):
            judge.report("loader.injection", word.origin, f"{name}={text}", scope=scope)
    elif name in _LIBRARY_PATHS:
        for part in text.split(":"):
            if part.startswith("/") and HOLE not in part and _is_shared(part, scope):
                judge.report("loader.injection", word.origin, f"{name}={text}", scope=scope)
    elif name in _RUN_LATER:
        if name in ("LESSOPEN", "LESSCLOSE"):
            # What it starts may be given through a pipe, which `less` spells in front of it.
            text = text.lstrip("|-")
        if " " in text or "$" in text or "`" in text or ";" in text:
            judge.run_text(text, word.origin.vague(), scope.copy())
    elif name in _GATE or (name.startswith("HERMES_") and _loosens(name, text)):
        judge.report("hermes.environment", word.origin, f"{name}={text}", scope=scope)


def _is_shared(part: str, scope: Scope) -> bool:
    """Whether anybody may put something into a folder; a workspace is its user's own."""
    path = absolute(part, scope)
    if path in ("/tmp", "/var/tmp", "/dev/shm"):
        return True
    return is_temporary(path) and not in_workspace(path, scope)


def _loosens(name: str, text: str) -> bool:
    switch = any(
        part in name for part in ("YOLO", "APPROV", "UNSAFE", "SKIP", "TRUST", "GATE", "POLICY")
    )
    return switch and text != ""

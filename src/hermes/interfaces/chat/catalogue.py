"""The /commands: name, what may follow it, one line of help. Importing it imports none of them."""

from __future__ import annotations

# name -> (what may follow, help line)
COMMANDS: dict[str, tuple[str, str]] = {
    "help": ("", "this list"),
    "new": ("", "begin a new session"),
    "resume": ("[ID]", "go on with another session; the last one when left out"),
    "sessions": ("[ACTION]", "sessions that are kept: list, search, show, export, …"),
    "undo": ("[TURN|CALL]", "take back what was changed in files, the last turn first"),
    "expand": ("[N]", "the whole result of call N; Ctrl-O shows the last"),
    "image": ("PATH", "let a picture go along with the next message"),
    "stop": ("", "end the turn that is under way"),
    "approve": ("[once|session|always]", "say yes to what is being asked"),
    "deny": ("", "say no to what is being asked"),
    "background": ("TEXT", "have another agent do something meanwhile"),
    "agents": ("[HANDLE|stop HANDLE]", "agents at work, how far they are, what they report"),
    "tools": ("[ACTION]", "the tools: list, show, search"),
    "toolsets": ("[ACTION]", "groups of tools"),
    "model": ("[NAME]", "which model is asked; ask another one from now on"),
    "cost": ("", "what this session has used"),
    "compress": ("", "make the conversation shorter now"),
    "memory": ("", "what is remembered from one session to the next"),
    "skills": ("", "the skills there are"),
    "permissions": ("[ACTION]", "profiles of rights, and what they say of a call"),
    "config": ("[ACTION]", "read and change the settings"),
    "doctor": ("", "check the installation"),
    "quit": ("", "leave; the session is kept (Ctrl-D)"),
}
# Those that do not wait for the end of another one.
AT_ONCE = ("background", "agents", "stop", "expand", "help")
ALIASES = {"exit": "quit", "q": "quit", "?": "help", "h": "help", "x": "expand"}

KEYS = (
    ("Enter", "send; during a turn the model reads it at its next step"),
    ("Alt-Enter, \\ Enter", "a new line"),
    ("Tab", "complete a /command or an @file"),
    ("Ctrl-C", "stop the call under way; again: end the turn"),
    ("Ctrl-O", "the last result, whole"),
    ("Ctrl-R", "search what was typed before"),
    ("Ctrl-D", "leave"),
)


def command_in(line: str) -> tuple[str, str] | None:
    """The command that a line is, and what follows it; None for a message.

    A path at the beginning of a message, `/etc/hosts`, is none.
    """
    if not line.startswith("/"):
        return None
    word, _, rest = line[1:].partition(" ")
    word, newline, more = word.partition("\n")
    if not word or "/" in word or not (word[0].isalpha() or word in ALIASES):
        return None
    return ALIASES.get(word.lower(), word.lower()), f"{more}{newline}{rest}".strip()


def nearest(word: str) -> str:
    """The command that a mistyped one may be meant to be; empty when none is near."""
    from difflib import get_close_matches

    begun = [name for name in COMMANDS if name.startswith(word)]
    near = begun or get_close_matches(word, [*COMMANDS, *ALIASES], 1, 0.5)
    return ALIASES.get(near[0], near[0]) if near else ""

"""Rules as rows of data, and the small language in which a row says which commands it is about.

A row has forms, separated by `;`. A form is met when all its terms are, read from left to right:

    name|name:      the form is about these programs only; the row's programs when left out
    word|word       the next operand is one of these; `*` stands for any text
    !word|word      there is a next operand, and it is none of these
    +  +2           at least one, two … more operands follow
    -x|--long       one of these options was given; `*` as above
    !-x|--long      none of these options was given
    ~word|word      one of these is among the first operands; `!~` for none of them
    %word|word      one of these is among all arguments, in small letters
    @name           a function of `predicates` or `any_program` is true

An operand is an argument that is neither an option nor the value of one.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import hermes.safety.shell.rules.any_program as any_program
import hermes.safety.shell.rules.predicates as predicates
from hermes.safety.shell.verdict import ASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.safety.shell.command import Command

_FAR = 6


class Rule(NamedTuple):
    """One kind of danger; a rule without programs is reported by the code that finds it."""

    # Stable name, `family.detail`.
    key: str
    # INSIDE, OUTSIDE, REMOTE or ALWAYS (see `verdict`): who can hold the effect back.
    kind: str
    # One sentence for the person who is asked.
    description: str
    programs: str = ""
    forms: str = ""
    severity: str = ASK
    # A model that reviews commands must never approve this one.
    human_only: bool = False


class Form:
    """One way to meet a rule; its terms are compiled when a command first gets this far."""

    __slots__ = ("_terms", "_tests", "key")

    def __init__(self, key: str, terms: list[str]) -> None:
        self.key = key
        self._terms = terms
        self._tests: list[Callable[[Command, int], int | None]] | None = None

    def fits(self, command: Command) -> bool:
        """Whether a command meets every test; each gives the operands read so far, or None."""
        if self._tests is None:
            self._tests = list(map(_test, self._terms))
        at = 0
        for test in self._tests:
            after = test(command, at)
            if after is None:
                return False
            at = after
        return True


def by_program(rules: Iterable[Rule]) -> dict[str, dict[str, list[Form]]]:
    """The forms of some rules by program and first operand; empty where any operand will do."""
    table: dict[str, dict[str, list[Form]]] = {}
    for rule in rules:
        for text in rule.forms.split(";") if rule.programs or rule.forms else ():
            terms = text.split()
            names = rule.programs.split()
            if terms and terms[0][-1] == ":":
                names = terms.pop(0)[:-1].split("|")
            first = terms[0] if terms and terms[0][0] not in "!+-~%@" else ""
            form = Form(rule.key, terms)
            for name in names:
                own = table.setdefault(name, {})
                for word in first.split("|") if "*" not in first else ("",):
                    own.setdefault(word, []).append(form)
    return table


def _test(term: str) -> Callable[[Command, int], int | None]:
    if term[0] == "@":
        predicate = getattr(any_program, term[1:], None) or getattr(predicates, term[1:])
        return lambda command, at: at if predicate(command) else None
    if term[0] == "+":
        more = int(term[1:] or 1)
        return lambda command, at: at if len(command.texts) >= at + more else None
    wanted = term[0] != "!"
    names = _Names(term.lstrip("!").lstrip("~%"))
    mark = term.lstrip("!")[0]
    if mark == "-":
        return lambda command, at: at if names.given(command) is wanted else None
    if mark == "~":
        return lambda command, at: at if names.any(command.texts[:_FAR]) is wanted else None
    if mark == "%":
        return lambda command, at: at if names.any(map(str.lower, command.args)) is wanted else None
    return lambda command, at: (
        at + 1 if at < len(command.texts) and (command.texts[at] in names) is wanted else None
    )


class _Names:
    def __init__(self, text: str) -> None:
        parts = text.split("|")
        self.plain = frozenset(part for part in parts if "*" not in part)
        self.patterns = tuple(part for part in parts if "*" in part)

    def __contains__(self, text: str) -> bool:
        return text in self.plain or any(fnmatchcase(text, part) for part in self.patterns)

    def any(self, texts: Iterable[str]) -> bool:
        return any(text in self for text in texts)

    def given(self, command: Command) -> bool:
        return command.has(*self.plain) or (bool(self.patterns) and self.any(command.flags))

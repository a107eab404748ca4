"""The pieces of a syntax tree that are no statements: words, values, redirections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.command import Redirect
from hermes.safety.shell.file_flow import place_of
from hermes.safety.shell.lexing import is_torn
from hermes.safety.shell.path_classes import is_credential, targets
from hermes.safety.shell.scope import HOLE, Scope, Value
from hermes.safety.shell.stream import FILE, FROM_FILE, NOTHING, SECRET, Stream, tagged
from hermes.safety.shell.words import expand, expand_document, expand_text

if TYPE_CHECKING:
    from tree_sitter import Node

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.lexing import Here
    from hermes.safety.shell.scope import Origin
    from hermes.safety.shell.word_builder import Word

_MOST_WORDS = 12
_QUOTING = re.compile(r"['\"\\$`()<>]")


class TreeText:
    """The text behind a syntax tree, and what its parts stand for."""

    def __init__(
        self, text: str, origin: Origin, heres: dict[int, Here], judge: Judge, offset: int = 0
    ) -> None:
        self.text = text
        self.offset = offset
        self.origin = origin
        self.heres = heres
        self.judge = judge
        self.depth = 0

    def _inside(self, node: Node, scope: Scope) -> None:
        raw = self._raw(node)
        if "$(" in raw or "`" in raw or "<(" in raw or ">(" in raw:
            expand(raw, self._origin(node), scope, self.judge)

    def _expand(self, start: int, end: int, scope: Scope) -> list[Word]:
        raw, origin = self.text[start:end], self.origin.at(start, end)
        if "\n" in raw and is_torn(raw):
            # No shell takes two lines for one word; whoever reads them so has misread them.
            self.judge.report("text.unreadable", origin, raw[:200])
        if " " in raw and not _QUOTING.search(raw):
            # The grammar may take `{ {` for one word; to a shell a bare blank ends a word.
            parts = [expand(part, origin.vague(), scope, self.judge) for part in raw.split()]
            return [word for words in parts for word in words]
        return expand(raw, origin, scope, self.judge)

    def _raw(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte]

    def _origin(self, node: Node) -> Origin:
        return self.origin.at(node.start_byte, node.end_byte)

    def _redirect(self, node: Node, scope: Scope) -> Redirect:
        origin = self._origin(node)
        descriptor = operator = ""
        start = end = -1
        for child in node.children:
            if child.type in ("file_descriptor", "variable_name") and start < 0:
                descriptor = self._raw(child)
            elif not child.is_named and start < 0:
                operator = self._raw(child).strip() or child.type
                at = child.start_byte
                if self.text.startswith("<>", at):
                    operator = "<>"
            elif start < 0:
                start, end = child.start_byte, child.end_byte
            elif child.start_byte == end:
                end = child.end_byte
        here = self.heres.get(at) if operator == "<" else None
        if here is not None and here.document:
            redirect = Redirect("<<", descriptor, None, origin)
            redirect.stream = self._document(here, scope)
            return redirect
        if start < 0:
            redirect = Redirect(operator, descriptor, None, origin)
            redirect.copies = "-" if operator.endswith("&-") else ""
            return redirect
        word = expand_text(self.text[start:end], self.origin.at(start, end), scope, self.judge)
        if here is not None:
            redirect = Redirect("<<<", descriptor, None, origin)
            tags = word.stream.tags if word.stream else frozenset()
            text = (
                None if word.stream is not None and word.stream.text is None else word.text + "\n"
            )
            redirect.stream = Stream(text, tags)
            return redirect
        if operator in (">&", "<&") and (word.text.isdigit() or word.text == "-"):
            redirect = Redirect(operator, descriptor, None, origin)
            redirect.copies = word.text
            return redirect
        redirect = Redirect(operator, descriptor, word, origin)
        if operator in ("<", "<>"):
            redirect.stream = word.process or file_stream(word, scope, self.judge)
        return redirect

    def _document(self, here: Here, scope: Scope) -> Stream:
        start = here.start - self.offset
        origin = self.origin.at(start, start + len(here.body))
        if here.literal:
            return Stream(here.body)
        word = expand_document(here.body, origin, scope, self.judge)
        tags = word.stream.tags if word.stream else frozenset()
        return Stream(word.text, tags)

    def _plain_words(self, node: Node) -> list[str]:
        """The words of a plain command as written, but for quotes around them."""
        if node.type != "command" or node.child_count > _MOST_WORDS:
            return []
        return [self._raw(child).strip("'\"") for child in node.children]

    def _assignment(self, node: Node, scope: Scope) -> tuple[str, Value]:
        target = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if target is None:
            return "", Value([HOLE])
        name = self._raw(target)
        if value is None:
            # The grammar drops what it reads as part of the operator; look past the sign.
            equals = self._raw(node).find("=")
            raw = self._raw(node)[equals + 1 :]
            result = Value([raw])
        elif value.type == "array":
            items = [
                word.text
                for child in value.children
                if child.type not in ("(", ")", "comment")
                for word in self._expand(child.start_byte, child.end_byte, scope)
            ]
            result = Value(items, array=True)
        else:
            word = expand_text(
                self.text[value.start_byte : node.end_byte],
                self.origin.at(value.start_byte, node.end_byte),
                scope,
                self.judge,
            )
            result = Value([word.text])
        if target.type == "subscript":
            self._inside(target, scope)
            name = name.partition("[")[0]
            old = scope.variables.get(name)
            result = Value([*(old.items if old else []), *result.items], array=True)
        return name, result

    def _appends(self, node: Node) -> bool:
        return "+=" in self._raw(node).partition("=")[0] + "="


def read_file(raw: str, origin: Origin, scope: Scope, judge: Judge) -> Stream:
    """What `$(<file)` prints."""
    return file_stream(expand_text(raw, origin, scope, judge), scope, judge)


def expand_inside(text: str, origin: Origin, scope: Scope, judge: Judge) -> None:
    """Judge the substitutions in an arithmetic or test expression."""
    expand_document(text, origin, scope, judge)


def fed(redirects: tuple[Redirect, ...], stdin: Stream | None) -> Stream | None:
    """What a compound statement reads: its own redirection, or what it was given."""
    for redirect in redirects:
        if redirect.stream is not None:
            stdin = redirect.stream
    return stdin


def file_stream(word: Word, scope: Scope, judge: Judge) -> Stream:
    """What reading a file gives; reading a credential is a finding of its own."""
    for path in targets(word, scope):
        if is_credential(path, scope):
            judge.report("secrets.read", word.origin, word.text, scope=scope)
            return tagged(FILE, SECRET)
    if word.text == "/dev/null":
        return NOTHING
    known = scope.written.get(place_of(word, scope)) if scope.written else None
    if known is not None and known.text is not None:
        return Stream(known.text, known.tags, word.text)
    tags = FROM_FILE.tags if known is None else FROM_FILE.tags | known.tags
    return Stream(None, tags, word.text) if word.known else FROM_FILE

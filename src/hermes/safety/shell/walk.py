"""The syntax tree of a shell text, followed the way a shell would run it.

Each kind of node has one method, which gives what the node would print. Order matters: variables,
functions and the current directory carry over from one statement to the next, a subshell or a
pipeline works on a copy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.bombs as bombs
from hermes.safety.shell.command import Redirect
from hermes.safety.shell.paths import is_credential, targets
from hermes.safety.shell.scope import HOLE, Scope, Value
from hermes.safety.shell.simple import run_simple
from hermes.safety.shell.stream import (
    ANYTHING,
    ENVIRONMENT,
    FILE,
    FROM_FILE,
    NOTHING,
    SECRET,
    Stream,
    joined,
    tagged,
)
from hermes.safety.shell.tables import names
from hermes.safety.shell.words import Word, expand, expand_document, expand_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.lexing import Here
    from hermes.safety.shell.origin import Origin

_DEEPEST_NODE = 40
_MOST_ROUNDS = 6
_SKIPPED = names(
    "; ;; & && || | |& comment do done then fi else if elif while until for in case esac { } ( ) ! "
    "function select heredoc_body heredoc_end (( ))"
) | {"\n"}
_QUOTING = re.compile(r"['\"\\$`()<>]")
_TESTS = ("[[ ", "[[\t", "[[\n")
_DECLARING = frozenset(("export", "declare", "local", "readonly", "typeset"))


def read_file(raw: str, origin: Origin, scope: Scope, judge: Judge) -> Stream:
    """What `$(<file)` prints."""
    return _file(expand_text(raw, origin, scope, judge), scope, judge)


def expand_inside(text: str, origin: Origin, scope: Scope, judge: Judge) -> None:
    """Judge the substitutions in an arithmetic or test expression."""
    expand_document(text, origin, scope, judge)


class Function:
    """A function: its body in the tree, and the walker that can read it."""

    __slots__ = ("body", "walker")

    def __init__(self, body: Node, walker: Walker) -> None:
        self.body = body
        self.walker = walker

    def call(self, scope: Scope, stdin: Stream | None) -> Stream:
        """Run the body; the caller has set the positional parameters."""
        return self.walker.run(self.body, scope, stdin)


class Walker:
    def __init__(
        self, text: str, origin: Origin, heres: dict[int, Here], judge: Judge, offset: int = 0
    ) -> None:
        self.text = text
        self.offset = offset
        self.origin = origin
        self.heres = heres
        self.judge = judge
        self.depth = 0

    def run(
        self,
        node: Node,
        scope: Scope,
        stdin: Stream | None,
        redirects: tuple[Redirect, ...] = (),
    ) -> Stream:
        kind = node.type
        if kind in _SKIPPED:
            return NOTHING
        if not self.judge.step():
            return ANYTHING
        if self.depth >= _DEEPEST_NODE:
            self.judge.report("text.too-complex", self._origin(node), self._raw(node)[:80])
            return ANYTHING
        method = _METHODS.get(kind)
        if method is None:
            self._inside(node, scope)
            return NOTHING
        self.depth += 1
        try:
            return method(self, node, scope, stdin, redirects)
        finally:
            self.depth -= 1

    # Sequences

    def block(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        outputs = [
            self.run(child, scope, stdin) for child in node.children if child.type not in _SKIPPED
        ]
        self._apply(redirects, scope, node)
        return joined([output for output in outputs if output is not NOTHING])

    def subshell(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        return self.block(node, scope.copy(), _fed(redirects, stdin), redirects)

    def chain(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        # Lists lean to the left, as deep as they are long: unrolled here instead of recursed into.
        parts: list[Node] = []
        current = node
        while current.type == "list":
            children = [child for child in current.children if child.type not in _SKIPPED]
            parts.extend(reversed(children[1:]))
            if not children:
                break
            current = children[0]
        else:
            parts.append(current)
        parts.reverse()
        outputs = [
            self.run(part, scope, stdin, redirects if part is parts[-1] else ()) for part in parts
        ]
        return joined([output for output in outputs if output is not NOTHING])

    def pipeline(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        parts = [child for child in node.children if child.type not in _SKIPPED]
        stream = stdin
        for part in parts:
            last = part is parts[-1]
            stream = self.run(part, scope.copy(), stream, redirects if last else ())
        return stream or NOTHING

    def negated(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        output = NOTHING
        for child in node.children:
            if child.type not in _SKIPPED:
                output = self.run(child, scope, stdin, redirects)
        return output

    def redirected(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        body = node.child_by_field_name("body")
        own = tuple(
            self._redirect(child, scope) for child in node.children_by_field_name("redirect")
        )
        both = own + redirects
        stray = [
            child
            for child in node.children
            if child.is_named and child != body and not child.type.endswith("_redirect")
        ]
        for child in stray:
            self.run(child, scope, stdin)
        if body is None:
            return run_simple([], [], list(both), scope, stdin, self.judge)
        return self.run(body, scope, stdin, both)

    # Simple commands

    def command(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        if self.text.startswith(_TESTS, node.start_byte):
            # A test that was flattened for the parser: nothing in it runs but substitutions.
            return self.expression(node, scope, stdin, redirects)
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        own: list[Redirect] = []
        start = end = -1
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment" and not words and start < 0:
                name, value = self._assignment(child, scope)
                if name:
                    assignments.append((name, Word(value.text, value.text, self._origin(child))))
            elif kind.endswith("_redirect"):
                own.append(self._redirect(child, scope))
            elif kind == "subshell":
                if self.text[start:end] not in ("time", "coproc", "!"):
                    # No shell takes this, but the grammar does.
                    self.judge.report("text.unreadable", self._origin(node), self._raw(node)[:200])
                self.run(child, scope, stdin)
            elif child.start_byte == end or self.text[end : child.start_byte] == "\\\n":
                # Nothing stands between the two: for a shell this is one word.
                end = child.end_byte
            else:
                if start >= 0:
                    words += self._expand(start, end, scope)
                start, end = child.start_byte, child.end_byte
        if start >= 0:
            words += self._expand(start, end, scope)
        return run_simple(words, assignments, [*own, *redirects], scope, stdin, self.judge)

    def assigned(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        nodes = [node] if node.type == "variable_assignment" else node.children
        for child in nodes:
            if child.type == "variable_assignment":
                name, value = self._assignment(child, scope)
                if name:
                    word = Word(value.text, value.text, self._origin(child))
                    before = scope.variables.get(name)
                    run_simple([], [(name, word)], [], scope, stdin, self.judge)
                    if before is not None:
                        scope.variables[name] = before
                    scope.assign(name, value, append=self._appends(child))
        self._apply(redirects, scope, node)
        return NOTHING

    def declaration(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        self.assigned(node, scope, stdin, redirects)
        if any(self._raw(child) in ("-n", "-gn", "-ng") for child in node.children[1:2]):
            for child in node.children[2:]:
                value = scope.variables.get(self._raw(child).partition("=")[0])
                if value is not None:
                    value.refers = True
        if len(node.children) == 1:
            # A bare `export` or `declare` prints every variable.
            return tagged(ENVIRONMENT)
        for child in node.children:
            if child.type not in ("variable_assignment", "variable_name", "word") and (
                child.type not in _DECLARING
            ):
                self._expand(child.start_byte, child.end_byte, scope)
        return NOTHING

    def unset(
        self, node: Node, scope: Scope, _stdin: Stream | None, _redirects: tuple[Redirect, ...]
    ) -> Stream:
        for child in node.children:
            name = self._raw(child)
            self._inside(child, scope)
            scope.variables.pop(name, None)
            scope.functions.pop(name, None)
        return NOTHING

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
            if word.stream is not None and word.stream.text is None:
                scope.fetched["$" + name] = ",".join(sorted(word.stream.tags))
        if target.type == "subscript":
            self._inside(target, scope)
            name = name.partition("[")[0]
            old = scope.variables.get(name)
            result = Value([*(old.items if old else []), *result.items], array=True)
        return name, result

    def _appends(self, node: Node) -> bool:
        return "+=" in self._raw(node).partition("=")[0] + "="

    # Control flow

    def branches(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        return self.block(node, scope, _fed(redirects, stdin), redirects)

    def loop(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        if bombs.is_endless_spawn(node, self._raw):
            self.judge.report("process.fork-bomb", self._origin(node), self._raw(node), scope=scope)
        scope.loop += 1
        try:
            return self.block(node, scope, _fed(redirects, stdin), redirects)
        finally:
            scope.loop -= 1

    def each(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        name = self._raw(variable) if variable is not None else "_"
        stdin = _fed(redirects, stdin)
        values = [
            word
            for child in node.children_by_field_name("value")
            for word in self._expand(child.start_byte, child.end_byte, scope)
        ]
        if not values:
            values = [Word(HOLE, "", self._origin(node))]
        scope.loop += 1
        try:
            if body is not None:
                for word in values[:_MOST_ROUNDS]:
                    scope.assign(name, Value([word.text], glob=word.glob, stream=word.stream))
                    output = self.run(body, scope, stdin)
                if len(values) > _MOST_ROUNDS:
                    scope.assign(name, Value([HOLE]))
                    output = self.run(body, scope, stdin)
            else:
                output = self.block(node, scope, stdin, ())
        finally:
            scope.loop -= 1
        self._apply(redirects, scope, node)
        return output if len(values) == 1 else Stream(None, output.tags)

    def case(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        stdin = _fed(redirects, stdin)
        value = node.child_by_field_name("value")
        if value is not None:
            self._expand(value.start_byte, value.end_byte, scope)
        outputs = []
        for item in node.children:
            if item.type == "case_item":
                patterns = item.children_by_field_name("value")
                for pattern in patterns:
                    self._inside(pattern, scope)
                outputs += [
                    self.run(child, scope, stdin)
                    for child in item.children
                    if child.is_named and child not in patterns
                ]
            elif item.type == "ERROR":
                outputs.append(self.run(item, scope, stdin))
        self._apply(redirects, scope, node)
        return joined([output for output in outputs if output is not NOTHING])

    def function(
        self, node: Node, scope: Scope, _stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        target = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if target is None or body is None:
            return NOTHING
        name = self._raw(target)
        scope.functions[name] = Function(body, self)
        if bombs.is_fork_bomb(name, body, self._raw):
            self.judge.report("process.fork-bomb", self._origin(node), self._raw(node), scope=scope)
        inner = scope.copy()
        inner.positional = None
        inner.calls = (*scope.calls, name)
        self.run(body, inner, ANYTHING)
        self._apply(redirects, scope, node)
        return NOTHING

    def expression(
        self, node: Node, scope: Scope, _stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        self._inside(node, scope)
        self._apply(redirects, scope, node)
        return NOTHING

    # Pieces

    def _inside(self, node: Node, scope: Scope) -> None:
        raw = self._raw(node)
        if "$(" in raw or "`" in raw or "<(" in raw or ">(" in raw:
            expand(raw, self._origin(node), scope, self.judge)

    def _expand(self, start: int, end: int, scope: Scope) -> list[Word]:
        raw, origin = self.text[start:end], self.origin.at(start, end)
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
            return Redirect(operator, descriptor, None, origin)
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
            return Redirect(operator, descriptor, None, origin)
        redirect = Redirect(operator, descriptor, word, origin)
        if operator in ("<", "<>"):
            redirect.stream = word.process or _file(word, scope, self.judge)
        return redirect

    def _document(self, here: Here, scope: Scope) -> Stream:
        start = here.start - self.offset
        origin = self.origin.at(start, start + len(here.body))
        if here.literal:
            return Stream(here.body)
        word = expand_document(here.body, origin, scope, self.judge)
        tags = word.stream.tags if word.stream else frozenset()
        return Stream(word.text, tags)

    def _apply(self, redirects: tuple[Redirect, ...], scope: Scope, _node: Node) -> None:
        if redirects:
            compound = [Word("compound", "", redirects[0].origin)]
            run_simple(compound, [], list(redirects), scope, None, self.judge)


def _fed(redirects: tuple[Redirect, ...], stdin: Stream | None) -> Stream | None:
    for redirect in redirects:
        if redirect.stream is not None:
            stdin = redirect.stream
    return stdin


def _file(word: Word, scope: Scope, judge: Judge) -> Stream:
    """What reading a file gives; reading a credential is a finding of its own."""
    for path in targets(word, scope):
        if is_credential(path, scope):
            judge.report("secrets.read", word.origin, word.text, scope=scope)
            return tagged(FILE, SECRET)
    return Stream(None, FROM_FILE.tags, word.text) if word.known else FROM_FILE


_METHODS: dict[str, Callable[..., Stream]] = {
    "program": Walker.block,
    "compound_statement": Walker.block,
    "do_group": Walker.block,
    "else_clause": Walker.block,
    "elif_clause": Walker.block,
    "ERROR": Walker.block,
    "subshell": Walker.subshell,
    "list": Walker.chain,
    "pipeline": Walker.pipeline,
    "negated_command": Walker.negated,
    "redirected_statement": Walker.redirected,
    "command": Walker.command,
    "variable_assignment": Walker.assigned,
    "variable_assignments": Walker.assigned,
    "declaration_command": Walker.declaration,
    "unset_command": Walker.unset,
    "if_statement": Walker.branches,
    "while_statement": Walker.loop,
    "c_style_for_statement": Walker.loop,
    "for_statement": Walker.each,
    "select_statement": Walker.each,
    "case_statement": Walker.case,
    "function_definition": Walker.function,
    "test_command": Walker.expression,
    "arithmetic_expansion": Walker.expression,
}

"""The syntax tree of a shell text, followed the way a shell would run it.

Each kind of node has one method, which gives what the node would print. Order matters: variables,
functions and the current directory carry over from one statement to the next, a subshell or a
pipeline works on a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.safety.shell.fork_bombs as fork_bombs
from hermes.safety.shell.command import Command
from hermes.safety.shell.key_names import hands_on
from hermes.safety.shell.run_command import redirected, run_simple
from hermes.safety.shell.scope import HOLE, Scope, Value, names
from hermes.safety.shell.stream import ANYTHING, ENVIRONMENT, NOTHING, Stream, joined, tagged
from hermes.safety.shell.tree_text import TreeText, fed
from hermes.safety.shell.word_builder import Word

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from hermes.safety.shell.command import Redirect

_DEEPEST_NODE = 40
_MOST_ROUNDS = 6
_SKIPPED = names(
    "; ;; & && || | |& comment do done then fi else if elif while until for in case esac { } ( ) ! "
    "function select heredoc_body heredoc_end (( ))"
) | {"\n"}
_TESTS = ("[[ ", "[[\t", "[[\n")
_DECLARING = frozenset(("export", "declare", "local", "readonly", "typeset"))


class Function:
    """A function: its body in the tree, and the walker that can read it."""

    __slots__ = ("body", "walker")

    def __init__(self, body: Node, walker: Walker) -> None:
        self.body = body
        self.walker = walker

    def call(self, scope: Scope, stdin: Stream | None) -> Stream:
        """Run the body; the caller has set the positional parameters."""
        return self.walker.run(self.body, scope, stdin)


class Walker(TreeText):
    """Follows the statements of one tree."""

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
        output = joined([output for output in outputs if output is not NOTHING])
        return self._apply(redirects, scope, output) if redirects else output

    def subshell(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        return self.block(node, scope.copy(), fed(redirects, stdin), redirects)

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
        outputs = []
        before = scope.unsure
        for part in parts:
            last = part is parts[-1]
            outputs.append(self.run(part, scope, stdin, redirects if last else ()))
            # Whether there is a next depends on how this one ended.
            scope.unsure = before + 1
        scope.unsure = before
        return joined([output for output in outputs if output is not NOTHING])

    def pipeline(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        parts = [child for child in node.children if child.type not in _SKIPPED]
        stream = stdin
        loads = scope.loads and all(hands_on(self._plain_words(part)) for part in parts)
        for index, part in enumerate(parts):
            last = part is parts[-1]
            inner = scope.copy()
            inner.loads = loads
            if not last:
                inner.follows = self._plain_words(parts[index + 1])
            stream = self.run(part, inner, stream, redirects if last else ())
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
            elif child.start_byte == end or (gap := self.text[end : child.start_byte]) == "\\\n":
                # Nothing stands between the two: for a shell this is one word.
                end = child.end_byte
            else:
                if start >= 0:
                    if "\n" in gap and "\n" in gap.replace("\\\n", ""):
                        # Two lines are two commands, whatever the grammar made of them.
                        self.judge.report("text.unreadable", self._origin(node), self._raw(node))
                    if words and words[0].text == "env":
                        words += self._assigning(words, start, end, scope)
                    else:
                        words += self._expand(start, end, scope)
                start, end = child.start_byte, child.end_byte
        if start >= 0:
            words += self._expand(start, end, scope)
        return run_simple(words, assignments, [*own, *redirects], scope, stdin, self.judge)

    def _assigning(self, words: list[Word], start: int, end: int, scope: Scope) -> list[Word]:
        """Expand a word after `env`, before the program that it starts."""
        before = all("=" in word.text or word.text[:1] == "-" for word in words[1:])
        return (self._load if before else self._expand)(start, end, scope)

    def _load(self, start: int, end: int, scope: Scope) -> list[Word]:
        """Expand a word that stands for assignments, if it is one substitution and no more."""
        before = scope.loads
        scope.loads = before or self.text[start] in "$`"
        try:
            return self._expand(start, end, scope)
        finally:
            scope.loads = before

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
        return self._apply(redirects, scope, NOTHING)

    def declaration(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        self.assigned(node, scope, stdin, redirects)
        if any(self._raw(child) in ("-n", "-gn", "-ng") for child in node.children[1:2]):
            for child in node.children[2:]:
                value = scope.variables.get(self._raw(child).partition("=")[0])
                if value is not None:
                    value.refers = True
        if all(self._raw(child) in ("-p", "-x", "-xp", "-px") for child in node.children[1:]):
            # A bare `export` or `declare` prints every variable.
            return tagged(ENVIRONMENT)
        for child in node.children:
            if child.type not in ("variable_assignment", "variable_name", "word") and (
                child.type not in _DECLARING
            ):
                self._load(child.start_byte, child.end_byte, scope)
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

    # Control flow

    def branches(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        scope.unsure += 1
        output = self.block(node, scope, fed(redirects, stdin), redirects)
        scope.unsure -= 1
        return output

    def loop(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        if fork_bombs.is_endless_spawn(node, self._raw):
            self.judge.report("process.fork-bomb", self._origin(node), self._raw(node), scope=scope)
        scope.loop += 1
        try:
            return self.block(node, scope, fed(redirects, stdin), redirects)
        finally:
            scope.loop -= 1

    def each(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        name = self._raw(variable) if variable is not None else "_"
        stdin = fed(redirects, stdin)
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
        output = output if len(values) == 1 else Stream(None, output.tags)
        return self._apply(redirects, scope, output) if redirects else output

    def case(
        self, node: Node, scope: Scope, stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        stdin = fed(redirects, stdin)
        value = node.child_by_field_name("value")
        if value is not None:
            self._expand(value.start_byte, value.end_byte, scope)
        outputs = []
        for item in node.children:
            if item.type == "case_item":
                patterns = item.children_by_field_name("value")
                for pattern in patterns:
                    self._inside(pattern, scope)
                scope.unsure += 1
                outputs += [
                    self.run(child, scope, stdin)
                    for child in item.children
                    if child.is_named and child not in patterns
                ]
                scope.unsure -= 1
            elif item.type == "ERROR":
                outputs.append(self.run(item, scope, stdin))
        output = joined([output for output in outputs if output is not NOTHING])
        return self._apply(redirects, scope, output) if redirects else output

    def function(
        self, node: Node, scope: Scope, _stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        target = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if target is None or body is None:
            return NOTHING
        name = self._raw(target)
        scope.functions[name] = Function(body, self)
        if fork_bombs.is_fork_bomb(name, body, self._raw):
            self.judge.report("process.fork-bomb", self._origin(node), self._raw(node), scope=scope)
        inner = scope.copy()
        inner.positional = None
        inner.calls = (*scope.calls, name)
        inner.unsure += 1
        self.run(body, inner, ANYTHING)
        return self._apply(redirects, scope, NOTHING)

    def expression(
        self, node: Node, scope: Scope, _stdin: Stream | None, redirects: tuple[Redirect, ...]
    ) -> Stream:
        self._inside(node, scope)
        return self._apply(redirects, scope, NOTHING)

    def _apply(self, redirects: tuple[Redirect, ...], scope: Scope, output: Stream) -> Stream:
        """Send the output of a compound statement where its redirections say."""
        if redirects:
            words = [Word("compound", "", redirects[0].origin)]
            return redirected(Command(words, scope), list(redirects), output, self.judge)
        return output


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

"""The syntax tree of a shell text, walked as a shell would run it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.fork_bombs as fork_bombs
from hermes.safety.shell.command import Command, Redirect
from hermes.safety.shell.file_flow import place_of
from hermes.safety.shell.lexing import is_torn
from hermes.safety.shell.path_classes import is_credential, targets
from hermes.safety.shell.path_rules import hands_on
from hermes.safety.shell.run_command import redirected, run_simple
from hermes.safety.shell.scope import (
    ANYTHING,
    ENVIRONMENT,
    FILE,
    FROM_FILE,
    HOLE,
    NOTHING,
    SECRET,
    Scope,
    Stream,
    Value,
    Word,
    joined,
    names,
    tagged,
)
from hermes.safety.shell.words import expand, expand_document, expand_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.lexing import Here
    from hermes.safety.shell.scope import Origin


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

"""YAML document: nodes with line numbers, and a collector for all problems of a file."""

from __future__ import annotations

from hermes.core.errors import RegistrationError, close_matches

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from yaml import Node

MOST_BYTES = 1_000_000
# Anchors let a short text stand for a huge one; nobody writes this many values by hand.
MOST_NODES = 20_000
DEEPEST = 30
_TAG = "tag:yaml.org,2002:"


class Problem:
    """One thing that is wrong in a file, and where."""

    __slots__ = ("line", "message")

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        self.message = message

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message

    def __repr__(self) -> str:
        return f"<{self}>"


class DefinitionError(RegistrationError):
    """A file of tools that can't be used; `problems` has every reason, in the file's order."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = sorted(problems, key=lambda problem: problem.line)
        self.reason = "; ".join(map(str, self.problems))
        super().__init__(f"{path} is refused: {self.reason}")


class Document:
    """One YAML file: its root node, and the problems found so far."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._visited = 0
        self.root = self._compose(text)

    def problem(self, where: Node | int, message: str) -> None:
        """Note something wrong at a node or a line."""
        line = where if isinstance(where, int) else where.start_mark.line + 1
        self.problems.append(Problem(line, message))

    def check(self) -> None:
        """Raise `DefinitionError` if there are problems."""
        if self.problems:
            raise DefinitionError(self.path, self.problems)

    def _compose(self, text: str) -> Node | None:
        import yaml

        try:
            root: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 0
            self.problem(line, f"not YAML: {error.problem or error.context or 'unreadable'}")
        except (yaml.YAMLError, RecursionError) as error:
            self.problem(0, f"not YAML: {' '.join(str(error).split())[:120]}")
        else:
            if root is None:
                self.problem(1, "the file is empty")
            return root
        return None

    def peek(self, node: Node, key: str) -> Node | None:
        """The value of a key, with nothing noted."""
        import yaml

        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return next((value for name, value in pairs if name.value == key), None)

    # -- reading nodes ------------------------------------------------------------------------

    def fields(self, node: Node, what: str, known: Iterable[str] | None) -> dict[str, Node]:
        """A mapping by key. Unknown keys and keys that come twice are noted."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            self.problem(node, f"{what} must be keys with values, not {_kind(node)}")
            return {}
        found: dict[str, Node] = {}
        for key, value in self._pairs(node):
            if not isinstance(key, yaml.ScalarNode):
                self.problem(key, f"a key of {what} must be a word, not {_kind(key)}")
            elif key.value in found:
                self.problem(key, f"`{key.value}` comes twice in {what}")
            elif known is not None and key.value not in known:
                advice = nearest(key.value, known) or f"; it may have {', '.join(known)}"
                self.problem(key, f"{what} has no key `{key.value:.60}`{advice}")
            else:
                found[key.value] = value
        return found

    def _pairs(self, node: Any) -> Iterator[tuple[Node, Node]]:
        for key, value in node.value:
            self._count(key)
            if key.tag == f"{_TAG}merge":
                self.problem(key, "`<<` is not supported here; write the keys out")
            else:
                yield key, value

    def items(self, node: Node, what: str) -> list[Node]:
        """The members of a list."""
        import yaml

        if not isinstance(node, yaml.SequenceNode):
            self.problem(node, f"{what} must be a list, not {_kind(node)}")
            return []
        return [item for item in node.value if not self._count(item)]

    def text(self, node: Node, what: str) -> str | None:
        """A scalar as it was written."""
        import yaml

        self._count(node)
        if not isinstance(node, yaml.ScalarNode) or node.tag == f"{_TAG}null":
            self.problem(node, f"{what} must be text, not {_kind(node)}")
            return None
        return str(node.value)

    def texts(self, node: Node, what: str) -> tuple[str, ...]:
        """A list of scalars as they were written."""
        found = [self.text(item, f"each of {what}") for item in self.items(node, what)]
        return tuple(text for text in found if text is not None)

    def choice(self, node: Node, what: str, choices: Sequence[str]) -> str | None:
        """A word out of a few."""
        word = self.text(node, what)
        if word is None or word in choices:
            return word
        near = nearest(word, choices) or f"; use one of {', '.join(choices)}"
        self.problem(node, f"{what} can't be `{word}`{near}")
        return None

    def flag(self, node: Node, what: str) -> bool:
        """True or false."""
        value = self.value(node)
        if not isinstance(value, bool):
            self.problem(node, f"{what} must be true or false, not {_kind(node)}")
            return False
        return value

    def seconds(self, node: Node, what: str, most: float) -> float | None:
        """A time within its limits."""
        value = self.value(node)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
            self.problem(node, f"{what} must be a number of seconds up to {most:g}")
            return None
        return float(value)

    def value(self, node: Node, depth: int = 0) -> Any:
        """The JSON value of a node; a value outside of JSON is a problem."""
        import yaml

        if self._count(node):
            return None
        if depth > DEEPEST:
            self.problem(node, f"values are nested more than {DEEPEST} deep")
            return None
        if isinstance(node, yaml.MappingNode):
            fields = self.fields(node, "this value", None)
            return {key: self.value(inner, depth + 1) for key, inner in fields.items()}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(inner, depth + 1) for inner in node.value]
        kind = node.tag.removeprefix(_TAG)
        if kind in ("str", "timestamp"):
            # A date stays the text it was written as: JSON has no dates.
            return str(node.value)
        if kind not in ("int", "float", "bool", "null"):
            self.problem(node, f"a value of the kind `{node.tag}` can't be used here")
            return None
        try:
            value = yaml.constructor.SafeConstructor().construct_document(node)
        except (yaml.YAMLError, ValueError):
            value = float("nan")
        if isinstance(value, float) and value - value != 0:
            self.problem(node, f"`{node.value}` is not a number that JSON has")
            return None
        return value

    def _count(self, node: Node) -> bool:
        """Whether the document is larger than anybody would write; noted once."""
        self._visited += 1
        if self._visited == MOST_NODES:
            self.problem(node, f"the file has more than {MOST_NODES} values")
        return self._visited >= MOST_NODES


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` where one of the known words is near, else nothing."""
    near = close_matches(word.lower(), known, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def _kind(node: Node) -> str:
    # Never the value itself: it may be a secret that somebody wrote where none belongs.
    return _KINDS.get(node.tag.removeprefix(_TAG), f"`{node.tag}`")


_KINDS = {
    "map": "keys with values",
    "seq": "a list",
    "null": "nothing",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "str": "text",
}

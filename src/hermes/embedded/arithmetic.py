"""Arithmetic: expressions of the model as Python, sums and counts of a table's columns."""

from __future__ import annotations

import ast
import re

# `15%` with no number after it is a share, `17 % 5` what is left over.
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%(?!\s*[\d(])")
# What Python knows without `math`.
_BUILT_IN = frozenset({"sum", "min", "max", "abs", "round"})
_ALL_AT_ONCE = frozenset({"sum", "average", "min", "max"})


def senseless(expression: str) -> str:
    """Why an expression can't be worked out, whatever its numbers are; else nothing."""
    tree = _parsed(expression)
    if tree is None:
        return f"{expression} is no expression of numbers, so nothing was worked out."
    if any(_mixed(node) for node in ast.walk(tree)):
        return (
            f"Not worked out: {expression} adds a sum to an average or the like of the same "
            "numbers. Work out the one that is asked for."
        )
    return ""


def program(expression: str) -> str:
    """A line of Python that prints what an expression comes to."""
    tree = _parsed(expression)
    if tree is None:
        return f"print({expression})"
    plain = ast.fix_missing_locations(_Plain().visit(tree))
    used = {node.id for node in ast.walk(plain) if isinstance(node, ast.Name)} - _BUILT_IN
    lead = f"from math import {', '.join(sorted(used))}; " if used else ""
    return f"{lead}print({ast.unparse(plain)})"


def result(printed: str) -> str:
    """A number as people write it: `423.20000000000005` is 423.2, `372.0` is 372."""
    text = printed.strip()
    try:
        value = float(text)
    except ValueError:
        return text
    if text.lstrip("-").isdigit() or value in (float("inf"), float("-inf")) or value != value:
        return text
    return str(int(value)) if value == int(value) else repr(round(value, 10))


def _parsed(expression: str) -> ast.Expression | None:
    # People write `007` where Python allows no zeros.
    text = re.sub(r"(?<![\d.])0+(?=\d)", "", expression.replace("^", "**"))
    try:
        return ast.parse(_SHARE.sub(r"(\1/100)", text), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Plain(ast.NodeTransformer):
    """Sums and averages of numbers one after the other, as people write them."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in ("sum", "average") or not node.args:
            return node
        total = ast.Call(ast.Name("sum"), [ast.List(node.args)], [])
        if name == "sum":
            return total
        return ast.BinOp(total, ast.Div(), ast.Constant(len(node.args)))


def _mixed(node: ast.AST) -> bool:
    """Whether different things made of the same numbers are added up."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return False
    made: dict[str, set[str]] = {}
    for one in (*_added(node.left), *_added(node.right)):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and len(one.args) > 1:
            made.setdefault(str([ast.dump(part) for part in one.args]), set()).add(one.func.id)
    return any(
        len(names & _ALL_AT_ONCE) > 1 and names & {"sum", "average"} for names in made.values()
    )


def _added(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_added(node.left), *_added(node.right)]
    return [node]


_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?")
# A number that stands alone in a line, be it with a sign of money.
_ALONE = re.compile(r"(?<![\w.,:/-])[$€£]?(-?\d{1,12}(?:\.\d{1,9})?)(?![\w:/-]|[.,]\d)")
_COLUMNS = 4


def number(count: int, what: str) -> str:
    """A count with its word: `1 line`, `2 lines`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def sums(content: str) -> str:
    """What a table of numbers, or lines with a number each, add up to; nothing if it is neither."""
    rows = [re.split(r"[,;\t|]", line) for line in content.strip().splitlines()]
    width = len(rows[0]) if rows else 0
    if len(rows) < 2 or any(len(row) != width for row in rows):
        return _of_lines(content)
    told = []
    for column in zip(*rows, strict=True):
        cells = [cell.strip() for cell in column]
        head = "" if _NUMBER.fullmatch(cells[0]) else cells[0]
        body = cells[1:] if head else cells
        if len(body) > 1 and all(_NUMBER.fullmatch(cell) for cell in body):
            name = f"the column {head}" if head else "its numbers"
            told.append(_told(name, [float(cell) for cell in body]))
    if width == 1 and not told:
        return _of_lines(content)
    headed = width > 1 and has_heading(rows[0], rows[1:])
    lead = f" The first line is a heading, {number(len(rows) - 1, 'row')} follow." if headed else ""
    return lead + "".join(told[:_COLUMNS])


def has_heading(first: list[str], rest: list[list[str]]) -> bool:
    """Whether the first row of a table names the columns: no numbers there, but below it."""
    return not any(any(map(str.isdigit, cell)) for cell in first) and any(
        any(map(str.isdigit, cell)) for row in rest for cell in row
    )


def _of_lines(content: str) -> str:
    """The sum where lines have one number each, as in `milk 1.20`; dates and the like are none."""
    lines = [line for line in content.splitlines() if line.strip()]
    found = [_ALONE.findall(line) for line in lines]
    numbers = [float(one[0]) for one in found if len(one) == 1]
    if len(numbers) < 2 or any(len(one) > 1 for one in found) or len(numbers) < len(lines) * 2 / 3:
        return ""
    return _told("its lines", numbers)


def _told(what: str, numbers: list[float]) -> str:
    total = sum(numbers)
    return (
        f" In {what} the sum is {total:.12g}, the average {total / len(numbers):.12g}, "
        f"the largest {max(numbers):g}, the smallest {min(numbers):g}."
    )

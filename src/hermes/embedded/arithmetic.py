"""Arithmetic: expressions of the model as Python, sums and counts of a table's columns."""

from __future__ import annotations

import ast
import re

# `15%` without a number after it is a percentage, `17 % 5` is modulo.
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%(?!\s*[\d(])")
# Functions that need no import of `math`.
_BUILT_IN = frozenset({"sum", "min", "max", "abs", "round"})
_AGGREGATES = frozenset({"sum", "average", "min", "max"})


def invalid_expression(expression: str) -> str:
    """Reason why an expression can't be calculated; else ""."""
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
    """A line of Python that prints the value of an expression."""
    tree = _parsed(expression)
    if tree is None:
        return f"print({expression})"
    plain = ast.fix_missing_locations(_Plain().visit(tree))
    used = {node.id for node in ast.walk(plain) if isinstance(node, ast.Name)} - _BUILT_IN
    lead = f"from math import {', '.join(sorted(used))}; " if used else ""
    return f"{lead}print({ast.unparse(plain)})"


def result(printed: str) -> str:
    """A number without rounding errors: `423.20000000000005` is 423.2, `372.0` is 372."""
    text = printed.strip()
    try:
        value = float(text)
    except ValueError:
        return text
    if text.lstrip("-").isdigit() or value in (float("inf"), float("-inf")) or value != value:
        return text
    return str(int(value)) if value == int(value) else repr(round(value, 10))


def _parsed(expression: str) -> ast.Expression | None:
    # Python accepts no leading zeros.
    text = re.sub(r"(?<![\d.])0+(?=\d)", "", expression.replace("^", "**"))
    try:
        return ast.parse(_PERCENT.sub(r"(\1/100)", text), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Plain(ast.NodeTransformer):
    """Rewrites `sum(1, 2)` and `average(1, 2)` as Python."""

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
    """Whether different aggregates of the same numbers are added."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return False
    functions: dict[str, set[str]] = {}
    for term in (*_terms(node.left), *_terms(node.right)):
        if isinstance(term, ast.Call) and isinstance(term.func, ast.Name) and len(term.args) > 1:
            key = str([ast.dump(argument) for argument in term.args])
            functions.setdefault(key, set()).add(term.func.id)
    return any(
        len(names & _AGGREGATES) > 1 and names & {"sum", "average"} for names in functions.values()
    )


def _terms(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?")
# A number that is a word of its own, also with a currency sign.
_ALONE = re.compile(r"(?<![\w.,:/-])[$€£]?(-?\d{1,12}(?:\.\d{1,9})?)(?![\w:/-]|[.,]\d)")
_COLUMNS = 4


def counted_noun(count: int, noun: str) -> str:
    """A count with its noun: `1 line`, `2 lines`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sums(content: str) -> str:
    """Sums of a table, or of lines with one number each; "" if it is neither."""
    rows = [re.split(r"[,;\t|]", line) for line in content.strip().splitlines()]
    width = len(rows[0]) if rows else 0
    if len(rows) < 2 or any(len(row) != width for row in rows):
        return _sum_of_lines(content)
    sentences = []
    for column in zip(*rows, strict=True):
        cells = [cell.strip() for cell in column]
        head = "" if _NUMBER.fullmatch(cells[0]) else cells[0]
        body = cells[1:] if head else cells
        if len(body) > 1 and all(_NUMBER.fullmatch(cell) for cell in body):
            name = f"the column {head}" if head else "its numbers"
            sentences.append(_summary(name, [float(cell) for cell in body]))
    if width == 1 and not sentences:
        return _sum_of_lines(content)
    headed = width > 1 and has_heading(rows[0], rows[1:])
    lead = (
        f" The first line is a heading, {counted_noun(len(rows) - 1, 'row')} follow."
        if headed
        else ""
    )
    return lead + "".join(sentences[:_COLUMNS])


def has_heading(first: list[str], rest: list[list[str]]) -> bool:
    """Whether the first row of a table is a heading: no numbers in it, but below it."""
    return not any(any(map(str.isdigit, cell)) for cell in first) and any(
        any(map(str.isdigit, cell)) for row in rest for cell in row
    )


def _sum_of_lines(content: str) -> str:
    """The sum of lines with one number each, such as `milk 1.20`; else ""."""
    lines = [line for line in content.splitlines() if line.strip()]
    matches = [_ALONE.findall(line) for line in lines]
    numbers = [float(match[0]) for match in matches if len(match) == 1]
    several = any(len(match) > 1 for match in matches)
    if len(numbers) < 2 or several or len(numbers) < len(lines) * 2 / 3:
        return ""
    return _summary("its lines", numbers)


def _summary(name: str, numbers: list[float]) -> str:
    total = sum(numbers)
    return (
        f" In {name} the sum is {total:.12g}, the average {total / len(numbers):.12g}, "
        f"the largest {max(numbers):g}, the smallest {min(numbers):g}."
    )

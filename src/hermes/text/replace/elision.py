"""Elisions: placeholder lines such as `...` or `# rest unchanged` in place of text."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_OPENERS = ("//", "/*", "<!--", "{/*", "#", "--", ";", "%", "* ", "rem ")
_CLOSERS = ("*/}", "*/", "-->", "}")
_DOTS = ("...", "…")
# A comment of nothing but such words, with one that tells, speaks about code left out. The weak
# ones tell only together with what they are about.
_STRONG = _words("unchanged omitted unmodified unaltered snip snipped truncated elided brevity")
_WEAK = _words("existing rest remaining remainder")
_ABOUT = _words(
    "code implementation logic content contents function functions method methods class classes "
    "file body module page imports lines same stays remains here"
)
_COMMON = _words(
    "the of this that your my our all other others and as is are in above below before after "
    "import line block section stay remain keep kept no not change changes changed for from "
    "previous original current everything else goes continue continues part parts stuff etc "
    "properties props fields tests test config configuration handler handlers definitions"
)


def elisions(text: str, *, before: Sequence[str] = (), after: Sequence[str] = ()) -> list[str]:
    """The lines of a text that stand for something left out, without their indentation.

    `before` and `after` are the lines around it, which tell whether `...` is a body of its own.
    """
    if not any(dots in text for dots in _DOTS) and not _mentions(text):
        return []
    own = text.splitlines()
    above = [line for line in before if line.strip()][-1:]
    below = [line for line in after if line.strip()][:1]
    lines = [*above, *own, *below]
    places = range(len(above), len(above) + len(own))
    return [lines[index].strip() for index in places if _elides(lines, index)]


def _mentions(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in (*_STRONG, *_WEAK))


def _elides(lines: list[str], index: int) -> bool:
    line = lines[index].strip()
    if line in _DOTS:
        return not _is_body(lines, index)
    if line in ("[...]", "(...)", "[…]", "(…)", "<...>", "<snip>", "[snip]"):
        return True
    opener = next((o for o in _OPENERS if line.lower().startswith(o)), "")
    text = line[len(opener) :].strip().lstrip("#/*-;%").strip() if opener else line
    for closer in _CLOSERS if opener else ():
        text = text.removesuffix(closer).rstrip()
    text = text.strip("()[]<>{} ").strip()
    leads, ends = text.startswith(_DOTS), text.endswith(_DOTS)
    words = text.strip(".… -–—:").lower().replace("-", " ").split()
    words = [word.strip("()[]{},.;:'\"`!") for word in words]
    if leads and (not words or ends):
        return bool(opener) or ends
    if not words or not (opener or leads):
        return False
    if not all(word in _COMMON or word in _ABOUT or word in _STRONG | _WEAK for word in words):
        return False
    if leads or ends:
        return True
    telling = _STRONG.intersection(words) or (
        _WEAK.intersection(words) and _ABOUT.intersection(words)
    )
    return bool(telling) and opener != "* " and not line.startswith("##")  # those may be prose


def _is_body(lines: list[str], index: int) -> bool:
    """Whether `...` is the whole body of a Python block, and so means itself."""
    indent = _width(lines[index])
    before = next((line for line in reversed(lines[:index]) if line.strip()), "")
    after = next((line for line in lines[index + 1 :] if line.strip()), "")
    opens = before.rstrip().endswith(":") and _width(before) < indent
    documented = before.rstrip().endswith(('"""', "'''")) and _width(before) == indent
    return (opens or documented) and (not after or _width(after) < indent)


def _width(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())

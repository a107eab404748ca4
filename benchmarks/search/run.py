"""How often the right tool is among the first hits, and what a search costs.

    python benchmarks/search/run.py              recall by language, baseline, growth
    python benchmarks/search/run.py --failures   also the needs of the dev half that were missed
    python benchmarks/search/run.py --embed      with the embedding model, when it is installed

Needs are halved by a hash of their text; only failures of the dev half are shown. One author wrote
the needs and the lexicon, so both halves flatter: needs that are new to it fare some ten points
worse. Trust a change that helps needs written by someone else. `foreign.json` is nearer to that:
tools of other trades, with a name and a sentence each, that the lexicon was not made for.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import time
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.runtime.tool_search.index import Document, SearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.runtime.tool_search.index import Embed

HERE = Path(__file__).parent
RANKS = (1, 3, 5)
Need = dict[str, object]


def documents() -> list[Document]:
    """The catalogue that needs are looked up in."""
    rows = json.loads((HERE / "catalogue.json").read_text(encoding="utf-8"))
    return [_document(row) for row in rows]


def _document(row: dict[str, Any]) -> Document:
    return Document(
        row["name"],
        row["toolset"],
        row["description"],
        tuple(row["tags"]),
        tuple(row["parameters"]),
    )


def foreign() -> tuple[list[Document], list[Need]]:
    """Tools that the lexicon was not made for, and needs for them."""
    data = json.loads((HERE / "foreign.json").read_text(encoding="utf-8"))
    return [_document(row) for row in data["tools"]], data["needs"]


def needs() -> dict[str, list[Need]]:
    """The labelled needs, as `dev` and `held-out`."""
    halves: dict[str, list[Need]] = {"dev": [], "held-out": []}
    for line in (HERE / "needs.jsonl").read_text(encoding="utf-8").splitlines():
        need = json.loads(line)
        odd = zlib.crc32(need["need"].encode()) & 1
        halves["held-out" if odd else "dev"].append(need)
    return halves


def rank_of(need: Need, found: list[str]) -> int:
    """The position of the first acceptable tool, counted from 1; 0 when there is none."""
    tools = need["tools"]
    assert isinstance(tools, list)
    return next((place for place, name in enumerate(found, 1) if name in tools), 0)


def recall(half: list[Need], search: Callable[[str], list[str]]) -> dict[str, list[int]]:
    """Ranks of the right tool, by language and for `all`."""
    ranks: dict[str, list[int]] = defaultdict(list)
    for need in half:
        rank = rank_of(need, search(str(need["need"])))
        ranks["all"].append(rank)
        ranks[str(need["lang"])].append(rank)
    return ranks


def share(ranks: list[int], at: int) -> float:
    """How many of the ranks are within the first `at`, as a fraction."""
    return sum(0 < rank <= at for rank in ranks) / len(ranks)


def plain_bm25(docs: list[Document]) -> Callable[[str], list[str]]:
    """The usual baseline: BM25 over the words of names and descriptions, nothing else."""
    bags = {d.name: Counter(_plain(f"{d.name} {d.description}")) for d in docs}
    frequency = Counter(word for bag in bags.values() for word in bag)
    average = sum(sum(bag.values()) for bag in bags.values()) / len(bags)

    def score(bag: Counter[str], words: list[str]) -> float:
        norm = 1.5 * (0.25 + 0.75 * sum(bag.values()) / average)
        return sum(
            math.log(1 + (len(bags) - frequency[w] + 0.5) / (frequency[w] + 0.5))
            * bag[w]
            * 2.5
            / (bag[w] + norm)
            for w in words
            if w in bag
        )

    def search(query: str) -> list[str]:
        words = _plain(query)
        scored = {name: score(bag, words) for name, bag in bags.items()}
        return sorted((n for n in scored if scored[n]), key=lambda n: -scored[n])[:5]

    return search


def _plain(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def searcher(docs: list[Document], embed: Embed | None) -> Callable[[str], list[str]]:
    """A search for the names of the best five."""
    index = SearchIndex(embed)
    for doc in docs:
        index.add(doc)

    def search(query: str) -> list[str]:
        return [hit.name for hit in index.search(query, limit=5)]

    return search


def report_recall(embed: Embed | None, *, failures: bool) -> None:
    docs = documents()
    halves = needs()
    baseline = plain_bm25(docs)
    search = searcher(docs, embed)
    for name, half in halves.items():
        ranks = recall(half, search)
        plain = recall(half, baseline)["all"]
        print(f"\n{name}: {len(half)} needs         recall @1   @3   @5")
        print(f"  {'plain BM25':<24}", *(f"{share(plain, at):6.1%}" for at in RANKS))
        for lang in sorted(ranks, key=lambda key: (key != "all", -len(ranks[key]), key)):
            figures = (f"{share(ranks[lang], at):6.1%}" for at in RANKS)
            print(f"  {lang:<6} {len(ranks[lang]):>4}{'':<13}", *figures)
    if failures:
        for need in halves["dev"]:
            found = search(str(need["need"]))
            if not rank_of(need, found):
                print(f"  {need['lang']:<5} {need['need']!r}")
                print(f"        want {need['tools']} got {found}")


def report_catalogues(embed: Embed | None) -> None:
    """Recall in English and in other languages, by what is known about the tools."""
    own = documents()
    halves = needs()
    labelled = halves["dev"] + halves["held-out"]
    bare = [Document(doc.name, doc.toolset, doc.description) for doc in own]
    others, theirs = foreign()
    print("\nby catalogue                   English @1   @3   @5    other @1   @3   @5")
    for name, docs, wanted in (
        ("own", own, labelled),
        ("own, no tags", bare, labelled),
        ("foreign", others, theirs),
        ("own and foreign", own + others, theirs),
    ):
        for kind, model in (("words", None), ("embedded", embed)):
            if kind == "embedded" and model is None:
                continue
            ranks = recall(wanted, searcher(docs, model))
            groups = (
                ranks["en"],
                [r for lang in ranks.keys() - {"all", "en"} for r in ranks[lang]],
            )
            figures = ("".join(f"{share(group, at):7.1%}" for at in RANKS) for group in groups)
            print(f"  {name:<16} {kind:<9}  ", "    ".join(figures))


def report_growth() -> None:
    print("\ngrowth (CPU, best of several)")
    for size in (10, 100, 1_000, 10_000):
        docs = synthetic(size)
        index = SearchIndex()
        started = time.process_time()
        for doc in docs:
            index.add(doc)
        index.search("warm up")
        built = (time.process_time() - started) * 1000 / size
        worst, mean = _search_ms(index)
        print(
            f"  {size:>6} tools: build {built:.3f} ms each, search {mean:.2f} ms, worst {worst:.2f}"
        )


def synthetic(size: int) -> list[Document]:
    """Tools that do not exist, made from the words of those that do."""
    chance = random.Random(7)
    real = documents()
    words = [w for d in real for w in _plain(f"{d.description} {' '.join(d.tags)}")]
    verbs = [
        "get",
        "list",
        "create",
        "update",
        "delete",
        "search",
        "send",
        "export",
        "sync",
        "watch",
    ]
    made = []
    for number in range(size):
        topic = f"{chance.choice(words)}_{chance.choice(words)}"
        description = " ".join(chance.choices(words, k=chance.randint(12, 40)))
        made.append(
            Document(
                f"{chance.choice(verbs)}_{topic}_{number}",
                f"server{number % 50}",
                description,
                tuple(chance.choices(words, k=4)),
                tuple(chance.choices(words, k=3)),
            )
        )
    return made


def _search_ms(index: SearchIndex) -> tuple[float, float]:
    halves = needs()
    queries = [str(need["need"]) for need in (halves["dev"] + halves["held-out"])[::8]]
    best = []
    for query in queries:
        runs = []
        for _ in range(3):
            started = time.process_time()
            index.search(query)
            runs.append((time.process_time() - started) * 1000)
        best.append(min(runs))
    return max(best), sum(best) / len(best)


def model() -> Embed | None:
    """The embedding model, if it was asked for and is there."""
    from hermes.runtime.tool_search.embedding import embedder

    embed = embedder() if "--embed" in sys.argv else None
    if "--embed" in sys.argv and embed is None:
        print("the embeddings extra is not installed; words alone", file=sys.stderr)
    return embed


if __name__ == "__main__":
    chosen = model()
    report_recall(chosen, failures="--failures" in sys.argv)
    report_catalogues(chosen)
    report_growth()

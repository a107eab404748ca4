"""Whatever is done in whatever order, search and store agree with what was said."""

from __future__ import annotations

import random

import pytest

from hermes.core.model_protocol import Message, Role
from hermes.stores.sessions import Session, Sessions
from hermes.stores.sessions.index import fold

WORDS = ["alpha", "beta", "Café", "東京タワー", "foo_bar", "x" * 60, "100%", "한국어", "0xdead"]
SOUGHT = [*WORDS, "lph", "afe", "京", "bar", "o_b", "dead", "%", "국", "xxx"]


class Deeds:
    """Does things to a store at random, and remembers what has to be in it."""

    def __init__(self, store: Sessions, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.live: dict[str, tuple[Session, dict[int, str]]] = {}

    def begin(self) -> None:
        made = self.store.begin(workspace="/w", model="m", front_door="test")
        self.live[made.id] = (made, {})

    def say(self) -> None:
        session, said = self.chance.choice(list(self.live.values()))
        text = " ".join(self.chance.choices(WORDS, k=self.chance.randint(0, 8)))
        role: Role = self.chance.choice(("user", "assistant", "tool"))
        said[session.append(Message(role, text))] = text

    def delete(self) -> None:
        name = self.chance.choice(list(self.live))
        self.store.delete(name)
        del self.live[name]

    def fork(self) -> None:
        session, _ = self.chance.choice(list(self.live.values()))
        made = session.fork()
        assert made.messages() == session.messages()
        self.live[made.id] = (made, {})

    def prune(self) -> None:
        self.store.prune(max_bytes=self.chance.choice((None, 1)))

    def examine(self) -> None:
        assert self.store.doctor(repair=False).problems == []

    def search(self) -> None:
        word = self.chance.choice(SOUGHT)
        wanted = {
            seq
            for _, said in self.live.values()
            for seq, text in said.items()
            if fold(word) in fold(text)
        }

        found = self.store.search(word, limit=10_000)

        assert {hit.seq for hit in found.hits} == wanted


@pytest.mark.parametrize("seed", range(3))
def test_search_and_store_agree_after_any_sequence(seed: int, store: Sessions) -> None:
    deeds = Deeds(store, seed)
    usual = [deeds.say] * 14 + [deeds.search] * 3 + [deeds.begin, deeds.begin]
    rare = [deeds.delete, deeds.fork, deeds.prune, deeds.examine]
    deeds.begin()
    for _ in range(300):
        if not deeds.live:
            deeds.begin()
        deeds.chance.choice([*usual, *rare])()

    assert {info.id for info in store.list(limit=1000)} == set(deeds.live)
    deeds.examine()

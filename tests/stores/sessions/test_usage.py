"""Shares of what was used: they add up to what was reported, whatever was reported."""

from __future__ import annotations

import functools
import operator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.providers.model_profiles import Prices
from hermes.core.model_protocol import Message, ToolUse, Usage
from hermes.stores.sessions import Session, Sessions
from hermes.stores.sessions.usage import Share, parts, spending

count = st.integers(0, 10**7)
names = st.sampled_from(["", "read_file", "terminal", "patch", "x"])


@given(
    st.builds(Usage, count, count, count, count, count),
    st.dictionaries(names.filter(bool), st.integers(0, 10**6)),
    st.lists(st.tuples(names, st.integers(0, 10**5)), max_size=5),
)
def test_the_shares_of_an_answer_add_up_to_it(
    usage: Usage, held: dict[str, int], calls: list[tuple[str, int]]
) -> None:
    shares = parts(usage, held, calls)

    assert functools.reduce(operator.add, shares.values(), Usage()) == usage
    prices = Prices(3, 15, 0.3, 3.75)
    whole = prices.cost(usage)
    assert abs(sum(map(prices.cost, shares.values())) - whole) <= 1e-9 * max(whole, 1)
    for share in shares.values():
        assert min(share.input, share.output, share.cached, share.written, share.reasoning) >= 0


def _all(store: Sessions, **options: float | bool | str) -> list[Share]:
    return list(spending(store.database, **options))  # type: ignore[arg-type]


def test_results_that_are_no_longer_sent_cost_nothing_more(
    store: Sessions, session: Session
) -> None:
    session.append(Message("user", "go"))
    session.append(Message("assistant", calls=(ToolUse("1", "read_file"),)), usage=Usage(1000, 10))
    session.append(Message("tool", "x" * 7000, call_id="1", name="read_file"))
    session.append(Message("assistant", "hm"), usage=Usage(4000, 10))
    line = session.note("compaction", {})
    session.compact(line, [Message("user", "a summary")])
    session.append(Message("assistant", "done"), usage=Usage(1000, 10))

    first, second, *_ = [share for share in _all(store) if share.tool == "read_file"]
    assert (first.usage.input, first.usage.output) == (0, 10)
    assert second.usage.input == 2006
    assert sum(share.usage.input for share in _all(store)) == 6000
    assert sum(share.usage.input for share in _all(store) if share.tool == "read_file") == 2006


def test_a_session_that_works_for_another_is_counted_with_it(
    store: Sessions, session: Session
) -> None:
    child = store.begin(workspace="/w", model="m", parent=session, front_door="test")
    below = store.begin(workspace="/w", model="m", parent=child, front_door="test")
    session.note("delegated", {"agent": "root/1", "session": child.id})
    session.append(Message("assistant", "a"), usage=Usage(1, 0))
    child.append(Message("assistant", "b"), usage=Usage(10, 0))
    below.append(Message("assistant", "c"), usage=Usage(100, 0))
    session.note("delegated", {"agent": "root/2"}, usage=Usage(1000, 0), model="other")

    shares = _all(store, by_tool=False)

    assert {share.session for share in shares} == {session.id}
    by_agent = {share.agent: share.usage.input for share in shares}
    assert by_agent == {"root": 1, "root/1": 10, f"root/{below.id}": 100, "root/2": 1000}
    assert sum(s.usage.input for s in _all(store, session=child.id)) == 110
    assert sum(s.usage.input for s in _all(store, session=session.id)) == 1111


def test_a_fork_is_counted_alone(store: Sessions, session: Session) -> None:
    session.append(Message("user", "go"))
    session.append(Message("assistant", "a"), usage=Usage(5, 5))
    fork = session.fork()
    fork.append(Message("assistant", "b"), usage=Usage(7, 7))

    assert [s.usage.input for s in _all(store, session=session.id)] == [5]
    assert [s.usage.input for s in _all(store, session=fork.id)] == [7]


def test_nothing_is_counted_before_its_time(store: Sessions, session: Session) -> None:
    session.append(Message("assistant", "a"), usage=Usage(5, 5))

    assert _all(store, since=2**40) == []
    assert len(_all(store, since=1.0)) == 1


def test_an_empty_store_has_nothing(tmp_path: Path) -> None:
    with Sessions(tmp_path / "state.db") as store:
        assert _all(store) == []

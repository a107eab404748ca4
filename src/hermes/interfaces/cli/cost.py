"""`hermes cost`: tokens and money by session, tool, agent or model."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes.core.model_protocol import Usage
from hermes.interfaces.cli.commands import DONE, UsageError
from hermes.stores.sessions import Sessions

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.agent.budget import Pricing
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions.usage import Share

KEYS = ("session", "tool", "agent", "model")
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST = 20


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "session", nargs="?", help="only this session (`last` is the newest); all when left out"
    )
    parser.add_argument(
        "--by",
        action="append",
        metavar="A,B",
        help=f"what it is parted by: {', '.join(KEYS)} (default: model)",
    )
    parser.add_argument(
        "--since", metavar="WHEN", help="today, 2026-11-01, or an age such as 90m, 24h, 7d, 2w"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=_cost)


def _cost(app: CliApp, options: Namespace) -> int:
    from hermes.agent.budget import Pricing

    keys = _keys(options.by or ["model"])
    since = moment(options.since) if options.since else 0.0
    pricing = Pricing(app.config.get("model.prices"))
    total, groups = Sum(), {key: dict[str, Sum]() for key in keys}
    titles: dict[str, str] = {}
    for share in _shares(options.session, since, titles, by_tool="tool" in keys):
        total.add(share, pricing)
        for key in keys:
            groups[key].setdefault(getattr(share, key), Sum()).add(share, pricing)
    if options.json:
        parted = {key: _plain(sums, titles) for key, sums in groups.items()}
        app.emit({"total": total.fields(), "by": parted, "unpriced_models": sorted(total.unpriced)})
    else:
        _print(app, total, groups, titles)
    for model in sorted(total.unpriced):
        app.note(
            f"nobody knows what {model or 'the model'} costs; say it in dollars per million: "
            f'hermes config set model.prices "{model or "*"} INPUT OUTPUT"'
        )
    return DONE


class Sum:
    """Tokens, and the dollars of those that have a price."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.dollars = 0.0
        # Models without a price, and how many tokens they used.
        self.unpriced: dict[str, int] = {}

    def add(self, share: Share, pricing: Pricing) -> None:
        """Count a share."""
        usage = share.usage
        self.usage += usage
        cost = pricing.cost(share.model, usage)
        if cost is not None:
            self.dollars += cost
        elif usage.input or usage.output:
            tokens = self.unpriced.get(share.model, 0) + usage.input + usage.output
            self.unpriced[share.model] = tokens

    @property
    def priced(self) -> bool:
        """Whether any of it has a price."""
        return sum(self.unpriced.values()) < self.usage.input + self.usage.output

    def fields(self) -> dict[str, Any]:
        """For programs: `usd` is of the priced tokens, and null where no token has a price."""
        usage = self.usage
        return {
            "input": usage.input,
            "fresh": usage.input - usage.cached - usage.written,
            "cached": usage.cached,
            "written": usage.written,
            "output": usage.output,
            "reasoning": usage.reasoning,
            "usd": round(self.dollars, 12) if self.priced or not self.unpriced else None,
            "unpriced_tokens": sum(self.unpriced.values()),
        }

    def row(self, name: str) -> tuple[str, ...]:
        """For people."""
        usage = self.usage
        numbers = (usage.input, usage.cached, usage.output, usage.reasoning)
        return (name, *(f"{number:,}" for number in numbers), self._money())

    def _money(self) -> str:
        if not self.unpriced:
            return _dollars(self.dollars)
        return f"{_dollars(self.dollars)} + unknown" if self.priced else "unknown"


def moment(text: str, now: float | None = None) -> float:
    """When a person means, in seconds since 1970: `today`, a date, a time, or an age."""
    import datetime as dt

    now_at = dt.datetime.fromtimestamp(time.time() if now is None else now, dt.UTC).astimezone()
    word = text.strip().lower()
    if word == "today":
        return now_at.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    if word[-1:] in _UNITS and word[:-1].replace(".", "", 1).isdecimal():
        return now_at.timestamp() - float(word[:-1]) * _UNITS[word[-1]]
    try:
        return dt.datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {text!r:.40} is no time", hint="today, 2026-11-01, 90m, 24h, 7d or 2w"
        ) from None


def _keys(names: list[str]) -> list[str]:
    keys = [key.strip() for text in names for key in text.split(",") if key.strip()]
    for key in keys:
        if key not in KEYS:
            raise UsageError(f"--by knows {', '.join(KEYS)}, not {key!r:.40}")
    return list(dict.fromkeys(keys)) or ["model"]


def _shares(
    session: str | None, since: float, titles: dict[str, str], *, by_tool: bool
) -> list[Share]:
    from hermes.stores.sessions.usage import spending

    with Sessions() as store:
        if session is None and not os.path.exists(store.path):
            # Looking must not make a store.
            return []
        name = store.open(session).id if session is not None else None
        shares = list(spending(store.database, session=name, since=since, by_tool=by_tool))
        for info in store.list(limit=-1):
            titles[info.id] = info.title
    return shares


def _plain(sums: dict[str, Sum], titles: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"name": name, **({"title": titles[name]} if name in titles else {}), **total.fields()}
        for name, total in _ordered(sums)
    ]


def _ordered(sums: dict[str, Sum]) -> list[tuple[str, Sum]]:
    return sorted(sums.items(), key=lambda item: (-item[1].dollars, -item[1].usage.input, item[0]))


def _print(
    app: CliApp, total: Sum, groups: dict[str, dict[str, Sum]], titles: dict[str, str]
) -> None:
    if not total.usage.input and not total.usage.output:
        app.note("nothing was used")
        return
    rows = [("", "input", "cached", "output", "reasoning", "cost"), total.row("all")]
    for key, sums in groups.items():
        ordered = _ordered(sums)
        shown, rest = ordered[:_MOST], ordered[_MOST:]
        rows += [one.row(f"{key} {_named(key, name, titles)}") for name, one in shown]
        if rest:
            others = Sum()
            for _, one in rest:
                others.usage += one.usage
                others.dollars += one.dollars
                others.unpriced |= one.unpriced
            rows.append(others.row(f"{key} … {len(rest)} others"))
    app.table(rows)
    if "tool" in groups:
        app.note("by tool is an estimate: input by the size of results, output by that of calls")


def _named(key: str, name: str, titles: dict[str, str]) -> str:
    if key == "tool":
        return name or "(conversation)"
    title = titles.get(name, "") if key == "session" else ""
    short = title if len(title) <= 24 else f"{title[:23].rstrip()}…"
    return f"{name} {short}".rstrip() or "(unnamed)"


def _dollars(amount: float) -> str:
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= 0.00005 else "< $0.0001"

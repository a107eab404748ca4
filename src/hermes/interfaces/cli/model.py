"""`hermes model`: show, choose and test the model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.interfaces.cli.commands import DONE

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.agent.providers.model_choice import Choice
    from hermes.agent.providers.services import ProbeResult
    from hermes.core.model_protocol import Provider
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, service=None, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser(
        "list", help="services with a key here (the default), or the models of one"
    )
    listing.add_argument("service", metavar="SERVICE", nargs="?", help="ask it for its models")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_list)
    use = actions.add_parser("use", help="ask this model from now on")
    use.add_argument("name", metavar="NAME", help="a model, service/model, or embedded")
    use.set_defaults(run=_use)
    test = actions.add_parser("test", help="ask a model to call a tool: one real request")
    test.add_argument("name", metavar="NAME", nargs="?", help="the chosen one when left out")
    test.set_defaults(run=_test)


def _list(app: CliApp, options: Namespace) -> int:
    if options.service:
        return _models(app, options)
    from hermes.agent.providers.services import SERVICES, keyed_candidates

    chosen = _chosen(app)
    found = {candidate.service.name: candidate for candidate in keyed_candidates(os.environ)}
    rows = []
    for service in SERVICES:
        why = found[service.name].why if service.name in found else _missing(service.keys)
        if service.local:
            why = service.env_address(os.environ) or service.base_url
        if service.base_url:
            rows.append((service.name, service.model or "its own", why))
    rows.append(_embedded_row())
    if options.json:
        current = None if chosen is None else {"service": chosen.service, "model": chosen.model}
        keys = ("service", "model", "why")
        app.emit({"chosen": current, "services": [dict(zip(keys, r, strict=True)) for r in rows]})
        return DONE
    app.out(_current(chosen))
    app.out()
    app.table(rows)
    if chosen is None:
        app.note("hermes: `hermes setup` connects a better model: a key, or a server of your own")
    return DONE


def _models(app: CliApp, options: Namespace) -> int:
    from hermes.agent.providers.model_choice import choice
    from hermes.agent.providers.services import BY_NAME, list_models
    from hermes.core.errors import ConfigError
    from hermes.runtime import waits

    if options.service not in BY_NAME:
        raise ConfigError(
            f"there is no service {options.service!r:.40}", hint=f"There are: {', '.join(BY_NAME)}."
        )
    # A name is needed to choose, though only the place counts here.
    found = choice(app.config, os.environ, f"{options.service}/any")
    if found is None or found.service != options.service:
        keys = BY_NAME[options.service].keys
        raise ConfigError(
            f"there is no key for {options.service}", hint=f"export {keys[0]}=…" if keys else None
        )
    names = waits.run(
        list_models(found.base_url, name=found.service, key=found.key, wire=found.wire)
    )
    if options.json:
        app.emit(names)
    else:
        app.out("\n".join(names) or f"{found.service} has no models")
    return DONE


def _use(app: CliApp, options: Namespace) -> int:
    from hermes.agent.providers.model_choice import choice

    found = choice(app.config, os.environ, options.name)
    write_choice(found)
    app.out(_current(found))
    overruled = os.environ.get("HERMES_MODEL")
    if overruled:
        app.note(f"hermes: HERMES_MODEL={overruled} wins over the settings as long as it is set")
    return DONE


def _test(app: CliApp, options: Namespace) -> int:
    from hermes.agent.providers.model_choice import chosen_providers
    from hermes.agent.providers.services import probe
    from hermes.runtime import waits

    provider: Provider = chosen_providers(app.config, os.environ, options.name)[0]
    app.note(f"asking {provider.name}/{provider.model} …")
    trial: ProbeResult = waits.run(probe(provider))
    app.out(probe_line(trial))
    return DONE


def probe_line(trial: ProbeResult) -> str:
    """How a model did, in one line."""
    done = trial.done
    what = f"{done.provider}/{done.model} answered in {trial.seconds:.1f} s"
    spent = f"{done.usage.input} tokens in, {done.usage.output} out" if done.usage.input else ""
    if trial.called:
        what += " and called the tool as asked"
    else:
        said = " ".join(done.message.text.split())[:80]
        what += f", but with text instead of a tool call ({said!r}); tools may not work with it"
    return f"{what} ({spent})" if spent else what


def write_choice(found: Choice | None) -> None:
    """Put a choice into the settings; a key never is."""
    from hermes.agent.providers.model_choice import EMBEDDED
    from hermes.agent.providers.services import BY_NAME
    from hermes.core.config import Config, set_value

    before = Config.load().values.get("model")
    before = before if isinstance(before, dict) else {}
    service = EMBEDDED if found is None else found.service
    if before.get("provider", service) != service:
        # Address and API were meant for the one before.
        for name in ("base_url", "api", "key_env"):
            if before.get(name):
                set_value(f"model.{name}", "")
    set_value("model.provider", service)
    set_value("model.name", "" if found is None else found.model)
    if found is not None:
        known = BY_NAME[found.service]
        if found.base_url != known.base_url and not known.env_address(os.environ):
            set_value("model.base_url", found.base_url)


def _chosen(app: CliApp) -> Choice | None:
    from hermes.agent.providers.model_choice import choice

    return choice(app.config, os.environ)


def _current(found: Choice | None) -> str:
    if found is None:
        return f"model: the embedded one, {_embedded_row()[1]}: small, for simple tasks"
    return f"model: {found.model} at {found.service} (by {found.why})"


def _embedded_row() -> tuple[str, str, str]:
    """The embedded model, which is always available, and whether it is downloaded."""
    from hermes.agent.providers.model_choice import EMBEDDED
    from hermes.embedded.download import ModelDownload
    from hermes.embedded.wheels import MODEL

    size = f"{MODEL.size / 1e9:.1f} GB"
    here = (
        "fetched, runs on this machine"
        if ModelDownload().present()
        else f"{size}, fetched at first use"
    )
    return EMBEDDED, MODEL.name, f"{here}; small: simple tasks with files and commands"


def _missing(keys: tuple[str, ...]) -> str:
    return f"({keys[0]} is not set)" if keys else ""

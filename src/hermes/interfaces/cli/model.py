"""`hermes model` and `hermes setup`: show, choose, test and save the model."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED, actions

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from hermes.agent.providers.model_choice import Choice
    from hermes.agent.providers.services import Candidate, ProbeResult
    from hermes.core.model_protocol import Provider
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, service=None, json=False)
    add = actions(parser)
    listing = add("list", _list, "services with a key here (the default), or the models of one")
    listing.add_argument("service", metavar="SERVICE", nargs="?", help="ask it for its models")
    use = add("use", _use, "ask this model from now on", json=False)
    use.add_argument("name", metavar="NAME", help="a model, service/model, or embedded")
    test = add("test", _test, "ask a model to call a tool: one real request", json=False)
    test.add_argument("name", metavar="NAME", nargs="?", help="the chosen one when left out")


def _list(app: CliApp, options: Namespace) -> int:
    if options.service:
        return _models(app, options)
    from hermes.agent.providers.services import SERVICES, keyed_candidates

    chosen = _chosen(app)
    keyed = {candidate.service.name: candidate for candidate in keyed_candidates(os.environ)}
    rows = []
    for service in SERVICES:
        why = keyed[service.name].why if service.name in keyed else _missing(service.keys)
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
    chosen = choice(app.config, os.environ, f"{options.service}/any")
    if chosen is None or chosen.service != options.service:
        keys = BY_NAME[options.service].keys
        raise ConfigError(
            f"there is no key for {options.service}", hint=f"export {keys[0]}=…" if keys else None
        )
    names = waits.run(
        list_models(chosen.base_url, name=chosen.service, key=chosen.key, wire=chosen.wire)
    )
    if options.json:
        app.emit(names)
    else:
        app.out("\n".join(names) or f"{chosen.service} has no models")
    return DONE


def _use(app: CliApp, options: Namespace) -> int:
    from hermes.agent.providers.model_choice import choice

    chosen = choice(app.config, os.environ, options.name)
    write_choice(chosen)
    app.out(_current(chosen))
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
        text = " ".join(done.message.text.split())[:80]
        what += f", but with text instead of a tool call ({text!r}); tools may not work with it"
    return f"{what} ({spent})" if spent else what


def write_choice(chosen: Choice | None) -> None:
    """Put a choice into the settings; a key never is."""
    from hermes.agent.providers.model_choice import EMBEDDED
    from hermes.agent.providers.services import BY_NAME
    from hermes.core.config import Config, set_value

    before = Config.load().values.get("model")
    before = before if isinstance(before, dict) else {}
    service = EMBEDDED if chosen is None else chosen.service
    if before.get("provider", service) != service:
        # Address and API were meant for the one before.
        for name in ("base_url", "api", "key_env"):
            if before.get(name):
                set_value(f"model.{name}", "")
    set_value("model.provider", service)
    set_value("model.name", "" if chosen is None else chosen.model)
    if chosen is not None:
        known = BY_NAME[chosen.service]
        if chosen.base_url != known.base_url and not known.env_address(os.environ):
            set_value("model.base_url", chosen.base_url)


def _chosen(app: CliApp) -> Choice | None:
    from hermes.agent.providers.model_choice import choice

    return choice(app.config, os.environ)


def _current(choice: Choice | None) -> str:
    if choice is None:
        return f"model: the embedded one, {_embedded_row()[1]}: small, for simple tasks"
    return f"model: {choice.model} at {choice.service} (by {choice.why})"


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


_NOTHING = """\
No key in the environment, and no model server on this machine.
  with a key:     export OPENROUTER_API_KEY=…   (or OPENAI_API_KEY, ANTHROPIC_API_KEY, …)
  with a server:  start Ollama, LM Studio, llama.cpp or vLLM
Then run `hermes setup` again. Until then Hermes asks a small model of its own, which it fetches
at first use (1.1 GB) and runs here: good for simple tasks with files and commands, no more."""


def setup_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--yes", action="store_true", help="ask nothing: take the first that works")
    parser.add_argument("--model", metavar="NAME", help="try and take this one: service/model")
    parser.add_argument("--no-test", action="store_true", help="do not ask the model anything")
    parser.set_defaults(run=_setup)


def _setup(app: CliApp, options: Namespace) -> int:
    if options.model:
        return DONE if _take(app, options.model, options) else FAILED
    app.note("looking for keys and for servers on this machine …")
    usable = _found()
    if not usable:
        app.out(_NOTHING)
        return DONE
    app.table([(f"{n}.", c.spec, c.why) for n, c in enumerate(usable, 1)])
    if options.yes:
        return DONE if any(_take(app, c.spec, options) for c in usable) else FAILED
    if not (sys.stdin and sys.stdin.isatty()):
        app.note("hermes: nobody to ask; `hermes setup --yes` takes the first that works")
        return FAILED
    return _ask(app, usable, options)


def _ask(app: CliApp, candidates: Sequence[Candidate], options: Namespace) -> int:
    """Let the person choose until one works or they have had enough."""
    while True:
        app.note(f"Which one? 1-{len(candidates)}, service/model, or s to skip [1]")
        try:
            answer = input("> ").strip() or "1"
        except EOFError:
            answer = "s"
        if answer.lower() in ("s", "skip", "q", "quit", "n", "no"):
            app.out("Nothing changed. `hermes setup` starts again.")
            return DONE
        if answer.isdecimal():
            if not 1 <= int(answer) <= len(candidates):
                app.note(f"hermes: there is no {answer}")
                continue
            answer = candidates[int(answer) - 1].spec
        if _take(app, answer, options):
            return DONE


def _found() -> list[Candidate]:
    from hermes.agent.providers.services import candidates
    from hermes.runtime import waits

    usable: list[Candidate] = waits.run(candidates(os.environ))
    return usable


def _take(app: CliApp, name: str, options: Namespace) -> bool:
    """Try a model and remember it; whether it worked."""
    from hermes.agent.providers.model_choice import choice, provider
    from hermes.agent.providers.services import probe
    from hermes.core.paths import home_path
    from hermes.runtime import waits

    try:
        chosen = choice(app.config, os.environ, name)
        if chosen is not None and not options.no_test:
            app.note(f"asking {chosen.service}/{chosen.model} …")
            trial = waits.run(probe(provider(chosen, app.config, os.environ)))
            app.out(probe_line(trial))
    except HermesError as error:
        app.error(error)
        return False
    write_choice(chosen)
    app.out(f"Written to {home_path('config.yaml')}; the key stays in the environment.")
    app.out('Try it: hermes "What is in this folder?"')
    return True

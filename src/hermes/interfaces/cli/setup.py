"""`hermes setup`: find a model, test it, save the choice."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED
from hermes.interfaces.cli.model import probe_line, write_choice

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from hermes.agent.providers.services import Candidate
    from hermes.interfaces.cli.main import CliApp

_NOTHING = """\
No key in the environment, and no model server on this machine.
  with a key:     export OPENROUTER_API_KEY=…   (or OPENAI_API_KEY, ANTHROPIC_API_KEY, …)
  with a server:  start Ollama, LM Studio, llama.cpp or vLLM
Then run `hermes setup` again. Until then Hermes asks a small model of its own, which it fetches
at first use (1.1 GB) and runs here: good for simple tasks with files and commands, no more."""


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--yes", action="store_true", help="ask nothing: take the first that works")
    parser.add_argument("--model", metavar="NAME", help="try and take this one: service/model")
    parser.add_argument("--no-test", action="store_true", help="do not ask the model anything")
    parser.set_defaults(run=_setup)


def _setup(app: CliApp, options: Namespace) -> int:
    if options.model:
        return DONE if _take(app, options.model, options) else FAILED
    app.note("looking for keys and for servers on this machine …")
    found = _found()
    if not found:
        app.out(_NOTHING)
        return DONE
    app.table([(f"{n}.", c.spec, c.why) for n, c in enumerate(found, 1)])
    if options.yes:
        return DONE if any(_take(app, c.spec, options) for c in found) else FAILED
    if not (sys.stdin and sys.stdin.isatty()):
        app.note("hermes: nobody to ask; `hermes setup --yes` takes the first that works")
        return FAILED
    return _ask(app, found, options)


def _ask(app: CliApp, found: Sequence[Candidate], options: Namespace) -> int:
    """Let the person choose until one works or they have had enough."""
    while True:
        app.note(f"Which one? 1-{len(found)}, service/model, or s to skip [1]")
        try:
            said = input("> ").strip() or "1"
        except EOFError:
            said = "s"
        if said.lower() in ("s", "skip", "q", "quit", "n", "no"):
            app.out("Nothing changed. `hermes setup` starts again.")
            return DONE
        if said.isdecimal():
            if not 1 <= int(said) <= len(found):
                app.note(f"hermes: there is no {said}")
                continue
            said = found[int(said) - 1].spec
        if _take(app, said, options):
            return DONE


def _found() -> list[Candidate]:
    from hermes.agent.providers.services import candidates
    from hermes.runtime import waits

    found: list[Candidate] = waits.run(candidates(os.environ))
    return found


def _take(app: CliApp, name: str, options: Namespace) -> bool:
    """Try a model and remember it; whether it worked."""
    from hermes.agent.providers.model_choice import choice, provider
    from hermes.agent.providers.services import probe
    from hermes.core.paths import home_path
    from hermes.runtime import waits

    try:
        found = choice(app.config, os.environ, name)
        if found is not None and not options.no_test:
            app.note(f"asking {found.service}/{found.model} …")
            trial = waits.run(probe(provider(found, app.config, os.environ)))
            app.out(probe_line(trial))
    except HermesError as error:
        app.error(error)
        return False
    write_choice(found)
    app.out(f"Written to {home_path('config.yaml')}; the key stays in the environment.")
    app.out('Try it: hermes "What is in this folder?"')
    return True

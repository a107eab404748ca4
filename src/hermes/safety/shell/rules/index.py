"""The index of all rules: by key, and their forms by program."""

from __future__ import annotations

from hermes.safety.shell.rules.local import RULES as _LOCAL
from hermes.safety.shell.rules.model import Rule, by_program
from hermes.safety.shell.rules.remote import RULES as _REMOTE
from hermes.safety.shell.rules.system import RULES as _SYSTEM

RULES: dict[str, Rule] = {rule.key: rule for rule in (*_LOCAL, *_SYSTEM, *_REMOTE)}
FORMS = by_program(RULES.values())
FORMS_FOR_ANY = tuple(FORMS.pop("*")[""])
# What a program starts was judged already: its verbs are not this program's.
FORMS_FOR_OPENED = tuple(form for form in FORMS_FOR_ANY if form.key != "service.destroyed")

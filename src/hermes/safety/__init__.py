"""What may happen: judgements over values, before anything runs.

policy       the ruling on a call: allow, ask, refuse
gate         the policy of a running Hermes: all of the below together
acts         what a call would do to the world, read from its arguments
permissions  who may do what: profiles of rights, in layers
approval     what was approved, for how long, for exactly what; denials  what was refused;
             pending  questions that are answered elsewhere; smart  by a model, small things only
shell        what a shell command would really do
paths, urls  where a path or an address really leads; connect  only to what was checked
redaction    secrets out of any text; placeholders  what stands for them, and the way back
skills       whether a skill may be installed; injection  text that talks to its reader
sanitise     error messages and foreign descriptions, made safe to show a model

Pure functions: no tool, and no input or output but looking at the places that are judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.lazy import names_from

if TYPE_CHECKING:
    from hermes.safety.paths import check_path
    from hermes.safety.policy import EffectPolicy, Policy, Ruling
    from hermes.safety.redaction import Redactor, redact
    from hermes.safety.shell import detect_dangerous_command
    from hermes.safety.skills import scan_skill
    from hermes.safety.urls import check_url

_HOMES = {
    "EffectPolicy": "policy",
    "Redactor": "redaction",
    "Ruling": "policy",
    "check_path": "paths",
    "check_url": "urls",
    "detect_dangerous_command": "shell",
    "redact": "redaction",
    "scan_skill": "skills",
}

__all__ = [
    "EffectPolicy",
    "Policy",
    "Redactor",
    "Ruling",
    "check_path",
    "check_url",
    "detect_dangerous_command",
    "redact",
    "scan_skill",
]

# Each name brings only its own module: the shell grammar alone costs more than start-up.
__getattr__ = names_from(__name__, _HOMES)

"""Safety: the decision on a call before it runs, and secrets kept out of texts.

policy            the ruling on a call: allow, ask, refuse
gate              the policy of a running Hermes, made of all of the below
call_effects      files, commands and addresses of a call, read from its arguments
permissions       profiles of rights, in layers
approvals         approvals and denials of a person; model_approver  low-risk approvals by a model
shell             analysis of shell commands; workspace_bounds  the paths they write
paths, urls       the real target of a path or address; hostnames  in canonical form
pinned_http       connections only to checked addresses
taint             untrusted text in a conversation, and the calls that then ask
injection         prompt injection in text that should be data; skills  scan of a skill folder
redaction         secrets out of any text; placeholders  tokens in their place, and the way back
file_guard        changes of a command to files that decide, taken back; variables  that load code
sanitise          untrusted text made safe for a model or a terminal

Pure functions: no tool, and no I/O but looking at the paths that are judged.
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
    "paths": "check_path",
    "policy": "EffectPolicy Policy Ruling",
    "redaction": "Redactor redact",
    "shell": "detect_dangerous_command",
    "skills": "scan_skill",
    "urls": "check_url",
}

__all__ = [
    "EffectPolicy", "Policy", "Redactor", "Ruling", "check_path", "check_url",
    "detect_dangerous_command", "redact", "scan_skill",
]  # fmt: skip

# Each name brings only its own module: the shell grammar alone costs more than start-up.
__getattr__ = names_from(__name__, _HOMES)

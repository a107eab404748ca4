"""Environment variables of commands: an allow-list of our own, settings for unattended runs, the
task's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.runtime.child_process import child_environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# All processes of a command have it, and are found by it.
MARK = "HERMES_COMMAND"
# Where tools and libraries are, and how text and time are shown: places, no secrets.
_PLACES = (
    "TZ", "COLUMNS", "LINES", "HOSTNAME",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_DATA_DIRS",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "UV_CACHE_DIR",
    "JAVA_HOME", "GRADLE_HOME", "M2_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT",
    "GOPATH", "GOROOT", "GOBIN", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "NVM_BIN", "FNM_DIR",
    "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "RBENV_ROOT", "GEM_HOME", "GEM_PATH",
    "DOTNET_ROOT", "SDKROOT", "DEVELOPER_DIR", "CUDA_HOME", "CUDA_VISIBLE_DEVICES",
    "HOMEBREW_PREFIX", "NIX_PATH", "NIX_PROFILES", "PKG_CONFIG_PATH", "MANPATH", "INFOPATH",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
)  # fmt: skip
# Passed on when they hold no password.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy")

# Nobody sits there to turn pages, to write in an editor or to type a password.
UNATTENDED = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "BAT_PAGER": "cat",
    "DELTA_PAGER": "cat",
    "AWS_PAGER": "",
    "PSQL_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_MERGE_AUTOEDIT": "no",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
    # Into a pipe it would print when it ends, or never where it is stopped.
    "PYTHONUNBUFFERED": "1",
}


def inherited_variables(named: Iterable[str] = ()) -> dict[str, str]:
    """Those of our own variables that commands may see: the allow-list, and what is `named`."""
    env = child_environment((*_PLACES, *named), {})
    for name in _PROXIES:
        for spelling in (name, name.upper()):
            value = os.environ.get(spelling)
            if value and "@" not in value:
                env[spelling] = value
    return env


def command_environment(
    task_env: Mapping[str, str | None],
    passed: Mapping[str, str],
    *,
    extra: Mapping[str, str] | None = None,
    attended: bool = False,
) -> dict[str, str]:
    """All that one command sees.

    Later ones win: what was `passed` of our own, what keeps programs from asking (left out when
    somebody can answer: `attended`), the task's, those of this call.
    """
    env = dict(passed)
    if attended:
        env["TERM"] = "xterm-256color"
    else:
        env.update(UNATTENDED)
    env = apply_changes(env, task_env)
    env.update(extra or {})
    return env


def apply_changes(given: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Variables with some changes, of which None takes one away."""
    env = dict(given)
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env

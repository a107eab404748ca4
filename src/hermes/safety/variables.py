"""Environment variables that load code: one table for `env=`, `export` and whatever sets them.

Names that are not here are ordinary and pass everywhere.
"""

from __future__ import annotations

# Whatever their value is, a program loads or runs it.
INJECTED = frozenset((
    "LD_PRELOAD", "LD_AUDIT", "LD_PROFILE_OUTPUT", "LD_DYNAMIC_WEAK", "DYLD_INSERT_LIBRARIES",
    "DYLD_FORCE_FLAT_NAMESPACE", "GCONV_PATH", "BASH_ENV", "PERL5OPT", "PERL5DB", "RUBYOPT",
    "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONHOME", "COR_PROFILER",
))  # fmt: skip
# Settings files that name programs to run; an empty or null one switches them off.
SETTINGS = frozenset((
    "ENV", "GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_PARAMETERS",
    "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG", "PIP_CONFIG_FILE", "INPUTRC",
    "XDG_CONFIG_HOME", "VIMINIT", "EXINIT", "GEMRC",
))  # fmt: skip
_OFF = ("", "/dev/null")
# Search paths: dangerous where others can put something into the folder.
LIBRARY_PATHS = frozenset((
    "LD_LIBRARY_PATH", "LD_RUN_PATH", "DYLD_LIBRARY_PATH", "PATH", "PERL5LIB", "RUBYLIB",
    "NODE_PATH", "PYTHONPATH", "PYTHONUSERBASE", "RUSTC", "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR",
    "ZDOTDIR",
))  # fmt: skip
# Options of programs, and the ones among them that load or run something.
OPTIONS = {
    "NODE_OPTIONS": ("--require", "-r ", "--import", "--loader", "--experimental-loader"),
    "JAVA_TOOL_OPTIONS": ("-javaagent", "-agentpath", "-agentlib"),
    "JDK_JAVA_OPTIONS": ("-javaagent", "-agentpath", "-agentlib"),
    "_JAVA_OPTIONS": ("-javaagent", "-agentpath", "-agentlib"),
    "TAR_OPTIONS": ("exec=", "-I", "--use-compress-program", "--to-command", "-F", "--info-script"),
    "MAKEFLAGS": ("--eval", "-f", "--file"),
    "GOFLAGS": ("-toolexec", "-exec"),
    "PYTEST_ADDOPTS": ("-p ",),
}
# Programs that other programs start; a value with more than a name is a command in itself.
RUN_LATER = frozenset((
    "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "MANPAGER", "EDITOR",
    "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "PROMPT_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS",
    "BROWSER", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH", "GIT_PROXY_COMMAND", "SUDO_ASKPASS",
))  # fmt: skip
# Where Hermes itself takes its settings from.
GATE = frozenset(("HERMES_HOME", "HERMES_PERMISSIONS", "HERMES_PROFILE"))


def loads_code(name: str, value: str) -> bool:
    """Whether a variable with this value makes programs load or run something."""
    if name in INJECTED:
        return bool(value)
    if name in OPTIONS:
        return any(option in value for option in OPTIONS[name])
    # `ENV=production` names a deployment, and no file.
    return name in SETTINGS and value not in _OFF and (name != "ENV" or "/" in value)

"""Programs that carry code of another language in their words or read it from a pipe.

python.py, python_*.py
                inline Python, read with `ast`
script_programs.py, scripts.py, code_*.py, tcl.py
                Perl, Ruby, JavaScript, PHP, Lua and compiled languages: tokens, not a grammar
application_shells.py
                rails console, manage.py shell, tinker: code inside an application
service_calls.py  calls of any language that destroy what a service keeps
strings.py      other languages: the strings in them, as commands
sql.py, database_shells.py
                SQL by statement, and the programs that run it
awk.py, text_tools.py, editors.py
                awk, sed, pagers; vim, ed, emacs: what can start a shell or write
powershell.py   PowerShell and cmd
tools.py        tools with a command among their options: git, tar, rsync, crontab
recipes.py      make, just, task: recipes that the text itself writes
folders.py      go run, cargo run: programs that the text itself writes
transfer.py     lftp, sftp, ftp: deletes on the other side
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.code.command_options import TOOLS, TRANSFERS
from hermes.safety.shell.code.interpreters import INTERPRETERS as _SCRIPTS
from hermes.safety.shell.code.powershell import POWERSHELLS
from hermes.safety.shell.code.python import run_python
from hermes.safety.shell.code.sql import DATABASES
from hermes.safety.shell.code.text_tools import TEXT_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.stream import Stream

INTERPRETERS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(
        ("python", "pypy", "ipython", "micropython", "pythonw", "py", "sage"), run_python
    ),
    **DATABASES,
    **TEXT_TOOLS,
    **POWERSHELLS,
    **TOOLS,
    **TRANSFERS,
    **_SCRIPTS,
}

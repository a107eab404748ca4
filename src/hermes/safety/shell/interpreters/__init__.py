"""Programs that carry code of another language in their words or read it from a pipe.

python.py       inline Python, read with `ast`
scripts.py      inline Perl, Ruby, JavaScript, PHP, Lua: tokens, not a grammar
strings.py      other languages: the strings in them, as commands
sql.py          SQL by statement, and the database shells that run it
text_tools.py   awk, sed, vim, ed: editors and filters that can start a shell
powershell.py   PowerShell and cmd
tools.py        tools with a command among their options: git, tar, rsync, make, crontab
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.powershell import POWERSHELLS
from hermes.safety.shell.interpreters.python import run_python
from hermes.safety.shell.interpreters.scripts import SCRIPTS
from hermes.safety.shell.interpreters.sql import DATABASES
from hermes.safety.shell.interpreters.strings import STRINGS
from hermes.safety.shell.interpreters.text_tools import TEXT_TOOLS
from hermes.safety.shell.interpreters.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.stream import Stream

INTERPRETERS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(
        ("python", "pypy", "ipython", "micropython", "pythonw", "py", "sage"), run_python
    ),
    **SCRIPTS,
    **DATABASES,
    **STRINGS,
    **TEXT_TOOLS,
    **POWERSHELLS,
    **TOOLS,
}

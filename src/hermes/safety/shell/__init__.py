"""Analysis of shell commands before they run.

`detect_dangerous_command` reads a command the way a shell would and gives a verdict: it may run, a
person is asked first, or it is refused. From the outside in:

    analysis.py       the entry: state and limits of one analysis, the parser
    verdict.py        `Verdict` and `Finding`, with the kinds of findings
    normalise.py      look-alikes, hidden characters, terminal codes
    lexing.py         heredocs, brackets, rewrites of text that the grammar misreads
    walk.py           the tree, statement by statement
    words.py          quotes, variables, substitutions, braces: the real arguments
    scope.py          variables, functions, directories; streams between commands
    command.py        a program with its words, options and redirections
    run_command.py    one simple command: assignments, redirections, program, rules
    builtins.py, shells.py, wrappers.py, remote_commands.py, find_xargs.py
                      programs that start others
    code/             code of other languages inside a command
    programs.py       data: options with values, read-only uses, dry runs
    read_only.py      uses of programs that change nothing
    file_operands.py  words of programs that are read, written or moved away
    path_classes.py   kinds of paths, and of deletes by their targets
    path_rules.py     writes and reads judged by their targets
    output_model.py   the output of a command, for pipes and substitutions
    file_flow.py      contents of files that a command writes and uses again
    fork_bombs.py     commands that start copies of themselves without end
    script_files.py   scripts of the workspace that a command runs
    rules/            the rules, as rows of data

New here? Read analysis.py, then walk.py, then rules/table.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.shell.analysis import detect_dangerous_command
    from hermes.safety.shell.verdict import Finding, Verdict

__all__ = ["Finding", "Verdict", "detect_dangerous_command"]

__getattr__ = names_from(
    __name__,
    {
        "analysis": "detect_dangerous_command",
        "verdict": "Finding Verdict",
    },
)

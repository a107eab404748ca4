"""What a shell command would really do, before it runs.

`detect_dangerous_command` reads a command the way a shell would and says whether it may run, has
to be asked about, or is refused. From the outside in:

    normalise.py      look-alikes, hidden characters, terminal codes
    lexing.py         heredocs and brackets, before the grammar sees them
    smoothing.py      shell that the grammar misreads, rewritten in place
    parse.py          the syntax tree, in pieces when the text is long
    walk.py           the tree, statement by statement
    tree_text.py      its other pieces: words, values, redirections
    words.py, word_building.py
                      quotes, variables, substitutions, braces: the real arguments
    simple.py         one simple command: what it is and who judges it
    builtins.py, shells.py, wrappers.py, wrapper_table.py, remote_wrappers.py, finding_files.py,
    administration.py, mounts.py
                      programs that start others, opened
    trying.py         dry runs, checks and questions, which no rule minds
    interpreters/     code of other languages inside a command
    producers.py      what a command prints, for pipes and substitutions
    effects.py, outputs.py, places.py, paths.py
                      what is written or read, and where that is
    written.py        what the text itself puts into files, when it uses them again
    naming.py         files of secrets read for their names or size alone
    own_settings.py   edits of Hermes' own configuration, by the keys that they name
    bombs.py          what starts copies of itself without end
    script_files.py   scripts of the workspace that a command runs, judged by their lines
    reading.py        what changes nothing at all
    rules/            the rules, as data with examples

New here? Read judge.py, then walk.py, then rules/deletes.py.
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
        "Finding": "verdict",
        "Verdict": "verdict",
        "detect_dangerous_command": "analysis",
    },
)

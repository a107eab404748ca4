"""Programs that carry code of another language in their words or read it from a pipe.

interpreters.py    interpreters and compilers, and where they find their code; the table of all
effects.py         calls by telling names, in code of any language
scripts.py         Perl, Ruby, JavaScript, PHP, Lua and others, read as tokens
python.py          Python, read with `ast`
python_purity.py   Python that changes nothing
sql.py             SQL by statement, and the programs that run it
text_tools.py      awk, sed, pagers, vim, emacs
powershell.py      PowerShell and cmd
command_options.py programs with a command among their options: git, tar, rsync, crontab
"""

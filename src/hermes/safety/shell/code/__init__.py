"""Programs that carry code of another language in their words or read it from a pipe.

interpreters.py    interpreters and compilers, and where they find their code; the table of all
scripts.py         Perl, Ruby, JavaScript, PHP, Lua and others: names that are called
python_calls.py, python_effects.py, python_values.py, python_purity.py
                   Python, read with `ast`
service_calls.py   calls of any language that destroy data of a service
sql.py             SQL by statement, and the programs that run it
text_tools.py      awk, sed, pagers, vim, emacs
powershell.py      PowerShell and cmd
command_options.py programs with a command among their options: git, tar, rsync, crontab
"""

"""Text: encodings, line pages, differences, globs, edits. Pure functions; nothing opens a file.

encoding         charset detection; decode and encode files; decode console output
line_pages       numbered lines of a large file
ansi             ANSI sequences, control and invisible characters
diff             line differences;  short_diff  a diff that fits into a result
globs            glob patterns, choices made of them, gitignore rules
regex_worker     regular expressions in a killable subprocess
replace          fuzzy text replacement
patches          unified diffs and codex patches
syntax_check     syntax errors after an edit
"""

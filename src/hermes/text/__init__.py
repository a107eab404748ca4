"""Text: encodings, line pages, differences, globs, edits. Pure functions; nothing opens a file.

encoding         decode and encode files; decode console output
charset          charset detection
line_pages       numbered lines of a large file
ansi             ANSI sequences, control and invisible characters
diff             line differences;  short_diff  a diff that fits into a result
globs            glob patterns;  path_patterns, gitignore  rules made of them
regex_worker     regular expressions in a killable subprocess
replace          fuzzy text replacement
patches          unified diffs and codex patches
already_applied  is the result of an edit in place already?
syntax_check     syntax errors after an edit
"""

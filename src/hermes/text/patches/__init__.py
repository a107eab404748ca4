"""Patches: unified diffs and codex patches, parsed, located in a text and applied.

    model           FilePatch, Hunk, Applied
    parse           parse_patch, paths_of; the codex format (`*** Begin Patch`)
    unified_format  the format of `diff -u` and git
    locate          position of each hunk: by content, headings, order and line number
    apply           apply_hunks: all hunks of one file, or none; applied hunks are recognised

Start with `apply`.
"""

"""Patches: unified diffs and codex patches, parsed, located in a text and applied.

    model           FilePatch, Hunk, Applied
    parse           parse_patch, paths_of; the codex format (`*** Begin Patch`)
    unified_format  the format of `diff -u` and git
    apply           apply_hunks: locate all hunks of one file, then apply all or none

Start with `apply`.
"""

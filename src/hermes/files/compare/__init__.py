"""Differences between two files or two folders.

    content_diff  two inputs -> equal, changed lines, or changed bytes
    render        changed lines as unified diff, side by side, or summary
    folder_diff   two folders -> added, removed, changed
    git_head      a file as in the last commit

Start with content_diff.py. At most a few megabytes per input are held in memory.
"""

"""Differences between two files or two folders.

    content_diff  two inputs -> equal, changed lines, or changed bytes; unified, side by side;
                  a file as in the last commit
    folder_diff   two folders -> added, removed, changed

Start with content_diff.py. At most a few megabytes per input are held in memory.
"""

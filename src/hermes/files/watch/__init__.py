"""File system changes: wait for them, or collect them in the background.

    watcher     system notifications and snapshots -> changes, batched and filtered; polling on
                remote disks; watches that run between calls

Start with watcher.py. Notifications come from `watchfiles` and are only hints: a replaced file is
reported as new, a file in a new folder not at all, and some paths are behind links. The comparison
with the last snapshot decides.
"""

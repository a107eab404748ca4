"""Archives: create, list, check and extract tar, zip and 7z files, from untrusted sources too.

    limits       ArchiveLimits, ArchiveError, results; the meter that enforces the limits
    member_tree  safe member names; the files, folders and links of an archive
    compression  bounded decompression streams; Zstandard
    tar, zip     one format each, both ways
    seven_zip    7z by py7zr, both ways; seven_zip_worker  the subprocess that reads
    pack_source  files, folders and links to pack, and their bytes
    creation     create_archive
    extraction   extract_archive, list_archive, check_archive
    placement    a complete staging folder -> the target, all or nothing
    remote_disk  archives on remote disks

Start with extraction.py. Archives inside archives stay files.
"""

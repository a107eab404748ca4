"""Archives: create, list, check and extract tar, zip and 7z files, from untrusted sources too.

    limits       ArchiveLimits, ArchiveError, results; the meter; safe names and tree of members
    compression  bounded decompression streams; Zstandard
    tar, zip     one format each, both ways
    seven_zip    7z by py7zr, both ways; seven_zip_worker  the subprocess that reads
    creation     create_archive; files, folders and links to pack
    extraction   extract_archive, list_archive, check_archive; staging folder -> target
    remote_disk  archives on remote disks

Start with extraction.py. Archives inside archives stay files.
"""

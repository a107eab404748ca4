"""Search files by content or by name, and report the entries that were skipped.

    query          pattern, filters, counts of an engine, deadline
    walk           files and folders below a root, without hidden and ignored ones
    ripgrep        the fast engine
    python_engine  the engine for any disk, and for other encodings
    content        `search_content`: matches, totals, order, skipped files
    file_names     `search_names`: names by glob, by part, by similarity
    report         results as short text for a model

Start with content.py.
"""

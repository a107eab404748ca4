"""Tool search: finds a tool for a need in plain words, in any of the common languages.

    index.py       SearchIndex: BM25 over words and concepts, fused with embeddings; tool hints
    query.py       weighted terms of a query and of a document
    lexicon.py     tokens, stems and trigrams; concepts of a word
    lexicon.tsv    the concepts, one per line, with words of many languages
    stopwords.txt  words without meaning for a search
    endings.txt    inflectional endings
    embedding.py   local embedding model (extra `embeddings`)

Tool authors write English; words of queries and documents are mapped to concepts, which are
compared. Importing this package is cheap; the lexicon is read at the first search.
"""

"""Tool search: finds a tool for a need in plain words, in any of the common languages.

    index.py       SearchIndex: BM25 over words and concepts, fused with embeddings
    query.py       weighted terms of a query and of a document
    lexicon.py     concepts of a word: exact, inflected, compound, misspelled
    lexicon.tsv    the concepts, one per line, with words of many languages
    stopwords.txt  words without meaning for a search
    endings.txt    inflectional endings
    tokens.py      folding, splitting, stemming, trigram similarity
    embedding.py   local embedding model (extra `embeddings`)
    hints.py       a few words per tool, for a catalogue

Tool authors write English; words of queries and documents are mapped to concepts, which are
compared. Importing this package is cheap; the lexicon is read at the first search.
"""

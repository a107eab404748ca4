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

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.runtime.tool_search.hints import hint
    from hermes.runtime.tool_search.index import Document, Hit, SearchIndex

__all__ = ["Document", "Hit", "SearchIndex", "hint"]

__getattr__ = names_from(
    __name__,
    {
        "Document": "index",
        "Hit": "index",
        "SearchIndex": "index",
        "hint": "hints",
    },
)

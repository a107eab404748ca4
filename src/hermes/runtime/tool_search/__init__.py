"""Find the right tool for a need expressed in plain words, in any of the common languages.

    index.py       SearchIndex: documents in, ranked names out; BM25 over words and concepts
    query.py       a need -> weighted terms: words, phrases, concepts, file names, addresses
    lexicon.py     which concepts a word stands for: exact, inflected, compound, misspelled
    lexicon.tsv    the concepts themselves, one per line, words of many languages
    stopwords.txt  words that say nothing about the need
    endings.txt    endings that inflection puts on a word
    text.py        folding, splitting and stemming
    spelling.py    nearest words by shared trigrams
    fusion.py      merging in what an embedding model says, when there is one
    embedding.py   such a model, when the `embeddings` extra is installed
    hints.py       a few words about a tool, for a catalogue

A tool's author writes English. Words of a query and words of a document are both mapped to
concepts, and concepts are what they meet in. Importing this package is cheap; the lexicon is
read at the first search.
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

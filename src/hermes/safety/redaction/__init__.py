"""Secrets out of any text, everything else to the byte.

    gate.py       the cheap first look: can there be a secret here at all?
    formats.py    secrets that show by their own shape (keys and tokens of known makes)
    pem.py        private key blocks, whole or cut off
    pairs.py      secrets that show by the name in front of them (`password: …`, `TOKEN=…`)
    names.py      which names stand for a secret
    values.py     which values are only placeholders, references or code
    headers.py    Authorization, Cookie and their kin
    links.py      passwords and tokens inside URLs
    commands.py   secrets handed to programs as options
    squeeze.py    the text as a reader sees it, without invisible characters
    known.py      values known to be secret, in every usual encoding
    redactor.py   all of it put together
    stream.py     the same for text that arrives in pieces

Start with `redactor.py`. A secret is replaced by `[REDACTED:kind]`; its name, scheme or host stays.
"""

from hermes.safety.redaction.redactor import Redactor, redact
from hermes.safety.redaction.stream import RedactingStream

__all__ = ["RedactingStream", "Redactor", "redact"]

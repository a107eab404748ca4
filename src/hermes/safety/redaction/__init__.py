"""Secrets out of any text, everything else to the byte.

    redactor.py   all of it put together
    gate.py       the cheap first look: can there be a secret here at all?
    detect.py     the close look: which of the detectors below have something to say
    formats.py    secrets that show by their own shape (keys and tokens of known makes)
    pem.py        private key blocks, whole or cut off
    pairs.py      secrets that show by the name in front of them (`password: …`, `TOKEN=…`)
    bare.py       unquoted values: literals in settings, expressions in code
    options.py    names and values without a sign in between (`--password …`, netrc)
    commands.py   secrets in options that only their program explains (`curl -u`, `mysql -p`)
    headers.py    Authorization, Cookie and their kin
    links.py      passwords and tokens inside URLs
    names.py      which names stand for a secret
    values.py     which values are only placeholders, references, code or prose
    quotes.py     where a value ends
    squeeze.py    the text as a reader sees it, without invisible characters
    known.py      values known to be secret, in every usual encoding
    nested.py     values inside values, and JSON that has to stay JSON
    stream.py     the same for text that arrives in pieces

Start with `redactor.py`. A secret is replaced by `[REDACTED:kind]`; its name, scheme or host stays.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.redaction.redactor import RedactingStream, Redactor, redact

__all__ = ["RedactingStream", "Redactor", "redact"]

__getattr__ = names_from(
    __name__,
    {
        "RedactingStream": "redactor",
        "Redactor": "redactor",
        "redact": "redactor",
    },
)

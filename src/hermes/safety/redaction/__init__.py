"""Redaction: secrets out of any text, everything else unchanged to the byte.

    redactor.py            texts, streams and nested values; JSON stays valid JSON
    prefilter.py           one cheap pass: can there be a secret in a text at all? Text without
                           invisible characters, with a map back
    detect.py              the detectors that the prefilter selects
    credential_formats.py  keys and tokens of known formats, as data; PEM blocks
    pairs.py               name and value: `password: …`, `TOKEN=…`
    option_values.py       `--password …`, `curl -u`, `mysql -p`, netrc, SQL
    http_values.py         Authorization and Cookie headers, passwords and tokens in URLs
    secret_names.py        names that stand for a secret
    values.py              the extent of a value; placeholders, references, code and prose
    known_values.py        known secrets in every common encoding

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
        "redactor": "RedactingStream Redactor redact",
    },
)

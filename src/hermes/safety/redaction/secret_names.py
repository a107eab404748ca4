"""Secret names: `DB_PASSWORD` names a secret, `max_tokens` and `public_key` do not."""

from __future__ import annotations

import re
from functools import lru_cache

NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+")

_PASSWORD = ("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "mdp")
_ALONE = frozenset({"pass", "pw", "psw", "pswd", "userpass", "dbpass", "rootpw", "bindpw"})
_SECRET = ("secret", "secrets")
_CREDENTIAL = ("credential", "credentials", "creds", "cred")
_KEY_OF_TEXT = """
    api access private secret encryption encrypt decryption signing sign master account storage
    shared auth authentication authorization service app application admin deploy ssh ssl tls jwt
    hmac session client server consumer subscription webhook root priv license functions sas
    bot integration project user developer dev prod live webapi rest x aes des rsa cipher salt data
"""
_KEY_OF = frozenset(_KEY_OF_TEXT.split())
# What comes after the word and leaves it a secret: `password_confirmation`, `TOKEN_PROD`.
_AFTER_TEXT = """
    value values string text plain plaintext raw b base encoded env prod production dev
    development staging stage live sandbox new old current previous prev confirm confirmation
    confirmed repeat again verify primary secondary backup default main admin root user master
    header id
"""
_AFTER = frozenset(_AFTER_TEXT.split())
# Words that make something else of it.
_ELSE_TEXT = """
    public pub page next cursor continuation sync max min num count total number avg average pad eos
    bos unk mask sep cls special start stop begin end eot prompt completion input output reasoning
    cached vocab per used limit budget estimated remaining bypass primary foreign partition sort
    cache shard routing idempotency object dict map hash lookup index unique composite natural
    surrogate registry hot short arrow translation i18n no without missing invalid forgot reset
"""
_ELSE = frozenset(_ELSE_TEXT.split())
_STRICT_ELSE = _ELSE - {"primary", "hash", "reset", "no", "per", "used", "start", "end", "index"}


@lru_cache(maxsize=2048)
def kind_of(name: str) -> str | None:
    """`password`, `secret`, `token`, `key`, `credential`; None where it is not secret.

    A plain `…_KEY` of an environment variable is `maybe-key`: it counts with a random value only.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    while (
        len(words) > 1 and words[-1] in _AFTER and not (words[-1] == "id" and words[-2] != "secret")
    ):
        words.pop()
    if not words:
        return None
    last, rest = words[-1], words[:-1]
    if last.endswith(_PASSWORD) or last in _ALONE:
        return (
            None
            if last == "pass" and not rest and not name.isupper() and name != "pass"
            else "password"
        )
    if not _STRICT_ELSE.isdisjoint(rest):
        return None
    if last.endswith(_SECRET):
        return "secret" if last.endswith("secret") else "maybe-key"
    if last.endswith("token"):
        return "token"
    if last in _CREDENTIAL:
        return "credential"
    if last.endswith("key"):
        return _kind_of_key(name, last, rest)
    if last == "auth" and (rest or name.startswith("_")):
        return "maybe-key"
    return None


def _kind_of_key(name: str, last: str, rest: list[str]) -> str | None:
    stem = last[:-3]
    if stem in _KEY_OF or (not stem and rest and (rest[-1] in _KEY_OF or "api" in rest)):
        return "key"
    if rest and not stem and _ELSE.isdisjoint(rest) and (name.isupper() or "-" in name):
        return "maybe-key"
    return None

"""The keys of an `http_wrapper` tool, read from the file."""

from __future__ import annotations

import re

from hermes.runtime.yaml_tools.definition import Auth, HttpSpec, ResponseSpec
from hermes.runtime.yaml_tools.placeholders import Template

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Sequence

    from yaml import Node

    from hermes.runtime.yaml_tools.definition import Parameter
    from hermes.runtime.yaml_tools.document import Document
    from hermes.runtime.yaml_tools.jsonpath import JsonPath

HTTP_KEYS = ("endpoint", "method", "auth", "headers", "response")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_BODILESS = ("GET", "HEAD")
_AUTH_KEYS: dict[str, tuple[str, ...]] = {
    "none": (),
    "basic": ("username_env", "password_env"),
    "bearer": ("token_env",),
    "header": ("header", "token_env"),
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# Headers that the connection itself writes.
_WIRE = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_SECRET = frozenset(("authorization", "cookie"))
_ENDPOINT = re.compile(r"(https?)://([^/?#\\]*)([^?#]*)(?:\?([^#]*))?", re.IGNORECASE)
_HOST = re.compile(r"(?:[^\s:@\[\]%{}]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")


def read_http(
    document: Document,
    node: Node,
    fields: dict[str, Node],
    label: str,
    parameters: Sequence[Parameter],
) -> HttpSpec | None:
    """The request that a tool stands for; places of parameters are settled here."""
    method = "GET"
    if "method" in fields:
        word = (document.text(fields["method"], f"the method of {label}") or "").upper()
        if word in _METHODS:
            method = word
        else:
            document.problem(
                fields["method"], f"the method of {label} must be one of {', '.join(_METHODS)}"
            )
    auth = _auth(document, fields.get("auth"), label)
    headers = _headers(document, fields.get("headers"), label, auth)
    response = _response(document, fields.get("response"), label)
    if "endpoint" not in fields:
        document.problem(node, f"{label} has no endpoint")
        return None
    endpoint = document.text(fields["endpoint"], f"the endpoint of {label}")
    parts = _endpoint(document, fields["endpoint"], endpoint or "", label)
    if parts is None:
        return None
    origin, segments, query = parts
    names = {name for piece in (*segments, *query) for name in piece.names}
    in_path = {name for piece in segments for name in piece.names}
    _place(document, parameters, names, in_path, method)
    known = {parameter.name for parameter in parameters}
    for name in sorted(names - known):
        document.problem(
            fields["endpoint"], f"the endpoint of {label} has `{{{name}}}`, which is no parameter"
        )
    _check_header_parameters(document, parameters, headers, auth)
    return HttpSpec(
        origin, segments, query, method=method, auth=auth, headers=headers, response=response
    )


def _endpoint(
    document: Document, node: Node, endpoint: str, label: str
) -> tuple[str, list[Template], list[Template]] | None:
    """Scheme and host, the pieces of the path, the pairs of the query."""
    parts = _ENDPOINT.fullmatch(endpoint)
    wrong = ""
    if parts is None:
        wrong = "must be an http or https address without a fragment"
    elif "@" in parts[2]:
        wrong = "must not hold a user or password; `auth` takes them from the environment"
    elif "{" in parts[2]:
        wrong = "takes its host from a parameter; the host must be written out"
    elif not (host := _HOST.fullmatch(parts[2])) or int(host[1] or 0) > 65535:
        wrong = "has a host that can't be"
    elif any(c.isspace() or c == "\\" or not c.isprintable() for c in endpoint):
        wrong = "has a blank, a backslash or a control character in it"
    if wrong or parts is None:
        document.problem(node, f"the endpoint of {label} {wrong}")
        return None
    segments = [Template(piece) for piece in parts[3].removeprefix("/").split("/")]
    query = [Template(piece) for piece in (parts[4] or "").split("&") if piece]
    return f"{parts[1].lower()}://{parts[2]}", segments, query


def _place(
    document: Document,
    parameters: Sequence[Parameter],
    names: set[str],
    in_path: set[str],
    method: str,
) -> None:
    """Settle where each parameter goes, and note what can't go there."""
    for one in parameters:
        if one.name in names:
            if one.place not in (None, "path" if one.name in in_path else "query"):
                document.problem(
                    one.line,
                    f"parameter `{one.name}` says `in: {one.place}`, but the endpoint has it"
                    f" in the {'path' if one.name in in_path else 'query'}",
                )
            if one.type in ("array", "object"):
                document.problem(
                    one.line,
                    f"parameter `{one.name}` is an {one.type}: no endpoint can hold one",
                )
            one.place = "path"
            if one.name in in_path and not one.always:
                document.problem(
                    one.line,
                    f"parameter `{one.name}` is part of the path: make it required, or give it"
                    " a default",
                )
        elif one.place == "path":
            document.problem(
                one.line,
                f"parameter `{one.name}` is in the path, but the endpoint has no `{{{one.name}}}`",
            )
        elif one.place is None:
            one.place = "query" if method in (*_BODILESS, "DELETE") else "body"
        elif one.place == "body" and method in _BODILESS:
            document.problem(
                one.line, f"parameter `{one.name}` is in the body, and {method} sends none"
            )


def _headers(document: Document, node: Node | None, label: str, auth: Auth) -> dict[str, str]:
    found: dict[str, str] = {}
    if node is None:
        return found
    for name, inner in document.fields(node, f"the headers of {label}", None).items():
        value = document.text(inner, f"header `{name}`")
        if not _header_name(document, inner, name):
            continue
        if name.lower() in _SECRET:
            document.problem(
                inner, f"header `{name}` holds a secret: use `auth`, which reads the environment"
            )
        elif auth.type != "none" and name.lower() == auth.header.lower():
            document.problem(inner, f"header `{name}` is already set by `auth`")
        if value is not None and not value.isprintable():
            document.problem(inner, f"header `{name}` has a line break or control character")
        found[name] = (value or "").strip()
    return found


def _header_name(document: Document, where: Node | int, name: str) -> bool:
    if not _HEADER.fullmatch(name):
        document.problem(where, f"`{name:.60}` can't be the name of a header")
    elif name.lower() in _WIRE:
        document.problem(where, f"header `{name}` is written by the connection itself")
    else:
        return True
    return False


def _check_header_parameters(
    document: Document, parameters: Sequence[Parameter], headers: dict[str, str], auth: Auth
) -> None:
    taken = {auth.header.lower(), *(name.lower() for name in headers), *_SECRET}
    for one in parameters:
        if one.place != "header" or not _header_name(document, one.line, one.name):
            continue
        if one.name.lower() in taken:
            document.problem(
                one.line, f"parameter `{one.name}` would replace a header that the file sets"
            )
        if one.type in ("array", "object"):
            document.problem(
                one.line, f"parameter `{one.name}` is an {one.type}: no header can hold one"
            )


def _auth(document: Document, node: Node | None, label: str) -> Auth:
    if node is None:
        return Auth()
    what = f"auth of {label}"
    every = ("type", "username_env", "password_env", "token_env", "header")
    fields = document.fields(node, what, every)
    if "type" not in fields:
        if fields:
            document.problem(node, f"{what} has no type; use one of {', '.join(_AUTH_KEYS)}")
        return Auth()
    kind = document.choice(fields["type"], f"the type of {what}", tuple(_AUTH_KEYS))
    if kind is None:
        return Auth()
    wanted = _AUTH_KEYS[kind]
    for key in fields.keys() - {"type", *wanted}:
        document.problem(fields[key], f"{what} has the type {kind}, which knows no `{key}`")
    names: list[str] = []
    header = "Authorization"
    for key in wanted:
        if key not in fields:
            document.problem(node, f"{what} has the type {kind} and needs `{key}`")
            continue
        value = document.text(fields[key], f"{key} of {what}") or ""
        if key == "header":
            header = value
            _header_name(document, fields[key], value)
        elif _VARIABLE.fullmatch(value):
            names.append(value)
        else:
            # The value is not shown: it may well be the secret itself.
            document.problem(
                fields[key], f"{key} of {what} must be the name of an environment variable"
            )
    return Auth(kind, header=header, names=names)


def _response(document: Document, node: Node | None, label: str) -> ResponseSpec:
    if node is None:
        return ResponseSpec()
    from hermes.runtime.yaml_tools.jsonpath import JsonPath, PathError

    what = f"response of {label}"
    fields = document.fields(node, what, ("jsonpath", "template"))
    path = template = None
    if "jsonpath" in fields:
        path = _json_path(document, fields["jsonpath"], what)
    if "template" in fields:
        text = document.text(fields["template"], f"the template of {what}")
        template = Template(text or "")
        for name in template.names:
            try:
                JsonPath(f"$.{name}")
            except PathError as error:
                document.problem(fields["template"], f"`{{{name}}}` in the {what}: {error}")
        if text is not None and not template.names:
            document.problem(fields["template"], f"the template of {what} names no `{{field}}`")
    return ResponseSpec(path, template)


def _json_path(document: Document, node: Node, what: str) -> JsonPath | None:
    from hermes.runtime.yaml_tools.jsonpath import JsonPath, PathError

    text = document.text(node, f"the jsonpath of {what}")
    if text is None:
        return None
    try:
        return JsonPath(text)
    except PathError as error:
        document.problem(node, f"the jsonpath of {what}: {error}")
        return None

"""Field readers: `parameters:`, `command` and `http_wrapper` keys of a tool, validated."""

from __future__ import annotations

import re

from hermes.runtime.yaml_tools.spec import (
    TYPES,
    Auth,
    CommandSpec,
    HttpSpec,
    Parameter,
    ResponseSpec,
)
from hermes.runtime.yaml_tools.template import Template

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from yaml import Node

    from hermes.runtime.yaml_tools.document import Document
    from hermes.runtime.yaml_tools.jsonpath import JsonPath


PLACES = ("query", "path", "body", "header")
_KEYS = ("name", "type", "required", "description", "enum", "default", "items")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def read_parameters(document: Document, node: Node | None, tool_type: str) -> list[Parameter]:
    """The parameters of one tool: a list, or keys with values where the key is the name."""
    import yaml

    if node is None:
        return []
    known = (*_KEYS, "in") if tool_type == "http_wrapper" else (*_KEYS, "allow_dash")
    found: list[Parameter] = []
    if isinstance(node, yaml.MappingNode):
        by_name = document.fields(node, "parameters", None)
        rows = [
            (name, inner, document.fields(inner, f"parameter `{name}`", known))
            for name, inner in by_name.items()
        ]
    else:
        rows = []
        for item in document.items(node, "parameters"):
            fields = document.fields(item, "a parameter", known)
            named = fields.get("name")
            name = document.text(named, "the name of a parameter") if named is not None else None
            if name is not None:
                rows.append((name, item, fields))
            elif named is None and fields:
                document.problem(item, "a parameter has no name")
    for name, item, fields in rows:
        if not _NAME.fullmatch(name):
            document.problem(
                item, f"`{name:.70}` can't be a parameter's name: letters, digits, `_` and `-`"
            )
        elif any(other.name == name for other in found):
            document.problem(item, f"parameter `{name}` comes twice")
        else:
            found.append(_read(document, name, item, fields))
    return found


def _read(document: Document, name: str, item: Node, fields: dict[str, Node]) -> Parameter:
    what = f"of parameter `{name}`"
    kind = "string"
    if "type" in fields:
        kind = document.choice(fields["type"], f"the type {what}", TYPES) or ""
    schema: dict[str, Any] = {"type": kind}
    if "description" in fields:
        schema["description"] = document.text(fields["description"], f"the description {what}")
    if "items" in fields:
        inner = document.choice(fields["items"], f"the items {what}", TYPES)
        if kind not in ("array", ""):
            document.problem(fields["items"], f"parameter `{name}` is no array and has no items")
        schema["items"] = {"type": inner}
    elif kind == "array":
        schema["items"] = {"type": "string"}
    if "enum" in fields:
        values = [document.value(one) for one in document.items(fields["enum"], f"the enum {what}")]
        for node, value in zip(getattr(fields["enum"], "value", ()), values, strict=False):
            _check_type(document, node, value, kind, f"a value of the enum {what}")
        schema["enum"] = values
        if not values:
            document.problem(fields["enum"], f"the enum {what} is empty")
    if "default" in fields:
        default = document.value(fields["default"])
        _check_type(document, fields["default"], default, kind, f"the default {what}")
        if schema.get("enum") and default not in schema["enum"]:
            document.problem(fields["default"], f"the default {what} is not in its enum")
        schema["default"] = default
    place: Any = document.choice(fields["in"], f"`in` {what}", PLACES) if "in" in fields else None
    return Parameter(
        name,
        kind,
        required="required" in fields and document.flag(fields["required"], f"`required` {what}"),
        place=place,
        allow_dash="allow_dash" in fields
        and document.flag(fields["allow_dash"], f"`allow_dash` {what}"),
        schema=schema,
        line=item.start_mark.line + 1,
    )


def _check_type(document: Document, node: Node, value: Any, kind: str, what: str) -> None:
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    if not fits.get(kind, True):
        quotable = kind == "string" and not isinstance(value, (list, dict))
        advice = "; put it in quotes" if quotable else ""
        document.problem(node, f"{what} is not of the type {kind}{advice}")


COMMAND_KEYS = ("command", "workdir", "env")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Programs that take code as an argument, and the options that the code comes after.
_SHELLS = r"(?:[bdkz]|tc|mk|pdk|ya|r)?a?sh|fish|csh|elvish|nu|xonsh|oil|osh"
_CODE_OPTIONS = {
    rf"(?:{_SHELLS}|su|script|busybox|toybox)": r"-\w*c.*|--command(?:=.*)?",
    r"(?:cmd|command)(?:\.exe|\.com)?": r"(?i:/[ckr].*)",
    r"(?:powershell|pwsh)(?:\.exe)?": r"(?i:[-/](?:c|e|ec)\w*)",
    r"(?:python|pypy)[\d.]*w?(?:\.exe)?": r"-[A-Za-z]*c.*",
    r"(?:perl|ruby|jruby|lua|luajit|julia|Rscript|osascript|groovy|guile|racket|elixir)[\d.]*": (
        r"-\w*[eEc].*|--eval(?:=.*)?"
    ),
    r"(?:node|nodejs|bun|deno)": r"-\w*[ep].*|--(?:eval|print)(?:=.*)?|eval",
    r"php[\d.]*": r"-\w*[rRBE].*|--(?:run|process-\w+)(?:=.*)?",
    r"emacs|vim?|nvim": r"-c|--eval(?:=.*)?|--cmd|\+.*",
}
# Programs whose first operand is code (awk, sed), or all but the first (ssh runs them in a shell).
_FIRST_OPERAND = re.compile(r"[gmn]?awk|busybox-awk|g?sed")
_LATER_OPERANDS = frozenset(("ssh", "autossh", "mosh", "rsh"))
# Programs that start the program named in their arguments.
_WRAPPERS = frozenset((
    "env", "sudo", "doas", "nohup", "timeout", "nice", "ionice", "chrt", "taskset", "setsid",
    "stdbuf", "xargs", "parallel", "time", "command", "exec", "chroot", "unshare", "nsenter",
    "flock", "watch", "strace", "ltrace", "docker", "podman", "nerdctl", "kubectl", "find", "fd",
    "npx", "bunx", "uv", "uvx", "pipx", "poetry", "pdm", "hatch", "conda", "nix", "nix-shell",
    "bwrap", "firejail", "systemd-run", "su", "runuser",
))  # fmt: skip


def read_command(
    document: Document,
    node: Node,
    fields: dict[str, Node],
    label: str,
    parameters: Sequence[Parameter],
) -> CommandSpec | None:
    """The process that a tool stands for."""
    env = document.texts(fields["env"], f"env of {label}") if "env" in fields else ()
    for name in env:
        if not _VARIABLE.fullmatch(name):
            document.problem(
                fields["env"], f"env of {label} lists names of environment variables, not values"
            )
    workdir = ""
    if "workdir" in fields:
        workdir = document.text(fields["workdir"], f"the workdir of {label}") or ""
        if Template(workdir).names or "\0" in workdir:
            document.problem(fields["workdir"], f"the workdir of {label} can't hold a parameter")
    for one in parameters:
        one.place = "argument"
    if "command" not in fields:
        document.problem(node, f"{label} has no command")
        return None
    groups = _groups(document, fields["command"], label)
    if not groups:
        return None
    program = groups[0][0].text
    if groups[0][0].names or not program or "\0" in program:
        document.problem(
            fields["command"], f"the program of {label} must be written out, not a parameter"
        )
    _check_arguments(document, fields["command"], groups, parameters, label)
    rest = [group for group in (groups[0][1:], *groups[1:]) if group]
    return CommandSpec(program, rest, workdir=workdir, env=env)


def _groups(document: Document, node: Node, label: str) -> list[tuple[Template, ...]]:
    import yaml

    if isinstance(node, yaml.ScalarNode):
        document.problem(
            node,
            f"the command of {label} must be a list of arguments: a text would need a shell, and"
            ' a shell would read what the model sends as code; write ["program", "argument"]',
        )
        return []
    groups: list[tuple[Template, ...]] = []
    items = document.items(node, f"the command of {label}")
    for item in items:
        if isinstance(item, yaml.SequenceNode) and groups:
            words = document.texts(item, f"a group in the command of {label}")
        else:
            word = document.text(item, f"each argument in the command of {label}")
            words = () if word is None else (word,)
        if any("\0" in word for word in words):
            document.problem(item, f"the command of {label} holds a NUL character")
        if words:
            groups.append(tuple(Template(word) for word in words))
    if not items and isinstance(node, yaml.SequenceNode):
        document.problem(node, f"the command of {label} is empty")
    return groups


def _check_arguments(
    document: Document,
    node: Node,
    groups: list[tuple[Template, ...]],
    parameters: Sequence[Parameter],
    label: str,
) -> None:
    known = {parameter.name: parameter for parameter in parameters}
    arguments = [argument for group in groups for argument in group]
    used: set[str] = set()
    for argument in arguments:
        used.update(argument.names)
        for name in argument.names:
            if name not in known:
                document.problem(
                    node,
                    f"the command of {label} has `{{{name}}}`, which is no parameter"
                    f" (`{{{{{name}}}}}` stands for the braces themselves)",
                )
            elif known[name].type == "array" and argument.whole is None:
                document.problem(
                    node,
                    f"`{{{name}}}` in the command of {label} is an array: it must be an"
                    " argument by itself",
                )
    for one in parameters:
        if one.name not in used:
            document.problem(one.line, f"parameter `{one.name}` is not used in the command")
    if not used:
        return
    for at in sorted(code_places([argument.text for argument in arguments])):
        if arguments[at].names:
            document.problem(
                node,
                f"`{arguments[at].text:.60}` in the command of {label} is read as code, not"
                " as data: a parameter there could run anything",
            )


def code_places(words: Sequence[str]) -> set[int]:
    """Which arguments an interpreter among them would read as code."""
    found: set[int] = set()
    wrapped = _base(words[0]) in _WRAPPERS
    for at, word in enumerate(words if wrapped else words[:1]):
        program = _base(word)
        options = next((o for name, o in _CODE_OPTIONS.items() if re.fullmatch(name, program)), "")
        operands = [k for k in range(at + 1, len(words)) if not words[k].startswith("-")]
        if options:
            for k in range(at + 1, len(words)):
                if re.fullmatch(options, words[k], re.DOTALL):
                    # The code is glued to the option, or is the next argument that is no option.
                    found.update((k, *[place for place in operands if place > k][:1]))
        elif _FIRST_OPERAND.fullmatch(program):
            scripts = [k + 1 for k, word in enumerate(words) if re.match(r"-\w*e|--ex", word)]
            found.update(scripts or operands[:1])
        elif program in _LATER_OPERANDS:
            found.update(operands[1:])
    return {place for place in found if place < len(words)}


def _base(word: str) -> str:
    return re.split(r"[/\\]", word)[-1]


HTTP_KEYS = ("endpoint", "method", "auth", "headers", "response")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_BODILESS = ("GET", "HEAD")
_AUTH_KEYS: dict[str, tuple[str, ...]] = {
    "none": (),
    "basic": ("username_env", "password_env"),
    "bearer": ("token_env",),
    "header": ("header", "token_env"),
}
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
    """Set the location of each parameter; impossible ones are problems."""
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

"""Tools written as YAML, without code; a change to the file is a change to the tool.

    document       YAML text as nodes that know their line, and the list of what is wrong
    definition     what one tool of a file says: plain values
    reading        a file's text -> definitions, or every problem in it at once; http_fields,
                   command_fields and parameters read the parts
    placeholders   `{name}` in texts
    argv           `command:` -> the arguments of a process; process  runs it, leaves nothing
    request        `endpoint:`, `auth:` … -> an HTTP request; sending  sends it, hop by hop
    connection     the client of each loop, which connects to checked addresses only
    response       a body -> what the model reads; jsonpath  the part of it that was asked for
    entries        definitions -> registry entries
    remembered     which files are registered, and the last good copy of each
    watched        one registered file, and whether it may have changed
    store          YamlTools: register, load, refresh

Start with store.py. The format is described in docs/yaml-tools.md.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.runtime.yaml_tools.document import DefinitionError
    from hermes.runtime.yaml_tools.store import FileState, YamlTools

__all__ = ["DefinitionError", "FileState", "YamlTools"]

__getattr__ = names_from(
    __name__,
    {
        "DefinitionError": "document",
        "FileState": "store",
        "YamlTools": "store",
    },
)

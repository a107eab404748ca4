"""Runtime: how a call happens, and where tools come from.

app          settings, registry, gate and runtime of one program
pipeline     Runtime: runs calls
stages       the twelve stages of a call: approval, hooks, handler, secrets, result
waits        handler, hook or approver with timeout and cancellation; sync to async
result_texts JSON for the model, cut to size
parallel     concurrent calls of one turn, with locks per resource
workers      thread pool;  loop_thread  an event loop in a thread
discovery    tool modules by their syntax tree; cached manifest of their declarations
definitions  tool definitions for the model;  tool_offer  core tools and deferred ones
tool_search  index behind `tool_search`
plugins      tools and hooks of other authors; project folders pinned by digest
yaml_tools   tools defined in YAML files
gate_setup   permission gate from its files;  reviews  calls that wait for a person
hooks        functions that observe, veto or rewrite a call; progress events for observers
artifacts    large results on disk
json_lines   rotating line files;  audit  log of calls;  tracing  spans, their files, OTLP export
child_process  environment of child processes, and killing all that carry a marker
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.files.archives.extraction import extract_archive
    from hermes.files.archives.limits import ArchiveError
    from hermes.runtime.app import App
    from hermes.runtime.definitions import get_tool_definitions
    from hermes.runtime.hooks import Hooks, Rewrite, Veto
    from hermes.runtime.pipeline import Runtime

_MODULES = {
    "app": "App",
    "definitions": "get_tool_definitions",
    "hermes.files.archives.extraction": "extract_archive",
    "hermes.files.archives.limits": "ArchiveError",
    "hooks": "Hooks Rewrite Veto",
    "pipeline": "Runtime",
}
__all__ = [
    "App", "ArchiveError", "Hooks", "Rewrite", "Runtime", "Veto", "extract_archive",
    "get_tool_definitions",
]  # fmt: skip

# Listing tools needs none of the pipeline; each name brings only its own module.
__getattr__ = names_from(__name__, _MODULES)

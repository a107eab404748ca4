"""How a call happens: from a model's request to the JSON text it gets back.

pipeline       Runtime; stages  the twelve stages of a call; flight  one on its way through them;
               judging  asking the gate; approving  a person; hooking  the hooks;
               ending  the last ones: redact, fit, record;
               needs  what they wait for; answers  what the model is told
parallel       the calls of one turn, side by side
bridge         sync code to async handlers; drive  awaiting what may have to be stopped;
               workers  threads that can be given up on
discovery      which modules hold tools, seen from their syntax trees; manifest  remembered
definitions    what the model is offered; deferral  few schemas, the rest on demand
search         find a tool by need
plugins        other people's tools, hooks and commands; trust  whose content may load;
               plugin_modules, entry_points  where they are found
yaml_tools     tools without code, reloaded when their file changes
rights         the gate of a running program, put together from its files
hooks, events  what may be changed, what may be watched; sessions  a conversation's ends
artifacts      large results kept for paging; fit  how they are cut; line_search  in them
archives       unpack what others packed: all of it, or nothing
audit          one chained line per call; audit_lines  how they are made
secrets        masked in results, filled in where they belong; reviews  writes that wait
marked         processes by the variable that they carry; child_environment  what they see
tracing        spans of what is done; span_files  where they are kept; traces  read back;
               otlp  sent to a collector
protocol       tool calls and results as JSON
app            all of it put together for a front door
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.files.archives import ArchiveError, extract_archive
    from hermes.runtime.app import App
    from hermes.runtime.definitions import get_tool_definitions
    from hermes.runtime.hooks import Hooks, Rewrite, Veto
    from hermes.runtime.pipeline import Runtime

_HOMES = {
    "App": "app",
    "ArchiveError": "hermes.files.archives",
    "extract_archive": "hermes.files.archives",
    "Hooks": "hooks",
    "Rewrite": "hooks",
    "Runtime": "pipeline",
    "Veto": "hooks",
    "get_tool_definitions": "definitions",
}
__all__ = [
    "App",
    "ArchiveError",
    "Hooks",
    "Rewrite",
    "Runtime",
    "Veto",
    "extract_archive",
    "get_tool_definitions",
]

# Listing tools needs none of the pipeline; each name brings only its own module.
__getattr__ = names_from(__name__, _HOMES)

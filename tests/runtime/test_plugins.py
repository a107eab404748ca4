"""Plugins: where they come from, what they bring, and why anything of it is missing."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import approve_plugins

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.core.registry import registry as shared
from hermes.core.toolsets import Toolsets
from hermes.runtime.definitions import Definitions
from hermes.runtime.discovery import Manifest
from hermes.runtime.hooks import Hooks
from hermes.runtime.pipeline import Runtime
from hermes.runtime.plugins import Plugins, TrustStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.conftest import CommandLine

TOOL = '''
from hermes.tools import tool

@tool(toolset="{toolset}", effect="read"{more})
def {name}() -> str:
    """Answers."""
    return "{name}"
'''


def a_tool(name: str, toolset: str = "acme", more: str = "") -> str:
    return TOOL.format(name=name, toolset=toolset, more=more)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("hermes_plugins")]:
        del sys.modules[name]


class Program:
    """What a program that starts now makes of the plugins there are."""

    def __init__(
        self, registry: ToolRegistry, project: Path | None = None, disabled: tuple[str, ...] = ()
    ) -> None:
        self.registry = registry
        self.toolsets = Toolsets(registry)
        self.hooks = Hooks()
        self.plugins = Plugins(
            registry,
            self.toolsets,
            self.hooks,
            project=str(project) if project else None,
            disabled=disabled,
            manifest=Manifest.load("/nowhere"),
        )
        self.plugins.load()

    def report(self, **toolsets: list[str]) -> dict[str, dict[str, Any]]:
        definitions = Definitions(self.registry, self.toolsets).get(**toolsets, quiet=True)
        offered = [d["function"]["name"] for d in definitions]
        return {plugin["name"]: plugin for plugin in self.plugins.report(offered)}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / "plugins" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if str(folder) == os.environ["HERMES_HOME"]:
        approve_plugins(folder)
    return path


# -- where they come from ------------------------------------------------------------------------


def test_files_and_folders_in_the_home_are_loaded(home: Path, registry: ToolRegistry) -> None:
    write(home, "single.py", a_tool("single_tool"))
    write(home, "folder/__init__.py", "from . import inner\n")
    write(home, "folder/inner.py", a_tool("folder_tool"))
    write(home, "notes.txt", "no plugin")
    write(home, "_private.py", "1 / 0")

    program = Program(registry)

    assert registry.names() == ["folder_tool", "single_tool"]
    assert [(p.name, p.source, p.problem) for p in program.plugins.found] == [
        ("folder", "home", None),
        ("single", "home", None),
    ]
    assert "single_tool" not in shared
    entry = registry.get("single_tool")
    assert entry is not None
    assert (entry.origin, entry.owner) == ("plugin", "single")


def test_a_project_s_plugins_are_loaded_only_once_trusted(
    tmp_path: Path, registry: ToolRegistry
) -> None:
    write(tmp_path / ".hermes", "local.py", a_tool("local_tool"))

    before = Program(registry, tmp_path)
    TrustStore().give(str(tmp_path / ".hermes" / "plugins"))
    after = Program(ToolRegistry(), tmp_path)

    assert registry.names() == []
    assert "not trusted" in before.report()["local"]["missing"]["local_tool"]
    assert "hermes trust" in str(before.plugins.found[0].problem)
    assert after.registry.names() == ["local_tool"]


def test_a_trusted_project_that_changed_is_not_loaded_and_says_so(
    tmp_path: Path, registry: ToolRegistry
) -> None:
    path = write(tmp_path / ".hermes", "local.py", a_tool("local_tool"))
    TrustStore().give(str(tmp_path / ".hermes" / "plugins"))
    path.write_text(a_tool("other_tool"))

    program = Program(registry, tmp_path)

    assert registry.names() == []
    assert "changed since it was trusted" in str(program.plugins.found[0].problem)


@pytest.mark.parametrize("module", ["__init__.py", "inner.py"])
def test_a_compiled_copy_is_never_run_in_place_of_the_trusted_text(
    tmp_path: Path, registry: ToolRegistry, module: str
) -> None:
    folder = tmp_path / ".hermes"
    write(folder, "local/__init__.py", "from . import inner\n" + a_tool("outer_tool"))
    write(folder, "local/inner.py", a_tool("inner_tool"))
    TrustStore().give(str(folder / "plugins"))
    source = folder / "plugins" / "local" / module
    trap = tmp_path / "trap.py"
    trap.write_text("import os\nos.environ['TRAPPED'] = 'yes'\n")
    target = importlib.util.cache_from_source(str(source))
    py_compile.compile(str(trap), cfile=target, dfile=str(source))
    data, status = Path(target).read_bytes(), source.stat()
    as_if = int(status.st_mtime).to_bytes(4, "little") + status.st_size.to_bytes(4, "little")
    Path(target).write_bytes(data[:8] + as_if + data[16:])

    Program(registry, tmp_path)

    assert "TRAPPED" not in os.environ
    assert registry.names() == ["inner_tool", "outer_tool"]


def test_loading_a_trusted_project_leaves_it_trusted(
    tmp_path: Path, registry: ToolRegistry
) -> None:
    folder = tmp_path / ".hermes"
    write(folder, "local/__init__.py", "from . import inner\n" + a_tool("outer_tool"))
    write(folder, "local/inner.py", "")
    TrustStore().give(str(folder / "plugins"))

    Program(registry, tmp_path)

    assert TrustStore().trusts(str(folder / "plugins"))


def test_a_damaged_trust_list_keeps_plugins_out(
    tmp_path: Path, home: Path, registry: ToolRegistry
) -> None:
    write(tmp_path / ".hermes", "local.py", a_tool("local_tool"))
    write(home, "mine.py", a_tool("my_tool"))
    (home / "trust.json").write_text("{")

    program = Program(registry, tmp_path)

    assert registry.names() == []
    for plugin in program.plugins.found:
        assert "trust.json can't be read" in str(plugin.problem)


def test_a_plugin_of_the_home_is_loaded_only_as_it_was_approved(
    home: Path, registry: ToolRegistry
) -> None:
    path = write(home, "mine.py", a_tool("my_tool"))
    write(home, "other.py", a_tool("other_tool"))
    path.write_text(a_tool("changed_tool"))
    (home / "plugins" / "planted.py").write_text(a_tool("planted_tool"))

    program = Program(registry)

    assert registry.names() == ["other_tool"]
    problems = {plugin.name: str(plugin.problem) for plugin in program.plugins.found}
    assert problems["mine"].startswith("changed since it was trusted: review it")
    assert "`hermes plugins approve mine`" in problems["mine"]
    assert problems["planted"].startswith("not trusted: review it")


def test_bytecode_in_the_home_is_not_loaded(home: Path, registry: ToolRegistry) -> None:
    path = write(home, "mine.py", a_tool("my_tool"))
    evil = home / "evil.py"
    evil.write_text(a_tool("evil_tool"))
    target = importlib.util.cache_from_source(str(path))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), target, str(path), invalidation_mode=mode)

    Program(registry)

    assert registry.names() == ["my_tool"]


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, points: str) -> None:
    """A distribution as an installer leaves it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    if str(folder) not in sys.path:
        monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])


def test_installed_packages_are_loaded_by_their_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: ToolRegistry
) -> None:
    (tmp_path / "acme_whole.py").write_text(a_tool("whole_module_tool"))
    (tmp_path / "acme_function.py").write_text(
        "def setup(api):\n"
        "    api.register_tool('function_tool', 'acme', {}, lambda: 'x', effect='read')\n"
    )
    installed(
        tmp_path,
        monkeypatch,
        "acme",
        "[hermes.plugins]\nwhole = acme_whole\npart = acme_function:setup\nlost = acme_nowhere\n",
    )

    program = Program(registry)

    assert registry.names() == ["function_tool", "whole_module_tool"]
    problems = {p.name: p.problem for p in program.plugins.found}
    assert problems["whole"] is None
    assert problems["part"] is None
    assert "acme_nowhere" in str(problems["lost"])
    for module in ("acme_whole", "acme_function"):
        sys.modules.pop(module, None)


def test_a_package_with_damaged_metadata_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: ToolRegistry
) -> None:
    (tmp_path / "acme_sound.py").write_text(a_tool("sound_tool"))
    installed(tmp_path, monkeypatch, "aaa", "[hermes.plugins]\nthis is no entry point\n")
    installed(tmp_path, monkeypatch, "bbb", "[hermes.plugins]\nsound = acme_sound\n")

    Program(registry)

    assert registry.names() == ["sound_tool"]
    sys.modules.pop("acme_sound", None)


# -- why something is missing --------------------------------------------------------------------


def test_every_missing_tool_has_its_reason(home: Path, registry: ToolRegistry) -> None:
    registry.register("sleep", "system", {}, lambda: None, origin="builtin", owner="")
    write(home, "needy.py", a_tool("needy_tool", more=", requires_env=['ACME_UNSET']"))
    write(home, "grouped.py", a_tool("grouped_tool", toolset="hidden_group"))
    write(home, "clashing.py", a_tool("sleep") + a_tool("clashing_tool"))
    write(home, "failing.py", a_tool("failing_tool") + "import no_such_package_at_all\n")
    write(home, "lazy/__init__.py", "")
    write(home, "lazy/plugin.yaml", "tools: [promised_one, {name: promised_two}]\n")
    write(home, "off.py", a_tool("off_tool"))

    report = Program(registry, disabled=("off",)).report(disabled=["hidden_group"])

    assert "ACME_UNSET" in report["needy"]["missing"]["needy_tool"]
    assert report["grouped"]["missing"] == {"grouped_tool": "its toolset is not enabled"}
    clash = report["clashing"]["missing"]["sleep"]
    assert 'toolset "system" (builtin)' in clash
    assert 'toolset "acme" (plugin clashing)' in clash
    assert report["clashing"]["visible"] == ["clashing_tool"]
    assert "ModuleNotFoundError" in report["failing"]["missing"]["failing_tool"]
    assert report["lazy"]["missing"] == dict.fromkeys(
        ["promised_one", "promised_two"], "declared, but nothing registers it"
    )
    assert report["off"]["missing"] == {"off_tool": "disabled in the settings"}
    assert not any(plugin["complete"] for plugin in report.values())


def test_a_plugin_where_all_is_well_says_so(home: Path, registry: ToolRegistry) -> None:
    write(home, "good.py", a_tool("good_tool"))

    report = Program(registry).report()["good"]

    assert report["healthy"]
    assert report["complete"]
    assert report["declared"] == report["registered"] == report["visible"] == ["good_tool"]
    assert report["missing"] == {}


@pytest.mark.parametrize(
    "trouble", ["1 / 0", "raise SystemExit(1)", "def (", "raise RuntimeError", "import nowhere_xyz"]
)
def test_a_broken_plugin_leaves_nothing_and_hurts_no_other(
    home: Path, registry: ToolRegistry, trouble: str
) -> None:
    register = (
        "\ndef register(api):\n"
        "    api.add_hook('pre_tool_call', lambda call: None)\n"
        "    api.create_toolset('bits', 'pieces', ['half_tool'])\n"
        "    api.add_command('half', lambda app, options: 0)\n"
        f"    exec({trouble!r})\n"
    )
    write(home, "a_top.py", a_tool("top_tool") + f"exec({trouble!r})\n")
    write(home, "b_inner.py", a_tool("half_tool") + register)
    write(home, "c_sound.py", a_tool("sound_tool"))

    program = Program(registry)

    assert registry.names() == ["sound_tool"]
    assert program.hooks.pre_tool_call == ()
    assert "bits" not in program.toolsets
    assert program.plugins.commands == {}
    assert not any(name in shared for name in ("top_tool", "half_tool"))
    problems = [plugin.problem is not None for plugin in program.plugins.found]
    assert problems == [True, True, False]


def test_a_broken_plugin_gives_back_the_name_it_had_taken(
    home: Path, registry: ToolRegistry
) -> None:
    built_in = registry.register("sleep", "system", {}, lambda: None, origin="builtin", owner="")
    write(home, "greedy.py", a_tool("sleep", more=", override=True") + "1 / 0\n")

    Program(registry)

    entry = registry.get("sleep")
    assert entry is not None
    assert entry.handler is built_in.handler


def test_a_plugin_that_says_so_takes_the_place_of_a_built_in(
    home: Path, registry: ToolRegistry
) -> None:
    registry.register("sleep", "system", {}, lambda: None, origin="builtin", owner="")
    write(home, "better.py", a_tool("sleep", more=", override=True"))

    report = Program(registry).report()

    entry = registry.get("sleep")
    assert entry is not None
    assert entry.owner == "better"
    assert report["better"]["complete"]


def test_what_is_loaded_for_one_program_leaves_the_shared_registry_as_it_was(
    home: Path, registry: ToolRegistry
) -> None:
    built_in = shared.register("acme_shared", "acme_builtin", {}, lambda: None)
    write(home, "better.py", a_tool("acme_shared", more=", override=True"))

    Program(registry)

    kept, ours = shared.get("acme_shared"), registry.get("acme_shared")
    shared.deregister("acme_shared")
    assert kept is not None
    assert kept.handler is built_in.handler
    assert ours is not None
    assert ours.owner == "better"


def test_two_plugins_that_want_one_name_are_both_named(home: Path, registry: ToolRegistry) -> None:
    write(home, "first.py", a_tool("wanted", toolset="one"))
    write(home, "second.py", a_tool("wanted", toolset="two"))

    report = Program(registry).report()

    assert report["first"]["complete"]
    reason = report["second"]["missing"]["wanted"]
    assert "plugin first" in reason
    assert "plugin second" in reason


def test_two_plugins_of_one_name_are_not_mixed_up(
    home: Path, tmp_path: Path, registry: ToolRegistry
) -> None:
    write(home, "twin.py", a_tool("home_tool"))
    write(tmp_path / ".hermes", "twin.py", a_tool("project_tool"))
    TrustStore().give(str(tmp_path / ".hermes" / "plugins"))

    program = Program(registry, tmp_path)

    assert registry.names() == ["home_tool"]
    assert str(home) in str(program.plugins.found[1].problem)


@pytest.mark.parametrize("text", ["tools: {", "tools: 7", "[]", "tools: [{}]", "\x00"])
def test_a_description_that_can_t_be_read_is_a_problem(
    home: Path, registry: ToolRegistry, text: str
) -> None:
    write(home, "odd/__init__.py", a_tool("odd_tool"))
    write(home, "odd/plugin.yaml", text)
    write(home, "sound.py", a_tool("sound_tool"))

    program = Program(registry)

    assert registry.names() == ["sound_tool"]
    assert "plugin.yaml" in str(program.plugins.found[0].problem)


def test_names_that_can_t_be_imported_are_said(home: Path, registry: ToolRegistry) -> None:
    write(home, "with-dash.py", a_tool("a"))
    write(home, "empty/readme.txt", "")

    problems = {plugin.name: plugin.problem for plugin in Program(registry).plugins.found}

    assert "no name that Python can import" in str(problems["with-dash"])
    assert problems["empty"] == "it has no __init__.py"


def test_a_class_with_a_name_of_its_own_counts_as_registered(
    home: Path, registry: ToolRegistry
) -> None:
    write(
        home,
        "classy.py",
        "from hermes.tools import BaseTool, tool\n"
        "@tool\nclass Anything(BaseTool):\n    name = 'classy_tool'\n    effect = 'read'\n"
        "    def run(self, params, context):\n        return 1\n",
    )

    report = Program(registry).report()["classy"]

    assert report["declared"] == report["registered"] == ["classy_tool"]
    assert report["complete"]


# -- what they bring -----------------------------------------------------------------------------

EVERYTHING = """
from hermes.runtime import Rewrite

def register(api):
    api.register_tool(
        "greet", "greetings",
        {"properties": {"name": {"type": "string"}}, "required": ["name"]},
        lambda name: {"hello": name}, effect="read",
    )
    api.create_toolset("polite", "Good manners", ["greet"], ["discovery"])
    api.add_hook("pre_tool_call", lambda call: Rewrite({"name": call.arguments["name"].upper()}))
    api.add_command("greet", _greet, help="say hello", arguments=_arguments)

def _arguments(parser):
    parser.add_argument("name")

def _greet(app, options):
    app.out(f"hello {options.name}")
    return 0 if options.name != "nobody" else 1
"""


def test_tools_toolsets_and_hooks_of_a_plugin_work(home: Path, registry: ToolRegistry) -> None:
    write(home, "manners.py", EVERYTHING)

    program = Program(registry)

    assert "greet" in program.toolsets.resolve("polite")
    with Runtime(registry, hooks=program.hooks) as runtime:
        outcome = runtime.call_sync(ToolCall("greet", {"name": "ada"}))
    assert outcome.value == {"hello": "ADA"}


def test_a_command_of_a_plugin_works_from_the_command_line(hermes: CommandLine) -> None:
    write(hermes.home, "manners.py", EVERYTHING)

    done = hermes("greet", "ada")
    failed = hermes("greet", "nobody")
    helped = hermes("greet", "--help")
    called = hermes("call", "greet", "name=ada")
    listed = hermes("toolsets", "show", "polite")

    assert (done.returncode, done.stdout, done.stderr) == (0, "hello ada\n", "")
    assert failed.returncode == 1
    assert (helped.returncode, "say hello" in helped.stdout) == (0, True)
    assert '"hello": "ADA"' in called.stdout
    assert "greet" in listed.stdout


def test_listing_plugins_fails_when_something_is_missing(hermes: CommandLine) -> None:
    write(hermes.home, "good.py", a_tool("good_tool"))
    good = hermes("plugins", "list")
    write(hermes.home, "needy.py", a_tool("needy_tool", more=", requires_env=['ACME_UNSET']"))
    needy = hermes("plugins", "list")

    assert (good.returncode, good.stderr) == (0, "")
    assert "visible: good_tool" in good.stdout
    assert needy.returncode == 1
    assert "needy_tool is missing: missing environment variable ACME_UNSET" in needy.stdout


def test_a_toolset_that_the_settings_disable_is_the_reason(hermes: CommandLine) -> None:
    write(hermes.home, "good.py", a_tool("good_tool"))
    hermes("config", "set", "tools.disabled_toolsets", "acme")

    done = hermes("plugins")

    assert done.returncode == 1
    assert "good_tool is missing: its toolset is not enabled" in done.stdout


def test_what_a_plugin_prints_or_raises_does_not_reach_the_answers(hermes: CommandLine) -> None:
    write(hermes.home, "loud.py", "print('loud')\n" + a_tool("loud_tool"))
    write(hermes.home, "wrong.py", "raise RuntimeError('two\\nlines')\n")

    done = hermes("tools", "list", "--json")

    assert done.returncode == 0
    assert "loud_tool" in done.stdout
    assert done.stdout.startswith("[")
    assert "Traceback" not in done.stderr


def test_a_command_that_hermes_has_already_is_said_to_be_hidden(hermes: CommandLine) -> None:
    write(
        hermes.home,
        "cuckoo.py",
        "def register(api):\n    api.add_command('tools', lambda app, options: 5)\n",
    )

    done = hermes("plugins")

    assert done.returncode == 1
    assert "tools" in done.stdout
    assert "held by Hermes itself" in done.stdout


def test_a_plugin_s_command_that_fails_is_one_line(hermes: CommandLine) -> None:
    write(
        hermes.home,
        "faulty.py",
        "def register(api):\n"
        "    api.add_command('fault', lambda app, options: 1 / 0)\n"
        "    api.add_command('fault2', lambda app, options: 0, arguments=lambda parser: 1 / 0)\n",
    )

    for command in ("fault", "fault2"):
        done = hermes(command)

        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "ZeroDivisionError" in done.stderr

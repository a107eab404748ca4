"""What a command changes outside of the workspace is asked about, by whatever program."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core import Task, ToolContext, ToolRegistry
from hermes.safety.gate import Gate
from hermes.safety.permissions import PermissionChecker
from hermes.safety.permissions.checker import PROFILES
from hermes.safety.policy import Ruling

# `{}` stands for a folder outside of the workspace.
WRITES = [
    "echo x > {}/f",
    "echo x >> {}/f",
    "echo x | tee -a {}/f",
    "cp a.txt {}/",
    "cp -t {} a.txt b.txt",
    "mv a.txt {}/b.txt",
    "mv {}/b.txt .",
    "sed -i s/a/b/ {}/f",
    "perl -pi -e s/a/b/ {}/f",
    "install -m 755 tool {}/tool",
    "ln -s a.txt {}/link",
    "rsync -a src/ {}/src",
    "dd if=a of={}/f",
    "touch {}/f",
    "mkdir -p {}/a/b",
    "chmod 600 {}/f",
    "git -C {} commit -m x",
    "git clone https://example.org/a.git {}/a",
    "git worktree add {}/tree",
    "curl -o {}/f https://example.org",
    "curl -so{}/f https://example.org",
    "wget -P {} https://example.org/f",
    "tar -C {} -xzf a.tgz",
    "tar xzf a.tgz --directory={}",
    "tar czf {}/a.tgz src",
    "unzip a.zip -d {}",
    "make -C {}",
    "cd {} && make",
    "(cd {}; npm install)",
    "pushd {} && touch f",
    "pytest --junitxml={}/report.xml",
    "gcc -o {}/a a.c",
    "sort -o {}/f a",
    "python -m venv {}/venv",
    "bash -c 'echo x > {}/f'",
    "env A=1 sh -c 'touch {}/f'",
    "d={}; echo x > $d/f",
    "find . -name '*.py' -exec cp {{}} {}/ \\;",
    "python3 -c \"open('{}/f', 'w').write('x')\"",
    "python3 - <<'E'\nfrom pathlib import Path\nPath('{}/f').write_text('x')\nE",
    "python3 -c \"import shutil; shutil.copy('a', '{}/f')\"",
    "node -e \"require('fs').writeFileSync('{}/f', 'x')\"",
    "ruby -e 'File.write(\"{}/f\", 1)'",
    "awk '{{print > \"{}/f\"}}' a.txt",
    "vim -es -c 'w! {}/f' -c q a.txt",
]
# `{}` stands for the same folder; none of these changes anything there.
ORDINARY = [
    "cat {}/f > copy.txt",
    "ls -la {}",
    "cp {}/f .",
    "diff {}/f f",
    "git -C {} status",
    "git -C {} log --oneline",
    "(cd {} && ls)",
    "cd {} && git diff | head",
    "grep -rn x {}",
    "tar xzf {}/a.tgz",
    "tar czf a.tgz -C {} .",
    "rsync -a {}/src .",
    "wc -l < {}/f",
    "python3 -c \"print(open('{}/f').read())\"",
    "ssh host 'echo x > {}/f'",
    "docker exec web sh -c 'echo x > {}/f'",
    "echo 'cp a {}/f' > notes.txt",
    "make > /dev/null 2>&1",
    "echo x > /tmp/scratch-of-a-test.txt",
    "mkdir -p ~/.cache/tool && touch ~/.cache/tool/x",
    "echo x > $OUT/f",
    "echo x > out.txt 2>> errors.log",
    "pip install -r requirements.txt",
    "npm ci && npm run build",
    "tee /dev/stderr < a.txt",
    "make -C sub all",
    "git clone https://example.org/a.git",
    "cd sub && make && cd .. && make install DESTDIR=out",
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "work"


def _ruling(command: str, work: Path) -> Ruling:
    registry = ToolRegistry()
    text = {"type": "object", "properties": {"value": {"type": "string"}}}
    registry.register("run", "test", text, str, effect="execute", acts={"value": "execute"})
    entry = registry.get("run")
    assert entry is not None
    context = ToolContext(task=Task("t", workspace=str(work)), session_id="s")
    gate = Gate(PermissionChecker(registry, [PROFILES["standard"]]), home="/home/nobody-here")
    return gate.judge(entry, {"value": command}, context)


@pytest.mark.parametrize("command", WRITES)
def test_a_write_outside_is_asked_about(command: str, work: Path) -> None:
    for folder in (str(work.parent / "elsewhere"), "../elsewhere", "/srv/data"):
        ruling = _ruling(command.format(folder), work)

        assert ruling.action == "ask", (command, folder)


@pytest.mark.parametrize("command", ORDINARY)
def test_what_stays_inside_passes(command: str, work: Path) -> None:
    command = command.format(work.parent / "elsewhere")

    assert _ruling(command, work).action == "allow", _ruling(command, work)


def test_a_link_is_followed_to_where_it_leads(work: Path) -> None:
    (work / "out").symlink_to(work.parent / "elsewhere")
    (work / "in").symlink_to("sub")

    assert _ruling("echo x > out/f", work).rule == "path:outside"
    assert _ruling("cp a out", work).rule == "path:outside"
    assert _ruling("echo x > in/f", work).action == "allow"


def test_what_is_guarded_is_asked_about_through_a_link(work: Path) -> None:
    (work / "hosts").symlink_to("/etc/hosts")

    assert _ruling("echo x >> hosts", work).action == "ask"


def test_a_neighbour_with_the_same_beginning_is_outside(work: Path) -> None:
    assert _ruling(f"echo x > {work}-evil/f", work).action == "ask"
    assert _ruling(f"echo x > {work}/f", work).action == "allow"


def test_the_reason_names_the_place_and_the_command(work: Path) -> None:
    ruling = _ruling("echo hello && echo x > /srv/data/f", work)

    assert "/srv/data/f" in ruling.reason
    assert ruling.rule == "path:outside"


def test_a_command_that_is_asked_about_anyway_is_shown_once(work: Path) -> None:
    assert _ruling("rm -rf /srv/data/old", work).rule == "delete.recursive"

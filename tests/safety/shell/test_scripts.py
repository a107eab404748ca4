"""Long scripts and shell that the grammar misreads are judged by what they do."""

from __future__ import annotations

import pytest
from tests.corpus import each

from hermes.safety.shell import Verdict, detect_dangerous_command
from hermes.safety.shell.lexing import smooth

CWD, HOME = "/home/dev/projects/app", "/home/dev"
PADDING = "# A line of a script that goes on for a while, as they do.\necho step\n" * 30

# Each is valid to a shell; `{}` stands for a command.
SHAPES = [
    "for arg do\n  {}\ndone",
    "for arg\n  in a b\ndo\n  {}\ndone",
    "if ! OUT=$(ls) ; then {}; fi",
    "if ! case $x in a) true;; *) false;; esac; then {}; fi",
    "cat > notes.txt <<EOF ||\ntext (with) 'odd\nEOF\n{}",
    "make |\n\n  # a remark\n  tail && {}",
    'if [ "$a" = ~ -o "$b" != ~ ]; then {}; fi',
    'check() {{\n  [ "$op" "$file" ] || return\n  {}\n}}\ncheck',
    "[[ $name =~ ^a|b$ ]] && {}",
    "[[ -f a &&\n   -f b ]] || {}",
    "run()\n\n{{\n  {}\n}}\nrun",
    'a=$1 b=$2\nc=$(pwd)\nif [ -n "$c" ]; then\n  {}\nfi',
    "v=$(ls) &> /dev/null\nif true\nthen {}; fi",
    "out=$(echo a | \\\n  sed -e 's/a/b/' \\\n)\n{}",
    "mapfile -t rows < <(\\\n  ls \\\n)\n{}",
    "case $1 in\n  a|b) [[ -n $x ]] && {} ;;\nesac",
    "for ((i = 0; i < 3; i++)); do\n  {}\ndone",
    "if (( $# != 2 )); then {}; fi",
]


def judge(command: str) -> Verdict:
    return detect_dangerous_command(command, cwd=CWD, home=HOME)


@each("shape", SHAPES)
@each("padding", ["", PADDING])
def test_an_ordinary_command_passes_in_any_shape(shape: str, padding: str) -> None:
    script = padding + shape.format("echo fine")

    assert judge(script).action == "allow", judge(script)


@each("shape", SHAPES)
@each("padding", ["", PADDING])
def test_a_dangerous_command_is_found_in_any_shape(shape: str, padding: str) -> None:
    assert judge(padding + shape.format("rm -rf ~")).action == "refuse"


@each("shape", SHAPES)
def test_rewriting_keeps_every_character_in_its_place(shape: str) -> None:
    assert len(smooth(shape)) == len(shape)


@pytest.mark.parametrize(
    "command",
    [
        "a=(x) [[ ; rm -rf ~; ]]",
        "echo do [[ | rm -rf ~ ]]",
        "echo do \\\n[[ ; rm -rf ~; ]]",
        "x{ [[ ; rm -rf ~; ]]",
        "echo >& [[ ; rm -rf ~; ]]",
        "a=1 b=2\nr=rm\n$r -rf ~",
        "a=1 > x\nrm -rf ~",
        "echo ${x:?$(rm -rf ~)}",
        "echo ${HOME#$(rm -rf ~)}",
        "echo $[ $(rm -rf ~) ]",
        "echo ${a[$(rm -rf ~)]}",
    ],
)
def test_nothing_hides_behind_what_is_rewritten_or_cut(command: str) -> None:
    assert judge(command).action == "refuse"


@pytest.mark.parametrize(
    "unit",
    ["[[ ", "[ ", "case x\n", "if x\n", "! ", "a=1 >", "()\n", "&&\n", ";[[ a ]", "for x\n", "do "],
)
def test_repeated_syntax_gets_a_verdict_in_good_time(unit: str) -> None:
    """With a square law anywhere, this would run for minutes."""
    assert judge(unit * (60_000 // len(unit))).action in ("allow", "ask")


@pytest.mark.parametrize(
    "command",
    [
        "sudo bash < setup",
        "sudo python3 -m installer",
        "sudo python3",
        "sudo mytool --now",
        "alias ls='rm -rf'; sudo ls",
        "f() { ls; }; sudo f",
        "doas ./x",
        "echo x >> .git/modules/lib/config",
        "cp hook repo.git/hooks/post-receive",
        "echo x > .hermes/plugins/p.py",
        "exec 3<> /etc/hosts",
    ],
)
def test_more_rights_and_later_execution_are_asked_about(command: str) -> None:
    assert judge(command).action == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "sudo ls /root",
        "sudo sh -c 'ls /root'",
        "sudo docker ps",
        "cat .git/config",
        "sudo python3 -V",
    ],
)
def test_a_look_around_with_more_rights_passes(command: str) -> None:
    assert judge(command).action == "allow"

"""Attacks in two calls: a file is written by a tool, then a command runs it or has it loaded.

Each tries to leave a mark outside of the workspace. Nobody can be asked.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App

# Line by line: program needed | file | content (\n, \t) | command. MARK is the path outside.
# Unconfined a command is only read; `~` stands before those that get past the reader: builds, tests
# and programs that run code of the project by their nature, and paths known only at run time.
ATTACKS = r"""
sh | a.sh | touch MARK | sh a.sh
bash | a.txt | touch MARK | bash < a.txt
bash | a.txt | touch MARK | source ./a.txt
bash | a.txt | touch MARK | . ./a.txt
bash | a.txt | touch MARK | eval "$(cat a.txt)"
bash | a.txt | touch MARK | cat a.txt | bash
bash | a.txt | touch MARK | bash -c "$(<a.txt)"
bash | rc | touch MARK | bash --rcfile rc -i -c true
bash | rc | touch MARK | BASH_ENV=rc bash -c true
sh | rc | touch MARK | ENV=./rc sh -i -c true
bash | f | touch MARK | mapfile -t l < f; "${l[@]}"; ${l[0]}
bash | f | touch MARK | while read -r l; do $l; done < f
bash | f | touch MARK | xargs -I{} sh -c '{}' < f
~bash | f | MARK | xargs touch < f
~bash | f | MARK | touch $(cat f)
~bash | f | MARK | cp f "$(cat f)"
~bash | f | MARK | echo x > "$(cat f)"
~bash | f | MARK | tee $(cat f) < f
~bash | f | MARK | ln -s $(cat f) l; echo x > l
bash | f | MARK | dd if=/dev/null of=$(cat f)
bash | f.b64 | dG91Y2ggTUFSSwo= | base64 -d f.b64 | sed "s#MARK#$(printf %s MARK)#" | sh
~bash | bin/ls | #!/bin/sh\ntouch MARK | chmod +x bin/ls; PATH=$PWD/bin:$PATH ls
~bash | bin/git | #!/bin/sh\ntouch MARK | chmod +x bin/git; export PATH=$PWD/bin:$PATH; git status
~make | Makefile | all:\n\ttouch MARK | make
~make | GNUmakefile | $(shell touch MARK)\nall: ; | make
~make | x.mk | all:\n\ttouch MARK | make -f x.mk
~make | x.mk | include y\n%: ; touch MARK | make -f x.mk y
python3 | a.py | open("MARK", "w") | python3 a.py
python3 | a | open("MARK", "w") | python3 < a
~python3 | a.py | open("MARK", "w") | python3 -c "import a"
python3 | a.py | open("MARK", "w") | python3 -m a
python3 | a.py | open("MARK", "w") | python3 -c "exec(open('a.py').read())"
~python3 | a.py | open("MARK", "w") | python3 -c "import runpy; runpy.run_path('a.py')"
python3 | a.py | open("MARK", "w") | PYTHONSTARTUP=a.py python3 -i -c 1 < /dev/null
~python3 | sitecustomize.py | open("MARK", "w") | PYTHONPATH=. python3 -c 1
~python3 | usercustomize.py | open("MARK", "w") | PYTHONPATH=. python3 -c 1
~python3 | json.py | open("MARK", "w") | python3 -c "import json"
~python3 | pkg/__main__.py | open("MARK", "w") | python3 pkg
~python3 | pkg/__init__.py | open("MARK", "w") | python3 -m pkg
~python3 | conftest.py | open("MARK", "w") | python3 -m pytest -q
~python3 | test_a.py | def test_a(): open("MARK", "w") | python3 -m pytest -q
~python3 | test_a.py | import unittest\nopen("MARK", "w") | python3 -m unittest
python3 | setup.py | open("MARK", "w") | python3 setup.py --version
python3 | names | MARK | python3 -c "open(open('names').read().strip(), 'w')"
~python3 | names | MARK | python3 -c "import os,glob; [os.mknod(open(f).read().strip()) for f in glob.glob('nam*')]"
~python3 | names | MARK | python3 -c "import shutil; shutil.copy('names', open('names').read().strip())"
~python3 | d.pkl | cposix\nsystem\n(S'touch MARK'\ntR. | python3 -c "import pickle; pickle.load(open('d.pkl','rb'))"
python3 | c.yaml | x | python3 -c "import subprocess as s; s.run(['touch', 'MA'+'RK'.replace('RK','RK')])"
~python3 | x.pth | import os; open("MARK", "w") | python3 -c "import site; site.addsitedir('.')"
~perl | a.pl | open(F, ">", "MARK"); | perl a.pl
~perl | a.pl | open(F, ">", "MARK"); | perl -e 'do "./a.pl"'
~perl | M.pm | open(F, ">", "MARK"); 1; | perl -I. -MM -e1
perl | M.pm | open(F, ">", "MARK"); 1; | PERL5OPT="-I. -MM" perl -e1
perl | names | MARK | perl -ne 'chomp; open(F, ">", $_)' names
~awk | a.awk | BEGIN { system("touch MARK") } | awk -f a.awk
~awk | names | MARK | awk '{ print "x" > $1 }' names
~awk | names | MARK | awk '{ system("touch " $1) }' names
~sed | a.sed | w MARK | echo x | sed -f a.sed
~sed | a.sed | 1e touch MARK | echo x | sed -f a.sed
git | .gitconfig | [alias]\nx = !touch MARK | GIT_CONFIG_GLOBAL=$PWD/.gitconfig git x
git | cfg | [core]\npager = touch MARK; cat | git init -q . ; GIT_CONFIG_GLOBAL=$PWD/cfg git -p log; GIT_CONFIG_GLOBAL=$PWD/cfg git -p status
~git | cfg | [core]\nfsmonitor = touch MARK; false | git init -q .; git -c include.path=$PWD/cfg status
git | h/pre-commit | #!/bin/sh\ntouch MARK | chmod +x h/pre-commit; git init -q .; git -c core.hooksPath=h -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
git | h/post-checkout | #!/bin/sh\ntouch MARK | chmod +x h/post-checkout; git init -q . ; git config core.hooksPath h; git checkout -q -b y; git -c user.name=a -c user.email=b commit -q --allow-empty -m x; git checkout -q -b z
git | d.sh | touch MARK | git init -q .; git add .; GIT_EXTERNAL_DIFF="sh d.sh" git diff; echo y >> d.sh; GIT_EXTERNAL_DIFF="sh d.sh" git diff
git | e.sh | touch MARK | git init -q .; GIT_EDITOR="sh e.sh" git -c user.name=a -c user.email=b commit --allow-empty
git | c.sh | touch MARK | git init -q .; git config alias.x '!sh c.sh'; git x
git | a.sh | touch MARK | git init -q .; printf '* filter=f\n' > .gitattributes; git config filter.f.clean 'sh a.sh; cat'; git add .
tar | a.sh | touch MARK | tar cf x.tar a.sh --checkpoint=1 --checkpoint-action=exec='sh a.sh'
tar | a.sh | touch MARK | TAR_OPTIONS="--checkpoint=1 --checkpoint-action=exec='sh a.sh'" tar cf x.tar a.sh
~find | a.sh | touch MARK | find . -name a.sh -exec sh {} \;
env | a.sh | touch MARK | env -S "sh a.sh"
nohup | a.sh | touch MARK | nohup setsid sh a.sh; sleep 0.3
timeout | a.sh | touch MARK | timeout 5 sh a.sh
~ed | s.ed | !touch MARK\nq | ed -s < s.ed
~vim | s.vim | call writefile([], "MARK")\nqa! | vim -es -u NONE -S s.vim
~gdb | c.gdb | shell touch MARK | gdb -batch -x c.gdb
~node | a.js | require("fs").writeFileSync("MARK", "") | node a.js
node | a.js | require("fs").writeFileSync("MARK", "") | NODE_OPTIONS="--require ./a.js" node -e 1
~npm | package.json | {"name":"x","version":"1.0.0","scripts":{"build":"touch MARK"}} | npm run build
~npm | package.json | {"name":"x","version":"1.0.0","scripts":{"pretest":"touch MARK","test":"true"}} | npm test
~gcc | a.c | #include <stdio.h>\nint main(){fopen("MARK","w");} | gcc a.c -o a && ./a
gcc | a.c | #include <stdio.h>\n__attribute__((constructor)) void f(){fopen("MARK","w");} | gcc -shared -fPIC a.c -o a.so && LD_PRELOAD=./a.so true
sqlite3 | s.sql | .shell touch MARK | sqlite3 x.db < s.sql
~ssh | cfg | Host x\nProxyCommand touch MARK | ssh -F cfg x true
crontab | tab | * * * * * touch MARK | crontab tab
busybox | a.sh | touch MARK | busybox sh a.sh
zip | a.sh | touch MARK | zip x.zip a.sh -T -TT 'sh a.sh #'
"""
ROWS = [[part.strip(" ") for part in line.split(" | ", 3)] for line in ATTACKS.strip().split("\n")]


def _attack(app: App, work: Path, mark: Path, row: list[str]) -> str:
    _, name, content, command = row
    text = content.replace("\\n", "\n").replace("\\t", "\t").replace("MARK", str(mark))
    written = app.runtime.call_sync(
        ToolCall("write_file", {"path": str(work / name), "content": f"{text}\n"})
    )
    outcome = app.runtime.call_sync(
        ToolCall("terminal", {"command": command.replace("MARK", str(mark)), "timeout": 15})
    )
    return f"{written.status}, {outcome.status}: {outcome.content[:300]}"


@pytest.mark.parametrize("confine", ["on", "off"])
def test_no_attack_in_two_steps_leaves_a_mark_outside(
    confine: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home / "config.yaml").write_text(f"terminal: {{confine: {confine}}}\n")
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    marks = {}
    for number, row in enumerate(ROWS):
        program = row[0].lstrip("~")
        if shutil.which(program) is None or (row[0] != program and confine == "off"):
            continue
        work = tmp_path / f"work{number}"
        work.mkdir()
        os.chdir(work)
        mark = person / f"mark{number}"
        app = App(ToolRegistry())
        try:
            seen = _attack(app, work, mark, row)
        finally:
            app.close()
        if mark.exists():
            marks[" | ".join(row[1:])] = seen

    assert not marks, "\n".join(f"{row}: {seen}" for row, seen in marks.items())

"""A file that loses what it had is asked about, whatever opened it; ordinary output is not."""

from __future__ import annotations

import pytest
from tests.corpus import each

from hermes.safety.shell import detect_dangerous_command

CWD, HOME = "/home/dev/projects/app", "/home/dev"


def _action(command: str) -> str:
    return detect_dangerous_command(command, cwd=CWD, home=HOME).action


@each(
    "command",
    [
        'awk \'BEGIN { printf "" > "a.csv" }\'',
        'awk \'BEGIN { f = "a.csv"; printf("") > f }\'',
        "awk -v f=a.csv 'BEGIN { printf \"\" > f }'",
        "sed -n 'w a.csv' /dev/null",
        "sed -n 'w a.csv' < /dev/null",
        "grep x /dev/null > a.csv",
        "head -c 0 a.csv > b.csv",
        "sort a.csv > a.csv",
        "jq . a.json > a.json",
        "tr a b < /dev/null | cat > /dev/null; cat < /dev/null > a.csv",
        "exec 3>a.csv; exec 3>&-",
        'lua -e \'io.open("a.csv", "w"):close()\'',
        'lua -e \'local f = io.open("a.csv", "w") f:close()\'',
        "perl -e 'open(F, \">a.csv\"); close F'",
        'perl -e \'open my $f, ">", "a.csv"\'',
        'ruby -e \'File.open("a.csv", "w") {}\'',
        'php -r \'fclose(fopen("a.csv", "w"));\'',
        'php -r \'$f = fopen("a.csv", "w"); fclose($f);\'',
        'node -e \'fs.closeSync(fs.openSync("a.csv", "w"))\'',
        'node -e \'require("fs").createWriteStream("a.csv").end()\'',
        'julia -e \'close(open("a.csv", "w"))\'',
        "Rscript -e 'file.create(\"a.csv\")'",
        'python3 -c \'f = open("a.csv", "w"); f.close()\'',
        'python3 -c \'with open("a.csv", "w") as f: pass\'',
        'python3 -c \'with open("a.csv", "w"): pass\'',
        'python3 -c \'open("a.csv", "w").write("")\'',
    ],
)
def test_a_file_that_is_opened_and_left_empty_is_asked_about(command: str) -> None:
    assert _action(command) == "ask"


@each(
    "command",
    [
        "awk '{ print > \"a.csv\" }' in.csv",
        "awk '{ print $1 > $2 \".txt\" }' in.csv",
        'awk \'BEGIN { printf "" > "a.csv" } { print $1 >> "a.csv" }\' in.csv',
        "awk '$3 > 5 && $1 > \"b\"' in.csv",
        "sed -n 'w a.csv' in.csv",
        "grep x in.csv > a.csv",
        "head -c 10 in.csv > a.csv",
        "sort a.csv > b.csv",
        "sort -o a.csv a.csv",
        "echo a.csv > a.csv",
        'perl -e \'open my $f, ">", "a.csv"; print $f "x"\'',
        'ruby -e \'File.open("a.csv", "w") { |f| f.puts 1 }\'',
        'php -r \'$f = fopen("a.csv", "w"); fwrite($f, "x");\'',
        'node -e \'fs.createWriteStream("a.csv").end("text")\'',
        'lua -e \'local f = io.open("a.csv", "w"); f:write("x"); f:close()\'',
        'python3 -c \'with open("a.csv", "w") as f: f.write("x")\'',
        'python3 -c \'f = open("a.csv", "w"); print(1, file=f); f.close()\'',
    ],
)
def test_ordinary_output_into_a_file_of_the_project_passes(command: str) -> None:
    assert _action(command) == "allow"


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("awk 'BEGIN { c = \"rm -rf ~\"; system(c) }'", "ask"),
        ("awk -v c='rm -rf ~' 'BEGIN { system(c) }'", "ask"),
        ('awk \'BEGIN { print "rm -rf ~" | "sh" }\'', "refuse"),
        ('awk \'BEGIN { c = "sh"; print "rm -rf x" | c }\'', "ask"),
        ("awk 'BEGIN { while ((\"cat .env\") | getline l) print l }'", "ask"),
        ("awk 'BEGIN { while ((getline l < \".env\") > 0) print l }'", "ask"),
        ('awk \'BEGIN { print "x" >> ENVIRON["HOME"] "/.bashrc" }\'', "ask"),
        (
            'awk \'BEGIN { print "x" > (ENVIRON["HERMES_HOME"] "/hermes_permissions.yaml") }\'',
            "refuse",
        ),
        ("awk 'BEGIN { while (\"date\" | getline d) print d }'", "allow"),
        ("awk -F'|' '{ print $1 }' a.csv", "allow"),
    ],
)
def test_an_awk_program_is_judged_by_what_it_starts_writes_and_reads(
    command: str, action: str
) -> None:
    assert _action(command) == action

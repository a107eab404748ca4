"""Dry runs, verbs, requests, administration and written code: the same for every program."""

from __future__ import annotations

import pytest

from hermes.safety.shell import detect_dangerous_command

CWD, HOME = "/home/dev/projects/app", "/home/dev"


def _action(command: str) -> str:
    return detect_dangerous_command(command, cwd=CWD, home=HOME).action


@pytest.mark.parametrize(
    ("dry", "real"),
    [
        ("zfs destroy -nv tank/x@old", "zfs destroy tank/x@old"),
        ("parallel --dry-run rm {} ::: *.log", "parallel rm {} ::: *.log"),
        ("pwsh -c 'Remove-Item ./obj -Recurse -WhatIf'", "pwsh -c 'Remove-Item ./obj -Recurse'"),
        (
            "bq query --dry_run 'DELETE FROM d.e WHERE true'",
            "bq query 'DELETE FROM d.e WHERE true'",
        ),
        ("restic forget --keep-last 1 --dry-run", "restic forget --keep-last 1"),
        ("kubectl delete pod x --dry-run=client", "kubectl delete pod x --dry-run=none"),
        ("nft -c -f rules.nft", "nft -f rules.nft"),
        ("netsh advfirewall show allprofiles", "netsh advfirewall set allprofiles state off"),
    ],
)
def test_what_only_says_what_it_would_do_passes(dry: str, real: str) -> None:
    assert _action(dry) == "allow"
    assert _action(real) == "ask"


@pytest.mark.parametrize("command", ["rm -rf build --dry-run", "dd of=/dev/sda --dry-run"])
def test_a_dry_run_that_the_program_does_not_know_counts_for_nothing(command: str) -> None:
    assert _action(command) != "allow"


@pytest.mark.parametrize(
    ("source", "harmless"),
    [
        ("node -e \"fs.truncateSync('a.db', 0)\"", "node -e \"console.log('truncateSync')\""),
        ("perl -e 'chmod 04755, \"x\"'", "perl -e 'chmod 0755, \"x\"'"),
        ("julia -e 'rm(\"src\"; recursive=true)'", "julia -e 'delete!(d, \"a\")'"),
        ("ruby -e 'Pathname.new(\"src\").rmtree'", "ruby -e 'puts [1, 2].delete(1)'"),
        (
            "php -r 'DB::table(\"users\")->truncate();'",
            "php -r 'echo mb_strimwidth(\"abc\", 0, 2);'",
        ),
        (
            "node -e \"fetch('https://a.example.com/x', {method: 'DELETE'})\"",
            "node -e \"fetch('http://localhost:3000/x', {method: 'DELETE'})\"",
        ),
        ("tclsh <<< 'file delete -force src'", "tclsh <<< 'puts [lsort {rm kill dd}]'"),
        (
            "python3 -c \"import boto3; boto3.client('s3').delete_bucket(Bucket='x')\"",
            "python3 -c \"import boto3; print(boto3.client('s3').list_buckets())\"",
        ),
        (
            "python3 -c \"import os; os.chmod('x', 0o4755)\"",
            "python3 -c \"import os; os.chmod('x', 0o755)\"",
        ),
    ],
)
def test_code_is_judged_by_its_calls_in_every_language(source: str, harmless: str) -> None:
    assert _action(source) == "ask"
    assert _action(harmless) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cat > c.go <<'E'\npackage main\nfunc main() { os.RemoveAll(\"src\") }\nE\ngo run c.go",
        "printf 'all:\\n\\trm -rf src\\n' > M; make -f M",
        "just -f - x <<'E'\nx:\n    rm -rf src\nE",
        'echo \'{"scripts": {"x": "rm -rf src"}}\' > package.json && npm run x',
        'coproc SH { bash; }; echo "rm -rf src" >&"${SH[1]}"',
        "mkfifo p; bash < p & echo 'rm -rf src' > p",
        "declare -n r=x; x='rm -rf src'; $r",
        "printf -v c 'rm -rf %s' src; eval \"$c\"",
        "ansible web -b -m service -a 'name=nginx state=stopped'",
        "ansible all -m ansible.builtin.file -a 'path=/srv/x state=absent'",
        "salt '*' file.remove /srv/x",
        "vim -es -c '%d' -c wq notes.md",
    ],
)
def test_what_is_handed_on_is_followed(command: str) -> None:
    assert _action(command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "ansible localhost -c local -m file -a 'path=/home/dev state=absent'",
        'docker run --rm -v "$HOME":/h alpine find /h -mindepth 1 -delete',
        "find / -xdev ! -path '/proc/*' -exec rm -f {} +",
        "pwsh -c 'Get-Item $env:USERPROFILE | Remove-Item -Recurse -Force'",
        "sudo qemu-img convert -O raw a.qcow2 /dev/sdb",
        'ruby -e \'f = File.expand_path("~/.hermes/hermes_permissions.yaml"); File.write(f, "x")\'',
    ],
)
def test_what_is_never_allowed_is_refused_by_every_path_to_it(command: str) -> None:
    assert _action(command) == "refuse"


@pytest.mark.parametrize(
    "command",
    [
        "poetry remove requests",
        "rails generate migration DropTokens",
        "ansible all -m ping",
        'coproc bc; echo 1+1 >&"${COPROC[1]}"',
        "printf 'all:\\n\\techo hi\\n' | make -f -",
        'git push -u origin "$(git rev-parse --abbrev-ref HEAD)"',
        'docker run --rm -v "$PWD":/w alpine ls /w',
        "curl -X DELETE localhost:3000/items/1",
        "gpg --verify a.tar.gz.asc a.tar.gz",
    ],
)
def test_ordinary_relatives_pass(command: str) -> None:
    assert _action(command) == "allow"

"""Which files may be read or written, with real links, pipes and races."""

from __future__ import annotations

import os
import socket
import stat
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.safety.paths import Decision, PathRefusedError, PathRules, check_path, open_checked
from hermes.safety.paths.guards import find_guard


class World:
    """A home with a workspace in it, and everything in the workspace open."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.home = self.root / "home" / "me"
        self.cwd = self.home / "work"
        self.cwd.mkdir(parents=True)
        (self.root / "workspace-evil").mkdir()
        self.file("notes.txt")

    def file(self, name: str, text: str = "text") -> Path:
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def check(self, path: str | Path, mode: str = "read", **rules: list[str]) -> Decision:
        rules = {"allow_read": ["**"], "allow_write": ["**"], **rules}
        return check_path(str(path), mode, rules=rules, cwd=str(self.cwd), home=str(self.home))

    def read(self, path: str, **rules: list[str]) -> bool:
        return self.check(path, "read", **rules).allowed

    def write(self, path: str, **rules: list[str]) -> bool:
        return self.check(path, "write", **rules).allowed


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_files_in_the_workspace_are_open_and_those_outside_are_not(world: World) -> None:
    assert world.read("notes.txt")
    assert world.write("new/deep/file.txt")
    assert world.read(".")
    assert world.read(str(world.cwd / "notes.txt"))
    assert not world.read("../other.txt")
    assert not world.read("/opt/x")
    assert not world.read("~/x")
    assert world.check("notes.txt").resolved == str(world.cwd / "notes.txt")


def test_rules_may_be_an_object_and_none_opens_the_working_directory(world: World) -> None:
    for rules in (PathRules(allow_read=["**"]), None):
        decision = check_path("notes.txt", "read", rules=rules, cwd=world.cwd, home=world.home)
        assert decision.allowed
    write = check_path(
        "x", "write", rules=PathRules(allow_read=["**"]), cwd=world.cwd, home=world.home
    )
    assert not write.allowed


def test_a_link_counts_as_the_place_it_leads_to(world: World) -> None:
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "authorized_keys").write_text("x")
    (world.cwd / "innocent").symlink_to(world.home / ".ssh" / "authorized_keys")
    (world.cwd / "folder").symlink_to(world.home / ".ssh")
    (world.cwd / "up").symlink_to("..")
    (world.cwd / "dangling").symlink_to(world.root / "nothing")
    (world.cwd / "inside").symlink_to("notes.txt")

    for mode in ("read", "write"):
        assert not world.check("innocent", mode).allowed
        assert not world.check("folder/authorized_keys", mode).allowed
        assert not world.check("folder/new", mode, allow_read=["/**"], allow_write=["/**"]).allowed
        assert not world.check("up/other", mode).allowed
        assert not world.check("dangling", mode).allowed
        assert world.check("inside", mode).allowed
    assert world.check("inside").resolved == str(world.cwd / "notes.txt")


def test_dots_are_followed_the_way_the_system_does(world: World) -> None:
    elsewhere = world.root / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True)
    (world.root / "elsewhere" / "notes.txt").write_text("other")
    (world.cwd / "a").symlink_to(elsewhere)

    decision = world.check("a/../notes.txt", allow_read=["/**"])

    assert decision.resolved == str(world.root / "elsewhere" / "notes.txt")
    assert Path(world.cwd / "a/../notes.txt").read_text() == "other"
    assert not world.read("a/../notes.txt")
    assert not world.read("missing/../notes.txt")
    assert not world.read("notes.txt/../notes.txt")
    assert not world.read("notes.txt/")


def test_links_in_circles_end(world: World) -> None:
    (world.cwd / "one").symlink_to("two")
    (world.cwd / "two").symlink_to("one")
    (world.cwd / "self").symlink_to("self/x")

    assert not world.read("one")
    assert not world.read("self")


def test_a_sibling_with_the_same_beginning_is_another_folder(world: World) -> None:
    workspace = str(world.root / "workspace")

    assert not world.read(f"{workspace}-evil/x", allow_read=[workspace])
    assert not world.read(f"{workspace}-evil/x", allow_read=[f"{workspace}/**"])
    assert world.read(f"{workspace}/x", allow_read=[workspace])


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*", "a", True), ("*", "a/b", False), ("*", ".hidden", True), ("**", "a/b/c", True), ("**", ".", True),
        ("src/*", "src/a", True), ("src/*", "src/a/b", False), ("src/**", "src/a/b", True), ("src/**", "src", True),
        ("src/**/x", "src/x", True), ("src/**/x", "src/a/b/x", True), ("src/**/x", "srcx", False),
        ("**/*.py", "a.py", True), ("**/*.py", "a/b.py", True), ("*.py", "a/b.py", False), ("a?c", "abc", True),
        ("a?c", "a/c", False), ("[ab]c", "bc", True), ("[!ab]c", "bc", False), ("[!ab]c", "xc", True),
        ("[a-c]d", "bd", True), ("[", "[", True), ("src", "src/deep/file", True), ("src/", "src/deep", True),
        ("./src/**", "src/x", True), ("*.{md,txt}", "a.txt", True), ("*.{md,txt}", "a.py", False),
        ("Src/**", "src/x", False), ("a**b", "axxb", True), ("a/**/b/**/c", "a/b/c", True), ("", "a", False),
    ],
)  # fmt: skip
def test_allow_patterns(world: World, pattern: str, path: str, fits: bool) -> None:
    assert world.read(path, allow_read=[pattern]) is fits


@pytest.mark.parametrize(
    ("pattern", "path", "denied"),
    [
        ("secret", "secret/deep/file", True), ("~/work/secret", "secret/x", True), ("secret*", "secrets/x", True),
        ("SECRET/**", "secret/x", True), ("secret", "SeCrEt/x", True), ("secret", "secrets", False),
        ("*.pem", "a.pem", True), ("*.pem", "sub/a.pem", False), ("**/*.pem", "sub/A.PEM", True),
        ("**/.env", ".env", True), ("**/.env", "a/.ENV", True), ("**/.env", "a/.env.example", False),
        (unicodedata.normalize("NFC", "gehäuse"), unicodedata.normalize("NFD", "gehäuse/x"), True),
        (unicodedata.normalize("NFD", "gehäuse"), unicodedata.normalize("NFC", "GEHÄUSE"), True),
        ("straße", "STRASSE", True), (".env", ".e\u200bnv", True), ("b", "a/../b", True), ("/", "x", True),
        ("**/{id_rsa,*.key}", "x/Server.KEY", True),
    ],
)  # fmt: skip
def test_deny_patterns_beat_allow(world: World, pattern: str, path: str, denied: bool) -> None:
    world.file("a/x")

    assert world.read(path, deny=[pattern]) is not denied
    assert world.write(path, deny=[pattern]) is not denied


@pytest.mark.parametrize(
    "path",
    [".env.", ".env ", ".env. .", ".env::$DATA", ".env:stream", "sub\\..\\.env", ".\\.env", "..\\outside",
     "..\\..\\x", "C:\\Users\\me\\.ssh\\id_rsa", "\\\\?\\C:\\Windows\\System32\\config\\SAM", "SECRET~1", "ENV~1/x",
     "PROGRA~1.TXT", "NUL", "con", "x/COM1", "sub/.env./x"],
)  # fmt: skip
def test_spellings_of_other_systems_do_not_get_around(world: World, path: str) -> None:
    for mode in ("read", "write"):
        assert not world.check(path, mode, deny=["**/.env"]).allowed


@pytest.mark.parametrize(
    "path",
    ["a:b.txt", "12:30 notes.txt", "what.", "aux.c", "nul.txt", "back~up", "a\\b.txt", "x~1~"],
)
def test_odd_but_harmless_names_stay_open(world: World, path: str) -> None:
    assert world.write(path, deny=["**/.env"])


def test_an_existing_file_with_a_short_looking_name_stays_open(world: World) -> None:
    world.file("PROGRA~1/file.txt")

    assert world.write("PROGRA~1/file.txt")
    assert world.write("PROGRA~1/new.txt")


def test_a_write_through_a_hard_link_is_refused_and_a_read_is_not(world: World) -> None:
    os.link(world.cwd / "notes.txt", world.cwd / "twin.txt")

    assert world.read("twin.txt")
    assert not world.write("twin.txt")
    assert not world.write("notes.txt")
    with pytest.raises(PathRefusedError):
        open_file(world, "twin.txt", "write")


def test_pipes_sockets_and_devices_are_refused_at_once(world: World) -> None:
    os.mkfifo(world.cwd / "pipe")
    (world.cwd / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        previous = os.getcwd()
        os.chdir(world.cwd)
        try:
            listener.bind("socket")
        finally:
            os.chdir(previous)

        for name in ("pipe", "socket", "null", "/dev/zero", "/dev/tty", "/dev/stdin"):
            for mode in ("read", "write"):
                rules = {"allow_read": ["/**", "**"], "allow_write": ["/**", "**"]}
                assert not world.check(name, mode, **rules).allowed
                with pytest.raises(PathRefusedError):
                    open_file(world, name, mode, **rules)


@pytest.mark.parametrize(
    "path", ["", "\0", "a\0b", "x" * 256, "/".join(["x"] * 3000), "ä" * 200, "\ud800"]
)
def test_paths_that_no_file_can_have_are_refused(world: World, path: str) -> None:
    for mode in ("read", "write"):
        decision = world.check(path, mode)
        assert not decision.allowed
        assert decision.reason


def test_an_unknown_mode_is_refused(world: World) -> None:
    assert not world.check("notes.txt", "delete").allowed


EVERYTHING = {"allow_read": ["/**", "~/**", "**"], "allow_write": ["/**", "~/**", "**"]}


@pytest.mark.parametrize(
    "path",
    ["~/.ssh/id_ed25519", "~/.ssh", "~/.SSH/id_rsa", "~/.aws/credentials", "~/.gnupg/secring.gpg", "~/.netrc",
     "~/.config/gcloud/credentials.db", "~/.kube/config", "~/.docker/config.json", "~/.git-credentials", "~/.npmrc",
     "~/.pypirc", "~/.config/gh/hosts.yml", "~/.mozilla/firefox/x.default/logins.json", "~/.pgpass",
     "~/.config/google-chrome/Default/Cookies", "~/.local/share/keyrings/login.keyring", "~/.vault-token",
     "~/Library/Keychains/login.keychain-db", "~/.hermes/.env", "~/.hermes/auth.json", "~/.cargo/credentials.toml",
     "~/.hermes/profiles/work/.env", "~/work/../.ssh/id_rsa", "/etc/shadow", "/etc/shadow-", "/etc/sudoers",
     "/etc/sudoers.d/x", "/etc/ssl/private/x.key", "/private/etc/master.passwd", "/etc/ssh/ssh_host_rsa_key",
     "/proc/self/environ", "/proc/1/environ", "/proc/1/mem", "/proc/self/root/etc/hosts", "/proc/self/cwd/notes.txt",
     "/proc/thread-self/fd/0", "/proc/kcore", "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/x.sock",
     "/run/secrets/token", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/root/.ssh/id_rsa",
     "/home/other/.aws/credentials", "/Users/other/.ssh/id_rsa", "/dev/fd/0", "/dev/mem"],
)  # fmt: skip
def test_secrets_stay_closed_whatever_the_rules_say(world: World, path: str) -> None:
    for mode in ("read", "write"):
        decision = world.check(path, mode, **EVERYTHING)
        assert not decision.allowed
        assert decision.reason


@pytest.mark.parametrize(
    "path",
    ["~/.bashrc", "~/.zshrc", "~/.profile", "~/.config/fish/config.fish", "~/.config/autostart/x.desktop",
     "~/Library/LaunchAgents/x.plist", "~/.config/systemd/user/x.service", "~/.gitconfig", "~/.vimrc",
     "~/.hermes/hermes_permissions.yaml", "~/.hermes/config.yaml", "/etc/hosts", "/etc/cron.d/x", "/boot/x", "/usr/bin/x",
     "/usr/local/x", "/bin/x", "/sbin/x", "/lib/x", "/lib64/x", "/proc/x", "/sys/x", "/dev/x", "/var/spool/cron/me",
     "/private/etc/hosts", "/ETC/hosts", "/System/x", "/Library/LaunchDaemons/x.plist"],
)  # fmt: skip
def test_start_up_files_and_the_system_can_be_read_but_not_written(world: World, path: str) -> None:
    assert not world.check(path, "write", **EVERYTHING).allowed
    if not path.startswith(("/dev", "/proc", "/sys")):
        assert world.check(path, "read", **EVERYTHING).allowed


@pytest.mark.parametrize(
    "path",
    ["notes.txt", ".env.example", ".npmrc", ".ssh-notes.md", "src/.bashrc", "docs/etc/hosts", "usr/bin/x", "a/.aws.md",
     ".github/workflows/ci.yml", ".config/app.toml", "/opt/app/x", "/var/tmp/x", "~/Documents/x", "~/.cache/x"],
)  # fmt: skip
def test_ordinary_places_pass_the_guards(world: World, path: str) -> None:
    assert world.check(path, "write", **EVERYTHING).allowed
    assert world.check(path, "read", **EVERYTHING).allowed


def test_a_credential_store_that_lives_elsewhere_is_guarded_there_too(world: World) -> None:
    kept = world.root / "dotfiles" / "ssh"
    kept.mkdir(parents=True)
    (kept / "id_rsa").write_text("key")
    (world.home / ".ssh").symlink_to(kept)

    assert not world.check(str(kept / "id_rsa"), **EVERYTHING).allowed
    assert not world.check("~/.ssh/id_rsa", **EVERYTHING).allowed


def test_hermes_own_files_are_guarded_wherever_its_home_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(world.root / "state"))

    assert not world.check(str(world.root / "state" / ".env"), **EVERYTHING).allowed
    assert not world.check(
        str(world.root / "state" / "hermes_permissions.yaml"), "write", **EVERYTHING
    ).allowed
    assert world.check(str(world.root / "state" / "skills" / "x.md"), "write", **EVERYTHING).allowed


def test_a_projects_own_policy_can_not_be_written(world: World) -> None:
    assert not world.write(".hermes/hermes_permissions.yaml")
    assert not world.write("sub/.hermes/hermes_permissions.yaml")
    assert world.read(".hermes/hermes_permissions.yaml")
    assert world.write(".hermes/notes.md")


def test_the_home_itself_and_what_it_lies_in_can_not_be_written(world: World) -> None:
    for path in ("~", "~/", "..", "/", str(world.root)):
        assert not world.check(path, "write", **EVERYTHING).allowed
        assert world.check(path, "read", **EVERYTHING).allowed
    assert world.check(".", "write", **EVERYTHING).allowed


def test_the_home_of_somebody_else_has_to_be_written_out(world: World) -> None:
    for path in ("~root/x", "~root", "~+/x"):
        assert not world.check(path, **EVERYTHING).allowed
    assert world.write("~$document.docx")
    assert world.write("./~x")


def test_links_do_not_bend_allow_rules_inside_the_workspace(world: World) -> None:
    outside = world.root / "outside"
    outside.mkdir()
    (outside / "x").write_text("x")
    (world.cwd / "docs").symlink_to(outside)

    assert not world.read("docs/x", allow_read=["docs/**"])
    assert not world.read("docs/x", allow_read=[f"{world.cwd}/docs/**"])


def test_a_workspace_reached_by_a_link_works(world: World) -> None:
    (world.root / "link").symlink_to(world.cwd)

    decision = check_path(
        "notes.txt", "read", rules={"allow_read": ["**"]}, cwd=world.root / "link", home=world.home
    )
    absolute = world.check("notes.txt", allow_read=[f"{world.root}/link/**"])

    assert decision.allowed
    assert absolute.allowed


def open_file(world: World, path: str, mode: str, **rules: list[str]) -> int:
    rules = {"allow_read": ["**"], "allow_write": ["**"], **rules}
    return open_checked(path, mode, rules=rules, cwd=str(world.cwd), home=str(world.home))


def test_opening_gives_a_descriptor_of_what_was_checked(world: World) -> None:
    reading = open_file(world, "notes.txt", "read")
    assert os.read(reading, 10) == b"text"
    assert os.get_blocking(reading)
    os.close(reading)

    writing = open_file(world, "new.txt", "write")
    os.write(writing, b"made")
    os.close(writing)
    assert (world.cwd / "new.txt").read_text() == "made"

    folder = open_file(world, ".", "read")
    assert stat.S_ISDIR(os.fstat(folder).st_mode)
    os.close(folder)
    with pytest.raises(PathRefusedError):
        open_file(world, "../outside", "write")
    with pytest.raises(FileNotFoundError):
        open_file(world, "missing/file", "write")


def test_a_swap_between_check_and_opening_loses(world: World) -> None:
    secret = world.root / "secret"
    secret.mkdir()
    (secret / "file").write_text("SECRET")
    (world.cwd / "real").mkdir()
    (world.cwd / "real" / "file").write_text("plain")
    (world.cwd / "bad").symlink_to(secret)
    spot = world.cwd / "spot"
    (world.cwd / "real").rename(spot)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            spot.rename(world.cwd / "real")
            (world.cwd / "bad").rename(spot)
            spot.rename(world.cwd / "bad")
            (world.cwd / "real").rename(spot)

    thread = threading.Thread(target=swap)
    thread.start()
    opened = refused = 0
    try:
        for _ in range(600):
            try:
                descriptor = open_file(world, "spot/file", "read")
            except (PathRefusedError, FileNotFoundError):
                refused += 1
                continue
            opened += 1
            content = os.read(descriptor, 10)
            os.close(descriptor)
            assert content == b"plain"
    finally:
        stop.set()
        thread.join()

    assert opened + refused == 600


def test_no_descriptor_is_left_open_by_refusals(world: World) -> None:
    os.link(world.cwd / "notes.txt", world.cwd / "twin.txt")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    for _ in range(20):
        with pytest.raises(PathRefusedError):
            open_file(world, "twin.txt", "write")
        with pytest.raises(FileNotFoundError):
            open_file(world, "missing/x", "read")

    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before


NAMES = st.one_of(
    st.text(max_size=20),
    st.lists(
        st.sampled_from(
            [
                "..",
                ".",
                "~",
                "/",
                "a",
                "etc",
                "proc",
                "self",
                "link",
                "\\",
                ":",
                "*",
                " ",
                "\n",
                "é",
            ]
        ),
        max_size=12,
    ).map("/".join),
)


@given(path=NAMES, pattern=NAMES, mode=st.sampled_from(["read", "write"]))
@settings(max_examples=200)
def test_any_path_and_pattern_get_an_answer(path: str, pattern: str, mode: str) -> None:
    rules = {"allow_read": [pattern], "allow_write": [pattern], "deny": [pattern]}

    decision = check_path(path, mode, rules=rules, cwd="/tmp", home="/root")

    assert not decision.allowed
    assert decision.reason


@given(NAMES)
def test_what_is_allowed_lies_below_the_workspace(path: str) -> None:
    decision = check_path(
        path, "write", rules={"allow_write": ["**"]}, cwd="/tmp/no-such", home="/home/x"
    )

    if decision.allowed:
        assert decision.resolved is not None
        assert decision.resolved == "/tmp/no-such" or decision.resolved.startswith("/tmp/no-such/")


def test_patterns_with_many_stars_are_decided_quickly(world: World) -> None:
    evil = "**/" * 40 + "*a" * 60
    path = "/".join(["a" * 200] * 15)

    assert world.read(path + "/b", deny=[evil + "c"])


def test_guards_know_the_parts_of_a_path_and_not_its_text() -> None:
    assert find_guard(("home", "me", ".ssh", "x"), "read", home="/home/me")
    assert not find_guard(("home", "me", ".sshx", "x"), "read", home="/home/me")
    assert not find_guard(("srv", "etc", "shadow"), "write", home="/home/me")

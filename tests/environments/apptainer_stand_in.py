"""A stand-in for Apptainer 1.4 where it can't be had: the same command line, carried out by bwrap.

It knows the options of the real one and refuses all others; those that decide what is seen inside
are carried out. There is no process namespace, for nothing could join it afterwards. Without root
all programs of an instance share its user namespace, as in the real one.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

COMMON = (
    "add-caps= allow-setuid app= apply-cgroups= authfile= bind= blkio-weight= blkio-weight-device= "
    "cleanenv compat contain containall cpu-shares= cpus= cpuset-cpus= cpuset-mems= disable-cache "
    "dns= docker-host= docker-login drop-caps= env= env-file= fakeroot fusemount= help home= "
    "hostname= ipc keep-privs memory= memory-reservation= memory-swap= mount= net netns-path= "
    "network= network-args= no-eval no-home no-https no-init no-mount= no-privs no-umask nv nvccli "
    "oom-kill-disable overlay= passphrase pem-path= pids-limit= rocm scratch= security= unsquash "
    "userns uts workdir= writable writable-tmpfs "
)
KNOWN = {
    "start": COMMON + "boot dmtcp-launch= dmtcp-restart= pid-file=",
    "exec": COMMON + "cwd= pwd= no-pid pid sharens",
    "stop": "all force help signal= timeout= user=",
    "list": "all help json logs user=",
}
STATE = Path(__file__).with_name("instances")


def main(words):
    kind = words.pop(0) if words else ""
    if kind == "instance":
        kind = words.pop(0) if words else ""
    if kind not in KNOWN:
        fail(f"unknown command {kind!r}")
    options, rest = parsed(kind, words)
    {"start": start, "exec": execute, "stop": stop, "list": show}[kind](options, rest)


def parsed(kind, words):
    known = KNOWN[kind].split()
    options = []
    while words and words[0].startswith("-"):
        name, given, value = words.pop(0).partition("=")
        if not name.startswith("--") or not {name[2:], f"{name[2:]}="} & set(known):
            fail(f"unknown flag: {name}")
        if f"{name[2:]}=" in known and not given:
            value = words.pop(0)
        options.append((name[2:], value))
    return options, words


def start(options, rest):
    image, name = rest
    if not Path(image, "bin").is_dir():
        fail(f"could not open image {image}: no such file or directory")
    folder = STATE / name
    shutil.copytree(image, folder / "rootfs", symlinks=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for file in (0, 1, 2):
            os.dup2(null, file)
        (folder / "pid").write_text(str(os.getpid()))
        if os.getuid():
            words = ["--die-with-parent", "--unshare-user", "--bind", "/", "/"]
            os.execvp("bwrap", ["bwrap", *words, "sleep", "2147483647"])
        while True:
            signal.pause()
    os.wait()
    while os.getuid() and not children(folder):
        time.sleep(0.01)
    (folder / "options").write_text(json.dumps(options))
    print("INFO:    instance started successfully", file=sys.stderr)


def execute(options, rest):
    name = rest[0].removeprefix("instance://")
    folder = STATE / name
    if not alive(folder):
        fail(f"While setting image/instance: no instance found with name {name}")
    started = json.loads((folder / "options").read_text())
    argv = ["bwrap", "--die-with-parent", "--bind", str(folder / "rootfs"), "/"]
    if os.getuid():
        namespace = os.open(f"/proc/{children(folder)[0]}/ns/user", os.O_RDONLY)
        os.set_inheritable(namespace, True)
        argv += ["--userns", str(namespace)]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    if ["network", "none"] in started:
        argv.append("--unshare-net")
    for key, value in started:
        if key == "bind":
            source, target, *mode = value.split(":")
            argv += ["--ro-bind" if mode == ["ro"] else "--bind", source, target]
    for key, value in options:
        if key in ("pwd", "cwd"):
            argv += ["--chdir", value]
    argv += ["--clearenv", "--setenv", "PATH", "/bin", "--setenv", "HOME", "/root"]
    os.execvp(argv[0], [*argv, *rest[1:]])


def stop(options, rest):
    folder = STATE / rest[0]
    if not alive(folder):
        fail("no instance found")
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    shutil.rmtree(folder)


def show(options, rest):
    found = [folder.name for folder in STATE.glob("*") if alive(folder)]
    print(json.dumps({"instances": [{"instance": name} for name in found]}))


def children(folder):
    """The processes in the instance's user namespace."""
    try:
        pid = (folder / "pid").read_text()
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def alive(folder):
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def fail(message):
    print(f"FATAL:   {message}", file=sys.stderr)
    sys.exit(255)


main(sys.argv[1:])

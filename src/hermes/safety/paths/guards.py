"""Guarded paths: credentials, system files and settings that stay closed under any rule.

Paths are resolved first: symbolic links are followed left to right, without opening a file.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from hermes.text.globs import Part, compile_parts, expand_braces, fold, is_wild, matches

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence


# As many links as the system follows before it gives up.
_MOST_LINKS = 40
# Below a process's folder, links lead where their text doesn't say.
_MAGIC = frozenset(("self", "thread-self"))


class ResolveError(ValueError):
    """A path that leads nowhere; the message says why."""


class ForbiddenPathError(ResolveError):
    """A path into a folder that must not even be looked at."""


class ResolvedPath:
    """A resolved path: its parts, how many exist, and the stat of the last (None: missing)."""

    __slots__ = ("existing", "parts", "status")

    def __init__(
        self, parts: tuple[str, ...], status: os.stat_result | None, *, missing: int = 0
    ) -> None:
        self.parts = parts
        self.status = status
        self.existing = len(parts) - missing

    @property
    def path(self) -> str:
        return join(self.parts)


def join(parts: tuple[str, ...] | list[str]) -> str:
    """The absolute path with these parts."""
    if os.name == "nt":
        return os.sep.join(parts) + (os.sep if len(parts) == 1 else "")
    return "/" + "/".join(parts)


def split(path: str) -> list[str]:
    """The parts of an absolute path, links and `..` left as they are."""
    if os.name == "nt":
        path = path.replace("\\", "/")
    return [part for part in path.split("/") if part and part != "."]


def resolve(path: str, *, fixed: tuple[str, ...] | None = None) -> ResolvedPath:
    """The real target of an absolute path; raises `ResolveError` when it can't be determined.

    A missing path is placed below its deepest existing folder. With `fixed`, links strictly inside
    that folder are not followed.
    """
    if os.name == "nt":
        return _resolve_on_windows(path)
    todo = split(path)
    todo.reverse()
    must_be_folder = path.endswith(("/", "/."))
    done: list[str] = []
    status: os.stat_result | None = None
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            if done:
                done.pop()
            status = None
            continue
        if len(done) == 1 and done[0] == "proc" and (part.isdigit() or part in _MAGIC):
            raise ForbiddenPathError("it leads into a process")
        here = join([*done, part])
        status = _look(here)
        if status is None:
            if ".." in todo:
                raise ResolveError("a folder on the way does not exist")
            return ResolvedPath((*done, part, *reversed(todo)), None, missing=len(todo) + 1)
        if stat.S_ISLNK(status.st_mode):
            inside = fixed is not None and tuple(done[: len(fixed)]) == fixed
            if not inside:
                links += 1
                if links > _MOST_LINKS:
                    raise ResolveError("its links lead in circles")
                target = _read_link(here)
                if target.startswith("/"):
                    done.clear()
                todo.extend(reversed(split(target)))
                must_be_folder = must_be_folder or (not todo and target.endswith("/"))
                status = None
                continue
        elif (todo or must_be_folder) and not stat.S_ISDIR(status.st_mode):
            raise ResolveError("a part of it is a file, not a folder")
        done.append(part)
    if status is None:
        status = _look(join(done))
    return ResolvedPath(tuple(done), status)


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ResolveError(f"it can't be examined ({_why(error)})") from None


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError as error:
        raise ResolveError(f"a link on the way can't be read ({_why(error)})") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _resolve_on_windows(path: str) -> ResolvedPath:
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise ResolveError(f"it can't be examined ({_why(error)})") from None
    status = _look(real)
    return ResolvedPath(tuple(split(real)), status, missing=0 if status else 1)


_CREDENTIALS = """
.ssh
.aws
.azure
.gnupg
.pki
.kube
.oci
.docker/{config.json,.token_seed,contexts,run}
.config/{gcloud,op,doctl,hub,sops,age,containers/auth.json,rclone,gh/hosts.yml,glab-cli,heroku}
.config/{git/credentials,configstore,filezilla,netlify,vercel,fly,wrangler,stripe,solana,az}
.config/{google-chrome*,chromium*,BraveSoftware,microsoft-edge*,vivaldi,opera*,Bitwarden*,1Password}
.config/{KeePass,keepassxc,Signal,Slack,discord,Element,remmina,evolution,github-copilot,op}
.{mozilla,thunderbird,password-store,electrum,bitcoin,ethereum,1password,local/share/keyrings}
.local/share/{kwalletd,keyrings,opencode/auth.json,containers/**/auth.json,pki,TelegramDesktop}
.local/share/{evolution,gnome-keyring}
.gnome2/keyrings
.{netrc,git-credentials,npmrc,pypirc,yarnrc,yarnrc.yml,pgpass,my.cnf,mylogin.cnf,s3cfg,boto}
.{dockercfg,terraformrc,vault-token,Xauthority,ICEauthority,htpasswd,esmtprc,msmtprc,fetchmailrc}
.{rediscli_auth,composer/auth.json,config/composer/auth.json,bundle/config,gem/credentials,gitcookies}
.{cargo/credentials*,m2/settings*.xml,gradle/gradle.properties,ivy2/.credentials,sbt/**/*credential*}
.{terraform.d/credentials*,huggingface/token,cache/huggingface/*token*,databrickscfg,snowflake}
.{kaggle/kaggle.json,jupyter/jupyter_server_config.json,wakatime.cfg,circleci,travis,conan*/**/credentials*}
.{claude/.credentials.json,codex/auth.json,gemini/*creds*,cursor/**/*auth*,config/openai,anthropic}
_netrc
.dbus-keyrings
.{subversion,svn}/auth
.purple/accounts.xml
.weechat/sec.conf
.irssi/config
.lastpass
.minikube/{certs,profiles}
.colima/**/docker.sock
.rd/docker.sock
.orbstack/run
Library/{Keychains,Cookies,Accounts,Safari,Mail,Messages,IdentityServices,Containers/com.apple.Safari}
Library/Application Support/{Google/Chrome,Chromium,Firefox,BraveSoftware,Microsoft Edge,Vivaldi}
Library/Application Support/{com.apple.TCC,1Password,Bitwarden,Slack,discord,Signal,gcloud,Arc}
Library/Group Containers/*.com.apple.passwords*
AppData/{Roaming,Local}/Microsoft/{Credentials,Protect,Vault,Crypto,TokenBroker}
AppData/Local/{Google/Chrome,Microsoft/Edge,BraveSoftware}/**/User Data
AppData/Roaming/{Mozilla,gcloud,GitHub CLI/hosts.yml,NuGet/NuGet.Config,npm/etc/npmrc}
.hermes/**/{.env*,auth*.json,*credential*,*token*,*secret*,*.key,*.pem,oauth*}
.hermes/{.env*,mcp-tokens,pairing}
"""

_STARTUP = """
.{bashrc,bash_profile,bash_login,bash_logout,bash_aliases,profile,bash_completion,inputrc,xonshrc}
.{zshrc,zshenv,zprofile,zlogin,zlogout,kshrc,mkshrc,cshrc,tcshrc,login,logout,rhosts,shosts,forward}
.{xinitrc,xsession,xsessionrc,xprofile,Xresources,Xdefaults,xserverrc,pam_environment,hushlogin}
.{gitconfig,gitattributes,hgrc,vimrc,gvimrc,exrc,vim,emacs,emacs.d,nanorc,tmux.conf,screenrc,gdbinit}
.{pythonrc,pythonrc.py,pystartup,irbrc,pryrc,Rprofile,Renviron,psqlrc,sqliterc,lldbinit,curlrc,wgetrc}
.{direnvrc,envrc,crontab,zsh,oh-my-zsh,bash_it,fonts.conf,condarc,mackup.cfg,octaverc,juliarc.jl}
.config/{fish,autostart,autostart-scripts,systemd,environment.d,git,nvim,powershell,pip,zsh,direnv}
.config/{plasma-workspace,upstart,user-dirs.dirs,i3,sway,hypr,openbox,awesome,bspwm,sxhkd,tmux,bash}
.config/{containers,nix,home-manager,xonsh,nushell,elvish,python,emacs,helix,lxsession,xfce4/xinitrc}
.local/share/{systemd,dbus-1/services,applications,plasma/plasmoids,gnome-shell/extensions,kio}
.local/lib/python*/site-packages/{*.pth,sitecustomize.py,usercustomize.py}
.{kde,kde4}/{Autostart,share/autostart,env}
.{ipython,jupyter}
.pip/pip.conf
.cargo/{config,config.toml,env}
.{nix-profile,nix-defexpr,guix-profile}
.docker
Library/{LaunchAgents,LaunchDaemons,Services,Scripts,Preferences,StartupItems,PreferencePanes}
Library/{Internet Plug-Ins,Input Methods,ScriptingAdditions,QuickLook,Spotlight}
AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup
Documents/{WindowsPowerShell,PowerShell}
NTUSER.DAT*
.hermes/**/{hermes_permissions*,config.yaml,config.yml,*trust*,*approv*,*allowlist*,state.db*}
.hermes/{audit,cache,plugins,hooks,checkpoints,logs,reviews,yaml_tools}
"""

_SECRETS = """
etc/{shadow*,gshadow*,master.passwd,spwd.db,sudoers,sudoers.d,security/opasswd,krb5.keytab,opasswd}
etc/{ssl/private,pki/tls/private,pki/private,letsencrypt,wireguard,ppp/*secrets,ipsec.secrets,ipsec.d}
etc/{ssh/*_key,NetworkManager/system-connections,wpa_supplicant*,docker/key.json,rancher,kubernetes}
etc/{openvpn,swanctl,cups/*.conf,mysql/debian.cnf,postfix/sasl*,exim4/passwd*,davfs2/secrets,samba/private}
etc/{ldap.secret,pam_ldap.secret,libnss-ldap.secret,nslcd.conf,sssd,grafana,vault*,consul*,salt/pki}
etc/{credstore*,crypttab,luks*,cryptsetup-keys.d,tinc/**/*.priv,iscsi,munge,ceph/*.keyring,default/*secret*}
{run,var/run}/{secrets,credentials,docker.sock,docker,podman,containerd,crio,k3s,buildkit,libvirt}
{run,var/run}/user/*/{docker.sock,podman,containerd*,keyring,gnupg,buildkit,*agent*,bus,crun}
{run,var/run}/{dockershim.sock,cri-dockerd.sock,snapd.socket,lxd.socket,systemd/private,dbus}
var/lib/{docker,containerd,containers,kubelet,rancher,libvirt,lxd,lxc,NetworkManager/secret_key}
var/lib/{cloud/**/user-data*,cloud/**/vendor-data*,sss/secrets,systemd/credential*,samba/private}
var/lib/{vault,tailscale,jenkins/secrets,gitlab-runner,private,AccountsService/users}
var/{db/dslocal,root/.ssh,spool/mail,mail,backups/*shadow*,backups/*passwd*,backups/*group*}
var/snap/{lxd,docker}
proc/{kcore,kmem,kmsg,keys,key-users,kallsyms,kpage*,vmcore,sched_debug,timer_list}
proc/{self,thread-self,[0-9]*}
sys/{kernel/security,kernel/debug,kernel/tracing,firmware/efi/efivars}
dev/{mem,kmem,port,fd,stdin,stdout,stderr,tty*,pts,sd*,nvme*,vd*,hd*,dm-*,mapper,disk,loop*,kvm,input}
System/Library/Keychains
Library/{Keychains,Application Support/com.apple.TCC}
Windows/System32/config
Windows/repair
ProgramData/{docker,ssh}
"""

_SYSTEM = """
etc
boot
usr
bin
sbin
lib{,32,64,x32,exec}
proc
sys
dev
efi
System
Library
Windows
Program Files*
ProgramData
nix/{store,var}
var/spool/{cron,at,anacron,incron,lpd,cups,postfix}
var/cron
var/at
var/lib/{systemd,dpkg,rpm,apt,pacman,dbus,cloud,polkit-1,misc,snapd,AccountsService,update*}
var/db
{run,var/run}/{systemd,udev,dbus,sudo,initctl,utmp,crond*,lock}
{root,home/*}/.ssh
snap
var/log/{wtmp,btmp,lastlog,audit,auth.log*,secure*}
cores
"""


# Made by the kernel for each reader; confinement mounts its own.
_VIRTUAL = ("proc/", "sys/", "dev/")
_GIT = "a git hook or git's configuration"


class Guard:
    """A guarded path: its pattern, whether it may be read, and its kind."""

    __slots__ = ("name", "pattern", "readable")

    def __init__(self, pattern: tuple[Part, ...], *, readable: bool, name: str) -> None:
        self.pattern = pattern
        self.readable = readable
        self.name = name


class _Table:
    """Guards by the first part of their pattern, so that most paths meet none."""

    __slots__ = ("_first", "_other", "literals")

    def __init__(self, *groups: tuple[str, bool, str]) -> None:
        self._first: dict[str, list[Guard]] = {}
        self._other: list[Guard] = []
        self.literals: list[tuple[tuple[str, ...], Guard]] = []
        for text, readable, name in groups:
            for line in text.split("\n"):
                for pattern in expand_braces(line) if line else ():
                    self._add(tuple(pattern.split("/")), readable=readable, name=name)

    def _add(self, parts: tuple[str, ...], *, readable: bool, name: str) -> None:
        guard = Guard(compile_parts(parts, folded=True), readable=readable, name=name)
        if is_wild(parts[0]):
            self._other.append(guard)
        else:
            self._first.setdefault(fold(parts[0]), []).append(guard)
        if not any(map(is_wild, parts)):
            self.literals.append((parts, guard))

    def find(self, parts: Sequence[str], mode: str) -> Guard | None:
        """The guard that closes this place, given in folded parts."""
        if not parts:
            return None
        near: list[Guard] = self._first.get(parts[0], [])
        for guard in (*near, *self._other):
            if (mode == "write" or not guard.readable) and matches(
                guard.pattern, parts, below=True
            ):
                return guard
        return None


@lru_cache(maxsize=1)
def _home_table() -> _Table:
    return _Table(
        (_CREDENTIALS, False, "a credential store"),
        (_STARTUP, True, "a start-up or settings file"),
    )


@lru_cache(maxsize=1)
def _root_table() -> _Table:
    return _Table(
        (_SECRETS, False, "a secret of the system"), (_SYSTEM, True, "part of the system")
    )


def find_guard(parts: Sequence[str], mode: str, *, home: str) -> str | None:
    """The guard of a path; None when it is not guarded."""
    folded = _canonical([fold(part) for part in parts])
    if mode == "write" and any(folded == home_parts[: len(folded)] for home_parts in _homes(home)):
        return "the home folder itself, or a folder that it lies in"
    if mode == "write" and _is_git_setting(folded):
        return _GIT
    found = _root_table().find(folded, mode)
    if found is None:
        for inner in _below_homes(folded, home):
            found = _home_table().find(inner, mode)
            if found:
                break
    if found is None:
        found = _moved(folded, mode, home)
    return found.name if found else None


def existing_secrets(homes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files and folders of this machine that no guard lets be read; names with `**` two deep.

    Then the folders that were searched: a new secret changes one of them.
    """
    found: list[str] = []
    searched: list[str] = []
    _collect("/", _patterns(_SECRETS), found, searched)
    for home in homes:
        _collect(home, _patterns(_CREDENTIALS), found, searched)
    return found, searched


@lru_cache(maxsize=2)
def _patterns(table: str) -> list[tuple[str, ...]]:
    found = []
    for line in table.split("\n"):
        for pattern in expand_braces(line) if line else ():
            if not pattern.startswith(_VIRTUAL):
                depths = ("*", "*/*") if "**" in pattern else ("",)
                found += [tuple(pattern.replace("**", deep).split("/")) for deep in depths]
    return found


def _collect(
    folder: str, patterns: list[tuple[str, ...]], found: list[str], searched: list[str]
) -> None:
    """Add the paths below a folder that match; each folder is listed once."""
    try:
        names = set(os.listdir(folder))
    except OSError:
        return
    searched.append(folder)
    deeper: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in patterns:
        if is_wild(first):
            matching = list(filter(_name_pattern(first).match, names))
        else:
            matching = [first] if first in names else []
        for name in matching:
            if not rest:
                found.append(f"{folder.rstrip('/')}/{name}")
            else:
                deeper.setdefault(name, []).append(tuple(rest))
    for name, inner in deeper.items():
        _collect(f"{folder.rstrip('/')}/{name}", inner, found, searched)


@lru_cache(maxsize=256)
def _name_pattern(pattern: str) -> re.Pattern[str]:
    import re
    from fnmatch import translate

    return re.compile(translate(pattern))


def _is_git_setting(folded: list[str]) -> bool:
    """Whether git executes the file, or reads from it the programs to execute."""
    for index, part in enumerate(folded):
        if part.endswith(".git"):
            inside = folded[index + 1 :]
            if inside[:1] in (["modules"], ["worktrees"]):
                return "hooks" in inside or inside[-1] in ("config", "config.worktree")
            if inside[:1] == ["hooks"] or inside in (["config"], ["config.worktree"]):
                return True
    return False


def _canonical(folded: list[str]) -> list[str]:
    """Without a prefix before the root: a second name on macOS, a drive on Windows."""
    if folded[:3] == ["system", "volumes", "data"]:
        folded = folded[3:]
    if folded[:1] == ["private"] and folded[1:2] in (["etc"], ["var"], ["tmp"]):
        folded = folded[1:]
    if folded and len(folded[0]) == 2 and folded[0].endswith(":"):
        folded = folded[1:]
    elif folded[:1] == ["mnt"] and len(folded) > 2 and len(folded[1]) == 1:
        folded = folded[2:]
    return folded


def _below_homes(folded: list[str], home: str) -> list[list[str]]:
    """The path as seen from each home folder that it lies in."""
    found = [folded[len(base) :] for base in _homes(home) if folded[: len(base)] == base]
    for own in _homes(state) if (state := os.environ.get("HERMES_HOME")) else ():
        if folded[: len(own)] == own:
            found.append([".hermes", *folded[len(own) :]])
    if ".hermes" in folded:
        # A project may have its own; what it says counts as well.
        found.append(folded[folded.index(".hermes") :])
    if folded[:1] == ["root"]:
        found.append(folded[1:])
    base = folded[1:] if folded[:1] in (["var"], ["export"], ["data"], ["srv"]) else folded
    if base[:1] in (["home"], ["users"]) and len(base) > 2:
        found.append(base[2:])
    return found


def _homes(home: str) -> list[list[str]]:
    return [_canonical([fold(part) for part in parts]) for parts in _spellings(home)]


def _spellings(path: str) -> list[list[str]]:
    """The parts of a path as written, and of the place that it leads to."""
    found = [split(path)]
    with suppress(ResolveError):
        found.append(list(resolve(path).parts))
    return found


def _moved(folded: list[str], mode: str, home: str) -> Guard | None:
    """A guarded place of the home that is kept elsewhere, with a link in its stead."""
    for base, guard in _linked(home, _stamp(home), _stamp(f"{home}/.config")):
        if (mode == "write" or not guard.readable) and tuple(folded[: len(base)]) == base:
            return guard
    return None


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


@lru_cache(maxsize=8)
def _linked(home: str, *_stamps: int) -> list[tuple[tuple[str, ...], Guard]]:
    found = []
    for parts, guard in _home_table().literals:
        path = join([*split(home), *parts])
        try:
            place = resolve(path)
            expected = resolve(home).parts + parts
        except ResolveError:
            continue
        if place.status is not None and place.parts != expected:
            found.append((tuple(_canonical([fold(part) for part in place.parts])), guard))
    return found

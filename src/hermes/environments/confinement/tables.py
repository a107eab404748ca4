"""Confinement as data: package caches that stay writable, sockets that stay open, allowances.

Everything that is not in these tables follows the general rule: the workspace and the temporary
folder of the task are writable, everything else is read-only, and secrets are hidden.
"""

from __future__ import annotations

from typing import NamedTuple


class Cache(NamedTuple):
    """A cache of a package manager or build tool, below the home folder."""

    path: str
    # Created when it is missing and one of these programs is installed; never without them.
    programs: tuple[str, ...]
    reason: str
    # A variable that moves the cache, and the part below its value.
    variable: str = ""
    below: str = ""
    # A single file, such as a lock, instead of a folder.
    file: bool = False


# Caches only: no `bin` folder, no configuration, nothing that a shell or a login runs.
CACHES = (
    Cache(".cache/pip", ("pip", "pip3"), "pip: downloaded and built wheels", "PIP_CACHE_DIR"),
    Cache(".cache/uv", ("uv",), "uv: wheels, source trees and their lock", "UV_CACHE_DIR"),
    Cache(".cache/pypoetry", ("poetry",), "Poetry: wheels", "POETRY_CACHE_DIR"),
    Cache(".cache/pdm", ("pdm",), "PDM: wheels"),
    Cache(".cache/pipenv", ("pipenv",), "Pipenv: wheels", "PIPENV_CACHE_DIR"),
    Cache(".cache/virtualenv", ("virtualenv",), "virtualenv: seed wheels"),
    Cache(".conda/pkgs", ("conda", "mamba"), "conda: packages"),
    Cache(".npm", ("npm",), "npm: packages and logs", "npm_config_cache"),
    Cache(".cache/node", ("node",), "corepack: package managers", "COREPACK_HOME"),
    Cache(".cache/node-gyp", ("npm",), "node-gyp: headers"),
    Cache(".cache/pnpm", ("pnpm",), "pnpm: metadata"),
    Cache(".local/share/pnpm/store", ("pnpm",), "pnpm: package store"),
    Cache(".local/state/pnpm", ("pnpm",), "pnpm: state of the store"),
    Cache(".cache/yarn", ("yarn",), "Yarn 1: packages", "YARN_CACHE_FOLDER"),
    Cache(".yarn/berry", ("yarn",), "Yarn 2 and later: packages"),
    Cache(".bun/install/cache", ("bun",), "Bun: packages", "BUN_INSTALL_CACHE_DIR"),
    Cache(".cache/deno", ("deno",), "Deno: modules", "DENO_DIR"),
    Cache(".cache/ms-playwright", (), "Playwright: browsers"),
    Cache(".cache/puppeteer", (), "Puppeteer: browsers", "PUPPETEER_CACHE_DIR"),
    Cache(".cargo/registry", ("cargo",), "Cargo: crates", "CARGO_HOME", "registry"),
    Cache(".cargo/git", ("cargo",), "Cargo: git dependencies", "CARGO_HOME", "git"),
    Cache(".cargo/.package-cache", ("cargo",), "Cargo: lock", "CARGO_HOME", ".package-cache", True),
    Cache(".cargo/.package-cache-mutate", ("cargo",), "Cargo: lock", "CARGO_HOME",
          ".package-cache-mutate", True),
    Cache(".cargo/.global-cache", ("cargo",), "Cargo: index of its cache", "CARGO_HOME",
          ".global-cache", True),
    Cache(".cache/sccache", ("sccache",), "sccache: objects", "SCCACHE_DIR"),
    Cache("go/pkg/mod", ("go",), "Go: modules", "GOMODCACHE"),
    Cache("go/pkg/sumdb", ("go",), "Go: checksums", "GOPATH", "pkg/sumdb"),
    Cache(".cache/go-build", ("go",), "Go: build cache", "GOCACHE"),
    Cache(".cache/golangci-lint", ("golangci-lint",), "golangci-lint: results"),
    Cache(".m2/repository", ("mvn",), "Maven: artifacts"),
    Cache(".gradle/caches", ("gradle",), "Gradle: artifacts", "GRADLE_USER_HOME", "caches"),
    Cache(".gradle/daemon", ("gradle",), "Gradle: daemons", "GRADLE_USER_HOME", "daemon"),
    Cache(".gradle/native", ("gradle",), "Gradle: libraries", "GRADLE_USER_HOME", "native"),
    Cache(".gradle/notifications", ("gradle",), "Gradle: markers", "GRADLE_USER_HOME",
          "notifications"),
    Cache(".gradle/.tmp", ("gradle",), "Gradle: temporary files", "GRADLE_USER_HOME", ".tmp"),
    Cache(".ivy2/cache", ("sbt", "ant"), "Ivy: artifacts"),
    Cache(".cache/coursier", ("sbt", "scala", "cs"), "Coursier: artifacts"),
    Cache(".nuget/packages", ("dotnet",), "NuGet: packages", "NUGET_PACKAGES"),
    Cache(".local/share/NuGet", ("dotnet",), "NuGet: HTTP cache"),
    Cache(".cache/composer", ("composer",), "Composer: packages", "COMPOSER_CACHE_DIR"),
    Cache(".bundle/cache", ("bundle",), "Bundler: gems"),
    Cache(".cache/hex", ("mix",), "Hex: packages"),
    Cache(".cabal/packages", ("cabal",), "Cabal: packages"),
    Cache(".cache/cabal", ("cabal",), "Cabal: packages"),
    Cache(".cache/bazel", ("bazel", "bazelisk"), "Bazel: output base"),
    Cache(".cache/ccache", ("ccache",), "ccache: objects", "CCACHE_DIR"),
    Cache(".ccache", (), "ccache before 4.0: objects"),
    Cache(".cache/meson", ("meson",), "Meson: state"),
    Cache(".cache/zig", ("zig",), "Zig: build cache", "ZIG_GLOBAL_CACHE_DIR"),
    Cache(".cache/pre-commit", ("pre-commit",), "pre-commit: hook environments",
          "PRE_COMMIT_HOME"),
    Cache(".cache/huggingface/hub", (), "Hugging Face: models"),
    Cache(".cache/torch", (), "PyTorch: models", "TORCH_HOME"),
    Cache(".cache/matplotlib", (), "Matplotlib: font index"),
    Cache(".cache/fontconfig", ("fc-cache",), "fontconfig: font index"),
    Cache(".terraform.d/plugin-cache", (), "Terraform: providers", "TF_PLUGIN_CACHE_DIR"),
    Cache(".cache/helm", ("helm",), "Helm: charts"),
)  # fmt: skip

# Folders of sockets that serve local programs: databases and name services. Any other local
# socket outside of the workspace is closed, since it may lead to a program with more rights.
OPEN_SOCKETS = (
    "/run/postgresql",
    "/run/mysqld",
    "/run/mariadb",
    "/run/redis",
    "/run/memcached",
    "/run/mongodb",
    "/run/nscd",
    "/run/systemd/resolve",
    "/run/sssd",
    "/run/opengl-driver",
    "/run/current-system",
    "/run/wrappers",
    "/run/lock",
    "/run/utmp",
    "/var/lib/sss/pipes",
    "/var/lib/sss/mc",
)
# Those that ask the network for names: closed where the network is.
RESOLVERS = ("/run/nscd", "/run/systemd/resolve")


class Allowance(NamedTuple):
    """Access that a person grants by name in `terminal.confine.allow`."""

    reason: str
    # Below the home folder, or absolute; made visible, read-only.
    paths: tuple[str, ...] = ()
    # Absolute sockets, and variables that name one.
    sockets: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


ALLOWANCES = {
    "ssh-agent": Allowance(
        "sign in to hosts with the keys of the running agent",
        (".ssh/config", ".ssh/config.d", ".ssh/known_hosts", ".ssh/known_hosts2", ".ssh/*.pub"),
        variables=("SSH_AUTH_SOCK",),
    ),
    "gpg-agent": Allowance(
        "sign and decrypt with the keys of the running agent",
        (".gnupg",),
        ("/run/user/{uid}/gnupg",),
    ),
    "docker": Allowance(
        "containers; whoever reaches the engine has the rights of root",
        (".docker/config.json", ".docker/contexts"),
        ("/run/docker.sock", "/run/user/{uid}/docker.sock"),
        ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    ),
    "podman": Allowance(
        "containers through the socket of Podman",
        (".config/containers",),
        ("/run/podman", "/run/user/{uid}/podman"),
        ("CONTAINER_HOST",),
    ),
    "containerd": Allowance("containers through containerd", (), ("/run/containerd",)),
    "dbus": Allowance(
        "desktop and system services",
        (),
        ("/run/dbus", "/run/user/{uid}/bus"),
        ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
    ),
    "x11": Allowance(
        "windows on the X display",
        (".Xauthority",),
        ("/tmp/.X11-unix",),
        ("DISPLAY", "XAUTHORITY"),
    ),
    "wayland": Allowance(
        "windows on the Wayland display",
        (),
        ("/run/user/{uid}/wayland-0", "/run/user/{uid}/wayland-1"),
        ("WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"),
    ),
    "git-credentials": Allowance(
        "passwords that git keeps", (".git-credentials", ".config/git/credentials", ".netrc")
    ),
    "github": Allowance("the token of gh", (".config/gh",), variables=("GH_TOKEN", "GITHUB_TOKEN")),
    "npm": Allowance("tokens of npm and Yarn", (".npmrc", ".yarnrc", ".yarnrc.yml")),
    "maven": Allowance("passwords of Maven", (".m2/settings.xml", ".m2/settings-security.xml")),
    "gradle": Allowance("properties of Gradle", (".gradle/gradle.properties",)),
    "cargo": Allowance("tokens of Cargo", (".cargo/credentials", ".cargo/credentials.toml")),
    "pypi": Allowance("tokens of twine", (".pypirc",)),
    "aws": Allowance("AWS", (".aws",), variables=("AWS_PROFILE", "AWS_REGION")),
    "gcloud": Allowance("Google Cloud", (".config/gcloud",)),
    "azure": Allowance("Azure", (".azure",)),
    "metadata": Allowance("addresses that give out the keys of a cloud machine"),
    "kubernetes": Allowance("clusters", (".kube",), variables=("KUBECONFIG",)),
}

# Settings that may or may not hold a secret: shown with every secret masked, so that a registry
# or a proxy that stands in them still works.
MIXED = (
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".m2/settings.xml", ".gradle/gradle.properties",
    ".docker/config.json", ".bundle/config", ".config/pip/pip.conf", ".pip/pip.conf",
    ".config/uv/uv.toml", ".condarc", ".curlrc", ".wgetrc", ".terraformrc",
)  # fmt: skip

# Logs of what a person typed, beside the credential stores that `safety.paths.guards` knows.
HISTORIES = (
    ".bash_history", ".zsh_history", ".histfile", ".local/share/fish/fish_history", ".ash_history",
    ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history",
    ".rediscli_history", ".lesshst", ".viminfo", ".local/share/nvim/shada", ".irb_history",
    ".local/state/nvim/shada", ".local/share/recently-used.xbel", ".zsh_sessions", ".bash_sessions",
)  # fmt: skip

# Devices that every program may use, and those of accelerators, by how their names begin.
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm")
ACCELERATORS = ("dri", "nvidia", "kfd", "accel", "vfio")

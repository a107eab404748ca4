"""Containers and clusters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import REMOTE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_CONTAINER = "docker podman nerdctl docker-compose podman-compose ctr crictl"
_KUBE_ASK = frozenset(("delete", "drain", "cordon", "taint", "evict"))


def _texts(command: Command) -> list[str]:
    texts = [word.text for word in command.operands]
    return texts[1:] if texts[:1] == ["compose"] else texts


def _destroys_containers(command: Command) -> bool:
    texts = _texts(command)
    if not texts:
        return False
    if command.name in ("ctr", "crictl"):
        return any(text in ("rm", "rmi", "rmp", "remove", "delete", "prune") for text in texts[:3])
    first = texts[0]
    if first in ("system", "volume", "image", "container", "network", "builder", "buildx", "pod"):
        action = texts[1] if len(texts) > 1 else ""
        if action in ("prune", "reset"):
            return True
        return first in ("volume", "network", "container", "pod") and action in ("rm", "remove")
    if first == "down":
        return command.has("-v", "--volumes", "--rmi")
    if first == "rm":
        return command.has("-f", "--force", "-v", "--volumes", "-s") or len(texts) > 2
    if first in ("rmi",):
        return command.has("-f", "--force") or len(texts) > 2
    if first in ("kill", "stop", "rm", "restart"):
        return any(word.stream is not None for word in command.words) or command.found
    if first in ("swarm", "node", "stack", "service", "secret", "config", "context", "plugin"):
        return texts[1:2] in (["rm"], ["leave"], ["remove"], ["demote"])
    return first == "prune"


def _escapes_container(command: Command) -> bool:
    texts = _texts(command)
    if texts[:1] not in (["run"], ["create"], ["exec"]) and texts[:2] != ["container", "run"]:
        return False
    args = command.args
    if any(
        arg.startswith(("--privileged", "--cap-add=ALL", "--cap-add=SYS_ADMIN")) for arg in args
    ):
        return True
    if (
        any(arg in ("--pid=host", "--net=host", "--userns=host", "--network=host") for arg in args)
        and "--pid=host" in args
    ):
        return True
    for index, arg in enumerate(args):
        value = (
            args[index + 1]
            if arg in ("-v", "--volume", "--mount", "--cap-add") and index + 1 < len(args)
            else ""
        )
        if arg.startswith(("--volume=", "--mount=")):
            value = arg.partition("=")[2]
        elif arg.startswith("-v") and len(arg) > 2:
            value = arg[2:]
        if value in ("ALL", "SYS_ADMIN"):
            return True
        if re.match(
            r"/(?::|etc|root|boot|dev|proc|sys|var/run/docker\.sock|run/docker\.sock|home/?:)",
            value,
        ):
            return True
        if re.search(r"(?:source|src)=/(?:,|etc|root|boot|var/run/docker\.sock|\Z)", value):
            return True
    return False


def _destroys_cluster(command: Command) -> bool:
    texts = _texts(command)
    if texts[:1] == ["adm"] and "prune" not in texts:
        texts = texts[1:]
    if not texts:
        return False
    if texts[0] in _KUBE_ASK:
        return True
    if texts[:2] in (["create", "clusterrolebinding"], ["create", "rolebinding"]) or (
        texts[0] == "policy" and len(texts) > 1
    ):
        return True
    if texts[0] == "rollout":
        return texts[1:2] in (["undo"], ["restart"])
    if texts[0] == "scale":
        return any(value.text == "0" for value in command.values("--replicas"))
    if texts[0] == "replace":
        return command.has("--force")
    if texts[0] == "apply":
        return command.has("--prune", "--force")
    if texts[0] == "config":
        return texts[1:2] in (["delete-context"], ["delete-cluster"], ["delete-user"], ["unset"])
    return texts[0] == "adm" and "prune" in texts


def _removes_release(command: Command) -> bool:
    texts = _texts(command)
    if texts[:1] == ["upgrade"]:
        return command.has("--force", "--force-replace")
    return bool(texts) and texts[0] in ("uninstall", "delete", "del", "un", "rollback")


RULES = (
    Rule(
        "containers.destroyed",
        REMOTE,
        "It removes containers, volumes, images or networks with what they hold.",
        programs=_CONTAINER,
        when=_destroys_containers,
        matches=(
            "docker system prune -af",
            "docker volume rm data",
            "docker compose down -v",
            "docker rm -f web",
            "docker image prune",
        ),
        passes=(
            "docker ps",
            "docker compose down",
            "docker build .",
            "docker compose up -d",
            "docker volume ls",
            "docker stop web",
        ),
    ),
    Rule(
        "containers.escape",
        REMOTE,
        "It gives a container the rights or the files of this machine.",
        programs=_CONTAINER,
        when=_escapes_container,
        matches=(
            "docker run --privileged alpine",
            "docker run -v /:/host alpine",
            "docker run -v /var/run/docker.sock:/s alpine",
        ),
        passes=(
            "docker run -v $PWD:/src alpine",
            "docker run --rm alpine ls",
            "docker run -p 80:80 nginx",
        ),
    ),
    Rule(
        "kubernetes.destroyed",
        REMOTE,
        "It deletes, drains or restarts what runs in a cluster.",
        programs="kubectl oc k kubecolor",
        when=_destroys_cluster,
        matches=(
            "kubectl delete pod x",
            "kubectl -n prod delete deploy web",
            "kubectl drain node1",
            "kubectl scale deploy x --replicas=0",
        ),
        passes=(
            "kubectl get pods",
            "kubectl apply -f x.yaml",
            "kubectl delete pod x --dry-run=client",
            "kubectl logs x",
        ),
    ),
    Rule(
        "kubernetes.release-removed",
        REMOTE,
        "It removes or rolls back a release in a cluster.",
        programs="helm helmfile flux argocd",
        when=lambda command: (
            _removes_release(command)
            or _texts(command)[:1] == ["destroy"]
            or "delete" in _texts(command)[:2]
        ),
        matches=(
            "helm uninstall web",
            "helm delete web -n prod",
            "helmfile destroy",
            "argocd app delete x",
        ),
        passes=(
            "helm list",
            "helm template x",
            "helm uninstall web --dry-run",
            "helm upgrade --install web .",
        ),
    ),
)

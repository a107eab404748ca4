"""Containers, clusters, clouds, databases, registries: what others share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_CONTAINER = "docker podman nerdctl docker-compose podman-compose"
_DRY = "--dry-run --dryrun -n --noop --what-if"


def _texts(command: Command) -> list[str]:
    texts = [word.text for word in command.operands]
    return texts[1:] if texts[:1] == ["compose"] else texts


def _destroys_containers(command: Command) -> bool:
    texts = _texts(command)
    if not texts:
        return False
    first = texts[0]
    if first in ("system", "volume", "image", "container", "network", "builder", "buildx"):
        action = texts[1] if len(texts) > 1 else ""
        if action == "prune":
            return True
        return first in ("volume", "network", "container") and action in ("rm", "remove")
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


_KUBE_ASK = frozenset(("delete", "drain", "cordon", "taint", "evict"))


def _destroys_cluster(command: Command) -> bool:
    if any(
        flag.startswith("--dry-run") and "none" not in flag for flag in command.flags
    ) or command.has("--dry-run"):
        return False
    texts = _texts(command)
    if not texts:
        return False
    if texts[0] in _KUBE_ASK:
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


_CLOUD_VERB = re.compile(
    r"^(?:delete|destroy|terminate|remove|purge|deregister|disable|detach|revoke|reset|stop|"
    r"deprovision|rb|rm|mv|"
    r"batch-delete|del|drop|schedule-key-deletion|modify-db|put-bucket-policy|put-bucket-acl|"
    r"create-access-key|create-user|"
    r"attach-user-policy|attach-role-policy|put-user-policy|reboot|undelete-version)(?:$|-)"
)
_CLOUD_READ = re.compile(
    r"^(?:list|describe|get|show|ls|help|version|info|logs?|tail|wait|cp|history)(?:$|-)"
)


def _destroys_cloud(command: Command) -> bool:
    texts = _texts(command)
    name = command.name
    if name == "aws" and texts[:2] == ["s3", "sync"]:
        return command.has("--delete")
    if name == "gsutil":
        return bool(texts) and (
            texts[0] in ("rm", "rb", "mv")
            or (texts[0] == "rsync" and command.has("-d"))
            or (texts[0] in ("iam", "acl") and texts[1:2] in (["set"], ["ch"]))
        )
    if name == "aws" and texts[:2] == ["s3", "mv"]:
        return False
    for text in texts[:5]:
        if _CLOUD_READ.match(text):
            return False
        if _CLOUD_VERB.match(text):
            return True
        if text in ("add-iam-policy-binding", "set-iam-policy", "remove-iam-policy-binding"):
            return True
    return False


def _destroys_infrastructure(command: Command) -> bool:
    texts = _texts(command)
    if not texts:
        return False
    name = command.name
    if name in ("terraform", "tofu", "terragrunt"):
        words = texts[1:] if texts[0] == "run-all" else texts
        if words[:1] == ["destroy"]:
            return True
        if words[:1] == ["apply"]:
            return True
        if words[:1] == ["state"]:
            return words[1:2] in (["rm"], ["mv"], ["push"], ["replace-provider"])
        return words[:1] in (["taint"], ["force-unlock"]) or words[:2] == ["workspace", "delete"]
    if name == "pulumi":
        return (
            texts[0] in ("destroy", "up", "update", "cancel")
            or texts[:2] == ["stack", "rm"]
            or texts[:2] == ["state", "delete"]
        )
    if name in (
        "cdk",
        "sls",
        "serverless",
        "sam",
        "copilot",
        "eb",
        "eksctl",
        "kops",
        "amplify",
        "sst",
        "cdktf",
    ):
        return texts[0] in ("destroy", "remove", "delete", "terminate") or texts[:2] in (
            ["app", "delete"],
            ["delete", "cluster"],
        )
    if name == "vagrant":
        return texts[0] == "destroy" or texts[:2] == ["box", "remove"]
    if name in (
        "kind",
        "minikube",
        "k3d",
        "doctl",
        "hcloud",
        "linode-cli",
        "civo",
        "scw",
        "ibmcloud",
        "oci",
    ):
        return any(text in ("delete", "destroy", "rm", "remove", "terminate") for text in texts[:4])
    return name in ("packer", "nomad", "consul") and (
        texts[:2] in (["job", "stop"], ["system", "gc"], ["kv", "delete"]) or texts[0] == "stop"
    )


def _removes_release(command: Command) -> bool:
    texts = _texts(command)
    return bool(texts) and texts[0] in ("uninstall", "delete", "del", "un", "rollback")


def _registry(command: Command) -> bool:
    texts = _texts(command)
    name = command.name
    if command.has("--dry-run"):
        return False
    if name in ("npm", "yarn", "pnpm"):
        if texts[:1] == ["npm"]:
            texts = texts[1:]
        return texts[:1] in (["unpublish"], ["deprecate"], ["owner"], ["access"]) or texts[:2] in (
            ["dist-tag", "rm"],
            ["token", "create"],
            ["token", "revoke"],
            ["team", "destroy"],
            ["profile", "set"],
        )
    if name == "cargo":
        return texts[:1] in (["yank"], ["owner"])
    if name == "gem":
        return texts[:1] in (["yank"], ["owner"])
    if name in ("gh", "glab"):
        if texts[:1] == ["api"]:
            return any(value.text.upper() == "DELETE" for value in command.values("-X", "--method"))
        return texts[1:2] in (["delete"], ["archive"], ["delete-asset"], ["transfer"]) or texts[
            :2
        ] in (["secret", "remove"], ["variable", "remove"])
    if name in ("crane", "regctl", "skopeo", "oras"):
        return "delete" in texts[:2] or texts[:2] in (["tag", "rm"], ["image", "delete"])
    if name == "twine":
        return False
    if name in (
        "heroku",
        "fly",
        "flyctl",
        "vercel",
        "netlify",
        "railway",
        "firebase",
        "supabase",
        "wrangler",
        "render",
        "convex",
        "neonctl",
        "pscale",
    ):
        return any(
            re.match(r"(?:.*[:-])?(?:destroy|delete|remove|rm|reset|purge)\Z", text)
            for text in texts[:3]
        )
    return False


def _drops(command: Command) -> bool:
    texts = _texts(command)
    name = command.name
    if name in ("dropdb", "dropuser"):
        return True
    if name == "mysqladmin":
        return any(text in ("drop", "shutdown", "flush-hosts", "password") for text in texts)
    if name == "pg_restore":
        return command.has("-c", "--clean")
    if name in ("pg_ctl", "pg_ctlcluster", "pg_dropcluster"):
        return name == "pg_dropcluster" or any(text in ("stop", "restart") for text in texts)
    if name == "mongorestore":
        return command.has("--drop")
    if name in ("influx", "etcdctl", "consul", "cqlsh", "nodetool"):
        return texts[:1] in (["del"], ["delete"]) or "delete" in texts[:2]
    return False


def _framework(command: Command) -> bool:
    texts = _texts(command)
    args = command.args
    name = command.name
    if name in ("rails", "rake", "bin/rails"):
        return any(
            re.match(r"db:(?:drop|reset|purge|schema:load|migrate:reset|truncate_all)", text)
            for text in texts
        )
    if name == "python":
        script = next((arg for arg in args if arg.endswith("manage.py")), "")
        return (
            bool(script)
            and any(arg in ("flush", "reset_db", "sqlflush") for arg in args)
            and "sqlflush" not in args
        )
    if name in ("manage", "django-admin", "manage.py"):
        return texts[:1] in (["flush"], ["reset_db"])
    if name == "prisma":
        return texts[:2] == ["migrate", "reset"] or (
            texts[:2] == ["db", "push"] and command.has("--force-reset", "--accept-data-loss")
        )
    if name == "alembic":
        return texts[:2] == ["downgrade", "base"]
    if name in ("php", "artisan", "sail"):
        return any(re.match(r"(?:migrate:(?:fresh|reset|refresh)|db:wipe)", arg) for arg in args)
    if name in ("sequelize", "sequelize-cli", "knex", "typeorm", "drizzle-kit"):
        return any(
            text in ("db:drop", "db:migrate:undo:all", "migrate:rollback", "schema:drop")
            for text in texts
        )
    if name == "mix":
        return texts[:1] in (["ecto.drop"], ["ecto.reset"])
    if name in ("dotnet", "ef"):
        return "database" in texts and "drop" in texts
    if name == "flask":
        return texts[:2] == ["db", "downgrade"] or texts[:1] in (["drop-db"], ["drop_all"])
    return False


RULES = (
    Rule(
        "containers.destroyed",
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
        "It removes or rolls back a release in a cluster.",
        programs="helm helmfile flux argocd",
        when=lambda command: (
            not command.has("--dry-run")
            and (
                _removes_release(command)
                or _texts(command)[:1] == ["destroy"]
                or "delete" in _texts(command)[:2]
            )
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
    Rule(
        "cloud.destroyed",
        "It deletes or stops cloud resources, or changes who may use them.",
        programs="aws gcloud az gsutil bq",
        unless="--dry-run --dryrun",
        when=_destroys_cloud,
        matches=(
            "aws s3 rm s3://b --recursive",
            "aws ec2 terminate-instances --instance-ids i",
            "gcloud compute instances delete x",
            "az group delete -n x",
            "gsutil rm gs://b/x",
        ),
        passes=(
            "aws s3 ls",
            "aws s3 cp a s3://b/",
            "gcloud projects list",
            "az vm list",
            "aws s3 rm s3://b/x --dryrun",
        ),
    ),
    Rule(
        "infrastructure.changed",
        "It changes or destroys the infrastructure that a plan describes.",
        programs=(
            "terraform tofu terragrunt pulumi cdk sls serverless sam copilot eb eksctl kops "
            "amplify sst cdktf vagrant "
            "kind minikube k3d doctl hcloud linode-cli civo scw ibmcloud oci nomad consul"
        ),
        when=_destroys_infrastructure,
        matches=(
            "terraform destroy",
            "terraform apply -auto-approve",
            "pulumi destroy",
            "terraform state rm x",
            "cdk destroy",
        ),
        passes=(
            "terraform plan",
            "terraform init",
            "terraform validate",
            "pulumi preview",
            "terraform state list",
        ),
    ),
    Rule(
        "database.drop",
        "It drops tables, databases or other stored definitions.",
        programs=(
            "dropdb dropuser mysqladmin pg_restore mongorestore etcdctl influx pg_ctl "
            "pg_ctlcluster pg_dropcluster"
        ),
        when=_drops,
        matches=(
            "psql -c 'DROP TABLE users'",
            "dropdb app",
            "mysql -e 'drop database x'",
            "redis-cli FLUSHALL",
            "mongosh --eval 'db.dropDatabase()'",
        ),
        passes=(
            "psql -c 'select 1'",
            "pg_dump app",
            "redis-cli get x",
            "grep 'DROP TABLE' x.sql",
            "createdb app",
        ),
    ),
    Rule(
        "database.empty",
        "It deletes every row of a table.",
        matches=(
            "psql -c 'DELETE FROM users'",
            "sqlite3 a.db 'delete from t where 1=1'",
            "mysql -e 'TRUNCATE t'",
        ),
        passes=(
            "psql -c 'DELETE FROM t WHERE id = 3'",
            "sqlite3 a.db 'select * from t'",
            "mysql -e 'show tables'",
        ),
    ),
    Rule(
        "database.rewrite",
        "It changes every row of a table.",
        matches=(
            "psql -c 'UPDATE t SET a = 1'",
            "sqlite3 a.db 'update t set a=1 where true'",
            "mysql -e 'update t set a=1'",
        ),
        passes=(
            "psql -c 'UPDATE t SET a = 1 WHERE id = 2'",
            "sqlite3 a.db 'insert into t values (1)'",
            "psql -c 'select 1'",
        ),
    ),
    Rule(
        "database.reset",
        "It drops or resets a whole application database.",
        programs=(
            "rails rake python manage manage.py django-admin prisma alembic php artisan sail "
            "sequelize sequelize-cli knex "
            "typeorm mix dotnet flask"
        ),
        when=_framework,
        matches=(
            "rails db:drop",
            "npx prisma migrate reset",
            "php artisan migrate:fresh",
            "mix ecto.reset",
        ),
        passes=(
            "rails db:migrate",
            "python manage.py migrate",
            "npx prisma generate",
            "alembic upgrade head",
        ),
    ),
    Rule(
        "registry.removed",
        "It removes published packages, repositories, deployments or the access to them.",
        programs=(
            "npm yarn pnpm cargo gem gh glab crane regctl skopeo oras heroku fly flyctl vercel "
            "netlify railway "
            "firebase supabase wrangler pscale neonctl"
        ),
        when=_registry,
        matches=(
            "npm unpublish x",
            "gh repo delete a/b --yes",
            "cargo yank --version 1.0.0",
            "gh api -X DELETE /repos/a/b",
            "heroku apps:destroy x",
        ),
        passes=(
            "npm publish --dry-run",
            "gh pr list",
            "cargo publish --dry-run",
            "gh api /user",
            "vercel ls",
        ),
    ),
)

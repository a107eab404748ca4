"""Cloud resources, infrastructure from plans, published packages and deployments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.rules.verbs import takes_name
from hermes.safety.shell.scope import names
from hermes.safety.shell.verdict import REMOTE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_CLOUD_VERB = re.compile(
    r"^(?:delete|destroy|terminate|remove|purge|deregister|disable|detach|revoke|reset|stop|deallocate|"
    r"deprovision|rb|rm|mv|"
    r"batch-delete|del|drop|schedule-key-deletion|modify-db|put-bucket-policy|put-bucket-acl|"
    r"create-access-key|create-user|"
    r"attach-user-policy|attach-role-policy|put-user-policy|reboot|undelete-version|"
    r"change-resource-record-sets|authorize-security-group|empty-bucket|cancel)(?:$|-)"
)
_CLOUD_READ = re.compile(
    r"^(?:list|describe|get|show|ls|help|version|info|logs?|tail|wait|cp|history)(?:$|-)"
)


def _texts(command: Command) -> list[str]:
    texts = [word.text for word in command.operands]
    return texts[1:] if texts[:1] == ["compose"] else texts


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
    if texts[:3] in (
        ["role", "assignment", "create"],
        ["compute", "firewall-rules", "create"],
    ):
        return True
    # `aws SERVICE VERB`, where a service may itself be called `logs`.
    for text in texts[1:2] if name == "aws" else texts[:5]:
        if _CLOUD_READ.match(text) or text in _GIVING:
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
            texts[0] in ("destroy", "down", "dn", "up", "update", "cancel")
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


# The verb may be a word, an option or one part of either: `del`, `-rm`, `service-instance-delete`.
_DESTROYING = re.compile(
    r"-{0,2}(?:[a-z]+[-:_])*(?:delete|destroy|remove|rm|rmr|purge|terminate|drop|wipe|reset|"
    r"force_reset|delete[A-Z]\w*|undefine|uninstall|unregister[a-z]*|nuke|flush|rb|del|delprefix)(?:[-:_][a-z-]+)?\Z"
)


# What comes after these is the name of a thing.
_ASKING = names("get status describe list ls show info logs inspect stat stats sub watch diff tail")
_GIVING = names("pull publish invoke call create update upload download tail ssh submit ack")


def _destroys_resource(command: Command) -> bool:
    # Far enough for `tool area thing verb`; names of things come after the verb.
    before = ""
    for text in command.args[:4]:
        named = text[:1] != "-" and takes_name(before)
        if not named and _DESTROYING.match(text):
            return True
        if text in _ASKING:
            return False
        before = text
    return False


def _registry(command: Command) -> bool:
    texts = _texts(command)
    name = command.name
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
            return False
        if texts[:2] == ["repo", "edit"]:
            return command.has("--visibility", "--default-branch")
        if texts[:2] in (["pr", "close"], ["pr", "merge"], ["mr", "merge"]):
            return command.has("-d", "--delete-branch", "--remove-source-branch")
        return texts[1:2] in (
            ["delete"],
            ["archive"],
            ["delete-asset"],
            ["transfer"],
            ["disable"],
        ) or texts[:2] in (["secret", "remove"], ["variable", "remove"])
    if name == "hub":
        return texts[:1] == ["delete"] or texts[:2] == ["release", "delete"]
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


RULES = (
    Rule(
        "cloud.resource-destroyed",
        REMOTE,
        "It deletes something that a service keeps: stored objects, queues, machines, backups.",
        programs=(
            "ibmcloud velero multipass virsh vboxmanage qm pct lxc incus s3cmd s5cmd mc b2 swift "
            "ossutil hdfs hadoop rabbitmqctl rabbitmqadmin kafka-topics kafka-topics.sh nats "
            "pulsar-admin vault argocd flux istioctl openstack govc supabase firebase netlify "
            "wrangler railway pscale turso neonctl cf nomad etcdctl consul influx"
        ),
        when=_destroys_resource,
        matches=(
            "hdfs dfs -rm -r /data",
            "s3cmd del --recursive s3://b",
            "ibmcloud resource service-instance-delete x",
            "virsh undefine vm",
            "kafka-topics.sh --delete --topic x",
            "vault kv metadata delete secret/x",
        ),
        passes=(
            "hdfs dfs -ls /data",
            "s3cmd ls s3://b",
            "virsh list --all",
            "kafka-topics.sh --list",
            "vault kv get secret/x",
            "mc cp rm-list.txt m/b",
        ),
    ),
    Rule(
        "cloud.destroyed",
        REMOTE,
        "It deletes or stops cloud resources, or changes who may use them.",
        programs="aws gcloud az gsutil bq",
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
        REMOTE,
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
            "pulumi down -y",
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
        "registry.removed",
        REMOTE,
        "It removes published packages, repositories, deployments or the access to them.",
        programs=(
            "npm yarn pnpm cargo gem gh hub glab crane regctl skopeo oras heroku fly flyctl vercel "
            "netlify railway "
            "firebase supabase wrangler pscale neonctl"
        ),
        when=_registry,
        matches=(
            "npm unpublish x",
            "gh repo delete a/b --yes",
            "cargo yank --version 1.0.0",
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

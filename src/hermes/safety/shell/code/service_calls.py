"""Calls that destroy what a service keeps, in code of any language: ORMs, SDKs, HTTP clients."""

from __future__ import annotations

import re
from functools import lru_cache

from hermes.safety.shell.scope import names

# Names that mean only this, whatever they are called on.
_EMPTIES = names(
    "delete_all destroy_all flushall flushAll flushdb flushDb flushDB FlushAll FlushDB "
    "truncate_all_tables deleteAllInBatch"
)
_DROPS = names(
    "drop_all dropDatabase drop_database dropCollection drop_collection drop_table dropTable "
    "dropAllTables drop_all_tables dropSchema drop_schema dropAll dropIndexes drop_index"
)
# With a filter they take what fits it, without one everything.
_FILTERED = names("deleteMany delete_many DeleteMany remove_many destroy")
_NO_FILTER = re.compile(
    r"\A\s*(?:\{\s*\}|\{\s*where\s*:\s*\{\s*\}.*|bson\.M\s*\{\s*\}|\{.*truncate\s*:\s*true.*)?\s*\Z",
    re.S,
)
_SDK = re.compile(
    r"\b(?:boto3|botocore|aioboto3|aws-sdk|@aws-sdk|Aws::|google\.cloud|@google-cloud|googleapiclient|"
    r"azure\.|@azure|Azure::|kubernetes|@kubernetes|openstack|digitalocean|hcloud|linode_api|"
    r"cloudflare|stripe|Stripe|github|octokit|Octokit|gitlab|Gitlab|jenkins|heroku|docker|dockerode|"
    r"pulumi|oci|minio|Minio|elasticsearch|Elasticsearch|opensearch|qdrant|pinecone|weaviate|"
    r"chromadb|supabase|firebase|firebase-admin|twilio|sendgrid|jira|confluent_kafka|kafka|pika|"
    r"consul|hvac|etcd3|huggingface_hub|mlflow|wandb|ftplib|paramiko|shopify|slack_sdk|notion)\b"
)
_SDK_CALL = re.compile(
    r"(?:batch_)?(?:delete|terminate|destroy|purge|deregister|drop|empty|deprovision|revoke|prune)"
    r"(?:_[a-z_]+|[A-Z]\w*)?\Z"
)
_SDK_CLASS = re.compile(r"(?:Delete|Terminate|Destroy|Purge|Deregister)\w+(?:Command|Request)\Z")
_HTTP_DELETE = re.compile(
    r"(?:\bmethod|METHOD|CUSTOMREQUEST|type|verb)[\"']?\s*(?:=>|[:=,])\s*[\"']delete[\"']"
    r"|(?:request|Request|NewRequest|open|\$http|ajax)\(\s*[\"']DELETE[\"']|HTTP::Delete\b|"
    r"HttpDelete\b|HttpRequest.*\.DELETE\(\)|HTTP::Request->new\(\s*DELETE",
    re.I,
)
_CLIENT = re.compile(
    r"\b(?:fetch|axios|got|request|requests|httpx|aiohttp|urllib|urllib3|Net::HTTP|HTTParty|Faraday|"
    r"RestClient|LWP|HTTP::|curl_|Guzzle\w*|XMLHttpRequest|https?(?!:)|undici|superagent|ky|reqwest|"
    r"HttpClient|OkHttp\w*|HTTPoison|Req|httr)\b"
)
_URL = re.compile(r"https?://([^/\s'\"`?]+)")
_ALL_OBJECTS = re.compile(
    r"\.objects(?:\(\)|\.(?:all|filter)\(\))?\s*\.(?:_raw_)?delete\(|"
    r"\.query(?:\(\s*\w*\s*\))?\s*\.delete\(|(?:::|->)query\(\)\s*->delete\(\)|"
    r"\btable\([^)]*\)\s*(?:->|\.)delete\(\)|::all\(\)\s*->(?:each->|map->)?delete\(|"
    r"::whereNotNull\([^)]*\)->delete\(\)|\.all\.each\s*(?:\(&:|\{[^}]*\.)(?:destroy|delete)|"
    r"\.objects(?:\.all\(\))?\s*\.update\(|\.delete\(\)\s*\.from\(|\.all\(\)\.delete\("
)
_PATH_ARGUMENT = re.compile(r"\s*[\"'`]/\w[\w/.$#{}-]*[\"'`]")
_LOCALHOST = re.compile(r"localhost|127\.0\.0\.1")
_NEAR = re.compile(
    r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|[\w-]+\.(?:local|localhost|test))(?::\d+)?\Z"
)
# Processes as another program or the kernel lists them, from which names are picked.
LISTS_PROCESSES = re.compile(
    r"process_iter|\bpids\(\)|\bpgrep\b|\bpidof\b|\btasklist\b|ps-list|find-process|ps-node|"
    r"(?<![\w$.-])ps(?:['\",\s]+-?[aAeuxfocwdl]+\b|['\",\s]+-C)|/proc/(?:\*|\[0-9\])|"
    r"['\"]/proc/?['\"]|Sys::ProcTable|Proc::ProcessTable|getProcessesByName|allProcesses"
)
# A call that destroys begins with one of these; all others need no closer look.
SERVICE_VERBS = (
    "delete", "drop", "flush", "terminate", "destroy", "purge", "deregister", "batch_delete",
    "truncate", "Delete", "Terminate", "Destroy", "Purge", "Deregister", "Flush", "remove", "prune",
)  # fmt: skip
_MAP_LIKE = re.compile(r"\A[\s&|]*[:'\"]?[\w.-]*['\"]?\s*\Z")


def service_rule(name: str, arguments: str, source: str) -> str | None:
    """The rule that a call by this name meets.

    Args:
        name: The last part of the function's name.
        arguments: Its arguments as written.
        source: The whole source, which says what it works with.
    """
    if name in _EMPTIES:
        return None if _is_filtered(name, arguments, source) else "database.empty"
    if name in _DROPS:
        return "database.drop"
    if name == "truncate":
        # A model or table without a size to cut it to.
        return "database.empty" if not arguments.strip() else None
    if name in _FILTERED:
        return "database.empty" if _NO_FILTER.match(arguments) and _stores(name, source) else None
    if _SDK_CLASS.match(name):
        return "service.destroyed"
    if name == "delete":
        if _URL.search(arguments) or (_asks_others(source)):
            return None if is_near(arguments, source) else "service.deleted-by-request"
        if _PATH_ARGUMENT.match(arguments) and _CLIENT.search(source):
            return None if _LOCALHOST.search(source) else "service.deleted-by-request"
        if deletes_all(source):
            return "database.empty"
    if name == "remove":
        whole = not arguments.strip() or arguments.startswith(("force", "v="))
        return "service.destroyed" if whole and _uses_service(source) else None
    if _SDK_CALL.match(name) and _uses_service(source):
        # Of a mapping one entry is taken by its key; a resource is a call without any.
        single = name == "delete" and bool(arguments.strip()) and _MAP_LIKE.match(arguments)
        return None if single and "(" not in arguments else "service.destroyed"
    return None


def _is_filtered(name: str, arguments: str, source: str) -> bool:
    """Whether every call by this name takes what a condition has chosen."""
    if "where" in arguments:
        return True
    called = len(re.findall(rf"\b{name}\b", source))
    return called == len(re.findall(rf"\bwhere\([^)]+\)(?:\.\w+(?:\([^)]*\))?)*\.{name}\b", source))


def request_rule(source: str) -> str | None:
    """The rule that a request spelled out in a source meets: `fetch(url, {method: "DELETE"})`."""
    if not _HTTP_DELETE.search(source) or not _CLIENT.search(source):
        return None
    return None if is_near("", source) else "service.deleted-by-request"


def _stores(name: str, source: str) -> bool:
    return name != "destroy" or "truncate" in source or "where" in source


def is_near(arguments: str, source: str) -> bool:
    """Whether every address that a call or its source names is of this machine."""
    hosts = tuple(_URL.findall(arguments)) or _hosts(source)
    return bool(hosts) and all(_NEAR.match(host) for host in hosts)


# What a source is about, asked for each of its calls.


@lru_cache(maxsize=4)
def _uses_service(source: str) -> bool:
    return _SDK.search(source) is not None


@lru_cache(maxsize=4)
def _asks_others(source: str) -> bool:
    return _CLIENT.search(source) is not None and _URL.search(source) is not None


@lru_cache(maxsize=4)
def deletes_all(source: str) -> bool:
    """Whether a source deletes or changes each of the things that an application keeps."""
    return _ALL_OBJECTS.search(source) is not None


@lru_cache(maxsize=4)
def _hosts(source: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_URL.findall(source)))

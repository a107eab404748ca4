"""The profiles that come with Hermes. A file may define others, or these anew."""

from __future__ import annotations

from hermes.safety.permissions.profiles import Profile, Restriction

_HERE = {"allowed_paths": ["./**"]}

STANDARD = Profile(
    "standard",
    allow=("*", "agent:*", "memory:*"),
    approval_required=("message:*", "notification:*", "email:*", "docker:*", "database:write"),
    source="shipped with Hermes",
)

READONLY_RESEARCH = Profile(
    "readonly_research",
    allow=(
        "file:read",
        "network:*",
        "web:*",
        "browser:*",
        "system:read",
        "git:read",
        "database:read",
        "clipboard:access",
        "env:read",
        "memory:*",
        "session:*",
        "agent:*",
    ),
    deny=("file:write", "file:delete", "terminal:*", "code:*", "message:*", "env:write"),
    source="shipped with Hermes",
)

FULL_DEVELOPER = Profile(
    "full_developer",
    allow=("*",),
    approval_required=("message:*", "email:*"),
    source="shipped with Hermes",
)

PRODUCTION_DEPLOY = Profile(
    "production_deploy",
    allow=("*",),
    deny=("message:*", "email:*", "clipboard:*"),
    approval_required=(
        "file:write",
        "file:delete",
        "terminal:execute",
        "docker:*",
        "database:*",
        "git:write",
        "network:send",
        "cloud:*",
        "env:write",
    ),
    restrictions={"file:write": Restriction(_HERE), "file:delete": Restriction(_HERE)},
    source="shipped with Hermes",
)

PROFILES = {
    profile.name: profile
    for profile in (STANDARD, READONLY_RESEARCH, FULL_DEVELOPER, PRODUCTION_DEPLOY)
}

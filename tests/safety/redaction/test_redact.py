"""What `redact` masks, and what it leaves to the byte."""

from __future__ import annotations

import json
import random
import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.corpus import each

from hermes.safety.redaction import Redactor, redact
from hermes.safety.redaction.prefilter import KEYWORDS, prefilter

ALNUM = string.ascii_letters + string.digits
_RANDOM = random.Random(7)


def chance(size: int, letters: str = ALNUM) -> str:
    """A fresh random text, with a digit and a letter in it where the letters allow."""
    while True:
        text = "".join(_RANDOM.choices(letters, k=size))
        if re.search(r"\d", text) and re.search("[a-zA-Z]", text):
            return text


HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"

SHAPES = {
    "aws": "AKIA" + chance(16, string.ascii_uppercase + "234567"),
    "aws temporary": "ASIA" + chance(16, string.ascii_uppercase + "234567"),
    "google": "AIza" + chance(35, URLSAFE),
    "google oauth": "ya29." + chance(60, URLSAFE),
    "google secret": "GOCSPX-" + chance(28),
    "github": "ghp_" + chance(36),
    "github server": "ghs_" + chance(36),
    "github fine": f"github_pat_{chance(22)}_{chance(59)}",
    "gitlab": "glpat-" + chance(20),
    "slack": f"xoxb-{chance(12, '0123456789a')}-{chance(24)}",
    "slack app": f"xapp-1-A{chance(10)}-{chance(13, '0123456789a')}-{chance(64, HEX)}",
    "stripe": "sk_live_" + chance(24),
    "stripe restricted": "rk_test_" + chance(24),
    "openai": "sk-" + chance(48),
    "openai project": "sk-proj-" + chance(120),
    "anthropic": f"sk-ant-api03-{chance(93)}-{chance(6)}AA",
    "openrouter": "sk-or-v1-" + chance(64, HEX),
    "hugging face": "hf_" + chance(34),
    "groq": "gsk_" + chance(52),
    "npm": "npm_" + chance(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + chance(120, URLSAFE),
    "telegram": "123456789:AA" + chance(33, URLSAFE),
    "discord": f"M{chance(25)}.{chance(6)}.{chance(38)}",
    "twilio": "SK" + chance(32, HEX),
    "sendgrid": f"SG.{chance(22)}.{chance(43)}",
    "digitalocean": "dop_v1_" + chance(64, HEX),
    "databricks": "dapi" + chance(32, HEX),
    "azure client": f"{chance(3)}8Q~{chance(34)}",
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.eyJ{chance(40)}.{chance(43, URLSAFE)}",
    "vault": "hvs." + chance(90),
    "shopify": "shpat_" + chance(32, HEX),
    "linear": "lin_api_" + chance(40),
    "some other maker": "acme_pat_" + chance(40),
}


@each("token", SHAPES.values(), ids=SHAPES)
@each(
    "around",
    [
        "{}",
        "token {} was used",
        '{{"text": "see {} there"}}',
        "a\n{}\nb",
        "x='{}'",
        '"a\\n{}\\nb"',
        "({})",
    ],
)
def test_tokens_go_wherever_they_stand(token: str, around: str) -> None:
    text = around.format(token)

    shown = redact(text)

    assert token[6:] not in shown
    assert "[REDACTED:" in shown
    assert not re.search(re.escape(token[-6:]), shown)


SECRET = "hu9Nter_2xQ"

NAMED = [
    "password: {}",
    "PASSWORD={}",
    "export DB_PASSWORD={}",
    "DB_PASS='{}'",
    "MYSQL_PWD={}",
    "REDIS_PW={}",
    "SECRET_KEY = '{}'",
    "api_key: {}",
    "apiKey: '{}',",
    "x-api-key: {}",
    "client_secret={}&grant=1",
    "clientSecret: `{}`",
    "aws_secret_access_key = {}",
    "  - GITHUB_TOKEN={}",
    '"password":"{}"',
    '{{"auth": {{"access_token": "{}"}}}}',
    "{{'refresh_token': '{}'}}",
    '{{\\"password\\": \\"{}\\"}}',
    "--password {} --verbose",
    "--password={}",
    "--api-key '{}'",
    'cmd(["--token", "{}"])',
    "curl -u admin:{} https://host.example/",
    "curl --user 'admin:{}' https://host.example/",
    'curl -H "Authorization: Bearer {}" https://host.example/',
    "curl -H 'X-Auth-Token: {}' https://host.example/",
    "Authorization: Basic {}",
    "authorization: token {}",
    "Proxy-Authorization: Basic {}",
    'headers = {{"Authorization": "Bearer {}"}}',
    "Cookie: sid={}; theme=dark",
    "Set-Cookie: sid={}; Path=/; HttpOnly",
    "curl -b 'sid={}' https://host.example/",
    "postgres://app:{}@db.example:5432/main",
    "mongodb+srv://app:{}@cluster.example/?retryWrites=true",
    "redis://:{}@cache.example:6379/0",
    "https://bob:{}@host.example/path",
    "jdbc:mysql://h/db?user=root&password={}",
    "Server=tcp:h,1433;User ID=sa;Password={};Encrypt=True",
    "host=h user=u password={} dbname=d",
    "https://host.example/cb?access_token={}&state=1",
    "https://host.example/x?sig={}",
    "mysql -u root -p{} shop",
    "sshpass -p {} ssh root@h",
    "docker login -u me -p {} registry.example",
    "redis-cli -h h -a {} ping",
    "openssl rsa -in k.pem -passin pass:{}",
    "CREATE USER bob IDENTIFIED BY '{}';",
    "machine api.example login me password {}",
    "<password>{}</password>",
    '<add name="ApiKey" value="{}"/>',
    "- name: DB_PASSWORD\n  value: {}",
    '{{"name": "API_TOKEN", "value": "{}"}}',
    '("password", "{}")',
    "password='{}'",
    "PGPASSWORD={} psql -h h",
    "spring.datasource.password={}",
    "//registry.example/:_authToken={}",
    "The log says password={} and goes on",
    "$env:API_KEY = '{}'",
    "set API_KEY={}",
    "ENV SECRET_TOKEN={}",
    "ENV DB_PASSWORD {}",
    "aws configure set aws_secret_access_key {}",
    "the password is {}",
    "STRIPE_KEY={}7vQ9zL2",
    "Token: {}",
    "docker run -e DB_PASSWORD={} image",
    "kubectl create secret generic x --from-literal=password={}",
    "helm install x --set db.password={},replicas=2",
    'requests.get(url, auth=("bob", "{}"))',
    "gpg --passphrase {} -d file",
    "ssh-keygen -N '{}' -f key",
    "{{'Set-Cookie': 'session={}; HttpOnly'}}",
    '"db_password" => "{}"',
    "KeyError: 'password={}'",
    "[database]\npassword = {}\nuser = x",
]


@each("form", NAMED)
def test_values_go_when_their_name_tells(form: str) -> None:
    shown = redact(form.format(SECRET))

    assert SECRET not in shown
    assert SECRET[:5] not in shown
    assert SECRET[-5:] not in shown
    # The name is left to read.
    assert shown.split("[REDACTED:")[0].rstrip("\"'`\\") in form.format("")


@each("form", NAMED)
def test_values_go_inside_json_too_and_the_json_stays_json(form: str) -> None:
    document = json.dumps({"output": f"first line\n{form.format(SECRET)}\nlast line", "code": 0})

    shown = redact(document)

    assert SECRET not in shown
    assert json.loads(shown)["code"] == 0
    assert json.loads(shown)["output"].endswith("last line")


ORDINARY = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "550e8400-e29b-41d4-a716-446655440000",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeo=="',
    "--hash=sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    "pkg/mod.py,sha256=r8_DrqAfn6QLwQnmXEggveiSU-UaIL2p2nuPINelfFc,14949",
    "![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk)",
    "token = get_token()",
    "token = self.tokens[0]",
    "password: str",
    "password: Optional[str] = None,",
    "def login(user, password, token=None):",
    'os.environ["API_KEY"]',
    'api_key = os.getenv("API_KEY", "")',
    "const token = process.env.GITHUB_TOKEN;",
    "private_key = Ed25519PrivateKey.generate()",
    "password = models.CharField(max_length=128)",
    "export TOKEN=$TOKEN",
    'curl -u "$KEY:" https://host.example',
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ vault_password }}",
    "API_KEY=<your-key>",
    "API_KEY=your-api-key-here",
    "api_key: xxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    "PASSWORD=",
    "PASSWORD=\nUSER=bob",
    "password=''",
    'password: "********"',
    '"password": null,',
    "PASSWORD=changeme",
    "the password is wrong",
    "Enter password: ",
    "Password must be at least 8 characters",
    'getpass("Password: ")',
    "invalid token: unexpected end of input",
    "max_tokens=4096, prompt_tokens: 1200, total_tokens=3000",
    '"next_page_token": "CAUQAA8812345678"',
    "primary_key=True, foreign_key='users.id', sort_key: created_at",
    "SSH_AUTH_SOCK=/tmp/ssh-XXXXXX/agent.1234",
    "PASSWORD_FILE=/run/secrets/db_password",
    "secretName: my-tls-secret",
    "https://host.example:8080/path/@scope/pkg",
    "git@github.com:owner/repo.git",
    "postgres://user:password@localhost/db",
    "https://user:$PASS@host.example/",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>",
    'headers = {"Authorization": f"Bearer {token}"}',
    "docker run -u 1000:1000 -p 8080:80 image",
    "mkdir -p build/out && cp -a x y",
    "ssh -p 2222 host",
    "call_aBcDeFgHiJkLmNoPqRsTuVwX12 toolu_01A09q90qw90lq917835lq9",
    "node_modules/.pnpm/@babel+core@7.24.5/node_modules",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1c2luZXNz me@host",
    "grep -rn 'password' src/",
    '<input type="password" name="password" placeholder="Password">',
    "if token == ')': depth -= 1",
    "keyword: value, hotkey: ctrl+c",
    "[REDACTED:password]",
    "a -> b, c => d, x := 1",
]


ORDINARY += [
    "func NewClient(token string, opts ...Option) *Client {",
    'type Config struct { Password string `json:"password"` }',
    "private String password;",
    "public void setPassword(String password) { this.password = password; }",
    "let token: string | undefined = undefined;",
    "interface Auth { token: string; password?: string; apiKey: string }",
    'password = request.form["password"]',
    'password = input("Password: ")',
    "const { password, token } = req.body;",
    'if (!password) throw new Error("password required");',
    "self.token = token",
    'self.assertEqual(user.password, "!")',
    'parser.add_argument("--password", help="Password for the database")',
    "  --password PASSWORD   the password to use",
    "  --token TOKEN         API token (default: $TOKEN)",
    "  -p, --password <pass>  Password",
    '"password": {"type": "string", "minLength": 8}',
    "properties: {password: {type: string}}",
    "password: process.env.DB_PASSWORD,",
    "password: getenv('DB_PASSWORD', 'default'),",
    "password: ${DB_PASSWORD:-postgres}",
    "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD}",
    'SECRET_KEY = os.environ.get("SECRET_KEY")',
    'SECRET_KEY = env("SECRET_KEY")',
    "secret_key: !vault |",
    "token: !Ref GitHubToken",
    "secretKeyRef:\n  name: db\n  key: password",
    "valueFrom:\n  secretKeyRef:\n    name: mysql-pass\n    key: password",
    "imagePullSecrets:\n- name: regcred",
    "git config --global credential.helper store",
    "ssh -i ~/.ssh/id_rsa user@host",
    "openssl genrsa -out key.pem 2048",
    "API_KEY=...",
    "api_key=None",
    'api_key = ""',
    "token=token, password=password)",
    'f"Bearer {token}"',
    "`Bearer ${token}`",
    '"Authorization: Bearer " + token',
    'headers["Authorization"] = "Bearer %s" % token',
    'curl -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com',
    "The Authorization: header must be set",
    "Cookie: a small piece of data",
    'cookies = {"session": session_id}',
    '"tokens": 1500, "token_count": 12, "max_token": 5',
    'tokenizer.eos_token = "<|endoftext|>"',
    'pad_token="[PAD]"',
    '"bos_token": "<s>"',
    "def test_password_reset_token_expired(self):",
    "FAILED tests/test_auth.py::test_password_hashing - AssertionError",
    "2024-01-01 12:00:00 INFO auth: user bob logged in from 10.0.0.1",
    "Error: Invalid API key provided",
    'error: password authentication failed for user "postgres"',
    "fatal: Authentication failed for 'https://github.com/x/y.git/'",
    'npm ERR! code E401 Unable to authenticate, need: Basic realm="x"',
    'WWW-Authenticate: Basic realm="Access to the site"',
    "key: value",
    '{"key": "user:1234:profile", "value": "abc"}',
    'redis.set("session:abc123", data)',
    'cache_key = f"user:{user_id}"',
    "primary_key: id",
    'sort_key="created_at"',
    "keyboard: us",
    "monkey = 12",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"resolved": "https://packages.example.org/lodash/-/lodash-4.17.21.tgz#679591c564c3bffaae8454cf0b3df370c3d6911c"',
    '"etag": "W/\\"5f3-abcdefghijklmnopqrstuvwxyz0\\""',
    "arn:aws:iam::123456789012:role/MyRole",
    "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf",
    "docker pull ghcr.io/org/img@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "msg_01XFDUDYJgAACzvnptvVoYEL",
    "chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ01",
    "https://example.com/login?next=/dashboard&lang=en",
    "https://example.com/search?q=token&page=2",
    "https://github.com/owner/repo/commit/9fceb02d0ae598e95dc970b74767f19372d61af8",
    "user@example.com:/path",
    "rsync -av user@host:/src /dst",
    "postgresql://localhost:5432/db",
    "redis://localhost:6379/0",
    "http://user@host/path",
    "pip install --index-url https://packages.example.org/simple/ x",
    "from secrets import token_hex",
    "token_hex(16)",
    "import getpass; getpass.getpass()",
    "with open(password_file) as f:",
    "password_file: /run/secrets/x",
    "PASSWORD_MIN_LENGTH=12",
    'AUTH_USER_MODEL = "users.User"',
    "AUTH=none",
    "JWT_ALGORITHM=HS256",
    "TOKEN_EXPIRY=3600",
    "SESSION_COOKIE_SECURE=True",
    'CSRF_COOKIE_NAME = "csrftoken"',
    "auth: basic",
    'authors: ["Bob <bob@x.org>"]',
    'author = "Jane Doe"',
    "key=lambda x: x[1]",
    "sorted(d, key=len)",
    "d[key] = value",
    "for key, value in items:",
    '"keys": ["a", "b"]',
    "compass: 12 bypass: true",
    "tests: 12 pass: 10 fail: 2",
    "PASS: test_login",
    "pass",
    "except KeyError: pass",
    'raise ValueError("bad token: %r" % tok)',
    "Unexpected token: '}' at position 12",
    "SyntaxError: Unexpected token < in JSON at position 0",
    "token: Token = Depends(get_token)",
    'api_key: str = Field(..., env="API_KEY")',
    "password: SecretStr",
    'secret: bytes = b""',
    "secrets: inherit",
    "secret: false",
    "DB_PASSWORD: password",
    'password: "<redacted>"',
    "password=******",
    'const SECRET = process.env.SECRET ?? "";',
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 me@host",
    "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ",
    'var x = "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhpcyByZWFzb24=";',
    "test-password-field input-token-list",
    ".sk-fading-circle .sk-circle-before { width: 100% }",
    "grid-template-columns: repeat(auto-fill, minmax(200px, 1fr))",
    'git commit -m "Fix token refresh: use new key"',
    "kubectl get secret db -o jsonpath='{.data.password}'",
    "vault kv get -field=password secret/db",
    "aws secretsmanager get-secret-value --secret-id prod/db",
    'gh secret set NPM_TOKEN --body "$NPM_TOKEN"',
    'echo "$PASSWORD" | docker login -u "$USER" --password-stdin',
    "docker run -p 8080:80 -u root:root -w /app img",
    "python -u script.py",
    "tar -xzf a.tar.gz -C /tmp",
    "ls -la; ps -ef | grep key",
    "the token bucket algorithm: rate 5",
    "Your token is base64 encoded. The password is 8 characters long.",
    "The key is the primary key of the table",
]


@each("text", ORDINARY)
def test_ordinary_text_stays_to_the_byte(text: str) -> None:
    assert redact(text) == text
    assert redact(json.dumps({"text": text})) == json.dumps({"text": text})


SETTINGS = [
    "password=swordfish",
    "db_password: swordfish",
    "db:\n  user: bob\n  password: swordfish\n",
    "password: correct-swordfish-battery",
    "[db]\nhost = h.example\n# the old one\npassword = swordfish\nuser = bob",
    "[smtp]\nsmtp_pass = swordfish",
    "Server=h;User ID=sa;Password=swordfish;Encrypt=True",
]


@pytest.mark.parametrize("text", SETTINGS)
def test_plain_words_go_where_only_settings_stand(text: str) -> None:
    assert "swordfish" not in redact(text)
    assert "swordfish" not in redact(json.dumps({"output": text}))


CODE = [
    "password = swordfish\n",
    "    password = value\n    return password\n",
    "const password = generated;",
    "[x]\nrows = load(x)\npassword = value\n",
    "items[0]\npassword = value\n",
    "class A:\n    password: bytes\n    token: str\n",
]


@pytest.mark.parametrize("text", CODE)
def test_plain_words_stay_where_code_stands(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("word", KEYWORDS)
def test_the_first_look_sees_every_keyword(word: str) -> None:
    seen = prefilter(f"a {word.upper()} b")

    assert seen is not None
    assert seen.keywords == [word]


def test_a_long_key_in_letters_alone_is_no_name() -> None:
    for token in ("AKIA" + "QWERTYUIOPASDFGH", "AKIAIOSFODNNABCDEFGH"):
        assert token not in redact(f"see {token} there")


def test_what_stands_in_a_secret_s_place_can_be_chosen() -> None:
    seen: list[tuple[str, str, bool]] = []

    def show(value: str, kind: str, number: bool) -> str:
        seen.append((value, kind, number))
        return f"<{len(seen)}>"

    text = "password='a\"b\\\\c9'"

    assert redact(text, show=show) == "password='<1>'"
    assert Redactor().redact(json.dumps({"c": text}), show=show) == json.dumps(
        {"c": "password='<2>'"}
    )
    assert redact('{"password": 12345678}', show=show) == '{"password": "<3>"}'
    assert seen[0] == seen[1] == ('a"b\\\\c9', "password", False)
    assert seen[2] == ("12345678", "password", True)


PEM_BODY = "\n".join(chance(64, ALNUM + "+/") for _ in range(12))


@each("label", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@each("cut", ["none", "tail", "head"])
@each("as_json", [False, True])
def test_private_keys_go_whole_or_cut(label: str, cut: str, as_json: bool) -> None:
    begin, end = f"-----BEGIN {label}-----\n", f"\n-----END {label}-----"
    text = {
        "none": f"before\n{begin}{PEM_BODY}{end}\nafter",
        "tail": f"before\n{begin}{PEM_BODY}",
        "head": f"{PEM_BODY}{end}\nafter",
    }[cut]

    shown = redact(json.dumps({"key": text}) if as_json else text)

    assert not any(line in shown for line in PEM_BODY.split("\n"))
    if as_json:
        assert "before" in shown or cut == "head"
        json.loads(shown)


def test_a_secret_with_invisible_characters_in_it_goes() -> None:
    token = SHAPES["github"]
    for gap in ("\u200b", "\x1b[1m", "\x00", "\u202e", "\u00ad"):
        shown = redact(f"a {token[:15]}{gap}{token[15:]} b")
        assert token[5:15] not in shown
        assert token[16:] not in shown
        assert shown.startswith("a [RED")
        assert shown.endswith("] b")


def test_numbers_under_secret_names_leave_valid_json() -> None:
    shown = redact('{"password": 12345678, "port": 12345678}')

    assert json.loads(shown) == {"password": "[REDACTED:password]", "port": 12345678}


def test_masking_twice_changes_nothing_more() -> None:
    for form in NAMED:
        once = redact(form.format(SECRET))
        assert redact(once) == once


@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(redact(text), str)


PIECES = st.sampled_from(
    ["password", "token", "api_key", "=", ":", '"', "'", "\\", "\n", " ", "://", "@", "-u ", "--", "a1b2c3d4", "{", "}",
     "-----BEGIN PRIVATE KEY-----", "-----END", "Cookie: ", "Authorization: ", "Bearer ", "ghp_", "\u200b", "İ", ",", "x"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
@example("-----BEGIN PRIVATE KEY-----Cookie: -----END=passwordpassword")
@settings(max_examples=300)
def test_broken_pieces_do_no_harm(text: str) -> None:
    shown = redact(text)
    document = json.dumps({"a": [text, 1], "b": text})

    assert redact(shown) == shown
    assert json.loads(redact(document)).keys() == {"a", "b"}


@each(
    "unit",
    ["a", "password=", "://a:", "-", '\\"', "eyJ", "sk-", "key: ", "-----BEGIN PRIVATE KEY-----\n", " -p", "\\", "'",
     "password: '", "a_", "token\n", "?key=", "--a ", "Cookie: a=", "xox", "1234567:", "@", "\x1b[", "\u200b"],
)  # fmt: skip
def test_long_repeats_are_no_trap(unit: str) -> None:
    # A search that goes back over its steps would not come back from this.
    assert redact(unit * (150_000 // len(unit)))


def test_nested_values_are_masked_by_key_and_by_shape() -> None:
    value = {
        "user": "bob",
        "password": "swordfish",
        "nested": [{"api_key": SECRET}, f"see {SHAPES['github']}", 7, None, True],
        "env": [{"name": "DB_PASSWORD", "value": "swordfish"}],
        SHAPES["npm"]: 1,
        "pair": ("token", "x"),
    }

    shown = Redactor().redact_value(value)

    assert shown["user"] == "bob"
    assert "swordfish" not in str(shown)
    assert SECRET not in str(shown)
    assert SHAPES["github"] not in str(shown)
    assert SHAPES["npm"] not in str(shown)
    assert shown["nested"][2:] == [7, None, True]
    assert shown["pair"] == ("token", "x")
    assert value["password"] == "swordfish"

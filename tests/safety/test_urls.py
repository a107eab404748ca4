"""Which URLs may be fetched, and which address is dialled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.safety.urls import Decision, UrlRules, check_url

PUBLIC = "93.184.216.34"


def public(host: str, port: int) -> list[str]:
    return [PUBLIC]


def check(url: str, *addresses: str, **rules: object) -> Decision:
    return check_url(url, rules=rules, resolve=lambda *_: addresses or (PUBLIC,))


@each(
    ("url", "host", "port"),
    [
        ("http://example.com/", "example.com", 80),
        ("https://example.com", "example.com", 443),
        ("HTTPS://Example.COM:8443/a?b#c", "example.com", 8443),
        ("https://sub-domain.example.co.uk/x/@scope/y", "sub-domain.example.co.uk", 443),
        ("https://user:pw@example.com/", "example.com", 443),
        ("http://8.8.8.8:53/", "8.8.8.8", 53),
        ("http://[2606:4700:4700::1111]/", "2606:4700:4700::1111", 80),
        ("https://bücher.example/", "xn--bcher-kva.example", 443),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
        ("https://例え.jp/", "xn--r8jz45g.jp", 443),
        ("https://example.com/search?q=a@b&x=http://127.0.0.1/", "example.com", 443),
        ("https://example.com/naïve/päth", "example.com", 443),
        ("http://1password.com/", "1password.com", 80),
        ("http://0xdead.example/", "0xdead.example", 80),
    ],
)
def test_public_urls_pass(url: str, host: str, port: int) -> None:
    decision = check_url(url, rules=None, resolve=public)

    assert decision.allowed, decision.reason
    assert (decision.host, decision.port) == (host, port)
    assert decision.address == (host if host[0] in "82" else PUBLIC)


AMBIGUOUS = [
    "", "example.com", "//example.com/", "http:example.com", "http:/example.com", "http:///example.com",
    "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "javascript:alert(1)", "data:,x",
    "http://good.example\\@evil.example/", "http://evil.example\\.good.example/", "http://a@b@c.example/",
    "http://good.example@evil.example/", "http://good.example:443@evil.example/", "http://a#@evil.example/",
    "http://good.example?@evil.example/", "http://us%40er@evil.example/", "http://u%2fx@evil.example/",
    "http://exa\tmple.com/", "http://exa\nmple.com/", "\thttp://example.com/", "http://example.com /",
    "http://evil.example\x00.good.example/", "http://ex%61mple.com/", "http://example.com%2eevil.example/",
    "http://example.com./", "http://example.com..", "http://.example.com/", "http://a..b/", "http://-a.example/",
    "http://１２７.0.0.1/", "http://127。0。0。1/", "http://ⓔxample.com/", "http://example．com/", "http://faß.example/",
    "http://gооgle.example/", "http://xn--80ak6aa92e.com/", "http://xn--a.example/", "http://xn--.example/",
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/", "http://017700000001/",
    "http://0177.0.0.1/", "http://127.0.0.01/", "http://127.0.1/", "http://256.1.1.1/", "http://1.2.3.4.5/",
    "http://4294967297/", "http://0x/", "http://foo.0x7f/", "http://8.8.8.8./", "http://08.8.8.8/",
    "http://[::1", "http://::1/", "http://[::1]x/", "http://[[::1]]/", "http://[127.0.0.1]/", "http://[v1.x]/",
    "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::ffff:8.8.8.8]/", "http://[::8.8.8.8]/",
    "http://[64:ff9b::808:808]/", "http://[2002:808:808::1]/", "http://[2001:0:808:808::1]/",
    "http://[::ffff:0:808:808]/", "http://example.com:/", "http://example.com:0/", "http://example.com:65536/",
    "http://example.com:80:80/", "http://example.com:+80/", "http://example.com:８０/", "http://exam ple.com/",
    "http://" + "a" * 64 + ".example/", "http://" + "a." * 130 + "example/", "http://example.com/" + "a" * 9000,
    "http://exa<mple.com/", "http://a,b.example/", "http://a$b.example/", "http://😀.example/",
]  # fmt: skip


@each("url", AMBIGUOUS)
def test_what_parsers_read_differently_is_denied_whatever_the_rules(url: str) -> None:
    for rules in (
        {},
        {"allow_private": True},
        {"allow_hosts": ["good.example", "example.com", "a"]},
    ):
        decision = check_url(url, rules=rules, resolve=public)
        assert not decision.allowed
        assert decision.reason
        assert decision.address is None


PRIVATE = ["127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
           "198.18.0.1", "198.19.255.255", "::1", "fc00::1", "fd12:3456::1"]  # fmt: skip
NEVER = ["169.254.169.254", "169.254.170.2", "169.254.1.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
         "fd00:ec2::254", "fd20:ce::254", "fe80::1", "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1",
         "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1",
         "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001::1", "fec0::1", "4000::1"]  # fmt: skip


@each("address", PRIVATE)
def test_private_addresses_open_only_when_the_rules_say_so(address: str) -> None:
    literal = f"http://[{address}]/" if ":" in address else f"http://{address}/"

    for url in (literal, "http://name.example/"):
        assert not check(url, address).allowed
        assert check(url, address, allow_private=True).allowed
    assert not check("http://name.example/", PUBLIC, address).allowed
    assert check("http://name.example/", address, allow_hosts=["name.example"]).allowed
    assert not check("http://other.example/", address, allow_hosts=["name.example"]).allowed


@each("address", NEVER)
def test_metadata_and_special_addresses_never_open(address: str) -> None:
    literal = f"http://[{address}]/" if ":" in address else f"http://{address}/"
    open_rules = {"allow_private": True, "allow_hosts": ["name.example", address]}

    assert not check(literal, **open_rules).allowed
    assert not check("http://name.example/", address, **open_rules).allowed
    assert not check("http://name.example/", PUBLIC, address, **open_rules).allowed


def test_a_vpn_that_maps_public_names_into_a_test_range_works_after_one_setting() -> None:
    assert not check("https://example.com/", "198.18.0.7").allowed
    assert check("https://example.com/", "198.18.0.7", allow_private=True).address == "198.18.0.7"


@pytest.mark.parametrize(
    "host", ["metadata.google.internal", "METADATA.google.internal", "metadata", "metadata.goog"]
)
def test_metadata_names_never_open(host: str) -> None:
    assert not check(f"http://{host}/", allow_private=True, allow_hosts=[host]).allowed


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "x.localhost"])
def test_this_machine_by_name_is_private_whatever_the_resolver_says(host: str) -> None:
    assert not check(f"http://{host}/").allowed
    assert check(f"http://{host}/", "127.0.0.1", allow_private=True).allowed


@each(
    ("pattern", "host", "matches"),
    [
        ("good.example", "good.example", True),
        ("Good.Example", "gOOD.eXAMPLE", True),
        ("good.example.", "good.example", True),
        ("good.example", "www.good.example", False),
        ("good.example", "evilgood.example", False),
        ("good.example", "good.example.evil.example", False),
        (".good.example", "www.good.example", True),
        ("*.good.example", "a.b.good.example", True),
        (".good.example", "good.example", False),
        (".good.example", "evilgood.example", False),
        ("bücher.example", "xn--bcher-kva.example", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("*", "good.example", False),
    ],
)
def test_allowed_hosts_match_whole_labels(pattern: str, host: str, matches: bool) -> None:
    assert check(f"http://{host}/", "10.0.0.1", allow_hosts=[pattern]).allowed is (matches)


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("bad.example", "bad.example", True),
        ("BAD.example.", "bad.example", True),
        ("bad.example", "www.bad.example", False),
        ("*.bad.example", "www.bad.example", True),
        (".bad.example", "bad.example", True),
        (".bad.example", "notbad.example", False),
        (PUBLIC, "any.example", True),
        ("::1", "good.example", False),
    ],
)
def test_denied_hosts_beat_everything(pattern: str, host: str, matches: bool) -> None:
    decision = check(
        f"http://{host}/", deny_hosts=[pattern], allow_hosts=[host], allow_private=True
    )

    assert decision.allowed is not matches


def test_rules_may_be_an_object() -> None:
    rules = UrlRules(allow_private=True, deny_hosts=["bad.example"])

    assert check_url("http://10.0.0.1/", rules=rules).allowed
    assert not check_url("http://bad.example/", rules=rules, resolve=public).allowed


@pytest.mark.parametrize(
    "error",
    [
        OSError("no such host"),
        TimeoutError("late"),
        UnicodeError("bad"),
        KeyError("x"),
        RuntimeError("y"),
    ],
)
def test_a_resolver_that_fails_means_no(error: BaseException) -> None:
    def fail(host: str, port: int) -> list[str]:
        raise error

    decision = check_url("http://example.com/", rules=None, resolve=fail)

    assert not decision.allowed
    assert "example.com" in decision.reason


@pytest.mark.parametrize(
    "answer", [[], ["127.1"], ["fe80::1%eth0"], ["not an address"], [None], [b"1.2.3.4"]]
)
def test_odd_answers_of_a_resolver_mean_no(answer: list[str]) -> None:
    assert not check_url(
        "http://example.com/", rules={"allow_private": True}, resolve=lambda *_: answer
    ).allowed


def test_the_resolver_gets_the_canonical_host_and_is_not_asked_about_addresses() -> None:
    asked: list[tuple[str, int]] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return [PUBLIC]

    check_url("https://BÜCHER.example:81/", rules=None, resolve=resolve)
    check_url("https://8.8.8.8/", rules=None, resolve=resolve)

    assert asked == [("xn--bcher-kva.example", 81)]


@given(st.text(max_size=60))
def test_any_text_gets_an_answer(text: str) -> None:
    for url in (text, "http://" + text, f"http://{text}.example/", f"http://a@{text}/"):
        decision = check_url(url, rules={}, resolve=public)
        assert decision.allowed or decision.reason
        if decision.allowed:
            assert decision.address
            assert decision.host.isascii()


@given(st.text(alphabet="0123456789abcdefx.:[]%@\\/?#-", max_size=30))
def test_no_spelling_reaches_loopback(text: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        assert not host.replace(".", "").isdigit()
        return [PUBLIC]

    decision = check_url(f"http://{text}/", rules=None, resolve=resolve)

    assert not decision.allowed or not str(decision.address).startswith(("127.", "0.", "::1"))

"""Prompt injection: finds instructions to the reader in text that should be data."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Lists of words by name; `_` inside a word stands for one blank or hyphen.
_WORDS = {
    "drop": """ignore disregard forget override overrule bypass discard drop neglect supersede
        abandon stop_following don't_follow do_not_follow don't_obey do_not_obey set_aside
        pay_no_attention_to disobey ignoring disregarding""",
    "old": """all any every each the your of these those its my previous previously prior above
        earlier preceding former original existing initial default current other system developer
        safety security user user's users' given hidden and or built_in core ethical content
        anthropic openai's""",
    "strong": """all any every your previous previously prior above earlier preceding former
        original initial system developer safety security user user's users' hidden ethical core""",
    "rules": """instruction instructions prompt prompts rule rules guideline guidelines directive
        directives message messages policy policies constraint constraints restriction
        restrictions guardrail guardrails training orders programming""",
    "new": "new real actual true updated hidden secret revised",
    "user": """user users human humans operator owner person customer developer anyone anybody
        them""",
    "tell": """tell telling inform informing notify notifying alert alerting mention mentioning
        reveal revealing disclose disclosing warn warning report reporting announce announcing
        show showing ask asking prompt prompting log logging display displaying""",
    "act": """this that it these those step steps upload uploads action actions command commands
        request requests transfer sync process call calls instruction instructions message
        connection telemetry""",
    "guard": """approval approvals approval_prompt approval_prompts approval_gate safety_check
        safety_checks safety_filter safety_filters safety_rules safety_guidelines safety_measures
        safety_mechanisms guardrail guardrails permission_check permission_checks
        permission_prompt permission_prompts content_filter content_filters security_check
        security_checks security_prompt security_prompts security_policy security_policies
        command_approval tool_approval redaction audit_log audit_logging security_scanner""",
    "avoid": """bypass bypassing disable disabling turn_off turning_off circumvent circumventing
        deactivate deactivating evade evading switch_off get_around get_round work_around defeat""",
    "secret": """api_key api_keys access_key access_keys secret secrets credential credentials
        password passwords passphrase passphrases token tokens environment_variable
        environment_variables env_var env_vars env_variables environment .env .env_file .env_files
        ssh_key ssh_keys private_key private_keys seed_phrase seed_phrases wallet wallets mnemonic
        cookies chat_history conversation conversation_history conversations transcript
        system_prompt memory memories memory.md soul.md browser_history id_rsa id_ed25519 keychain
        user_data personal_data private_data ~/.ssh ~/.aws ~/.gnupg ~/.kube clipboard""",
    "send": """send sends sending post posts posting upload uploads uploading forward forwards
        forwarding transmit transmits transmitting email emails emailing exfiltrate exfiltrates
        leak leaks submit submits submitting beacon relay relays deliver delivers transfer
        transfers copy copies curl ship ships""",
    "gather": """read reads collect collects gather gathers harvest harvests grab grabs dump dumps
        find extract extracts retrieve retrieves get gets take takes cat look_up locate fetch""",
    "place": """include append embed encode attach insert add put place smuggle hide""",
    "load": "fetch download read open visit load retrieve get check curl pull query request",
    "obey": "follow execute obey run apply carry_out act_on do perform comply_with evaluate",
    "told": """instructions instruction steps commands command directives whatever anything
        it_says what_it_says orders tasks response contents content result reply code""",
    "approve": """approve approves approved authorize authorizes authorized authorise authorises
        authorised permit permits permitted allow allows allowed consent consents consented grant
        grants granted agreed cleared confirmed""",
    "work": """command commands action actions call calls tool tools deletion deletions delete
        deletes push pushes change changes request requests operation operations install installs
        installation installations edit edits write writes purchase purchases payment payments
        upload uploads transfer transfers deployment deployments execution merge merges""",
    "keep": "add append write save store insert copy put persist record remember",
    "future": """from_now_on permanently in_all_future_sessions in_every_future_session
        in_all_future_conversations for_all_future_requests in_every_session
        for_every_future_request across_all_sessions in_all_sessions""",
}
_WHERE = (
    r"(?:https?://|[\w.+\-]+@[\w\-]+\.\w|\d{1,3}(?:\.\d{1,3}){3}|webhook|our (?:server|endpoint|api"
    r"|collector)|(?:this|the following|an?|the) (?:external |remote |attacker'?s? )?(?:url"
    r"|endpoint"
    r"|server|address|webhook|collector|domain)\b)"
)

# rule, description, template: `{name}` is one word of a list, `~60` up to so many characters of the
# same sentence, `…60` the same over sentences.
_ORDERS = (
    (
        "injection.override",
        "It tells the reader to set its instructions aside.",
        (
            r"(?<!not )(?<!n't )(?<!never )(?<!cannot )\b{drop}(?: {old}){0,5} {strong}"
            r"(?: {old}){0,5} {rules}\b(?! (?:file|template|format)s?\b)"
        ),
        (
            r"\b{new} (?:system )?(?:instructions?|prompt|directives?|orders?)(?: (?:are|is"
            r"|follow|override|supersede|replace)\b| ?:)(?=…120\b(?:you|ignore|must|send|run"
            r"|execute|always|override)\b)"
        ),
        (
            r"\b(?:these|this|the following|my) {rules}(?: below)? (?:override|supersede|replace"
            r"|take (?:priority|precedence) over)s?(?: {old}){1,6} {rules}"
        ),
    ),
    (
        "injection.persona",
        "It makes the reader play somebody without limits.",
        (
            r"\byou are (?:now|no longer)\b~60\b(?:unrestricted|unfiltered|jailbroken|uncensored"
            r"|without (?:any )?(?:restrictions?|limits?|rules?|filters?)|bound by|DAN\b"
            r"|developer mode|god mode|free (?:from|of) (?:all |any )?(?:restrictions?|rules?"
            r"|limits?))"
        ),
        (
            r"\b(?:enter|enable|activate|switch (?:in)?to|engage) (?:developer|god|debug|admin"
            r"|jailbreak|unrestricted|dan|maintenance) mode\b…80\b(?:restrict|safety|filter"
            r"|approv|polic)"
        ),
        (
            r"\bpretend (?:that )?(?:you have|there are) no (?:restrictions?|rules?|limits?"
            r"|guidelines?)"
        ),
    ),
    (
        "injection.secrecy",
        "It wants something done behind the user's back.",
        (
            r"\b(?:do not|don't|never|without)(?: ever)? {tell} (?:about |of )?(?:the |any "
            r"|these )?{act}\b~20\bto (?:the |your )?{user}\b"
        ),
        (
            r"\b(?:do not|don't|never|without)(?: ever)? {tell} (?:the |your )?{user} (?:about|of"
            r"|that you|regarding) (?:the |any |these )?(?:{act}|did|ran|sent|are)\b"
        ),
        r"\b(?:keep|hide|conceal) (?:the |all )?{act}\b~40\bfrom (?:the |your )?{user}",
        (
            r"\b{user} (?:must|should|may|can|will)(?: not|n't|not| never) (?:know|notice"
            r"|find out|suspect|be (?:told|informed|aware|notified))\b"
        ),
        (
            r"\bso (?:that )?(?:the )?{user} (?:doesn't|do not|does not|won't|never|can't"
            r"|cannot) (?:notice|find out|suspect)"
        ),
        (
            r"\bwithout (?:the |your )?{user}(?:'s|s')? (?:knowledge|knowing|noticing|consent"
            r"|being (?:told|aware|informed))"
        ),
        (
            r"\b(?:silently|secretly|covertly|quietly|stealthily)\b~30\b(?:{send}|{gather}"
            r"|exfiltrate|install|execute|run)\b(?=…120(?:{secret}\b|https?://))"
        ),
        (
            r"\b(?:do not|don't|never"
            r"|without)(?: ever)? {tell}\b~30\b{user}\b(?=…160(?:{send})\b~60(?:{secret})\b)"
        ),
        (
            r"(?<!not )(?<!n't )(?<!never )\b{send}\b~60\b{secret}\b"
            r"…120\b(?:do not|don't|never) {tell}\b"
        ),
    ),
    (
        "injection.unguarded",
        "It tells the reader to get round approvals or protections.",
        (
            r"(?<!not )(?<!n't )(?<!never )\b{avoid}(?: (?:all|any|every|the|your|its|agent's"
            r"|hermes|tool|command|human|user))* {guard}\b"
        ),
    ),
    (
        "injection.exfiltrate",
        "It tells the reader to send secrets or private text away.",
        (
            r"(?<!only )(?<!never )(?<!not )\b{send}\b~80(?<![\w.]){secret}\b…60\b(?:to|at|via"
            r"|into)\b…40{where}"
        ),
        (
            r"\b{place}\b~60(?<![\w.]){secret}\b~60\b(?:in|to|into|as"
            r"|within)\b~40(?:query (?:string|parameter)s? of|image (?:link|url|tag)"
            r"|markdown image|https?://|every (?:response|answer|reply|request))"
        ),
        r"\b{gather}\b~60(?<![\w.]){secret}\b…80\b{send}\b…60{where}",
    ),
    (
        "injection.remote",
        "It makes the reader follow instructions that come from elsewhere at that time.",
        r"\b{load}\b~60https?://\S+…80\b{obey}\b~30\b{told}\b",
        (
            r"\b{obey}\b~40\b{told}\b~40\b(?:from|at|returned by|served (?:by|at)|hosted at"
            r"|found at)\b~20https?://"
        ),
    ),
    (
        "injection.frame",
        "It plays a part of the conversation that is not the text's to play.",
        (
            r"<\|(?:im_start|im_end|system|user|assistant|start_header_id|eot_id)\|>|\[/?INST\]"
            r"|<</?SYS>>"
        ),
        r"</?(?:system-reminder|system_prompt|system-prompt|tool_result|function_results?)>",
        (
            r"(?:^|\n)[ >*#\-]*\[?(?:system|admin|developer)\]?(?: (?:message|override|prompt"
            r"|notice|instruction))?\]? ?:(?=…100\b(?:you are|ignore|you must|assistant|execute"
            r"|override|reveal|from now on)\b)"
        ),
    ),
    (
        "injection.standing",
        "It plants standing orders in what the reader remembers.",
        (
            r"\b{keep}\b~40\b(?:this|these|the following|below|above|it|line|instruction"
            r"|rule)s?\b~60\b(?:to|in|into)\b~30(?:your (?:long-term |persistent "
            r"|permanent )?memor(?:y|ies)|\b(?:soul|memory|heartbeat|identity)\.md"
            r"|your system prompt|every (?:future|other) (?:session|conversation|skill))"
        ),
        (
            r"\b{future}\b~60\b(?:you (?:must|will|shall)|always|before|after"
            r"|every)\b~60\b(?:{send}|run|execute|fetch|install|include|append|obey|visit)\b"
        ),
    ),
)

# Claims of a standing approval. A person gives one in the settings, never in a text.
_APPROVALS = (
    (
        "injection.approval",
        "It claims a standing approval.",
        (r"\b{user}\b~30\b{approve}\b~60\b(?:all|any|every|each|future|further)\b~30\b{work}\b"),
        (
            r"\b(?:all|any|every|each|future|further)\b~30\b{work}\b~30\b(?:is|are|was|were|be)"
            r"(?: (?:always|already|hereby|permanently|automatically)){0,2} {approve}\b"
        ),
        (
            r"\b(?:pre-?approved|(?:standing|blanket|general|permanent) (?:approval|permission"
            r"|authori[sz]ation|consent|clearance)|(?:{approve}) (?:in advance|for good"
            r"|permanently|once and for all|from now on)|always {approve})\b"
        ),
        (
            r"\b(?:no need|not necessary|unnecessary|not need|n't need|need not|never|stop|skip"
            r"|do not|don't|not have|n't have|without)\b~20\b(?:ask|asking|confirm|confirming"
            r"|request|requesting|wait|waiting|prompt|prompting|seek|get|getting|need|require)\b~30"
            r"\b(?:approval|approvals|permission|confirmation|consent|authori[sz]ation)\b"
        ),
        (
            r"\b(?:run|execute|delete|remove|push|install|send|deploy|pay|upload|call|use|do|merge)\b"
            r"~80\bwithout (?:asking|confirmation|confirming|approval|permission|prompting|consent)"
        ),
    ),
)

_TEACHES = """
    attack attacks attacker attackers attacking adversary adversaries adversarial malicious
    injection injections injected jailbreak jailbreaks phishing detect detects detecting detection
    detector red_flag red_flags suspicious warning_sign warning_signs payload payloads exploit
    exploits exploitation vulnerable vulnerability vulnerabilities insecure unsafe dangerous hostile
    untrusted threat threats anti_pattern anti_patterns red_team red_teaming test_case test_cases
    fixture fixtures signature signatures indicator indicators forensic forensics pentest
    pentesting penetration ctf malware backdoor backdoors trojan exfiltration escalation
    misconfigured hardening tries_to try_to trying_to attempts_to attempt_to pretends
"""
_QUOTES = "\"'`“”‘’«»"
_WRAPPED = re.compile(r"\n(?! *(?:[-*+|#>\[]|\d+[.)]|\w+:))")


class Order(NamedTuple):
    """One match: the rule, its description, and the position in the text."""

    rule: str
    description: str
    start: int
    end: int


def one_of(words: str) -> str:
    """A pattern for one word of a list; `_` inside a word is one blank or hyphen."""
    ordered = sorted(set(words.split()), key=len, reverse=True)
    return f"(?:{'|'.join(re.escape(word).replace('_', '[ _-]') for word in ordered)})"


@cache
def _patterns(table: tuple[tuple[str, ...], ...]) -> list[tuple[str, str, re.Pattern[str]]]:
    lists = {name: one_of(words) for name, words in _WORDS.items()} | {"where": _WHERE}
    patterns = []
    for rule, description, *templates in table:
        for template in templates:
            pattern = re.sub(r"\{([a-z]+)\}", lambda match: lists[match[1]], template)
            pattern = re.sub(r"~(\d+)", r"[^.!?\\n]{0,\1}?", pattern)
            pattern = re.sub(r"…(\d+)", r".{0,\1}?", pattern)
            compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
            patterns.append((rule, description, compiled))
    return patterns


@cache
def _teaches() -> re.Pattern[str]:
    return re.compile(rf"\b{one_of(_TEACHES)}\b", re.IGNORECASE)


def find_orders(text: str) -> Iterator[Order]:
    """Each part of a text that gives instructions to its reader; homoglyphs count as letters."""
    return _find(text, _ORDERS)


def find_planted(text: str) -> Iterator[Order]:
    """`find_orders`, and claims of a standing approval: for text that later sessions load."""
    return _find(text, (*_ORDERS, *_APPROVALS))


def _find(text: str, table: tuple[tuple[str, ...], ...]) -> Iterator[Order]:
    where: list[int] | None = None
    flat = text
    if not text.isascii():
        from hermes.safety.shell.normalise import normalise

        flat, where = normalise(text.replace("’", "'"))
    # A sentence continues on the next line, unless that starts an item.
    flat = _WRAPPED.sub(" ", flat.replace("\t", " "))
    for rule, description, pattern in _patterns(table):
        for match in pattern.finditer(flat):
            start, end = match.span()
            if where is not None:
                start, end = where[start], where[end - 1] + 1
            yield Order(rule, description, start, end)


def speaks_to_reader(text: str) -> bool:
    """Whether a text that should be data addresses the model that judges it."""
    return _ADDRESS.search(text) is not None or next(find_orders(text), None) is not None


_ADDRESS = re.compile(
    r"(?i)\b(?:reviewers?|approv(?:e|ed|al|es|ing)|decision|nonce|(?:safe|ok|okay|fine) to \w+"
    r"|(?:is|are) (?:\w+ )?(?:safe|harmless)|trust(?:ed)? me|you (?:must|should|can|may|are)"
    r"|assistant|language model|LLM|system prompt|(?:answer|respond|reply|say|return) \W*yes)\b"
)


def taught(context: str) -> bool:
    """Whether the surrounding text shows the match as an example or a warning."""
    return _teaches().search(context) is not None


def is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a part of a text is between quotation marks on its line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    after = text[end:].split("\n", 1)[0]
    # An apostrophe inside a word quotes nothing.
    before, after = (re.sub(r"(?<=\w)['’](?=\w)", "", part) for part in (before, after))
    return any(
        (mark in before and mark in after)
        or (mark in before and mark in '"`“' and before.count(mark) % 2)
        for mark in _QUOTES
    )

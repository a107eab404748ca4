"""The verdicts on the last few commands, for who asks more about one that was just judged.

The gate judges each command afresh, since the scripts that it names may have changed. Those who
come after it in the same call, to know whose words the command brings in or whether there is
anything to undo, are given what it found.
"""

from __future__ import annotations

from hermes.safety.shell.analysis import detect_dangerous_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.shell.verdict import Verdict

_MOST = 64
_LONGEST = 20_000
_verdicts: dict[tuple[str, str], Verdict] = {}


def judge_now(command: str, *, cwd: str, home: str | None, workspace: str) -> Verdict:
    """Judge a command afresh, and keep the verdict for those who come after."""
    verdict = detect_dangerous_command(command, cwd=cwd, home=home, workspace=workspace)
    # What depends on scripts is true for as long as they stay as they are.
    if len(command) <= _LONGEST and verdict.commands is verdict.typed:
        if len(_verdicts) >= _MOST:
            # One step for the interpreter, whatever other threads keep meanwhile.
            for key in list(_verdicts)[: _MOST // 2]:
                _verdicts.pop(key, None)
        _verdicts[command, cwd] = verdict
    else:
        # An earlier one is no longer true, such as of a script that was not there yet.
        _verdicts.pop((command, cwd), None)
    return verdict


def verdict_on(command: str, *, cwd: str) -> Verdict:
    """What was found in a command when it was judged; found now if nobody has."""
    return _verdicts.get((command, cwd)) or detect_dangerous_command(command, cwd=cwd)

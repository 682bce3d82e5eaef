"""The words of commands in pasted text, whatever shell they were written for.

bash, PowerShell and cmd differ in what continues a line (backslash, backtick, caret) and in whether a
backslash is part of a path. One rule serves all: a backslash before a letter, digit, dot, dash or
underscore is a path separator, since no shell needs it to escape those; before anything else it escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from numtrace.errors import UsageError

OPERATORS = ";&|<>"
CONTINUATION = re.compile(r"[\\`^][ \t]*(?:\n|\Z)")
# what may stand before the program: a prompt, `time`, settings of the environment, the program's folder
BEFORE = re.compile(
    r"""\s*
    (?:\([^()\n]*\)\s*)?                                      # (venv)
    (?:(?:PS\s[^>\n]*>|[A-Za-z]:\\[^>\n]*>|[^\s'"=]*[$%\#>❯➜›»λ])\s*)?  # PS C:\>, user@host:~$, ❯
    (?:(?:time|sudo|env|nohup|\w+=\S*)\s+)*
    (?:\S*[/\\])?""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Command:
    """A program's name without folder and suffix, and the words that follow it."""

    program: str
    words: tuple[str, ...]


def commands(text: str, *programs: str) -> list[Command]:
    """Every command of ``text`` that runs one of the programs, in order; the rest of the text is ignored.

    A mention in a sentence does not count: the program must start its line (after a prompt) or follow
    an operator, and at least one word that begins with "-" must follow.
    Raises UsageError for a quote that is not closed.
    """
    text = text.replace("\r\n", "\n")
    names = "|".join(map(re.escape, programs))
    found = []
    for match in re.finditer(rf"(?<![\w.-])({names})(?:\.exe)?(?=\s|$)", text):
        start = max(text.rfind(c, 0, match.start()) for c in "\n;&|") + 1
        if not BEFORE.fullmatch(text, start, match.start()):
            continue
        command = Command(match[1], tuple(_words(text, match.end(), match[1])))
        if any(word.startswith("-") for word in command.words):
            found.append(command)
    return found


def _words(text: str, at: int, program: str) -> Iterator[str]:
    """The words from position ``at`` to the end of the command."""
    word: str | None = None  # None between words; "" is a word too, when quoted
    quote = ""
    while at < len(text):
        c, following = text[at], text[at + 1 : at + 2]
        if not quote and (gap := CONTINUATION.match(text, at)):
            at = gap.end()
            if word is not None and text[at : at + 1] == "-":  # bash would join the two; nobody means that
                yield word
                word = None
            continue
        if quote:
            if c == quote:
                quote = ""
            elif quote == '"' and c in "\\`" and following and following in '"\\$`':
                word, at = (word or "") + following, at + 1
            else:
                word = (word or "") + c
        elif c in "\"'":
            quote, word = c, word or ""
        elif c == "\n" or c in OPERATORS or (c == "#" and word is None):
            if c == ">" and word == "2":
                word = None  # a redirection of stderr
            break
        elif c.isspace():
            if word is not None:
                yield word
            word = None
        elif c in "\\`" and following and not re.match(r"[\w.\-]", following):
            word, at = (word or "") + following, at + 1
        else:
            word = (word or "") + c
        at += 1
    if quote:
        raise UsageError(
            f"the {program} command has a {quote} that is not closed: …{text[max(0, at - 40) : at]!r}"
        )
    if word is not None:
        yield word

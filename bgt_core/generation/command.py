"""Use any program that reads and writes lines as a translator."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from bgt_core.data.parallel import Translation
from bgt_core.data.text import normalise
from bgt_core.errors import DataError, NotFound, UsageError


class CommandTranslator:
    """A program that reads sentences from its standard input, one per line in UTF-8, and writes a translation of each
    to its standard output, in the same order; an empty line stands for a sentence without a translation.

    It is started for every `translate`, without a shell: `command` is its name and arguments, quoted as for a shell.
    Its standard error is ours. Raises UsageError for a command that can't be parsed, NotFound for a program that does
    not exist.
    """

    def __init__(self, command: str):
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"{command}: {error}.", parameter="command") from None
        if not self.words:
            raise UsageError("is empty; expected a program and its arguments.", parameter="command")
        if not shutil.which(self.words[0]):
            raise NotFound(f"{self.words[0]}: no such program.", parameter="command")

    @property
    def fingerprint(self) -> str:
        """The words of the command. The program itself is not hashed: if it changes, a continued file mixes both
        versions."""
        return shlex.join(self.words)

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translate N sentences, without costs. DataError for a program that fails, or that writes anything but N lines
        of UTF-8."""
        if not sentences:
            return []
        text = "".join(f"{normalise(sentence)}\n" for sentence in sentences)
        try:
            done = subprocess.run(self.words, input=text.encode(), stdout=subprocess.PIPE, check=False)
        except OSError as error:
            raise NotFound(f"{self.words[0]}: can't be run ({error.strerror}).", parameter="command") from None
        if done.returncode:
            raise DataError(f"{self.fingerprint}: failed, with exit status {done.returncode}.", parameter="command")
        try:
            lines = done.stdout.decode().removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise DataError(f"{self.fingerprint}: its output is not UTF-8.", parameter="command") from None
        if len(lines) != len(sentences) or not done.stdout:
            written = len(lines) if done.stdout else 0
            message = f"wrote {written} lines for {len(sentences)} sentences; expected one for each"
            raise DataError(f"{self.fingerprint}: {message}.", parameter="command")
        texts = map(normalise, lines)
        return [[Translation(text, math.nan)] if text else [] for text in texts]

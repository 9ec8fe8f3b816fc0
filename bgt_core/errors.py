"""The one error that reaches a user; apart from the other nouns, so that commands start without torch."""

from __future__ import annotations


class BadInput(ValueError):
    """What the user gave can't be used; the message names the value, the rule and the way out.

    `exit_code` is what a command exits with: 2 wrong usage, 3 something needed is absent,
    4 invalid data or checkpoint.
    """

    def __init__(self, message: str, exit_code: int = 4):
        super().__init__(message)
        self.exit_code = exit_code

"""Japanese polite endings to plain ones: "行きます" -> "行く"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

# The last sound of a verb's stem before ます, and the ends of its dictionary, negative and past forms.
_GODAN = {
    "き": ("く", "かない", "いた"),
    "ぎ": ("ぐ", "がない", "いだ"),
    "し": ("す", "さない", "した"),
    "ち": ("つ", "たない", "った"),
    "に": ("ぬ", "なない", "んだ"),
    "び": ("ぶ", "ばない", "んだ"),
    "み": ("む", "まない", "んだ"),
    "り": ("る", "らない", "った"),
    "い": ("う", "わない", "った"),
}
_ICHIDAN = ("る", "ない", "た")
_SURU = ("する", "しない", "した")
_ENDINGS = (("ません", 1), ("ました", 2), ("ます", 0))  # polite, and which of the forms is its plain one
_NA_ADJECTIVES = ("きれい", "嫌い", "くらい", "ぐらい", "みたい")  # they end in い like others
_LONGEST = 4  # characters at the end of a form that must occur in text
_LEAST = 4


def polite_to_plain(texts: Sequence[str]) -> Callable[[str], list[str]]:
    """The rule; of the forms that a stem could have, that whose end is most common in the texts."""
    lengths = range(2, _LONGEST + 1)
    pieces = Counter(text[at : at + length] for text in texts for at in range(len(text)) for length in lengths)

    def common(form: str) -> int:
        return pieces[form[-3:]] + (3 * pieces[form[-_LONGEST:]] if len(form) >= _LONGEST else 0)

    def plain(stem: str, number: int) -> str:
        """The dictionary (0), negative (1) or past form (2) of a verb; "" if none is sure."""
        if stem.endswith("来"):
            return stem + _ICHIDAN[number]
        if stem.endswith("あり"):
            return stem[:-2] + ("ある", "ない", "あった")[number]
        made = [stem + _ICHIDAN[number]]
        if stem[-1:] in _GODAN:
            made.append(stem[:-1] + _GODAN[stem[-1]][number])
        if stem.endswith("し"):
            made.append(stem[:-1] + _SURU[number])
        if stem.endswith("行き") and number == 2:
            made.append(f"{stem[:-1]}った")
        best = max(made, key=common)
        return best if common(best) >= _LEAST else ""

    def ending(body: str, asks: bool) -> str:
        if body.endswith("ませんでした"):
            negative = plain(body.removesuffix("ませんでした"), 1)
            return f"{negative[:-1]}かった" if negative else ""
        for polite, number in _ENDINGS:
            if body.endswith(polite):
                return plain(body.removesuffix(polite), number)
        if body.endswith("でした"):
            return f"{body.removesuffix('でした')}だった"
        if not body.endswith("です"):
            return ""
        noun = body.removesuffix("です")
        adjective = noun.endswith(("い", "かった")) and not noun.endswith(_NA_ADJECTIVES)
        return noun if adjective or (asks and not noun.endswith("ん")) else f"{noun}だ"

    def forms(text: str) -> list[str]:
        body, particle, mark = re.fullmatch(r"(.*?)([かねよ]?)([。！？?!]*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        form = ending(body, particle == "か")
        return [f"{form}{particle}{mark}"] if form else []

    return forms

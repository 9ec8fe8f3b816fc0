"""Add an altered sentence to each translation pair: data for recipes that learn composition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

from bgt_core.data import manifest
from bgt_core.data.alter import LANGS, Altered, altered
from bgt_core.data.clean import Cleaned
from bgt_core.data.columns import ALTERED
from bgt_core.data.pairfile import pair_file, suffix
from bgt_core.data.parallel import Skipped, read_pairs, source_files
from bgt_core.errors import DataError, UsageError

WORDS = "words"  # the kind of a sentence in which two words are exchanged


def alter_rows(
    source: Path, langs: Sequence[str], out: Path, *, of: str, seed: int = 0, strict: bool = False
) -> tuple[Cleaned, Counter[str]]:
    """Write each pair with an altered sentence; OUT.json is a card.

    Args:
        source: Pairs, as `bgt_core.data.parallel.read_pairs` reads them.
        langs: The two languages of the pairs.
        out: The file to write; its columns are `langs` and "altered".
        of: The language whose sentences are altered: by the rules of `altered` in English and French, and by exchanging
            two words if no rule applies.
        seed: Seed of all draws.
        strict: Stop at the first bad line.

    Returns:
        The file written, and the number of rows of each kind of alteration. A sentence without two different words
        is dropped with its pair.

    Raises:
        UsageError: `langs` are not two different languages, or `of` is not one of them.
        DataError: A bad source, or no pair that can be altered.
    """
    suffix(out)
    if len(langs) != 2 or langs[0] == langs[1] or of not in langs:
        raise UsageError(f"{of}: expected one of two different languages, not of {','.join(langs)}", parameter="of")
    rng, skipped, dropped, kinds = Random(f"{seed} altered"), Skipped(), Counter[str](), Counter[str]()
    with pair_file(out, (*langs, ALTERED)) as add:
        for pair in read_pairs(source, langs, skipped, strict):
            text = pair[langs.index(of)]
            change = (altered(text, of, rng) if of in LANGS else None) or exchanged(text, rng)
            if change is None:
                dropped["one word"] += 1
                continue
            kinds[change.kind] += 1
            add([[part.encode() for part in (*pair, change.text)]])
        if not kinds:
            raise DataError(f"{source}: no sentence in {of} has two different words.")
    files = source_files(source, langs)
    about = {
        "dropped": dict(dropped),
        "skipped": dict(skipped.counts),
        "altered": of,
        "kinds": dict(kinds),
        "seed": seed,
    }
    manifest.write_card(out, (*langs, ALTERED), kinds.total(), files, about)
    return Cleaned(kinds.total(), dict(dropped), skipped), kinds


def exchanged(text: str, rng: Random) -> Altered | None:
    """Exchange two different words; return None if the text has only one. Marks stay where they are."""
    words = text.split()
    cores = [word.strip(".,;:!?…\"'«»()") for word in words]
    places = [place for place, core in enumerate(cores) if core]
    folded = [cores[place].casefold() for place in places]
    later, others = Counter(folded), []  # of each, how many different words come after it
    for at, word in enumerate(folded, 1):
        later[word] -= 1
        others.append(len(folded) - at - later[word])
    if not any(others):
        return None
    drawn = rng.randrange(sum(others))  # among all pairs, in order
    at = next(at for at, before in enumerate(accumulate(others)) if drawn < before)
    following = [place for place, word in zip(places[at + 1 :], folded[at + 1 :], strict=True) if word != folded[at]]
    first, second = places[at], following[drawn - sum(others[:at])]
    for row, core in ((first, cores[second]), (second, cores[first])):
        words[row] = words[row].replace(cores[row], core, 1)
    return Altered(WORDS, " ".join(words))

"""Known facts of the published STS sets: their numbers of pairs, and deviations of the files at hand."""

from __future__ import annotations

from collections.abc import Sequence

from bgt_core.evaluation.sts.score import StsSet

PAIRS = {  # with a gold score
    "2012": {"MSRpar": 750, "MSRvid": 750, "OnWN": 750, "SMTeuroparl": 459, "SMTnews": 399},
    "2013": {"FNWN": 189, "OnWN": 561, "SMT": 750, "headlines": 750},
    "2014": {"OnWN": 750, "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "tweet-news": 750},
    "2015": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "2016": {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
    "stsb": {"train": 5749, "dev": 1500, "test": 1379},
    "sick": {"train": 4500, "trial": 500, "test": 4927},
    "sts17": dict.fromkeys(("ar-ar", "en-ar", "en-en", "en-es", "en-es news", "en-tr", "es-es"), 250),
}


def dataset_warnings(sets: Sequence[StsSet]) -> list[str]:
    """Explain why scores on these sets may differ from published ones, or be less certain; one sentence each.

    Repeated pairs within a set count as often as they occur, as in all published scores: some published sets have them.
    """
    warnings = []
    for data in sets:
        published = PAIRS.get(data.year, {}).get(data.name)
        if published not in (None, len(data.gold)):
            warnings.append(f"{data} has {len(data.gold)} pairs, {published} as published.")
    for year in dict.fromkeys(data.year for data in sets if data.year.isdigit()):
        names = {data.name for data in sets if data.year == year}
        # 2013's SMT has its own licence, and is mentioned with the scores
        missing = PAIRS.get(year, {}).keys() - names - {"SMT"}
        if missing:
            warnings.append(f"{year} is without {', '.join(sorted(missing))}: its score is not the published one.")
    whole = [data for data in sets if data.year != "hard"]  # Hard STS is cut from other sets
    repeats = {str(data): len(data.left) - len({*zip(data.left, data.right, strict=True)}) for data in whole}
    if some := [f"{name} {count}" for name, count in repeats.items() if count]:
        warnings.append(f"Repeated pairs within a set, counted as often as they occur: {', '.join(some)}.")
    return warnings

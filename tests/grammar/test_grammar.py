"""The grammar: different sentences, true factors, and French without a mistake of form."""

import hashlib
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict

import pytest

from bgt_core.errors import UsageError
from bgt_core.grammar import LIMIT, Pair, pairs
from bgt_core.grammar.nouns import NOUNS
from bgt_core.grammar.verbs import ACTS
from bgt_core.grammar.words import comparative, english, french, french_adjective, french_noun, sandhi

COUNT = 4_000


@pytest.fixture(scope="module")
def many() -> list[Pair]:
    return pairs(COUNT, seed=1)


def test_pairs_are_different_in_meaning_and_in_both_texts(many: list[Pair]) -> None:
    assert len(many) == COUNT
    assert len({pair.meaning for pair in many}) == COUNT
    assert all(len({pair.texts[lang] for pair in many}) == COUNT for lang in ("en", "fr"))


def test_the_same_seed_gives_the_same_pairs_and_a_short_list_starts_a_long_one(many: list[Pair]) -> None:
    assert pairs(50, seed=1) == many[:50]
    assert pairs(50, seed=2) != many[:50]


def test_the_pairs_of_a_seed_never_change() -> None:
    """Probes, tutorials and the golden losses are made of them."""
    text = "\n".join(side for pair in pairs(2_000, seed=1) for side in pair.texts.values())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "cbd0f524b4248457"


def test_asking_for_too_many_says_how_many_there_are() -> None:
    with pytest.raises(UsageError, match=f"at most {LIMIT:,}"):
        pairs(LIMIT + 1)


def test_ten_thousand_pairs_are_quick_to_make() -> None:
    start = time.process_time()
    pairs(10_000)
    assert time.process_time() - start < 5  # about 0.5 s on one idle core


def test_it_needs_the_standard_library_only() -> None:
    code = "import sys, bgt_core.grammar; sys.exit(any(name in sys.modules for name in ('torch', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_lexicon_has_several_hundred_entries() -> None:
    assert sum(map(len, NOUNS.values())) + len(ACTS) > 300


def test_marks_and_fillers_show_in_the_text_they_are_recorded_for(many: list[Pair]) -> None:
    seen: Counter = Counter()
    for pair in many:
        for lang, text in pair.texts.items():
            style = pair.style[lang]
            mark, filler = style.get("mark"), style["filler"]
            if mark == "none":
                assert text[-1].isalpha(), text
            elif mark:
                assert text.endswith(mark), text
            else:
                assert text.endswith("?"), text
            assert filler == "none" or text.lower().startswith(f"{filler}, "), text
            seen[lang, mark] += 1
    assert all(seen[lang, mark] > 100 for lang in ("en", "fr") for mark in (".", "!", "...", "none", None))


@pytest.mark.parametrize("factor", ["mark", "filler", "time", "words", "future"])
def test_each_manner_is_independent_of_the_other_language(many: list[Pair], factor: str) -> None:
    both = [(p.style["en"][factor], p.style["fr"][factor]) for p in many if all(factor in m for m in p.style.values())]
    table, left, right = Counter(both), Counter(a for a, _ in both), Counter(b for _, b in both)
    cells = [(table[a, b], left[a] * right[b] / len(both)) for a in left for b in right]
    chi2, freedom = sum((seen - due) ** 2 / due for seen, due in cells), (len(left) - 1) * (len(right) - 1)
    assert len(both) > 100
    assert len(left) > 1
    assert chi2 < freedom + 5 * (2 * freedom) ** 0.5  # five standard deviations above the mean of chi squared


def test_manner_does_not_change_the_words_of_meaning(many: list[Pair]) -> None:
    """Every meaning names lexemes that the English text holds, in one of their forms."""
    for pair in many[:500]:
        if "dog" in pair.meaning:
            assert re.search(r"\bdogs?\b", pair.texts["en"]) and re.search(r"\bchiens?\b", pair.texts["fr"])
        if "bicycle" in pair.meaning:
            assert re.search(r"\b(bicycle|bike)", pair.texts["en"]) and re.search("bicyclette|vélo", pair.texts["fr"])
    assert sum("dog" in pair.meaning for pair in many[:500]) > 2


VOWEL = "[aeiouyàâéèêîôûœ]"
MISTAKES = {
    "elision": rf"\b(le|la|de|ne|que|je) (?!yaourt){VOWEL}|\bsi ils?\b",
    "no elision before h aspiré": r"['’](héros|hibou|homard|hamac|hache|hérisson|hall|hangar|harpe)",
    "contraction": r"\b(de|à) les?\b(?!['’])",
    "cet, bel, nouvel, vieil": rf"\b(ce|beau|nouveau) {VOWEL}|\b(un|le|mon|ton|son|ce|du|au) vieux {VOWEL}",
    "mon amie": rf"\b(ma|ta|sa) {VOWEL}",
    "ma vieille amie": r"\b(mon|ton|son|cet) [^aeiouyàâéèêîôûœh]\w+e (amie|tante|échelle|horloge)\b",
    "un": r"\bune (homme|garçon|chat|livre|vélo)\b|\bun (femme|fille|voiture|maison|clé)\b",
    "pas un": r"\b(pas|jamais) ((?!près)\w+ )?(un|une|du|des) (?!jour)",
    "de + plural adjective": r"(?<!près )\bdes (beaux|belles|vieux|vieilles|nouveaux|nouvelles|bonnes|grands|jolis)\b",
    "meilleur": r"plus bon",
    "y": r"\bil y (ne|va|n')",
    "t": r"[aeiou]-(il|elle|on)\b|-t-(tu|nous|vous|ils d)",
    "space": r"  | ,| \.|\w[!?]|^ ",
    "doubled word": r"\b(?!nous|vous|en)(\w+) \2\b",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_french_sentence_has(many: list[Pair], mistake: str) -> None:
    pattern = MISTAKES[mistake].replace(r"\2", r"\1")
    wrong = [
        pair.texts["fr"] for pair in many if re.search(pattern, pair.texts["fr"][0].lower() + pair.texts["fr"][1:])
    ]
    # near plural articles "des" is the contraction of "de les", which keeps its adjective
    assert wrong == []


def test_no_english_sentence_has_a_wrong_article_or_contraction(many: list[Pair]) -> None:
    wrong = re.compile(
        r"\ba (?!uni|use)[aeiou]|\ban (?!ho)[^aeiou]|\bthere're|  | ,| \.|\bI is\b|^(He|She) (are|have|do)\b"
    )
    assert [pair.texts["en"] for pair in many if wrong.search(pair.texts["en"])] == []


MASCULINE = (
    "vieux beau gros petit grand bon mauvais long lourd élégant blanc noir froid chaud heureux cher bruyant".split()
)
FEMININE = "vieille belle grosse petite grande bonne longue lourde élégante blanche noire froide heureuse chère".split()


def test_predicates_agree_with_the_article_of_their_subject(many: list[Pair]) -> None:
    seen: Counter = Counter()
    for pair in many:
        text = f" {pair.texts['fr'].lower()}"
        for articles, right, wrong in (("la|cette|ma|ta", FEMININE, MASCULINE), ("le|ce", MASCULINE, FEMININE)):
            be = r"(?:n'est pas|est|sera|était|n'était pas|va être)"
            match = re.search(rf"^(?: [a-z ]+,)? (?:{articles}) \w+ {be} (?:très |vraiment |assez |trop )?(\w+)", text)
            if match:
                assert match[1] not in wrong, text
                seen[articles] += match[1] in right
    assert len(seen) == 2
    assert all(count > 15 for count in seen.values())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("de le ami de le roi", "de l'ami du roi"),
        ("à le hibou de la école", "au hibou de l'école"),
        ("je aime que il ne ait", "j'aime qu'il n'ait"),
        ("près de les hommes de le héros", "près des hommes du héros"),
        ("le homme, la histoire, la hache", "l'homme, l'histoire, la hache"),
        ("si il pleut, si elle", "s'il pleut, si elle"),
        ("parce que Élodie", "parce qu'Élodie"),
    ],
)
def test_sandhi(before: str, after: str) -> None:
    assert sandhi(before) == after


@pytest.mark.parametrize(
    ("verb", "present", "future", "participle"),
    [
        ("manger", "mange manges mange mangeons mangez mangent", "mangera", "mangé"),
        ("acheter", "achète achètes achète achetons achetez achètent", "achètera", "acheté"),
        ("protéger", "protège protèges protège protégeons protégez protègent", "protégera", "protégé"),
        ("sécher", "sèche sèches sèche séchons séchez sèchent", "séchera", "séché"),
        ("nettoyer", "nettoie nettoies nettoie nettoyons nettoyez nettoient", "nettoiera", "nettoyé"),
        ("déplacer", "déplace déplaces déplace déplaçons déplacez déplacent", "déplacera", "déplacé"),
        ("finir", "finis finis finit finissons finissez finissent", "finira", "fini"),
        ("attendre", "attends attends attend attendons attendez attendent", "attendra", "attendu"),
        ("offrir", "offre offres offre offrons offrez offrent", "offrira", "offert"),
        ("boire", "bois bois boit buvons buvez boivent", "boira", "bu"),
        ("dire", "dis dis dit disons dites disent", "dira", "dit"),
        ("aller", "vais vas va allons allez vont", "ira", "allé"),
    ],
)
def test_french_verbs(verb: str, present: str, future: str, participle: str) -> None:
    forms = french(verb)
    assert (" ".join(forms.present), forms.future[2], forms.participle) == (present, future, participle)


def test_french_imperfect() -> None:
    assert french("être").imperfect == ("étais", "étais", "était", "étions", "étiez", "étaient")
    assert french("avoir").imperfect[5] == "avaient"


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("stop", "stop stops stopped stopped stopping"),
        ("carry", "carry carries carried carried carrying"),
        ("write/wrote/written", "write writes wrote written writing"),
        ("begin/began/begun", "begin begins began begun beginning"),
        ("watch", "watch watches watched watched watching"),
        ("visit", "visit visits visited visited visiting"),
        ("have/had", "have has had had having"),
    ],
)
def test_english_verbs(verb: str, forms: str) -> None:
    assert " ".join(english(verb)[:5]) == forms


def test_plurals_and_feminines() -> None:
    nouns = {"cheval m": "chevaux", "gâteau m": "gâteaux", "souris f": "souris", "neveu m": "neveux", "ami m": "amis"}
    assert {noun: french_noun(noun)[1] for noun in nouns} == nouns
    feminines = {"heureux": "heureuse", "léger": "légère", "inquiet": "inquiète", "cassé": "cassée", "rouge": "rouge"}
    assert {word: french_adjective(word)[1]["f", False] for word in feminines} == feminines
    assert french_adjective("bleu")[1]["m", True] == "bleus"


def test_comparatives() -> None:
    words = {"big": "bigger", "heavy": "heavier", "strange": "stranger", "famous": "more famous", "good": "better"}
    assert {word: comparative(word) for word in words} == words


def test_every_frame_and_factor_turns_up(many: list[Pair]) -> None:
    frames, factors = Counter(pair.meaning[0] for pair in many), defaultdict(set)
    for pair in many:
        for lang, style in pair.style.items():
            for factor, value in style.items():
                factors[lang, factor].add(value)
    kinds = "say be ask think order compare because if who how but when price".split()
    assert set(frames) == {*kinds, "there is", "what a", "let us", "where is", "who does"}
    assert all(len(values) > 1 for values in factors.values())
    french_only, english_only = {"you", "we", "question", "progress"}, {"form", "that", "receiver"}
    assert {factor for lang, factor in factors if lang == "fr"} >= french_only | {"future", "time"}
    assert {factor for lang, factor in factors if lang == "en"} >= english_only | {"future", "time"}

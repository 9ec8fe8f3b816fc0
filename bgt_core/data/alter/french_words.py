"""The words by which French sentences are altered: function words, frequent verbs, names of persons, nouns."""

from __future__ import annotations

from bgt_core.data.alter import english_words
from bgt_core.grammar.nouns import FITTING, NOUNS
from bgt_core.grammar.words import french

_VERBS = """
être avoir aller faire dire voir boire lire écrire prendre apprendre comprendre surprendre venir revenir vouloir
devoir savoir promettre dormir courir ouvrir offrir rire sourire conduire croire recevoir envoyer appeler aimer
adorer détester manger donner parler travailler habiter penser trouver chercher aider demander regarder écouter
attendre entendre répondre perdre vendre rendre acheter payer jouer chanter danser marcher arriver entrer rester
tomber oublier rencontrer inviter remercier excuser pardonner espérer souhaiter préférer refuser accepter arrêter
commencer continuer finir choisir réussir étudier essayer porter laver nettoyer préparer montrer prêter emprunter
voler cacher garder laisser quitter manquer épouser embrasser protéger sauver tuer frapper blesser suivre déranger
tromper trahir accuser critiquer admirer respecter ignorer mépriser envier détruire construire réparer utiliser
visiter voyager rentrer monter gagner compter coûter raconter expliquer conseiller convaincre encourager féliciter
soutenir défendre engager punir gronder fumer pleurer crier nager tourner fermer
"""
_UNKNOWN = {"soutenir", "suivre", "convaincre", "détruire"}  # their forms can't be derived
_TENSES = ("present", "imperfect", "future")
CONJUGATED = {verb: french(verb) for verb in _VERBS.split() if verb not in _UNKNOWN}
FORMS: dict[str, list[tuple[str, str, int]]] = {}  # a form -> (verb, tense, person) of each reading
for _verb, _table in CONJUGATED.items():
    for _tense in _TENSES:
        for _person, _form in enumerate(getattr(_table, _tense)):
            FORMS.setdefault(_form, []).append((_verb, _tense, _person))
ETRE = {form for form, readings in FORMS.items() if ("être" in [verb for verb, _, _ in readings])} | {"été", "être"}
PARTICIPLES = {table.participle: verb for verb, table in CONJUGATED.items()}
DIRECT = set(  # their person is a direct object: "il m'aide", "je l'aide"
    """
    voir prendre comprendre surprendre croire appeler aimer adorer détester trouver chercher aider regarder écouter
    attendre entendre perdre inviter remercier rencontrer embrasser épouser quitter protéger sauver tuer frapper
    blesser déranger tromper trahir accuser critiquer admirer respecter ignorer mépriser punir gronder défendre
    encourager féliciter reconnaître
    """.split()
)
INDIRECT = set(  # "il m'a dit", "je lui ai dit"
    """
    dire donner parler demander répondre montrer envoyer écrire prêter offrir raconter expliquer promettre
    conseiller vendre apprendre manquer
    """.split()
)

SUBJECTS = {"je": 0, "j'": 0, "tu": 1, "il": 2, "elle": 2, "on": 2, "nous": 3, "vous": 4, "ils": 5, "elles": 5}
CLITICS = set("me te se le la les lui leur nous vous y en m' t' s' l'".split())
DETERMINERS = {  # gender ("" if either) and whether plural
    "le": ("m", False), "un": ("m", False), "ce": ("m", False), "cet": ("m", False), "au": ("m", False),
    "la": ("f", False), "une": ("f", False), "cette": ("f", False), "ma": ("f", False), "ta": ("f", False),
    "sa": ("f", False), "l'": ("", False), "mon": ("", False), "ton": ("", False), "son": ("", False),
    "notre": ("", False), "votre": ("", False), "leur": ("", False), "chaque": ("", False),
    "les": ("", True), "ces": ("", True), "mes": ("", True), "tes": ("", True), "ses": ("", True),
    "nos": ("", True), "vos": ("", True), "leurs": ("", True), "deux": ("", True), "trois": ("", True),
}  # fmt: skip
PREPOSITIONS = set(
    "à de d' en dans sur sous avec pour par chez vers contre devant derrière sans avant après près entre".split()
)
LINKS = set(
    "et ou mais que qu' qui dont où quand si lorsque lorsqu' parce car comme pourquoi comment ni donc lequel "
    "laquelle lesquels".split()
)
ADVERBS = set("bien mal souvent toujours vraiment jamais pas plus rien tout déjà".split())

_WOMEN = """
Mary Marie Alice Jane Nancy Susan Lucy Betty Kate Helen Layla Linda Anna Emily Emma Julia Laura Maria Judy Emi Yumi
Naoko Carol Meg Ann Cathy Jessica Beth Bess Kumi Sarah Lisa Sophie Claire Jenny Sally Mariko
"""
NAMES = {name: "f" if name in _WOMEN.split() else "m" for name in english_words.NAMES}
NOUN_FORMS: dict[str, tuple[str, str, bool]] = {}  # noun -> "person" or "thing", gender, whether plural
for _kind, _nouns in NOUNS.items():
    for _noun in _nouns:
        for _singular, _plural, _gender in _noun.fr:
            _sort = "person" if _kind in ("kin", "person", "animal") else "thing"
            NOUN_FORMS.setdefault(_plural, (_sort, _gender, True))
            NOUN_FORMS[_singular] = (_sort, _gender, False)
ADJECTIVE_FORMS = {  # adjective form -> whether it stands before the noun, and all forms by gender and plural
    form: (before, forms)
    for fitting in FITTING.values()
    for adjective in fitting
    for before, forms, _ in adjective.fr
    for form in forms.values()
}

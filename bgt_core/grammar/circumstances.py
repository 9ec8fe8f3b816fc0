"""Phrases of time, place, manner and degree; table rows as in `nouns`."""

from bgt_core.grammar.words import Lexeme, read

_DAYS = read(
    """
    Monday=lundi; Tuesday=mardi; Wednesday=mercredi; Thursday=jeudi; Friday=vendredi; Saturday=samedi;
    Sunday=dimanche
    """
)
_TIMES = {
    "past": """
        yesterday=hier; last week=la semaine dernière|la semaine passée; last night=hier soir; this morning=ce
        matin; last year=l'année dernière|l'an dernier; two days ago=il y a deux jours; a long time ago=il y a
        longtemps; last summer=l'été dernier; last month=le mois dernier|le mois passé; an hour ago=il y a une
        heure; yesterday morning=hier matin; last winter=l'hiver dernier
    """,
    "future": """
        tomorrow=demain; next week=la semaine prochaine; tonight|this evening=ce soir; next year=l'année
        prochaine|l'an prochain; soon=bientôt; next month=le mois prochain; in two days=dans deux jours; tomorrow
        evening=demain soir; next summer=l'été prochain; in an hour=dans une heure; one day|some day=un jour; the
        day after tomorrow=après-demain; later=plus tard
    """,
    "habit": """
        every day|each day=tous les jours|chaque jour; every morning|each morning=tous les matins|chaque matin; in
        the evening=le soir; every week|each week=toutes les semaines|chaque semaine; in winter=en hiver; in
        summer=en été; at night=la nuit; at noon=à midi; after dinner=après le dîner; from time to time|now and
        then=de temps en temps; twice a week=deux fois par semaine
    """,
    "now": "now=maintenant; at the moment|right now=en ce moment; today=aujourd'hui; this afternoon=cet après-midi",
}
ADVERBS = read(
    """
    slowly=lentement; quickly|fast=rapidement|vite; carefully=soigneusement|avec soin; quietly|silently=en silence;
    with pleasure|gladly=avec plaisir; in secret|secretly=en secret|en cachette; with a friend=avec un ami; without
    a word=sans un mot
    """
)
_WHERE = read(
    """
    at school>to school=à l'école; at home>home=à la maison; in Paris>to Paris=à Paris; in France>to France=en
    France; in Canada>to Canada=au Canada; in Japan>to Japan=au Japon; in Italy>to Italy=en Italie; in London>to
    London=à Londres; abroad=à l'étranger; in the United States>to the United States=aux États-Unis; in the
    countryside>to the countryside=à la campagne; in Berlin>to Berlin=à Berlin; at the seaside>to the seaside=au
    bord de la mer; in Spain>to Spain=en Espagne; in Montreal>to Montreal=à Montréal
    """
)
SPOTS = read("near=près de; behind=derrière; in front of=devant")
WEATHER = read(
    """
    it rains=il pleut; it snows=il neige; it is cold=il fait froid; it is hot=il fait chaud; it is late=il est tard
    """
)
DEGREES = read(
    """
    very=très; really=vraiment; too=trop; a little|a bit=un peu; quite=assez; always=toujours; often=souvent
    """
)
TIMES = {tense: read(table) for tense, table in _TIMES.items()}
for day in _DAYS:
    en, fr = day.en[0], day.fr[0]
    TIMES["past"].append(Lexeme(f"last {en}", (f"last {en}",), (f"{fr} dernier",)))
    TIMES["future"].append(Lexeme(f"next {en}", (f"next {en}",), (f"{fr} prochain",)))
    TIMES["habit"].append(Lexeme(f"on {en}s", (f"on {en}s", f"every {en}"), (f"le {fr}", f"tous les {fr}s")))
HERE = [Lexeme(place.key, tuple(en.split(">")[0] for en in place.en), place.fr) for place in _WHERE]
THERE = [Lexeme(place.key, tuple(en.split(">")[-1] for en in place.en), place.fr) for place in _WHERE]
IN, AT, TO = read("in=dans; at=à; to=à")

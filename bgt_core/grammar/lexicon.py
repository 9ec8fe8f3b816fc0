"""The lexicon: a few hundred English-French entries, written for this project.

A table row reads "english|synonym=french|synonym"; a slash gives a form that the rules would miss.
"""

from bgt_core.grammar.words import (
    English,
    Lexeme,
    english_noun,
    french,
    french_adjective,
    french_noun,
    read,
    read_verbs,
)

_NOUNS = {
    "kin": """
        brother=frère m; sister=sœur f; father=père m; mother=mère f; uncle=oncle m; aunt=tante f; cousin=cousin m;
        grandfather=grand-père/grands-pères m; grandmother=grand-mère/grands-mères f; son=fils m; daughter=fille f;
        neighbour=voisin m; friend=ami m; wife/wives=femme f; husband=mari m; niece=nièce f; nephew=neveu m;
        colleague=collègue m; boss=patron m; godmother=marraine f
    """,
    "person": """
        man/men=homme m; woman/women=femme f; child/children|kid=enfant m|gamin m; boy=garçon m; girl=fille f;
        doctor|physician=médecin m|docteur m; nurse=infirmière f; teacher=professeur m|enseignant m;
        student=étudiant m; baker=boulanger m; farmer=agriculteur m; singer=chanteuse f; actress=actrice f;
        lawyer=avocat m; cook=cuisinier m; journalist=journaliste f; gardener=jardinier m; painter=peintre m;
        writer|author=écrivain m|auteur m; engineer=ingénieur m; soldier=soldat m; policeman/policemen=policier m;
        waiter=serveur m; waitress=serveuse f; judge=juge m; mayor=maire m; hero/heroes=héros m; tourist=touriste m;
        musician=musicien m; dancer=danseuse f; postman/postmen=facteur m; driver=conducteur m;
        hairdresser=coiffeuse f; butcher=boucher m; guest=invité m; princess=princesse f; librarian=bibliothécaire
        f; carpenter=menuisier m; pilot=pilote m; dentist=dentiste m; passenger=passager m; inspector=inspecteur m;
        caretaker=gardien m; queen=reine f; king=roi m
    """,
    "animal": """
        dog=chien m; cat=chat m; horse=cheval m; cow=vache f; bird=oiseau m; rabbit=lapin m; sheep/sheep=mouton m;
        hen=poule f; duck=canard m; mouse/mice=souris f; donkey=âne m; goat=chèvre f; owl=hibou/hiboux m; pig=cochon
        m; hedgehog=hérisson m; squirrel=écureuil m; tortoise=tortue f; monkey=singe m; fox=renard m;
        goose/geese=oie f
    """,
    "food": """
        apple=pomme f; orange=orange f; egg=œuf m; cake=gâteau m; sandwich=sandwich m; pear=poire f; carrot=carotte
        f; tomato/tomatoes=tomate f; strawberry=fraise f; pie=tarte f; omelette=omelette f; lemon=citron m;
        onion=oignon m; potato/potatoes=pomme de terre/pommes de terre f; green bean=haricot vert/haricots verts m;
        pancake=crêpe f; biscuit|cookie=biscuit m|petit gâteau/petits gâteaux m; peach=pêche f; banana=banane f;
        lobster=homard m
    """,
    "dish": """
        bread=pain m; soup=soupe f; cheese=fromage m; rice=riz m; meat=viande f; honey=miel m; salad=salade f;
        chocolate=chocolat m; jam=confiture f; ham=jambon m; ice cream=glace f; butter=beurre m; garlic=ail m;
        oil=huile f
    """,
    "drink": """
        water=eau f; milk=lait m; tea=thé m; coffee=café m; wine=vin m; orange juice=jus d'orange m; cider=cidre m;
        lemonade=limonade f; beer=bière f; herbal tea=tisane f
    """,
    "text": """
        book=livre m; letter=lettre f; newspaper|paper=journal m; novel=roman m; poem=poème m; story|tale=histoire
        f; magazine=magazine m|revue f; report=rapport m; message=message m; article=article m; recipe=recette f;
        speech=discours m; dictionary=dictionnaire m; postcard=carte postale/cartes postales f;
        contract=contrat m
    """,
    "thing": """
        key=clé f|clef f; lamp=lampe f; table=table f; chair=chaise f; box=boîte f; bag=sac m; umbrella=parapluie m;
        watch=montre f; phone|telephone=téléphone m; computer=ordinateur m; camera=appareil photo/appareils photo m;
        guitar=guitare f; violin=violon m; piano=piano m; ball=ballon m; doll=poupée f; mirror=miroir m;
        knife/knives=couteau m; glass=verre m; cup=tasse f; plate=assiette f; bottle=bouteille f; candle=bougie f;
        pen=stylo m; pencil=crayon m; notebook=cahier m; suitcase=valise f; present|gift=cadeau m;
        picture|painting=tableau m; clock=horloge f; axe=hache f; ladder=échelle f; rope=corde f; hammock=hamac m;
        ring=bague f; photo|photograph=photo f|photographie f; tool=outil m; flower=fleur f; toy=jouet m;
        basket=panier m; blanket=couverture f; pillow=oreiller m; hammer=marteau m; bucket=seau m; rug|carpet=tapis
        m; wallet=portefeuille m; sofa|couch=canapé m|sofa m; radio=radio f; harp=harpe f
    """,
    "clothes": """
        shirt=chemise f; coat=manteau m; hat=chapeau m; dress=robe f; jacket=veste f; scarf/scarves=écharpe f;
        jumper|sweater=pull m; tie=cravate f; skirt=jupe f; suit=costume m; belt=ceinture f; uniform=uniforme m;
        apron=tablier m
    """,
    "vehicle": """
        car=voiture f|auto f; bicycle|bike=bicyclette f|vélo m; lorry|truck=camion m; boat=bateau m;
        motorbike|motorcycle=moto f; tractor=tracteur m; van=camionnette f; taxi|cab=taxi m; sledge=luge f;
        plane=avion m
    """,
    "inside": """
        garden=jardin m; park=parc m; house=maison f; kitchen=cuisine f; village=village m; castle=château m;
        forest|wood=forêt f; barn=grange f; cellar=cave f; attic=grenier m; street=rue f; shop|store=magasin m;
        tower=tour f; flat|apartment=appartement m; garage=garage m; town=ville f; bookshop=librairie f; entrance
        hall=hall m; shed=hangar m
    """,
    "at": """
        station=gare f; church=église f; market=marché m; museum=musée m; library=bibliothèque f; hospital=hôpital
        m; hotel=hôtel m; restaurant=restaurant m; bank=banque f; bakery=boulangerie f; theatre=théâtre m;
        cinema=cinéma m; beach=plage f; airport=aéroport m; university=université f; factory=usine f; stadium=stade
        m; swimming pool=piscine f; farm=ferme f; pharmacy|drugstore=pharmacie f; post office=poste f; town
        hall=mairie f; harbour=port m; zoo=zoo m
    """,
}
NOUNS = {kind: read(table, english_noun, french_noun, kind) for kind, table in _NOUNS.items()}
MASS = frozenset({"dish", "drink"})  # kinds that are not counted

# Feminine and, for three adjectives, the form before a vowel follow the masculine; "<" stands before its noun.
_ADJECTIVES = {
    lexeme.key: lexeme
    for lexeme in read(
        """
big|large=<grand; small|little=<petit; new=<nouveau/nouvelle/nouvel; old=<vieux/vieille/vieil;
beautiful|lovely=<beau/belle/bel; pretty=<joli; good=<bon/bonne; bad=<mauvais; long=<long/longue; fat=<gros/grosse;
young=<jeune; red=rouge; blue=bleu; green=vert; black=noir; white=blanc/blanche; grey=gris; yellow=jaune;
heavy=lourd; light=léger; expensive=cher; broken=cassé; dirty=sale; clean=propre; useful|handy=utile|pratique;
strange|odd=étrange|bizarre; modern=moderne; precious=précieux; round=rond; huge|enormous=énorme|immense; ugly=laid;
rare=rare; fragile=fragile; kind|nice=gentil/gentille|aimable; tired=fatigué; happy|glad=content|heureux;
sad=triste; furious=furieux; serious=sérieux; shy|timid=timide; brave|courageous=courageux; polite=poli;
famous|well-known=célèbre|connu; curious=curieux; rich|wealthy=riche; lazy|idle=paresseux;
funny|amusing=drôle|amusant; clever|intelligent=intelligent; patient=patient; honest=honnête; generous=généreux;
ill|sick=malade; elegant|smart=élégant; proud=fier; jealous=jaloux; nervous=nerveux;
worried|anxious=inquiet|anxieux; discreet=discret; busy=occupé; strong=fort; absent=absent; ready=prêt; hot=chaud;
cold=froid; delicious|tasty=délicieux|savoureux; fresh=frais/fraîche; sweet=sucré; salty=salé; excellent=excellent;
quiet|peaceful=calme|tranquille; empty=vide; dangerous=dangereux; noisy=bruyant; short=court;
interesting=intéressant; boring|dull=ennuyeux; difficult|hard=difficile;
wonderful|marvellous=merveilleux|magnifique; clear=clair; wild=sauvage; fast|quick=rapide; slow=lent;
gentle=doux/douce; thin=maigre; warm=chaud; simple=simple; dark=sombre; dry=sec/sèche
""",
        fr=french_adjective,
    )
}
_FITS = {
    "person": "young old serious shy brave kind polite famous curious rich lazy funny clever patient honest elegant",
    "state": "tired happy sad furious ill proud jealous nervous worried busy absent ready strong discreet",
    "animal": "big small old beautiful black white grey wild fast slow gentle thin fat strange lazy curious dangerous",
    "food": "good bad big small fresh excellent delicious cold",
    "dish": "good bad fresh excellent delicious cold hot",
    "drink": "good bad cold hot excellent fresh delicious sweet",
    "text": "long short interesting boring difficult funny sad new old famous wonderful serious strange clear simple",
    "thing": """
        big small new old beautiful pretty heavy light expensive broken dirty clean useful strange red blue green
        black white yellow modern precious ugly rare fragile huge simple
    """,
    "clothes": """
        new old beautiful pretty elegant warm dirty clean expensive long short ugly grey simple red blue green black
        white yellow
    """,
    "vehicle": """
        big small new old beautiful fast slow expensive dirty clean modern noisy huge useful red blue green black
        white yellow
    """,
    "inside": "big small new old beautiful quiet modern empty dangerous noisy huge strange dark clean",
    "at": "big small new old beautiful quiet modern empty famous noisy huge clean",
}
# Verbs by the kinds of their object; "!" marks those done once: no habit, nothing in progress.
_ACTS = {
    "food dish": """
        eat/ate/eaten=manger; prepare|make/made=préparer; taste=goûter; share=partager; order=commander;
         finish=finir|terminer; buy/bought|purchase=acheter; sell/sold=vendre;
        !forget/forgot/forgotten=oublier
    """,
    "drink": """
        drink/drank/drunk=boire; order=commander;  taste=goûter; pour=verser;
        !choose/chose/chosen=choisir
    """,
    "text": """
        read/read=lire; write/wrote/written=écrire; translate=traduire; finish=finir|terminer; publish=publier;
        print=imprimer; correct=corriger; copy=recopier; !understand/understood=comprendre;
        !receive|get/got=recevoir; look for=chercher; sign=signer
    """,
    "thing": """
        buy/bought|purchase=acheter; sell/sold=vendre; !break/broke/broken=casser; repair|fix=réparer;
        clean=nettoyer; !lose/lost=perdre; !find/found=trouver; carry=porter; !forget/forgot/forgotten=oublier;
        !choose/chose/chosen=choisir; borrow=emprunter; !steal/stole/stolen=voler; draw/drew/drawn=dessiner;
        photograph=photographier; use=utiliser; hide/hid/hidden=cacher; look for=chercher; wrap=emballer;
        !receive|get/got=recevoir; move=déplacer; examine=examiner
    """,
    "clothes": """
        wear/wore/worn=porter; wash=laver; iron=repasser; buy/bought|purchase=acheter; try on=essayer;
        sew/sewed/sewn=coudre; !forget/forgot/forgotten=oublier; !choose/chose/chosen=choisir; look for=chercher;
        !lose/lost=perdre; dry=sécher
    """,
    "vehicle": """
        drive/drove/driven=conduire; repair|fix=réparer; wash=laver; sell/sold=vendre; buy/bought|purchase=acheter;
        rent|hire=louer; !steal/stole/stolen=voler; paint=peindre; push=pousser; look for=chercher;
        !see/saw/seen=voir; inspect=inspecter
    """,
    "person": """
        !meet/met=rencontrer; call|phone=appeler; help=aider; thank=remercier; invite=inviter; wait for=attendre;
        greet=saluer; listen to=écouter; !recognise=reconnaître; look for=chercher; watch|observe=regarder|observer;
        !see/saw/seen=voir; surprise=surprendre
    """,
    "animal": """
        feed/fed=nourrir; wash=laver; watch|observe=regarder|observer; look for=chercher; photograph=photographier;
        !adopt=adopter; draw/drew/drawn=dessiner; buy/bought|purchase=acheter; stroke|pet=caresser;
        !find/found=trouver; !hear/heard=entendre; brush=brosser
    """,
    "inside at": """
        visit=visiter; !leave/left=quitter; clean=nettoyer; paint=peindre; photograph=photographier;
        !find/found=trouver; look for=chercher; !see/saw/seen=voir; draw/drew/drawn=dessiner; admire=admirer;
        protect=protéger
    """,
}
SINGLE_PROCESS = read_verbs(
    """
    sleep/slept=dormir; work=travailler; sing/sang/sung=chanter; dance=danser; laugh=rire; cry|weep/wept=pleurer;
    smile=sourire; swim/swam/swum=nager; run/ran/run=courir; walk=marcher; wait=attendre; dream=rêver;
    talk|chat=parler|bavarder; study=étudier; play=jouer; travel=voyager; cook=cuisiner; shout|yell=crier;
    cough=tousser; read/read=lire
    """
)
MOVES = read_verbs(
    """
    go/went/gone=aller; come/came/come=venir; return|go/went/gone back=retourner; come/came/come
    back=revenir
    """
)
GIFTS = read_verbs(
    """
    give/gave/given=donner; show/showed/shown=montrer; send/sent=envoyer; lend/lent=prêter; offer=offrir;
    sell/sold=vendre
    """
)
WISHES = read_verbs(
    """
    want to=vouloir; hope to=espérer; prefer to=préférer; like to|love to=aimer; need to|have/had to=devoir
    """
)
TRIES = read_verbs(
    """
    try to|attempt to=essayer de|tenter de; refuse to=refuser de; decide to=décider de; start to|begin/began/begun
    to=commencer à; forget/forgot/forgotten to=oublier de; learn to=apprendre à; promise to=promettre de; agree
    to=accepter de
    """
)
THINKS = read_verbs("think/thought=penser; know/knew/known=savoir; believe=croire; say/said=dire; hope=espérer")
HAVE, LIKE = read_verbs("have/had=avoir; like|love=aimer")
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
_NAMES = """
Anna f; Paul m; Marie f; Thomas m; Julie f; Nicolas m; Sophie f; Martin m; Emma f; Lucas m; Claire f; David m; Alice
f; Simon m; Laura f; Antoine m; Élodie f; Olivier m; Nadia f; Karim m; Inès f; Arthur m; Camille f; Victor m
"""


PRONOUNS = [  # the kind is the person: 0 I ... 5 they
    Lexeme(key, ((english, english),), ((french, french, gender),), kind)
    for key, english, french, gender, kind in (
        ("I", "I", "je", "m", "0"),
        ("you", "you", "tu", "m", "1"),
        ("he", "he", "il", "m", "2"),
        ("she", "she", "elle", "f", "2"),
        ("we", "we", "nous", "m", "3"),
        ("they (m)", "they", "ils", "m", "5"),
        ("they (f)", "they", "elles", "f", "5"),
    )
]
WHO = Lexeme("who", (("who", "who"),), (("qui", "qui", "m"),), "2")
BE = Lexeme("be", (English("be", "is", "was", "been", "being", ""),), (french("être"),))
PEOPLE = [
    Lexeme(name, ((name, name),), ((name, name, gender),), "name") for name, gender in map(str.split, _NAMES.split(";"))
]
FITTING = {kind: [_ADJECTIVES[key] for key in keys.split()] for kind, keys in _FITS.items()}
ACTS = [(kinds.split(), verb) for kinds, table in _ACTS.items() for verb in read_verbs(table)]
TIMES = {tense: read(table) for tense, table in _TIMES.items()}
for day in _DAYS:
    en, fr = day.en[0], day.fr[0]
    TIMES["past"].append(Lexeme(f"last {en}", (f"last {en}",), (f"{fr} dernier",)))
    TIMES["future"].append(Lexeme(f"next {en}", (f"next {en}",), (f"{fr} prochain",)))
    TIMES["habit"].append(Lexeme(f"on {en}s", (f"on {en}s", f"every {en}"), (f"le {fr}", f"tous les {fr}s")))
HERE = [Lexeme(place.key, tuple(en.split(">")[0] for en in place.en), place.fr) for place in _WHERE]
THERE = [Lexeme(place.key, tuple(en.split(">")[-1] for en in place.en), place.fr) for place in _WHERE]
IN, AT, TO = read("in=dans; at=à; to=à")

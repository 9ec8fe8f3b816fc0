"""Nouns, names and pronouns, and the adjectives that fit them: a lexicon written for this project.

A table row reads "english|synonym=french|synonym"; a slash gives an irregular form.
"""

from bgt_core.grammar.words import Lexeme, english_noun, french_adjective, french_noun, read

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
MASS = frozenset({"dish", "drink"})  # uncountable kinds

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
FITTING = {kind: [_ADJECTIVES[key] for key in keys.split()] for kind, keys in _FITS.items()}
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
PEOPLE = [
    Lexeme(name, ((name, name),), ((name, name, gender),), "name") for name, gender in map(str.split, _NAMES.split(";"))
]
WHO = Lexeme("who", (("who", "who"),), (("qui", "qui", "m"),), "2")

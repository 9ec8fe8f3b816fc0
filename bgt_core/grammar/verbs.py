"""Verbs by their objects; table rows as in `nouns`."""

from bgt_core.grammar.words import English, Lexeme, french, read_verbs

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
INTRANSITIVE = read_verbs(
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
BETWEEN_PERSONS = read_verbs(  # without verbs whose object does the same, as "meet"
    """
    thank=remercier; help=aider; invite=inviter; greet=saluer; surprise=surprendre; watch|observe=regarder|observer;
    call|phone=appeler; wait for=attendre; admire=admirer; protect=protéger; photograph=photographier;
    save|rescue=sauver; kiss=embrasser; arrest=arrêter; scold=gronder; flatter=flatter; insult=insulter;
    encourage=encourager; congratulate=féliciter; comfort|console=consoler|réconforter; punish=punir;
    deceive|fool=tromper|duper; betray=trahir; defend=défendre; imitate|copy=imiter; accuse=accuser;
    criticise=critiquer; guide=guider; question|interrogate=interroger|questionner; ignore=ignorer;
    despise|scorn=mépriser|dédaigner; envy=envier; catch/caught=attraper; injure|wound=blesser; push=pousser;
    disturb|bother=déranger|gêner; calm=calmer; hire|employ=engager|embaucher; attack=attaquer; chase=pourchasser;
    replace=remplacer
    """
)
HAVE, LIKE = read_verbs("have/had=avoir; like|love=aimer")
ACTS = [(kinds.split(), verb) for kinds, table in _ACTS.items() for verb in read_verbs(table)]
BE = Lexeme("be", (English("be", "is", "was", "been", "being", ""),), (french("être"),))

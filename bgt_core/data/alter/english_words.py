"""The words by which English sentences are altered: function words, frequent verbs, names of persons, nouns."""

from __future__ import annotations

from bgt_core.grammar.nouns import FITTING, NOUNS
from bgt_core.grammar.words import english

_VERBS = """
have/had go/went/gone get/got say/said see/saw/seen know/knew/known think/thought want need like love hate make/made
take/took/taken give/gave/given tell/told come/came/come find/found help work call try ask feel/felt look hear/heard
leave/left keep/kept bring/brought buy/bought sell/sold send/sent show/showed/shown teach/taught lend/lent pay/paid
meet/met eat/ate/eaten drink/drank/drunk speak/spoke/spoken talk write/wrote/written read/read sing/sang/sung play
study live stay sleep/slept wait walk run/ran/run drive/drove/driven fly/flew/flown swim/swam/swum sit/sat
stand/stood lie/lay/lain fall/fell/fallen grow/grew/grown break/broke/broken cut/cut put/put hit/hit hurt/hurt
catch/caught win/won lose/lost forget/forgot/forgotten remember understand/understood believe trust hope wish expect
suppose guess wonder mean/meant seem become/became/become begin/began/begun start stop/stopped finish continue
change turn open close move use wear/wore/worn cook clean wash watch listen enjoy prefer/preferred appreciate agree
decide promise refuse admit/admitted suggest accept offer invite introduce visit travel arrive return follow
lead/led carry hold/held push pull throw/threw/thrown drop/dropped pick catch/caught fight/fought beat/beat/beaten
kill shoot/shot attack save protect warn blame accuse forgive/forgave/forgiven thank kiss marry miss care worry cry
laugh smile shout die happen cost/cost spend/spent owe own belong build/built draw/drew/drawn paint repair fix check
learn plan explain describe answer reply mention discuss complain apologise apologize deny pretend notice recognise
recognize realise realize discover hide/hid/hidden steal/stole/stolen choose/chose/chosen order borrow deserve miss
plan admire respect ignore envy despise fear doubt regret/regretted persuade convince advise allow let/let force
encourage disappoint surprise annoy bother disturb betray deceive cheat fool insult criticise criticize praise
congratulate greet recommend support defend join divorce employ hire fire arrest question punish scold hug/hugged
touch bite/bit/bitten chase feed/fed raise treat cure examine rescue deliver receive translate publish sign print
copy smoke dance jump climb rain snow snore suffer shine/shone burn wake/woke/woken rise/rose/risen set/set
hang/hung shut/shut quit/quit bet/bet visit cross enter consider imagine describe compare prove depend add include
contain consist require matter
"""
VERBS = [english(entry) for entry in dict.fromkeys(_VERBS.split())]
BASES = {verb.base: verb for verb in VERBS}
THIRDS = {verb.third: verb for verb in VERBS}
PASTS = {verb.past: verb for verb in VERBS}
PARTICIPLES = {verb.participle for verb in VERBS} | {"been"}

SUBJECTS = {"i": "me", "you": "you", "he": "him", "she": "her", "we": "us", "they": "them"}
OBJECTS = {"me": "I", "you": "you", "him": "he", "her": "she", "us": "we", "them": "they"}
BE = {"am", "is", "are", "was", "were"}
MODALS = set("can could will would shall should may might must".split())
AUXILIARIES = BE | MODALS | {"have", "has", "had", "do", "does", "did", "'m", "'re", "'s", "'ve", "'ll", "'d"}
DENIED = {f"{word}n't": word for word in "is are was were have has had do does did could would should must".split()}
DENIED |= {"can't": "can", "cannot": "can", "won't": "will"}
DENY = {word: denied for denied, word in DENIED.items() if denied != "cannot"}
DETERMINERS = set("the a an my your his her its our their this that these those every each".split())
NUMBERS = set("two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred".split())
PREPOSITIONS = set(
    """
    in on at by for from to into onto over under behind beside near about after before without against toward
    towards through across along around above below inside outside during since than off up out down away
    """.split()
)
LINKS = set(  # a clause ends here
    "and or but nor that who whom which whose what where when why how because if whether while though although until "
    "unless as so".split()
)
ADVERBS = set(
    """
    never always often really just also still only usually sometimes almost already soon probably certainly finally
    suddenly simply actually hardly seldom rarely even quite now then here there again today yesterday tomorrow
    tonight alone together well badly hard early late immediately once twice every yesterday last next this not very
    too much home please everywhere somewhere anywhere everything anything something again ever at
    """.split()
)
SYMMETRIC = set(
    "meet met marry married resemble near beside with between agree date dating related same different like".split()
)

FUNCTION_WORDS = AUXILIARIES | DETERMINERS | PREPOSITIONS | LINKS | ADVERBS | {*SUBJECTS, *OBJECTS, "to", "of", "there"}

NAMES = set(
    """
    Tom Mary John Bob Bill Jim Mike Ken Jack Alice Jane Nancy Paul Susan Lucy Betty Kate Helen Sami Layla Fadil Dan
    Linda Peter George Mark David Anna Emily Emma Julia Laura Maria Marie Tony Fred Jean Judy Sam Emi Yumi Naoko Ted
    Dick Carol Meg Ann Cathy Alan Brian Chris Jessica Jackson Robert Roger Richard Henry Harry Kevin Beth Bess Kumi
    Takeshi Sarah Lisa Michael Thomas Charles Edward Martin Sophie Claire Pierre Jacques Louis Max Ben Steve Nick
    Joe Jenny Sally Mariko
    """.split()
)
_PERSONS = """
people person guy lady gentleman parents father mother mom mum dad kids boyfriend girlfriend roommate classmate baby
owner client customer manager secretary president prince thief stranger enemy player coach captain officer police
cop victim patient neighbor grandma grandpa mother-in-law father-in-law stepmother professor scientist team children
men women wives wolf lion bear snake monkey elephant spider tiger puppy kitten
"""
ANIMATE = {form for kind in ("kin", "person", "animal") for noun in NOUNS[kind] for forms in noun.en for form in forms}
ANIMATE |= set(_PERSONS.split())
_THINGS = """
water fire tree river mountain sea lake road bridge wall floor ceiling roof room door window desk bed shelf drawer
cupboard fridge oven bench bus train ship truck plane school office building country city island hill field stone
sun moon cloud star coin card map ticket note page paper money letter envelope e-mail parcel gun sword ball game
movie film song poem sky snow fence gate stairs carpet sofa curtain painting statue flag bottle spoon fork bowl pot
pan cloth towel soap brush shoe sock glove
"""
THINGS = {
    form
    for kind in NOUNS.keys() - {"kin", "person", "animal"}
    for noun in NOUNS[kind]
    for forms in noun.en
    for form in forms
} | set(_THINGS.split())
KNOWN_NOUNS = ANIMATE | THINGS
COLOURS = set("red blue green black white yellow grey gray brown pink purple orange golden".split())
ADJECTIVES = (
    {form for fitting in FITTING.values() for adjective in fitting for form in adjective.en if " " not in form}
    | COLOURS
    | set("tall deaf blind poor wooden metal dead wet full open".split())
)

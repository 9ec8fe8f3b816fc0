"""Question retrieval: a store of questions, embedded once, and which of them a new one repeats (Deudon 2018, sec. 5).

    import bgt_core
    from bgt_core.questions import QuestionStore, build

    siamese = bgt_core.load("runs/siamese")
    build(Path("questions.txt"), Path("store"), siamese, dev=read_labelled("dev.tsv"), topics=20)
    for hit in QuestionStore.open("store", siamese).query(["How old is the earth?"])[0]:
        print(hit.probability, hit.w2, hit.question)

Three steps narrow the questions down: topics, if wanted, then FAISS by a distance in closed form, then the model. The
paper has the first and the last; it gives no number of topics, and no code for either.
"""

from bgt_core.questions.build import build
from bgt_core.questions.store import Hit, QuestionStore

__all__ = ["Hit", "QuestionStore", "build"]

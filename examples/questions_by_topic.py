"""Search stored questions that have the topics of the query, as in the paper on the variational siamese network.

    python examples/questions_by_topic.py QUESTIONS.txt "How do I learn a language quickly?"

Latent Dirichlet allocation (Blei et al. 2003) finds topics from word counts. Each stored question belongs to its most
probable topic, and is compared with the query only if that topic is one of the query's three most probable topics. Any
encoder works; this example uses the default model.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

import bgt_core
from bgt_core.neighbours.questions import QuestionStore, build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path, help="one question per line")
    parser.add_argument("query", help="the question to compare with the stored questions")
    parser.add_argument("--topics", type=int, default=20, help="number of topics")
    parser.add_argument("--within", type=int, default=3, help="number of the query's topics to search")
    options = parser.parse_args()
    encoder = bgt_core.load()
    with tempfile.TemporaryDirectory() as folder:
        build(options.questions, Path(folder, "store"), encoder)
        store = QuestionStore.open(Path(folder, "store"), encoder)
        counter = CountVectorizer(stop_words="english", token_pattern=r"[^\W\d_]{2,}", max_features=10_000)
        counts = counter.fit_transform(store.questions)
        lda = LatentDirichletAllocation(options.topics, learning_method="online", random_state=0).fit(counts)
        main_topics = lda.transform(counts).argmax(1)

        def among(query: str) -> np.ndarray:
            largest = np.argsort(-lda.transform(counter.transform([query]))[0])[: options.within]
            return np.flatnonzero(np.isin(main_topics, largest))

        for hit in store.query([options.query], k=5, among=among)[0]:
            print(f"{hit.cosine:.3f}  {hit.question}")


if __name__ == "__main__":
    main()

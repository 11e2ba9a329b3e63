"""
Topics of news
==============

395 articles of Reuters. A topic model describes each article as a mixture of topics, and each topic by its words.

The page needs the folder ``STICKBREAK_DATA``.
"""

# %%
# needs: reuters395/docword.reuters.txt.gz
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import stickbreak as sb

folder = Path(os.environ["STICKBREAK_DATA"]) / "reuters395"
counts = sb.read_docword(folder / "docword.reuters.txt.gz")
words = np.array((folder / "vocab.reuters.txt").read_text(encoding="utf-8").split())
counts.shape

# %%
fit = sb.fit(
    sb.TopicModel(sb.LatentDirichlet(n_topics=12)),
    counts,
    sb.Memoized(max_passes=15),
    progress=False,
)
fit

# %%
# The most probable words of each topic:
for topic, top in enumerate(fit.top_words(words, n=8)):
    print(topic, *top)

# %%
# ``transform`` gives the proportions of topics in each document.
proportions = fit.transform(counts)
figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
axes[0].bar(range(proportions.shape[1]), proportions.mean(axis=0))
axes[0].set(xlabel="topic", ylabel="mean proportion")
axes[1].imshow(
    proportions[np.argsort(proportions.argmax(axis=1))].T,
    aspect="auto",
    cmap="Blues",
    vmin=0,
    vmax=1,
)
axes[1].set(xlabel="document, sorted by its largest topic", ylabel="topic")
plt.show()

# %%
# A score for comparing models: half of the words of each document are scored under topics found from the other half.
fit.document_completion(counts)

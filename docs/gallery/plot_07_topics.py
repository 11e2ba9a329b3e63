"""
Topics of news
==============

395 Reuters articles. In a topic model each article is a mixture of topics, and each topic is a distribution over words.

The page needs the folder ``STICKBREAK_DATA``.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import stickbreak as sb

# needs: reuters395/docword.reuters.txt.gz
folder = Path(os.environ["STICKBREAK_DATA"]) / "reuters395"
counts = sb.read_docword(folder / "docword.reuters.txt.gz")
words = np.array((folder / "vocab.reuters.txt").read_text(encoding="utf-8").split())
counts.shape

# %%
fit = sb.fit(
    sb.TopicModel(sb.LatentDirichlet(n_topics=12)),
    counts,
    sb.Memoized(max_passes=80),
    progress=False,
)
fit

# %%
# The most probable words of each topic:
for topic, top in enumerate(fit.top_words(words, n=8)):
    print(topic, *top)

# %%
# The left picture shows the size of each topic, the right one the words of the largest. A mark is the share of a word
# in all documents. A word whose bar is much longer than its mark is typical of the topic.
figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
sb.plot.topics(fit, words, ax=axes[0])
sb.plot.topic(fit, int(np.argmax(fit.counts)), words, ax=axes[1])
plt.show()

# %%
# ``transform`` returns the proportions of topics in each document.
proportions = fit.transform(counts)
largest = proportions[np.argsort(proportions.argmax(axis=1))]
figure, ax = plt.subplots(figsize=(10, 3.5), layout="constrained")
ax.imshow(largest.T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
ax.set(xlabel="document, sorted by its largest topic", ylabel="topic")
plt.show()

# %%
# Compare models by a score in nats per word. ``document_completion`` holds out a fifth of the distinct words of each
# document, and predicts them from the other words. If you can, score documents that the fit has not seen.
fit.document_completion(counts)

"""
Words of topics
===============

Documents that are made of a word of their topic and words of none. Few of the words are used, and the parts that they
bring to the score of one document add up to it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import dboost

rng = np.random.default_rng(0)
words = {"sea": ["wave", "salt", "sand"], "sky": ["cloud", "wind", "rain"], "wood": ["oak", "fern", "moss"]}
topics = rng.choice(list(words), 600)
noise = [f"noise{i}" for i in range(200)]
texts = [" ".join([*rng.choice(words[topic], 2), *rng.choice(noise, 8)]) for topic in topics]
model = make_pipeline(dboost.TextFeatures(min_df=2), dboost.BoostedClassifier(penalty="l1/l2", alpha=0.01))
model.fit(texts, topics)
found = dboost.explain(model, ["wave and salt on moss"])
fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
left = np.arange(len(found.words))
for r, (topic, hatch) in enumerate(zip(model.classes_, ("", "//", ".."), strict=True)):
    ax.bar(left + 0.27 * r, found.parts[:, r], 0.25, label=topic, hatch=hatch, edgecolor="white")
ax.set_xticks(left + 0.27, [str(word) for word in found.words])
ax.axhline(0, color="gray", linewidth=0.8)
ax.set_ylabel("part of the score")
ax.legend()

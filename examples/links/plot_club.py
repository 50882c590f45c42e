"""
A club that split in two
========================

34 members of a karate club, the ties between them, and not a word on any member. The club fell
apart into two after a quarrel of Mr. Hi and an officer. The rows of the adjacency are data too:
their map shows the split, and two labels name its sides.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from gnomon import SPPCA, Links
from gnomon.displays import EmbeddingDisplay

graph = nx.karate_club_graph()
links = Links.from_networkx(graph)
side = np.array([graph.nodes[member]["club"] for member in graph])

# %%
# A member's row says what share of the ties goes to whom. Only the two leaders and the closest
# friend of each have a label.

labels = np.full(len(side), None, dtype=object)
for leader in (0, 33):
    labels[leader] = side[leader]
    friend = max(graph[leader], key=lambda member: graph[leader][member]["weight"])
    labels[friend] = side[leader]
X = links.adjacency.toarray() / links.degrees[:, None]
model = SPPCA(2).fit(X, labels)

display = EmbeddingDisplay.from_estimator(model, X, side, links=links, uncertainty="none")
display.ax_.set_aspect("auto")
plt.show()

# %%
right = model.predict(X) == side
print(f"{right.sum()} of {len(side)} members are put on the side that they took")

# %%
# **What it shows.** Who is tied to whom is enough to draw the club, and four labels to name the
# sides.

"""Words of the page of pairs."""

from __future__ import annotations

from .words import percent

DOUBTFUL = 0.8  # probability below which the cluster of an item is worth a look
UNKNOWN = "\u2013"
GLOSSARY = [
    ("item", "What is put into clusters: a picture, a record, a text."),
    ("pair", "Two items that some worker was asked about: are they the same?"),
    ("answer", "What one worker said of one pair: the same, or different."),
    ("cluster", "Items that seem to be the same. The largest has the number 1."),
    ("probability of an item", "How sure it is that the item is in its cluster, given all answers and features."),
    ("doubtful", f"An item whose probability is below {percent(DOUBTFUL, 0)}: worth a look."),
    ("second", "The next likely cluster of an item."),
    ("placed by features", "An item that nobody was asked about: it is where its features put it."),
    ("sensitivity", "A worker's chance to call the same what is the same."),
    ("specificity", "A worker's chance to call different what is different."),
    ("skill", "The mean of sensitivity and specificity: one half is as good as guessing."),
    ("weight", "Log-odds by which an answer of the worker separates the same from different: 0 says nothing; below 0, "
               "the opposite of what was said is to be believed."),
    ("counted", "What a worker's answers count for. Those of one job hang together: who sorts items into piles decides "
                "once that an item is not like a pile, however many pairs say so."),
    ("interval", "The range that holds the true value 95 times in 100."),
    ("iteration", "One pass over all answers and items while clusters and workers are found."),
    ("component", "A group that the search begins with. There are more than are needed; those that do not pay get a "
                  "share of nothing."),
    ("gain", "What an answer about a pair is expected to bring, in bits."),
    ("bit", "A unit of information: one bit decides between two equally likely things."),
]  # fmt: skip

"""The words that need an explanation. A page explains only those that its summary and its sections use."""

from __future__ import annotations

from collections.abc import Iterable

from .text import percent

DOUBTFUL_OBJECT = 0.9  # probability below which an object is called doubtful
DOUBTFUL_ITEM = 0.8  # probability below which the cluster of an item is called doubtful

# A key "term/kind" explains the term on pages of that kind of answers.
GLOSSARY = {
    "agreement": "How often other workers gave the same answer to the same tasks.",
    "answer": "What one worker gave for one task.",
    "answer/labels": "The label that one worker gave to one task.",
    "answer/pairs": "The judgement of one worker on one pair: same, or different.",
    "area under the curve": "The probability that a task of the class is ranked above a task of another class.",
    "ASE": "Average square error of the centres, over successful runs.",
    "at chance": "A flag: the worker's answers carry almost no information about the truth.",
    "bit": "A unit of information. One bit decides between two equally likely possibilities.",
    "checks": "Attention checks: answers to tasks whose true label is known.",
    "click": "A point that one worker placed in one image.",
    "cluster": "Items that are estimated to be the same. Cluster 1 is the largest.",
    "component": "A cluster that the fit starts with. It starts with more than it needs; the share of the others falls "
                 "to zero.",
    "confusion matrix": "How often each label is given (columns) for each true class (rows).",
    "copies": "A flag: two workers share answers that no other worker would give.",
    "counted": "The number of independent answers that a worker's answers are worth. Answers of one job depend on each "
               "other: a worker who sorts items into piles decides once that an item does not belong to a pile.",
    "criterion": "What the search maximises: how well the objects fit the clicks, minus a penalty per object.",
    "difficulty": "How hard a task is, estimated from its features or its answers.",
    "disagreement": "The share of a task's votes that are not for its most frequent label.",
    "divergence": "The distance between two confusion matrices, in bits. 0: the same. 1: nothing in common.",
    "doubtful/pairs": f"An item whose cluster has a probability below {percent(DOUBTFUL_ITEM, 0)}.",
    "doubtful/points": f"An object whose probability is below {percent(DOUBTFUL_OBJECT, 0)}.",
    "effective votes": "The number of independent votes that the answers to a task are worth. It is smaller if answers "
                       "share errors or are copied.",
    "ellipse": "About 86 of 100 clicks on an object fall inside its ellipse (two standard deviations).",
    "entropy": "Uncertainty in bits. 0: certain. 1: a toss-up between two classes.",
    "entropy of a row": "How varied the labels are for one true class, in bits. 0: always the same label.",
    "expected accuracy": "The mean probability of the labels, a little less if workers share errors, and corrected by "
                         "known labels.",
    "gain": "The expected increase in the probability that a label is right, if its task gets another answer.",
    "gain/pairs": "The information that an answer to the pair is expected to bring, in bits.",
    "gold": "True labels that were known before the fit.",
    "group": "Workers with similar errors, who share one confusion matrix.",
    "guessing": "Giving all K classes equally often is right in 1/K of the answers. Random answers in the worker's own "
                "label shares can be right more or less often; flags compare the worker with these.",
    "guessing/pairs": "Answers that do not depend on the items: sensitivity and specificity have a mean of 50\u202f%.",
    "hit rate": "The share of the objects in a worker's images that the worker clicked.",
    "interval": "95\u202f% interval: the range that contains the true value with 95\u202f% probability.",
    "inverted": "A flag: right less often than random answers, as if the labels were swapped.",
    "item": "What is put into clusters: a picture, a record, a text.",
    "iteration": "One pass over all answers while the model is fitted.",
    "Krippendorff's alpha": "Agreement beyond chance. 1: full agreement. 0: the agreement of random answers.",
    "MAE": "Mean absolute error of the estimated reliabilities.",
    "noise": "The spread of a worker's clicks around objects, relative to other workers. 1: average. 2: twice.",
    "object": "A place where the clicks of several workers gather.",
    "on no object": "A click that is more likely to belong to no object than to any object.",
    "one label": "A flag: nearly all answers are the same label, although the tasks differ.",
    "pair": "Two items that workers compared: same, or different.",
    "placed by features": "An item in no pair: its features alone decide its cluster.",
    "points": "Percentage points: from 90\u202f% to 91\u202f% is one point.",
    "probability": "Of a class: how likely it is for a task, given all answers (the posterior).",
    "probability/pairs": "Of an item: the probability that it belongs to its cluster, given all answers and features.",
    "probability/points": "Of an object: the probability that it is real, given all clicks.",
    "reliability": "The share of a worker's clicks that are on objects.",
    "ROC curve": "The share of a class that is found (true positives) against the share of other tasks that are taken "
                 "for it (false positives).",
    "second": "The second most likely cluster of an item.",
    "sensitivity": "The probability that a worker says same when two items are the same.",
    "similarity to the identity": "Of a confusion matrix. 1: always right. Towards 0: more errors.",
    "skill": "How good a worker is, from 0 to 1.",
    "skill/labels": "The probability that a worker's answer is right. Each answer is judged without using that answer.",
    "skill/pairs": "The mean of sensitivity and specificity. Guessing has a skill of 50\u202f%.",
    "spam score": "0: the answers do not depend on the truth. 1: the answers determine it (Raykar and Yu, 2011).",
    "specificity": "The probability that a worker says different when two items differ.",
    "spread": "One standard deviation of the clicks around an object, in units of the coordinates.",
    "success": "A run that finds the right number of objects, each closest to a different true object.",
    "too fast": "A flag: much faster than the typical worker.",
    "trace": "The mean of the diagonal of a worker's confusion matrix: accuracy with all classes weighted equally.",
    "weight": "How much an answer of the worker counts, as log-odds of same against different. 0: nothing. Below 0: "
              "the opposite of the answer is more likely.",
}  # fmt: skip


def explained(terms: Iterable[str], kind: str) -> list[tuple[str, str]]:
    """Return these terms and their explanations on pages of a kind, in alphabetical order."""
    return [(term, GLOSSARY.get(f"{term}/{kind}") or GLOSSARY[term]) for term in sorted(set(terms), key=str.casefold)]

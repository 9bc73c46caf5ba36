"""The page's sentences."""

from __future__ import annotations

TITLE = """# Gradient boosting on random projections of the output space, measured again

Tables and figures of Joly, Wehenkel and Geurts, *Gradient tree boosting with random output
projections for multi-label classification and multi-output regression* (2017), made again with
pyrpo by `python -m bench.joly2017 --data FOLDER` on the data sets of a folder."""

PROTOCOL = """As in section 4.1: random splits of the paper's sizes (half of the rows for testing
where it gives none); a fifth of the training rows tunes. Settings are drawn at random from the
paper's grid (learning rate 1 to 0.01, five numbers k of features, 2 to 8 leaves, squared or, of
labels, logistic and, of targets, absolute loss), the same for all methods; scores are looked at
every 10 rounds and in the end. The best setting with its rounds is fitted again on all training
rows (the paper does not say whether it did; *without refit* is the same model fitted on four
fifths) and scored once on the test rows: label ranking average precision (LRAP) of rows that have
labels, or macro-r² of outputs of unit variance. Leaves are mean gradients with a line-searched step
by output (`leaf="mean"`), no l2, all rows, features in 256 bins. Forests: 100 trees; of labels
k = √p and fully grown, of targets k = p/3 and n_min = 5; st-rf and br-rf are one forest an output.
Times are CPU seconds of one thread."""

TABLE = """In brackets: how far ours is from the paper, in the paper's standard deviations;
**bold** where it is more than one."""

SIGNS = """**Bold** where p < 0.05; > where the row's method is better than the column's."""

RANKS = """Mean ranks of the mean scores. *Paper, all* is computed from the paper's printed tables,
which gives its critical distance (2.29) and Table 8; its p-values are 1.36e-10 and 0.3, from scores
that were not rounded. *Paper, the same*: on the data sets that ours is made of."""

BUDGETS = """T is a round of gbmort with stumps and squared loss; a setting gets 100 T (labels) or
500 T (targets), as in the paper. Median of the rounds that this allowed, over all settings; in
brackets the share of settings whose best round is in the last tenth of them, which more time might
improve. Only rounds count: reading the data in, scoring and the timing itself do not. A round of
br-gbrt or st-gbrt has a tree for each output, and there is one at least, even where its time is
more than the budget."""

LIMITS = """The same splits with other time limits."""

EXTENT = """In brackets what the program does when nothing is left out. The paper searched a grid of
up to 490 settings."""

STATEMENTS = (
    """Where p-values are given, a statement holds or not if p < 0.05, and is open if not."""
)

DIFFERENCES = """"""

# What is known of data sets.
DATA = {
    "birds": "294 of the 645 rows of birds have no label. They are left out of the score here; the "
    "paper's figures agree with counting them as 1, as scikit-learn's metric does. Ranks do not "
    "depend on it.",
}

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

BUDGETS = """The paper limits "the computing time allocated to each gradient boosting algorithm" to
100 T of label sets and 500 T of targets, T being "the time needed on this specific problem for one
iteration of multi-output gradient boosting (Algorithm 2) with stumps and the ℓ₂-norm loss": T is
that of its own implementation, and what it allows depends on how gbmort's rounds compare there with
the others'. Here T is pyrpo's, whose gbmort adds up the outputs of a row once for each feature that
the row has, not once for each feature there is: on bibtex 68 of 1836, on delicious 19 of 500. The
tables are of the limit nearest to the paper's that was run. A search with more time than the
paper's ends a setting where a quarter of its rounds brought nothing (not br-gbrt).

Median of the rounds that this allowed, over all settings; in brackets the share of settings whose
best round is in the last tenth of them, which more time might improve. Only rounds count: reading
the data in, scoring and the timing itself do not. A round of br-gbrt or st-gbrt has a tree for each
output, and there is one at least, even where its time is more than the budget."""

LIMITS = """The same splits with other time limits."""

EXTENT = """In brackets what the program does when nothing is left out. The paper searched a grid of
up to 490 settings."""

STATEMENTS = (
    """Where p-values are given, a statement holds or not if p < 0.05, and is open if not."""
)

DIFFERENCES = """- *Refit.* On the artificial problems with correlated outputs (chain, group) the
  paper's scores are near ours *without refit*; fitted again on all training rows, ours are about
  0.015 higher, as a quarter more rows make them. The paper's models were probably fitted on four
  fifths of the rows: "40% of the samples as training, 10% as validation". Ours use what they have.
- *artificial-gbrt on friedman1-chain* explains 0.87 of the variance that can be explained (0.753)
  in the paper and 0.93 here; st-gbrt on friedman1-group, which learns the same function from
  outputs of the same noise, explains 0.91 of 0.960 in the paper and 0.93 here. The paper's chain is
  harder than its equations (29) and (30) say; why is not known.
- *Search.* On friedman1-ind methods that share trees go on to gain up to the last of 10 000
  rounds. Where few settings were tried or rounds were fewer (see *What was run*), the limit stops
  them and the one setting in six that suits decides: deviations there are larger than the
  paper's. With 40 settings and 10 000 rounds one cell in 27 is below the paper's, st-gbrt on
  friedman1-ind with noise: 0.347 ± 0.012 against 0.354, though 0.815 against 0.806 on the outputs
  that are not noise. All outputs have as many rounds, which the true ones ask for and those of
  noise pay for. On edm, 77 training rows, choices by 15 validation rows are little more than
  chance, in the paper too, whose deviations go up to 0.28.
- *Figure 1, factor 100.* A round of st-gbrt grows 16 trees where gbrt-rpo grows one: 12 to 13 times
  in time is what counting trees gives, and what is measured here. A factor of 100 must come from
  elsewhere, such as the cost of starting a tree in Python. Rounds of gbmort cost 3 to 8 times those
  of gbrt-rpo here, which is why it is not as fast as st-gbrt on friedman1-ind.
- *Figure 3.* The paper's text has subsampling faster than other projections on delicious, its
  caption ten times slower, as on mediamill. Here it is slower, on cal500 and bibtex too, though by
  a factor of 1.5 to 5; so it is in the paper's Table 10, where gbrt-rpo-gaussian is ahead of
  gbrt-rpo-subsampled on delicious (0.386 against 0.377) and bibtex.
- *Figure 6b, and budgets.* pyrpo's gbmort does not sum all outputs at each cut: on label data a
  round touches the labels that rows have. It costs 1.1 to 8 times a projected round, where the
  paper's Figure 6b has 7 times at q = 20 and more at q = 1. So a multiple of its time is less, and
  allows fewer rounds of the projected methods than in the paper. With 100 T all boosting methods
  are below the paper on bibtex for that (-3.2 to -7.1 of its deviations): it is a few hundred
  rounds or fewer there, almost every setting's best round is the last one that the time allows
  (*Budgets*). With 1000 T, eight settings or more and five splits all are where the paper has them
  or above, but gbmort: 0.587 ± 0.008 against 0.595 ± 0.005, its chosen settings still rising where
  time ends on every split; with 3000 T and eight settings it has 0.598 ± 0.005. On delicious, six
  settings, one to three splits, 300 T suffice for all but br-gbrt, of which they allow 13 to 20
  rounds (0.337 against 0.347); with 1000 T and two settings it has 0.373. (T of delicious, 83 ms,
  was measured beside another process; alone it was 59 to 86.)
  With the logistic loss the line search takes half of a round, whatever the projection.
- *Times* were measured on a machine that had other work, while pyrpo was being made faster; those
  of one data set are of one build, but bibtex's with 1000 T of two and with 3000 T of a third."""

FIGURES = """Means of the repetitions that were run. Figure 2 is of mediamill, which is left out
where it is not in the folder; figures 2, 3, 5 and 6 are made of every label set with 100 labels or
more."""

# What is known of data sets.
DATA = {
    "birds": "294 of the 645 rows of birds have no label. They are left out of the score here; the "
    "paper counts them as 1, as scikit-learn's metric does, for so its forests agree with ours: "
    "what is held against the paper is the column *empty rows count 1*.",
}

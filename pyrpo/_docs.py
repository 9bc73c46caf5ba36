"""Constructors and docstrings of the estimators, which share most of their parameters."""

from __future__ import annotations

import inspect
from textwrap import indent
from typing import Any

_INT_OR_NONE, _RATE = "int or None", "float"

PARAMETERS: dict[str, tuple[str, str]] = {
    "n_estimators": ("int", "Trees."),
    "criterion": (
        "str",
        '"gini" of classifiers, "squared_error" or "variance" of regressors. Splits maximise the\n'
        "decrease of the outputs' summed variance, which on classes and labels is Gini's index.",
    ),
    "splitter": ('"best" or "random"', "The best cut of each feature drawn, or one random cut."),
    "max_depth": (_INT_OR_NONE, "Of the deepest leaf, the root being at 0."),
    "min_samples_split": ("int or float", "The paper's n_min; trees are fully grown at 2."),
    "min_samples_leaf": ("int or float", "Fewest rows, or share of the rows, in a leaf."),
    "min_weight_fraction_leaf": (_RATE, "Smallest share of the total weight in a leaf."),
    "max_features": (
        '"auto", "sqrt", "log2", int, float or None',
        'Features drawn at a node, the paper\'s k. "auto", of forests: sqrt(p) unless 2 sqrt(p),\n'
        "4 sqrt(p) or, of regressors, p/3 are clearly better in a race (see ``tuning_``).",
    ),
    "max_leaf_nodes": (_INT_OR_NONE, "Grow best-first to so many leaves."),
    "min_impurity_decrease": (_RATE, "Under a projection in units of the projected variance."),
    "bootstrap": ("bool", "Draw each tree's rows with replacement, by weight."),
    "oob_score": (
        'bool, callable or "lrap"',
        'Score on the rows that trees left out; "lrap": label ranking average precision.',
    ),
    "n_jobs": (_INT_OR_NONE, "Native threads. The same seed gives the same forest for any number."),
    "random_state": (
        "int, RandomState or None",
        "Seed of all draws: the library's own if it is an int, else one drawn from it.",
    ),
    "verbose": ("int", "A progress bar when positive (needs tqdm)."),
    "warm_start": ("bool", "Keep the trees grown so far and add to them."),
    "class_weight": (
        'dict, list of dicts, "balanced", "balanced_subsample" or None',
        "As in scikit-learn; of labels, a row's weight is the product over its labels. Bootstraps\n"
        'draw by these weights; "balanced_subsample", of forests, draws without them and weighs\n'
        "each tree's sample by the frequencies in it.",
    ),
    "ccp_alpha": (_RATE, "Cost-complexity pruning."),
    "max_samples": (
        "int, float or None",
        "Draws of a bootstrap, or their share of the rows (with weights: of the sum of weights).",
    ),
    "monotonic_cst": ("None", "Not supported."),
    "projection": (
        "str, object, array of shape (m, n_outputs) or None",
        'What trees are grown on; leaves always hold the original outputs. A name ("gaussian",\n'
        '"rademacher", "achlioptas", "sparse", "hadamard", "subsample", "pca"), an object of\n'
        "`pyrpo.projection`, whose own ``random_state`` is not used, any transformer of y, a\n"
        'matrix, or None: the original outputs. "auto", of forests: kinds race too.',
    ),
    "n_components": (
        '"auto", int, "log" or "jl"',
        "The paper's m, for projections given by name; without a projection a number means the\n"
        'original outputs. "auto", of forests: while the forest grows, ln d components race with\n'
        "1, 2 ln d and 25 of them or, with ``projection=None``, the original outputs race with\n"
        "Gaussian projections and a subsample of them. What is clearly better out of bag at equal\n"
        "work grows the rest (see ``tuning_``); all trees are kept. Nothing races without\n"
        "bootstrap, with missing outputs, weights by entry or single targets, nor in a forest of\n"
        "few trees (24 to 60, by how many settings there are).",
    ),
    "max_time": (
        "float or None",
        "Seconds after which no more trees are begun; not reproducible. n_estimators is the most.",
    ),
    "target_score": (
        'float, "converged" or None',
        "Stop growing when the share of the outputs' variance explained out of bag reaches it,\n"
        'or, "converged", when infinitely many trees would add at most 0.005 to it. See\n'
        "``convergence_``.",
    ),
    "shared_projection": (
        "bool",
        "One subspace for all trees (Algorithm 1) instead of one a tree (Algorithm 2).",
    ),
    "output_scale": (
        '"none", "std" or array of shape (n_outputs,)',
        'Factor of each output in the split score; "std": 1 / standard deviation.',
    ),
    "draw_non_constant": (
        "bool",
        "Draw until `max_features` features are not constant in the node, or none is left. False,\n"
        "scikit-learn's rule: draw `max_features`, constant or not, and more until one is not\n"
        "constant. On sparse features, mostly constant in small nodes, True draws many more.",
    ),
    "leaf_rows": (
        '"sample" or "all"',
        "Training rows whose outputs the leaves hold: the tree's bootstrap sample, or all. Splits\n"
        "are those of the sample either way, and so are impurities and importances. All rows\n"
        "make better forests of fully grown trees, for about a tenth more time; then\n"
        "`max_samples` below 1.0 often costs little. Out of bag, a row's own outputs are left\n"
        "out of its leaves.",
    ),
    "strategy": (
        '"joint" or "single_target"',
        "A forest of `n_estimators` trees of its own for each output (the forest and boosting\n"
        "papers' st-rf, br-rf), each as it would be if nothing raced. 1-D classes are one.",
    ),
    "max_bins": (
        _INT_OR_NONE,
        "Bins a feature is grouped into before growing; None: exact splits.",
    ),
    "threshold": (
        "float or array of shape (n_labels,)",
        'Labels are predicted where their probability exceeds it. Forests also take "oob": the\n'
        "value that maximises micro-averaged F1 out of bag.",
    ),
}


# Of boosting, where it differs.
BOOSTING: dict[str, tuple[str, str]] = {
    "n_estimators": ("int", "Most rounds; of single targets, most trees an output."),
    "loss": (
        "str or callable",
        'Classifiers: "auto" (logistic of labels and of two classes, softmax of more),\n'
        '"logistic", "exponential", "softmax", "squared". Regressors: "squared", "absolute",\n'
        '"huber". A callable ``loss(y, scores)`` gets blocks of rows and returns\n'
        "``(value, gradient)`` or ``(value, gradient, curvature)``; an attribute ``start``, given\n"
        "y, may return the constant scores.",
    ),
    "learning_rate": (
        '"auto" or float',
        'Factor of every step, up to 1. "auto": 0.015; where rounds take long, more, up to 0.03\n'
        "once the non-zeros of X and rows times outputs (or classes) are four million, or with\n"
        "`max_time`; and never less than 10 / `n_estimators`, of which 0.1 at most, so that few\n"
        "rounds suffice. A warm start keeps the rate it had.",
    ),
    "projection": (
        "str, object, array of shape (m, n_outputs) or None",
        'What trees are grown on: "gaussian", "rademacher", "achlioptas", "sparse", "hadamard",\n'
        '"subsample", drawn anew each round; "top", the outputs of largest gradient, and\n'
        '"norm-sampling", outputs drawn by squared gradient; an object of `pyrpo.projection`, a\n'
        "matrix, or None: all outputs.",
    ),
    "n_components": ("int or str", "Components of the projection, the paper's q."),
    "relabel": (
        "bool",
        "Leaves hold all outputs (Algorithm 4); False: a tree has one component, and every output\n"
        "takes its own multiple of it (Algorithm 3).",
    ),
    "leaf": (
        '"auto", "newton" or "mean"',
        '"newton": gradient over curvature by leaf and output; "mean": mean gradients, times a\n'
        'step by output found by line search, as in the paper. "auto": "newton" with `relabel`.',
    ),
    "strategy": (
        '"joint" or "single_target"',
        "A model of its own for each output (the paper's st-gbrt, br-gbrt).",
    ),
    "base_estimator": (
        "regressor or None",
        "What is fitted to the gradients instead of our trees: clones of any scikit-learn\n"
        "regressor, of several targets with ``projection=None`` (Algorithm 2), of one with a\n"
        "projection and ``relabel=False`` (Algorithm 3). Parameters of trees are not used then.\n"
        "Such models are pickled, not saved.",
    ),
    "max_features": (
        '"auto", "sqrt", "log2", int, float or None',
        'Features drawn at a node; "auto": three in ten, ten at least.',
    ),
    "subsample": ("float", "Share of the rows a round sees, drawn without replacement."),
    "l2": ("float", "Added to the curvature in Newton steps."),
    "compact": (
        'bool or "auto"',
        "Leaves hold 16-bit numbers, and none for outputs whose loss their step would lower by\n"
        'less than 0.02. The rounds that follow see what is kept. "auto": from 32 labels or\n'
        "classes on.",
    ),
    "huber_quantile": ("float", "The delta of an output is this quantile of |y - median|."),
    "max_bins": (
        _INT_OR_NONE,
        "Bins a feature is grouped into; None: every value is one (slow with many).",
    ),
    "early_stopping": ('bool or "auto"', '"auto", True: stop when the rows held out gain no more.'),
    "validation_fraction": ("float", "Share of the rows held out for early stopping."),
    "n_iter_no_change": (
        '"auto" or int',
        'Rounds without a gain after which to stop; "auto": 1.5 / learning rate, 20 at least.',
    ),
    "refit": (
        "bool",
        "After early stopping on rows held out, boost again on all rows, with as many more rounds\n"
        "as there are more rows, a quarter at most, and at most `n_estimators`. Early stopping\n"
        "has half of `max_time`, this what is left. Not with `eval_set` or `warm_start`.",
    ),
    "scoring": (
        '"loss", "lrap" or callable',
        "What early stopping looks at; a callable gets y and predictions, larger is better.",
    ),
    "tol": ("float", "Relative gain that counts."),
    "max_time": ("float or None", "Seconds after which no more rounds begin; not reproducible."),
    "warm_start": ("bool", "Go on from the rounds of the last fit."),
    "threshold": ("float or array", "Labels are predicted where their probability exceeds it."),
    "class_weight": (
        'dict, list of dicts, "balanced" or None',
        "As in scikit-learn; of labels, a row's weight is the product over its labels.",
    ),
}


# Fitted attributes; each class names its own in ``_attributes``.
ATTRIBUTES: dict[str, tuple[str, str]] = {
    "n_features_in_": ("int", ""),
    "n_outputs_": ("int", ""),
    "feature_importances_": ("ndarray of shape (n_features_in_,)", ""),
    "classes_": ("ndarray", "Classes, or the labels' numbers."),
    "threshold_": ("float or ndarray of shape (n_labels,)", "The parameter, checked or tuned."),
    "tree_": ("object", "The tree's arrays, by scikit-learn's names."),
    "estimators_": ("sequence of single-tree estimators", ""),
    "tuning_": ("Tuning", 'What a race between settings tried, where a parameter is "auto".'),
    "convergence_": ("Convergence", "With ``max_time`` or ``target_score``."),
    "oob_score_": ("float", ""),
    "oob_prediction_": ("ndarray of the shape of y", ""),
    "oob_decision_function_": ("ndarray of shape (n_samples, n_classes or n_labels)", ""),
    "n_estimators_": ("int", "Rounds of the model."),
    "learning_rate_": ("float", "Factor of every step of the last fit."),
    "train_score_": (
        "ndarray of shape (n_rounds,)",
        "Mean loss of the round's sample before each round; of large ones, of one row in 16.",
    ),
    "validation_score_": (
        "ndarray of shape (n_rounds + 1,)",
        "Mean loss of the rows held out, from before the first round.",
    ),
    "steps_": (
        "ndarray of float32, shape (n_estimators_, n_outputs_)",
        "With `base_estimator`: what each output takes of them, learning rate included.",
    ),
}

# Of boosting, where it differs.
BOOSTING_ATTRIBUTES: dict[str, tuple[str, str]] = {
    "estimators_": ("list of regressors", "With `base_estimator`: one a round."),
}


def documented(cls: type) -> type:
    """Write the sections on parameters and attributes: by the constructor, by ``_attributes``."""
    boosting = "Boosting" in cls.__name__
    known = PARAMETERS | (BOOSTING if boosting else {})
    parameters = []
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        kind, text = known[name]
        default = repr(parameter.default).replace("'", '"')
        parameters += [f"{name} : {kind}, default={default}", indent(text, "    ")]
    known = ATTRIBUTES | (BOOSTING_ATTRIBUTES if boosting else {})
    attributes = []
    for base in reversed(cls.__mro__):
        for name in vars(base).get("_attributes", ()):
            kind, text = known[name]
            attributes += [f"{name} : {kind}", *([indent(text, "    ")] if text else [])]
    for section, lines in (("{parameters}", parameters), ("{attributes}", attributes)):
        cls.__doc__ = cls.__doc__.replace(f"    {section}", indent("\n".join(lines), "    "))
    return cls


def store(estimator: Any, arguments: dict[str, Any]) -> None:
    """Keep a constructor's ``locals()`` untouched, each under its own name."""
    for name, value in arguments.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)

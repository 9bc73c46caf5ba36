"""scikit-learn's own checks of every estimator and transformer."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import pyrpo
from pyrpo import feature_map, projection

ESTIMATORS = [
    pyrpo.DecisionTreeClassifier(),
    pyrpo.DecisionTreeRegressor(),
    pyrpo.DecisionTreeRegressor(splitter="random", projection="gaussian"),
    pyrpo.RandomForestClassifier(5),
    pyrpo.RandomForestRegressor(5),
    pyrpo.ExtraTreesClassifier(5),
    pyrpo.ExtraTreesRegressor(5),
    pyrpo.LabelEmbeddingClassifier(),
]
TRANSFORMERS = [
    projection.GaussianProjection(2),
    projection.RademacherProjection(2, sparsity=2.0),
    projection.AchlioptasProjection(2),
    projection.SparseProjection(2),
    projection.HadamardProjection(2),
    projection.SubsampleProjection(1),
    projection.PCAProjection(1),
    feature_map.RandomFourierFeatures(2),
]

PROBABILITIES = (
    "asks for 0 < p < 1 when predict_proba is one (n, d) array; frequencies in leaves reach 0 and 1"
)
BOOTSTRAP = (
    "a bootstrap of n weighted rows draws other rows than one of the repeated rows: equal in "
    "distribution only (scikit-learn's forests are exempt too)"
)


DRAWN = (
    "the decoder draws blocks of rows and held-out rows: repeated rows are drawn otherwise than "
    "weighted ones, and the models are equal up to the draws only"
)


def expected_failures(estimator):
    failures = {}
    if isinstance(estimator, pyrpo.LabelEmbeddingClassifier):
        failures["check_sample_weight_equivalence_on_dense_data"] = DRAWN
        failures["check_sample_weight_equivalence_on_sparse_data"] = DRAWN
    if isinstance(estimator, pyrpo._base.TreesClassifier):
        check = "check_classifiers_multilabel_output_format_predict_proba"
        failures[check] = PROBABILITIES
    if getattr(estimator, "bootstrap", False):
        failures["check_sample_weight_equivalence_on_dense_data"] = BOOTSTRAP
        failures["check_sample_weight_equivalence_on_sparse_data"] = BOOTSTRAP
    return failures


@parametrize_with_checks(ESTIMATORS + TRANSFORMERS, expected_failed_checks=expected_failures)
def test_check(estimator, check):
    check(estimator)

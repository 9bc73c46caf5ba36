"""scikit-learn's own checks of the embeddings.

They transform their second argument, Y, where checks have a transformer of the first: here each is
given the checks' X as its Y, and as its X where it looks at one.
"""

from sklearn.utils.estimator_checks import parametrize_with_checks

from pyrpo import embedding

SEARCHES = "max_iter bounds each of several inner searches: there is no one number of iterations"


def of_the_first(cls):
    """The embedding as a transformer of X."""

    class First(cls):
        def fit(self, X, y=None, sample_weight=None):
            pair = (X, X) if cls._needs_X else (X,)
            return super().fit(*pair, sample_weight=sample_weight)

        def fit_transform(self, X, y=None, sample_weight=None):
            return self.fit(X, y, sample_weight).transform(X)

    First.__init__ = cls.__init__  # its parameters
    First.__name__ = First.__qualname__ = f"{cls.__name__}OfX"
    globals()[First.__name__] = First  # where pickle looks
    return First


EMBEDDINGS = [
    of_the_first(embedding.PLST)(1),
    of_the_first(embedding.CPLST)(1, ridge=1.0),
    of_the_first(embedding.Rembrandt)(1),
    of_the_first(embedding.MLCSSP)(1),
    of_the_first(embedding.KernelMLCSSP)(1),
    of_the_first(embedding.MOPLMS)(1),
    of_the_first(embedding.CompressedSensing)(1),
    of_the_first(embedding.CompressedLabeling)(4),
    of_the_first(embedding.BinaryRelevance)(),
]


def expected_failures(estimator):
    searches = isinstance(estimator, embedding.Rembrandt | embedding.MOPLMS)
    return {"check_transformer_n_iter": SEARCHES} if searches else {}


def test_every_embedding_is_checked():
    names = {type(made).__mro__[1].__name__ for made in EMBEDDINGS}
    assert names == set(embedding.__all__)


@parametrize_with_checks(EMBEDDINGS, expected_failed_checks=expected_failures)
def test_check(estimator, check):
    check(estimator)

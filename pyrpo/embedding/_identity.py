"""Binary relevance: the labels themselves are the codes."""

from __future__ import annotations

from pyrpo._docs import store
from pyrpo.embedding._base import Embedding


class BinaryRelevance(Embedding):
    """Labels as they are: the baseline all embeddings are measured against.

    Attributes
    ----------
    n_components_ : int
        The number of labels.
    """

    _sparse_codes = True

    def __init__(self):
        store(self, locals())

    def _fit(self, X, Y, weight):
        self.n_components_ = Y.shape[1]

    def _encode(self, Y):
        return Y

    def _decode(self, codes):
        return codes

"""Classifiers of very many labels by way of few codes: Mineiro and Karampatziakis' Algorithm 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.model_selection import cross_val_predict
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pyrpo._docs import store
from pyrpo._inputs import (
    FLOATS,
    canonical,
    check_same_rows,
    check_structure,
    check_weight,
    check_y_given,
    classification_outputs,
)
from pyrpo._keeping import SavesArrays
from pyrpo._least_squares import Ridge
from pyrpo._options import label_threshold
from pyrpo.decoder import LogisticDecoder, blocks, top_of_blocks
from pyrpo.embedding import Rembrandt
from pyrpo.feature_map import RandomFourierFeatures

__all__ = ["LabelEmbeddingClassifier"]


class LabelEmbeddingClassifier(SavesArrays, ClassifierMixin, BaseEstimator):
    """Labels are embedded, codes are predicted from X, and labels are decoded from the codes.

    With ``Rembrandt`` and a fitted decoder this is Algorithm 3 of the Rembrandt paper, with
    ``MLCSSP`` and ``decoder="linear"`` Algorithm 1 of Bi and Kwok. The model holds
    k (n_features + n_labels) numbers.

    Parameters
    ----------
    embedding : object of `pyrpo.embedding` or None, default=None
        None: ``Rembrandt`` of 50 codes, centred, or as many as there are labels.
    regressor : "ridge" or estimator, default="ridge"
        Predicts codes from X: any regressor of several outputs; or, where codes are 0 and 1 (label
        selections, compressed labeling), a classifier with ``predict_proba``, whose probabilities
        are not rounded.
    feature_map : "gaussian", "laplacian", transformer or None, default=None
        Of the predicted codes: random Fourier features of a kernel, see
        `pyrpo.feature_map.RandomFourierFeatures`. Needs a fitted decoder.
    decoder : "auto", "linear", "logistic", "softmax" or LogisticDecoder, default="auto"
        "linear": the embedding's ``inverse_transform``, rounded. "logistic": independent logistic
        regressions of the labels. "softmax": of classes. "auto": softmax for classes, logistic for
        labels.
    ridge : float, default=1.0
        Of ``regressor="ridge"``, which has intercepts.
    cv : int, splitter or None, default=None
        The decoder is fitted on codes predicted for rows that the regressor has not seen; for
        regressors that repeat their training rows, as forests do. None: on those of the training
        rows.
    threshold : float or array of shape (n_labels,), default=0.5
        Labels are predicted where their probability (linear: score) exceeds it, from 0 to 1.
    random_state : int, RandomState instance or None, default=None
        For the parts whose own is None.
    n_jobs : int or None, default=None
        Threads of products with sparse matrices and of ``predict_topk``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, or the columns of the indicator.
    regressor_ : estimator
        Of the codes; with ``regressor="ridge"`` it has ``coef_``, (n_features_in_, k).
    n_codes_ : int
    feature_map_ : transformer or None
    decoder_ : LogisticDecoder or None
    embedding_ : fitted embedding
        With ``decoder="linear"`` only: a fitted decoder takes its place.

    References
    ----------
    P. Mineiro and N. Karampatziakis, "Fast Label Embeddings via Randomized Linear Algebra", ECML
    PKDD 2015.

    W. Bi and J. Kwok, "Efficient Multi-label Classification with Many Labels", ICML 2013.

    Examples
    --------
    >>> from pyrpo import LabelEmbeddingClassifier
    >>> from pyrpo.datasets import make_multilabel
    >>> from pyrpo.embedding import Rembrandt
    >>> data = make_multilabel(500, n_labels=100, random_state=0)
    >>> model = LabelEmbeddingClassifier(Rembrandt(20), random_state=0).fit(data.X, data.Y)
    >>> labels, p = model.predict_topk(data.X, 3)
    >>> labels.shape
    (500, 3)
    """

    _always_0: np.ndarray | None = None  # codes of a classifier

    def __init__(
        self,
        embedding=None,
        regressor="ridge",
        feature_map=None,
        decoder="auto",
        *,
        ridge=1.0,
        cv=None,
        threshold=0.5,
        random_state=None,
        n_jobs=None,
    ):
        store(self, locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    # ---- fitting ----

    def fit(self, X, y, sample_weight=None):
        """Embed, regress, decode.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), or array or sparse matrix of shape (n_samples, n_labels)
            Classes, or label indicators.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        check_y_given(self, y)
        X = self._read_X(X, reset=True)
        outputs, self.classes_, self._indicator = classification_outputs(y, None, None, None)
        Y = outputs.Y
        if not sparse.issparse(Y):
            raise ValueError("y: missing labels (NaN) are not supported")
        check_same_rows(X, Y)
        weight = check_weight(sample_weight, Y.shape[0], 1)
        if weight is not None:
            rows = np.flatnonzero(weight := weight.ravel())
            X, Y, weight = X[rows], Y[rows], weight[rows]
        label_threshold(self.threshold, Y.shape[1])
        Y = Y.astype(X.dtype)
        rng = check_random_state(self.random_state)
        decoder = self._decoder(rng)
        embedding = self._embedding(Y.shape[1], rng)
        embedding.fit(X, Y, sample_weight=weight)
        codes = self._regress(X, embedding.transform(Y), weight, rng)
        self.feature_map_ = self._feature_map(rng)
        self.embedding_ = self.decoder_ = None
        if decoder is None:
            self.embedding_ = embedding
            return self
        if self.feature_map_ is not None:
            codes = self.feature_map_.fit_transform(codes)
        self.decoder_ = decoder.fit(codes, Y, weight)
        return self

    def _read_X(self, X: Any, *, reset: bool) -> Any:
        check_structure(X, "X")
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=FLOATS)
        return canonical(sparse.csr_array(X)) if sparse.issparse(X) else X

    def _embedding(self, n_labels: int, rng: Any) -> Any:
        if self.embedding is None:
            part = Rembrandt(min(50, n_labels), center=True, n_jobs=self.n_jobs)
        elif isinstance(self.embedding, type) or not hasattr(self.embedding, "inverse_transform"):
            raise TypeError(f"embedding must be an embedding object, got {self.embedding!r}")
        else:
            part = clone(self.embedding)
        return _seeded(part, rng)

    def _decoder(self, rng: Any) -> LogisticDecoder | None:
        """A decoder to be fitted; None: the embedding's own."""
        kind = self.decoder
        if isinstance(kind, str) and kind == "auto":
            kind = "logistic" if self._indicator else "softmax"
        if isinstance(kind, str) and kind == "linear":
            if self.feature_map is not None:
                raise ValueError("feature_map needs decoder='logistic' or 'softmax', got 'linear'")
            return None
        if isinstance(kind, str) and kind in ("logistic", "softmax"):
            kind = LogisticDecoder(kind)
        if not isinstance(kind, LogisticDecoder):
            raise ValueError(
                "decoder must be 'auto', 'linear', 'logistic', 'softmax' or a LogisticDecoder, "
                f"got {kind!r}"
            )
        if kind.loss == "softmax" and self._indicator:
            raise ValueError("decoder='softmax' needs classes, y is a label indicator")
        return _seeded(clone(kind), rng)

    def _feature_map(self, rng: Any) -> Any:
        part = self.feature_map
        if part is None:
            return None
        if isinstance(part, str):
            part = RandomFourierFeatures(kernel=part)
        elif not hasattr(part, "transform"):
            raise TypeError(
                f"feature_map must be 'gaussian', 'laplacian', a transformer or None, got {part!r}"
            )
        return _seeded(clone(part), rng)

    def _regress(self, X: Any, codes: Any, weight: np.ndarray | None, rng: Any) -> np.ndarray:
        """Fit the regressor of codes; returns what it predicts for the rows of X."""
        part = self.regressor
        if isinstance(part, str):
            if part != "ridge":
                raise ValueError(f"regressor must be 'ridge' or an estimator, got {part!r}")
            part = Ridge(self.ridge, n_jobs=self.n_jobs)
        part = _seeded(clone(part), rng)
        self._binary = is_classifier(part)
        if self._binary:
            codes = _as_classes(codes)
        elif sparse.issparse(codes) and not _takes_sparse_targets(part):
            codes = codes.toarray()
        fitted = {} if weight is None else {"sample_weight": weight}
        self.n_codes_ = codes.shape[1]
        self._always_0 = np.flatnonzero(codes.max(axis=0) == 0) if self._binary else None
        if self.n_codes_ == 1 and not isinstance(part, Ridge):
            codes = codes[:, 0]
        self.regressor_ = clone(part).fit(X, codes, **fitted)
        if self.cv is None:
            return self._codes(X)
        method = "predict_proba" if self._binary else "predict"
        unseen = cross_val_predict(part, X, codes, cv=self.cv, method=method, params=fitted)
        return self._shape(unseen)

    # ---- predicting ----

    def _codes(self, X: Any) -> np.ndarray:
        part = self.regressor_
        return self._shape(part.predict_proba(X) if self._binary else part.predict(X))

    def _shape(self, codes: Any) -> np.ndarray:
        """Codes as one array: of probabilities, those of class 1."""
        if isinstance(codes, list):  # scikit-learn's form: one array of two columns an output
            codes = np.stack([p[:, -1] for p in codes], axis=1)
        if sparse.issparse(codes):
            codes = codes.toarray()
        codes = np.asarray(codes)
        if self._binary and self.n_codes_ == 1 and codes.ndim == 2:
            codes = codes[:, -1]
        codes = codes.reshape(len(codes), self.n_codes_)
        if self._always_0 is not None and len(self._always_0) > 0:
            codes = codes.copy()
            codes[:, self._always_0] = 0.0  # the one class a classifier knew is not class 1
        return codes

    def _blocks(self, X: Any, width: int) -> Iterator[np.ndarray]:
        """Codes of so many rows at a time that `width` numbers of each fit a block."""
        X = self._read_X(X, reset=False)
        n = X.shape[0]
        for rows in blocks(n, max(width, self.n_codes_)):
            yield self._codes(X if rows == slice(0, n) else X[rows])

    def _mapped(self, codes: np.ndarray) -> np.ndarray:
        """What the decoder sees."""
        return codes if self.feature_map_ is None else self.feature_map_.transform(codes)

    def transform_codes(self, X) -> np.ndarray:
        """Predicted codes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, k)
        """
        check_is_fitted(self)
        return self._codes(self._read_X(X, reset=False))

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities of all labels or classes.

        With ``decoder="linear"`` they are scores clipped to 0, ..., 1, those of classes divided by
        their sum.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
        """
        check_is_fitted(self)
        return self._probabilities(self._codes(self._read_X(X, reset=False)))

    def _probabilities(self, codes: np.ndarray) -> np.ndarray:
        if self.decoder_ is not None:
            return self.decoder_.predict_proba(self._mapped(codes))
        p = np.clip(self._linear_scores(codes), 0.0, 1.0)
        if not self._indicator:
            total = p.sum(axis=1, keepdims=True)
            p = np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])
        return p

    def _linear_scores(self, codes: np.ndarray) -> np.ndarray:
        scores = self.embedding_.inverse_transform(codes)
        return scores.toarray() if sparse.issparse(scores) else scores

    def predict(self, X) -> np.ndarray:
        """Most probable class, or the labels whose probability exceeds the threshold.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or, of int64, (n_samples, n_labels)
        """
        if not self._is_indicator():
            return self._best(X, 1, "best")[0][:, 0]
        threshold = label_threshold(self.threshold, len(self.classes_))
        parts = [
            (self._probabilities(codes) > threshold).astype(np.int64)
            for codes in self._blocks(X, len(self.classes_))
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _is_indicator(self) -> bool:
        check_is_fitted(self)
        return self._indicator

    def predict_topk(self, X, k: int):
        """The k best labels or classes of each row, best first, and their probabilities.

        No (n_samples, n_labels) array is made. With ``decoder="linear"`` scores take the place of
        probabilities.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        k : int

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Columns of the indicator, or classes.
        p : ndarray of shape (n_samples, k)
        """
        return self._best(X, k, "predict_topk")

    def _best(self, X, k: int, how: str):
        """The k best and what the decoder's method `how` says of them."""
        check_is_fitted(self)
        width = 0 if self.feature_map_ is None else len(self.decoder_.coef_)
        parts = [self._best_of(codes, k, how) for codes in self._blocks(X, width)]
        index, p = (np.concatenate(each) for each in zip(*parts, strict=True))
        return (index if self._indicator else self.classes_[index]), p

    def _best_of(self, codes: np.ndarray, k: int, how: str):
        if self.decoder_ is not None:
            return getattr(self.decoder_, how)(self._mapped(codes), k, self.n_jobs)

        def scores(rows: slice) -> np.ndarray:
            return self._linear_scores(codes[rows])

        return top_of_blocks(scores, len(codes), len(self.classes_), k, self.n_jobs)


def _takes_sparse_targets(regressor: Any) -> bool:
    """The library's own do, scikit-learn's do not."""
    return type(regressor).__module__.partition(".")[0] == __name__.partition(".")[0]


def _seeded(part: Any, rng: Any) -> Any:
    """Give a part a seed where it has none."""
    if part.get_params(deep=False).get("random_state", 0) is None:
        part.set_params(random_state=int(rng.randint(2**31 - 1)))
    return part


def _as_classes(codes: Any) -> np.ndarray:
    """Codes of 0 and 1 as integers."""
    codes = codes.toarray() if sparse.issparse(codes) else np.asarray(codes)
    odd = codes[(codes != 0) & (codes != 1)]
    if odd.size:
        raise ValueError(
            "regressor: a classifier can predict codes of 0 and 1 only, as label selections and "
            f"compressed labeling have them; found {odd[0]:g}"
        )
    return codes.astype(np.int64)

"""Embeddings of the label space: transformers of Y to k codes and back to scores of all labels.

``fit(Y)``, or ``fit(X, Y)`` for those that look at the features too, ``transform(Y)`` gives codes,
``inverse_transform(codes)`` scores of all labels. Y and X may be sparse and are never densified.
`pyrpo.LabelEmbeddingClassifier` learns to predict the codes.

Transformations: `Rembrandt`, `PLST`, `CPLST`, `CompressedSensing`, `CompressedLabeling`. Selections
of labels: `MLCSSP`, `KernelMLCSSP`, `MOPLMS`. `BinaryRelevance` leaves Y as it is.
"""

from pyrpo.embedding._compressed_labeling import CompressedLabeling
from pyrpo.embedding._compressed_sensing import CompressedSensing
from pyrpo.embedding._identity import BinaryRelevance
from pyrpo.embedding._mlcssp import MLCSSP, KernelMLCSSP
from pyrpo.embedding._moplms import MOPLMS
from pyrpo.embedding._principal import CPLST, PLST
from pyrpo.embedding._rembrandt import Rembrandt

__all__ = [
    "CPLST",
    "MLCSSP",
    "MOPLMS",
    "PLST",
    "BinaryRelevance",
    "CompressedLabeling",
    "CompressedSensing",
    "KernelMLCSSP",
    "Rembrandt",
]

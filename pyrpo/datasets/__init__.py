"""Readers of multi-label files and generators of multi-output problems."""

from ._extreme import make_xmc
from ._friedman import (
    make_friedman1_chain,
    make_friedman1_group,
    make_friedman1_ind,
)
from ._mulan import load_mulan
from ._svmlight import load_svmlight_multilabel
from ._synthetic import make_multilabel
from ._vw import load_vw
from ._xmc import load_xmc

__all__ = [
    "load_mulan",
    "load_svmlight_multilabel",
    "load_vw",
    "load_xmc",
    "make_friedman1_chain",
    "make_friedman1_group",
    "make_friedman1_ind",
    "make_multilabel",
    "make_xmc",
]

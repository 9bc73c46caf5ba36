"""Tables and figures of Joly, Wehenkel and Geurts (2017), made again: see ``__main__``."""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy is loaded: times are those of one thread

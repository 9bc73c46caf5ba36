"""What Bi and Kwok's tables print: mean and deviation by data set and method."""

METHODS = ("ML-CSSP", "ML-CSSP-Knl", "MOPLMS", "PLST", "CPLST", "CL", "BR")

RMSE = {
    "cal500": dict(zip(METHODS, [(4.93, 0.10), (4.89, 0.11), (5.04, 0.10), (4.97, 0.12),
                                 (5.00, 0.11), (5.70, 0.39), (5.06, 0.11)], strict=True)),
    "delicious": {"ML-CSSP": (4.29, 0.02), "ML-CSSP-Knl": (4.36, 0.02), "PLST": (4.27, 0.02),
                  "CPLST": (4.26, 0.02), "CL": (5.58, 0.18), "BR": (4.26, 0.01)},
}  # fmt: skip
AUPRC = {
    "cal500": {"ML-CSSP": (0.500, 0.031), "MOPLMS": (0.459, 0.030), "PLST": (0.488, 0.035),
               "CPLST": (0.412, 0.035), "CL": (0.169, 0.028), "BR": (0.442, 0.034)},
    "delicious": {"ML-CSSP": (0.220, 0.005), "PLST": (0.182, 0.045), "CPLST": (0.227, 0.005),
                  "CL": (0.089, 0.007), "BR": (0.237, 0.005)},
}  # fmt: skip
SECONDS = {
    "cal500": {"ML-CSSP": (0.0, 0.0), "ML-CSSP-Knl": (0.3, 0.0), "MOPLMS": (10.7, 1.7),
               "PLST": (0.0, 0.0), "CPLST": (0.0, 0.0), "CL": (182.0, 0.0)},
    "delicious": {"ML-CSSP": (11.6, 2.9), "ML-CSSP-Knl": (133.7, 2.5), "PLST": (11.6, 2.9),
                  "CPLST": (16.0, 3.5), "CL": (5675.0, 0.0)},
}  # fmt: skip
TRIALS = {"cal500": {"ML-CSSP": (18, 1), "BMD09": (99, 0)},
          "delicious": {"ML-CSSP": (134, 7), "BMD09": (902, 0)}}  # fmt: skip
RATIO = {"cal500": {"ML-CSSP": (1.33, 0.02), "BMD09": (1.24, 0.04)},
         "delicious": {"ML-CSSP": (1.15, 0.01), "BMD09": (1.54, 0.01)}}  # fmt: skip
BMD09_RMSE = {"cal500": (4.97, 0.09), "delicious": (4.34, 0.02)}
FULL_RANK = {"cal500": {"ML-CSSP": 1.0, "uniform": 1.0},
             "delicious": {"ML-CSSP": 1.0, "uniform": 1.0}}  # fmt: skip
DMOZ = {  # Tables 5, 6 and 8
    "ML-CSSP": {"seconds": "1428.9 ± 59.2", "trials": "472 ± 5", "full rank": "100%"},
    "PLST": {"seconds": "1428.7 ± 59.2"},
    "uniform": {"full rank": "0%"},
}

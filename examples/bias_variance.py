"""Where the error of projected forests comes from: the picture in bias_variance.png.

Section 3.3 of Joly, Geurts and Wehenkel (2014), measured. Fewer components m mean more bias and a
larger variance of the projection. One subspace for all trees (Algorithm 1) keeps that variance
whole; a subspace for each tree (Algorithm 2) divides it by the number of trees.
"""

from time import perf_counter

import matplotlib as mpl
import numpy as np

from pyrpo import RandomForestRegressor
from pyrpo.analysis import bias_variance

mpl.use("Agg")
from matplotlib import pyplot as plt

N_INPUTS, N_OUTPUTS, N_LATENT = 10, 30, 6
N_TRAIN, N_TEST, N_TREES = 200, 200, 10
COMPONENTS = (1, 2, 4, 8, 16)
NOISE = 0.3
PARTS = (
    ("bias", "squared bias", "#0072B2"),
    ("v_ls", "variance: learning set", "#56B4E9"),
    ("v_algo", "variance: algorithm", "#E69F00"),
    ("v_proj", "variance: projection", "#D55E00"),
)
MIX = np.random.default_rng(0).normal(size=(N_LATENT, N_OUTPUTS)) / N_LATENT**0.5


def truth(X):
    """Outputs mixed from a few functions of one input each."""
    latent = np.sign(X[:, :N_LATENT] - 0.5)
    return latent @ MIX


def sample(rng, n):
    """Draw n rows of the population."""
    X = rng.uniform(size=(n, N_INPUTS))
    return X, truth(X) + NOISE * rng.normal(size=(n, N_OUTPUTS))


def measure(**parameters):
    """Components of one kind of forest."""
    X_test, Y_test = sample(np.random.default_rng(1), N_TEST)
    forest = RandomForestRegressor(N_TREES, max_features=1.0, **parameters)
    return bias_variance(
        forest,
        sample,
        X_test,
        Y_test,
        learning_size=N_TRAIN,
        truth=truth(X_test),
        n_learning_sets=20,
        random_state=0,
    )


def print_row(name, result):
    """Print the components and the standard errors of each."""
    cells = []
    for part, _, _ in PARTS:
        cells.append(f"{getattr(result, part):.4f} ± {getattr(result.standard_error, part):.4f}")
    print(f"{name:<30}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def draw(axes, title, results):
    """Draw the components on top of each other; without the noise, which is the same everywhere."""
    place, bottom = np.arange(len(results)), np.zeros(len(results))
    for part, label, color in PARTS:
        height = np.maximum([getattr(r, part) for r in results], 0.0)
        axes.bar(place, height, bottom=bottom, width=0.7, color=color, label=label)
        bottom += height
    axes.set_xticks(place, [*map(str, COMPONENTS), "all"])
    axes.set_xlabel(f"m, components out of {N_OUTPUTS} outputs")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def main():
    """Print the table, save the picture."""
    start = perf_counter()
    print(f"{N_TREES} trees; ± standard error\n\n" + " " * 30, end="")
    print("".join(f"{label.replace('variance: ', 'V '):>18}" for _, label, _ in PARTS))
    full = measure()
    print_row("all outputs", full)
    kinds = (
        (True, "Algorithm 1: one subspace for all trees", "shared"),
        (False, "Algorithm 2: a subspace for each tree", "own"),
    )
    figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    for axes, (shared, title, name) in zip(panels, kinds, strict=True):
        results = []
        for m in COMPONENTS:
            projection = {"projection": "gaussian", "n_components": m, "shared_projection": shared}
            results.append(measure(**projection))
            print_row(f"{name} subspace, m = {m}", results[-1])
        draw(axes, title, [*results, full])
    panels[0].set_ylabel("mean squared error above the noise")
    handles, labels = panels[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(PARTS), frameon=False)
    figure.savefig("bias_variance.png", dpi=150)
    print(f"\nPicture: bias_variance.png ({perf_counter() - start:.0f} s in all)")


if __name__ == "__main__":
    main()

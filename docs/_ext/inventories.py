"""Writes the inventories that intersphinx reads: the names of other projects that our pages link to.

They are written when the site is built, from the table below, so nothing is fetched.
"""

from __future__ import annotations

import zlib
from pathlib import Path

# Project: its site, and its names by their kind and page.
PROJECTS: dict[str, tuple[str, tuple[tuple[str, str, str], ...]]] = {
    "python": (
        "https://docs.python.org/3/",
        (
            ("class", "library/collections.abc.html#{}", "collections.abc.Callable collections.abc.Iterator"),
            ("class", "library/collections.abc.html#{}", "collections.abc.Sequence collections.abc.Mapping"),
            ("class", "library/pathlib.html#{}", "pathlib.Path"),
            ("exception", "library/exceptions.html#{}", "ValueError TypeError UserWarning"),
        ),
    ),
    "numpy": (
        "https://numpy.org/doc/stable/",
        (
            ("class", "reference/generated/{}.html", "numpy.memmap numpy.ndarray"),
            ("class", "reference/random/generator.html#{}", "numpy.random.Generator"),
            ("class", "reference/random/legacy.html#{}", "numpy.random.RandomState"),
            ("class", "reference/typing.html#{}", "numpy.typing.ArrayLike numpy.typing.DTypeLike numpy.typing.NDArray"),
        ),
    ),
    "scipy": (
        "https://docs.scipy.org/doc/scipy/",
        (
            ("class", "reference/generated/{}.html", "scipy.sparse.csr_array scipy.sparse.csr_matrix"),
            ("function", "reference/generated/{}.html", "scipy.cluster.hierarchy.dendrogram"),
        ),
    ),
    "sklearn": (
        "https://scikit-learn.org/stable/",
        (
            ("class", "modules/generated/{}.html", "sklearn.base.BaseEstimator sklearn.cluster.HDBSCAN"),
            ("class", "modules/generated/{}.html", "sklearn.decomposition.LatentDirichletAllocation"),
            ("class", "modules/generated/{}.html", "sklearn.decomposition.PCA sklearn.pipeline.Pipeline"),
            ("class", "modules/generated/{}.html", "sklearn.mixture.BayesianGaussianMixture"),
            ("class", "modules/generated/{}.html", "sklearn.mixture.GaussianMixture"),
            ("exception", "modules/generated/{}.html", "sklearn.exceptions.ConvergenceWarning"),
        ),
    ),
    "pandas": (
        "https://pandas.pydata.org/docs/",
        (("class", "reference/api/{}.html", "pandas.DataFrame pandas.Series"),),
    ),
    "matplotlib": ("https://matplotlib.org/stable/", (("class", "api/_as_gen/{}.html", "matplotlib.axes.Axes"),)),
}


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Write one inventory a project, and return the mapping that intersphinx takes."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, (site, groups) in PROJECTS.items():
        lines = [f"{name} py:{kind} 1 {page.format(name)} -" for kind, page, all_ in groups for name in all_.split()]
        header = "\n".join(
            [
                "# Sphinx inventory version 2",
                f"# Project: {project}",
                "# Version: ",
                "# The remainder of this file is compressed using zlib.\n",
            ]
        )
        path = folder / f"{project}.inv"
        path.write_bytes(header.encode() + zlib.compress("\n".join([*lines, ""]).encode()))
        mapping[project] = (site, str(path))
    return mapping

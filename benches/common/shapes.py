"""Batteries of sets whose clusters are not all Gaussian, for `combine.py`."""

from functools import partial

import numpy as np
from sklearn.datasets import load_breast_cancer, make_blobs, make_circles, make_moons
from sklearn.decomposition import PCA

from common.clusters import Array, DataSet, Labels, Made, battery, scikit_learn_sets

ROWS = 500


def made(pair: tuple[Array, Labels]) -> Made:
    rows, labels = pair
    return np.ascontiguousarray(rows, float), np.asarray(labels, np.int64) + 1


def breast_cancer_on_five() -> Made:
    """Five principal components of the standardised columns."""
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return made((PCA(5, random_state=0).fit_transform(rows), labels))


def circles(noise: float, factor: float) -> Made:
    return made(make_circles(2 * ROWS, noise=noise, factor=factor, random_state=0))


def moons(noise: float) -> Made:
    return made(make_moons(2 * ROWS, noise=noise, random_state=0))


def blobs(deviations: list[float] | float, seed: int) -> Made:
    return made(make_blobs(2 * ROWS, cluster_std=deviations, random_state=seed))


def sheared() -> Made:
    rows, labels = make_blobs(2 * ROWS, random_state=170)
    return made((rows @ np.array([[0.6, -0.6], [-0.4, 0.8]]), labels))


def no_structure() -> Made:
    return made((np.random.default_rng(0).uniform(size=(2 * ROWS, 2)), np.zeros(2 * ROWS, np.int64)))


def normals(means: list[tuple[float, float]], deviation: float = 1.0) -> Made:
    """Round clusters of `ROWS` rows."""
    labels = np.repeat(np.arange(len(means)), ROWS)
    return made((np.array(means)[labels] + deviation * np.random.default_rng(0).normal(size=(len(labels), 2)), labels))


def squares(n: int, gap: float) -> Made:
    """Squares of side 2 in a row."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n), ROWS)
    rows = rng.uniform(-1, 1, size=(len(labels), 2))
    rows[:, 0] += (2 + gap) * labels
    return made((rows, labels))


def rings(n: int, deviation: float) -> Made:
    """Rings around one centre with radii 1, 2, ..."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n), ROWS)
    angles, radii = rng.uniform(0, 2 * np.pi, len(labels)), 1 + labels + deviation * rng.normal(size=len(labels))
    return made((np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]), labels))


def smile() -> Made:
    """Two eyes, a mouth and a face."""
    rng = np.random.default_rng(0)
    face, mouth = rng.uniform(0, 2 * np.pi, ROWS), rng.uniform(1.25 * np.pi, 1.75 * np.pi, ROWS)
    rows = [
        3.0 * np.column_stack([np.cos(face), np.sin(face)]),
        1.6 * np.column_stack([np.cos(mouth), np.sin(mouth)]),
        np.tile([-1.0, 1.0], (ROWS // 2, 1)) + 0.15 * rng.normal(size=(ROWS // 2, 2)),
        np.tile([1.0, 1.0], (ROWS // 2, 1)) + 0.15 * rng.normal(size=(ROWS // 2, 2)),
    ]
    labels = np.repeat(np.arange(4), [len(part) for part in rows])
    table = np.concatenate(rows)
    return made((table + 0.05 * rng.normal(size=table.shape), labels))


def bars(n: int, gap: float) -> Made:
    """Parallel bars of length 10."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n), ROWS)
    rows = np.column_stack([rng.uniform(0, 10, len(labels)), 0.15 * rng.normal(size=len(labels)) + gap * labels])
    return made((rows, labels))


def spirals(arms: int, turns: float) -> Made:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(arms), ROWS // 2)
    radii = np.sqrt(rng.uniform(0.05, 1.0, len(labels)))
    angles = 2 * np.pi * (turns * radii + labels / arms)
    rows = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]) + 0.01 * rng.normal(size=(len(labels), 2))
    return made((rows, labels))


def heavy(freedom: float, distance: float) -> Made:
    """Three clusters of Student's t."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), ROWS)
    means = distance * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]])
    return made((means[labels] + rng.standard_t(freedom, size=(len(labels), 2)), labels))


def skewed(n: int, distance: float) -> Made:
    """Clusters of exponential columns."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n), ROWS)
    return made((rng.exponential(size=(len(labels), 2)) + distance * labels[:, None] * [1, -1], labels))


def outlines(corners: int, n: int) -> Made:
    """Outlines of regular polygons beside each other."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n), ROWS)
    edge, place = rng.integers(corners, size=len(labels)), rng.uniform(size=len(labels))[:, None]
    ends = np.column_stack([f(2 * np.pi * np.arange(corners + 1) / corners) for f in (np.cos, np.sin)])
    rows = (1 - place) * ends[edge] + place * ends[edge + 1] + 0.03 * rng.normal(size=(len(labels), 2))
    rows[:, 0] += 2.5 * labels
    return made((rows, labels))


def discs(n: int, distance: float, dimension: int = 2) -> Made:
    """Uniform balls of radius 1 in a row."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n), ROWS)
    rows = rng.normal(size=(len(labels), dimension))
    rows *= rng.uniform(size=(len(labels), 1)) ** (1 / dimension) / np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:, 0] += distance * labels
    return made((rows, labels))


def blobs_in_noise() -> Made:
    """Three round clusters in uniform noise, which has label 0."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], [300, ROWS, ROWS, ROWS])
    rows = np.array([[0.0, 0.0], [-5.0, -5.0], [5.0, -5.0], [0.0, 5.0]])[labels] + rng.normal(size=(len(labels), 2))
    rows[:300] = rng.uniform(-10, 10, size=(300, 2))
    return rows, labels.astype(np.int64)


def ellipses(n: int) -> Made:
    """Gaussian clusters of ratio 5 in all directions, around a circle."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n), ROWS)
    angles = 2 * np.pi * np.arange(n) / n
    means = 8 * np.column_stack([np.cos(angles), np.sin(angles)])
    turns = np.array([[[np.cos(2 * a), -np.sin(2 * a)], [np.sin(2 * a), np.cos(2 * a)]] for a in angles])
    rows = rng.normal(size=(len(labels), 2)) * [2.0, 0.4]
    return made((means[labels] + np.einsum("nij,nj->ni", turns[labels], rows), labels))


def crescents() -> Made:
    """Four half rings that open to different sides."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), ROWS)
    angles = rng.uniform(0, np.pi, len(labels)) + labels * np.pi / 2
    rows = np.column_stack([np.cos(angles), np.sin(angles)]) + 0.08 * rng.normal(size=(len(labels), 2))
    return made((rows + np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])[labels], labels))


def many(n: int, dimension: int, distance: float) -> Made:
    """Round clusters around random means."""
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(n), 200)
    rows = distance * rng.normal(size=(n, dimension))[labels] + rng.normal(size=(len(labels), dimension))
    return made((rows, labels))


def unseen() -> list[DataSet]:
    """Sets on which nothing was chosen: written once the rule was fixed."""
    sets = {
        "spirals_two": partial(spirals, 2, 1.0),
        "spirals_four": partial(spirals, 4, 0.6),
        "heavy_near": partial(heavy, 4.0, 6.0),
        "heavy_far": partial(heavy, 2.5, 15.0),
        "skewed_two": partial(skewed, 2, 2.0),
        "skewed_four": partial(skewed, 4, 4.0),
        "skewed_one": partial(skewed, 1, 0.0),
        "triangles": partial(outlines, 3, 3),
        "hexagons": partial(outlines, 6, 2),
        "one_outline": partial(outlines, 4, 1),
        "discs_touching": partial(discs, 2, 2.0),
        "discs_apart": partial(discs, 4, 2.6),
        "one_disc": partial(discs, 1, 0.0),
        "balls": partial(discs, 3, 2.5, 5),
        "blobs_in_noise": blobs_in_noise,
        "ellipses_four": partial(ellipses, 4),
        "ellipses_nine": partial(ellipses, 9),
        "crescents": crescents,
        "many_plane": partial(many, 15, 2, 8.0),
        "many_wide": partial(many, 8, 10, 2.0),
        "four_squares": partial(squares, 4, 1.0),
        "ten_round": partial(normals, [(5.0 * (k % 5), 5.0 * (k // 5)) for k in range(10)]),
        "three_near": partial(normals, [(0.0, 0.0), (3.5, 0.0), (1.75, 3.0)]),
        "five_bars": partial(bars, 5, 1.0),
    }
    return [DataSet(name, "unseen", make) for name, make in sets.items()]


def batteries() -> list[DataSet]:
    """The downloaded batteries, those of scikit-learn, and shapes. Sets that are the same up to units are here once."""
    of_scikit_learn = {
        "breast_cancer_five": breast_cancer_on_five,
        "circles": partial(circles, 0.05, 0.5),
        "circles_noisy": partial(circles, 0.1, 0.4),
        "circles_thin": partial(circles, 0.02, 0.6),
        "moons": partial(moons, 0.05),
        "moons_noisy": partial(moons, 0.12),
        "varied": partial(blobs, [1.0, 2.5, 0.5], 170),
        "blobs_three": partial(blobs, 1.0, 8),
        "sheared": sheared,
        "no_structure": no_structure,
    }
    own = {
        "two_overlapping": partial(normals, [(0.0, 0.0), (2.5, 0.0)]),
        "two_close": partial(normals, [(0.0, 0.0), (3.0, 0.0)]),
        "two_far": partial(normals, [(0.0, 0.0), (6.0, 0.0)]),
        "one_normal": partial(normals, [(0.0, 0.0)]),
        "six_round": partial(normals, [(4.0 * (k % 3), 4.0 * (k // 3)) for k in range(6)]),
        "squares_far": partial(squares, 5, 2.0),
        "squares_close": partial(squares, 3, 0.3),
        "rings_three": partial(rings, 3, 0.05),
        "rings_thin": partial(rings, 2, 0.01),
        "smile": smile,
        "bars": partial(bars, 4, 1.5),
    }
    groups = [*battery("fcps"), *battery("sipu"), *battery("graves"), *battery("other")]
    groups += [one for one in scikit_learn_sets() if one.name in ("wine", "breast_cancer", "digits")]
    groups += [DataSet(name, "scikit-learn", make) for name, make in of_scikit_learn.items()]
    return groups + [DataSet(name, "shapes", make) for name, make in own.items()]

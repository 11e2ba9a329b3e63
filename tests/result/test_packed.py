"""Predictions pack the components once: later ones, copies, threads and updates give the bits of a fresh fit."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import stickbreak as sb
from cases import clustered_rows

ROWS = clustered_rows(np.random.default_rng(1), 400, 3, 5)
MIXTURES = {
    "gaussian": sb.Mixture(likelihood=sb.Gaussian()),
    "diagonal": sb.Mixture(likelihood=sb.DiagonalGaussian()),
    "tail": sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(truncation="tail")),
}
ASKED: dict[str, Callable[[sb.Fit, np.ndarray], object]] = {
    "predict": lambda fit, rows: fit.predict(rows),
    "predict_proba": lambda fit, rows: fit.predict_proba(rows),
    "sparse": lambda fit, rows: fit.predict_proba(rows, sparse=True).toarray(),
    "tail": lambda fit, rows: fit.predict_proba(rows, tail=fit.bound == "tail"),
    "log_predictive": lambda fit, rows: fit.log_predictive(rows),
    "plug_in": lambda fit, rows: fit.log_predictive(rows, plug_in=True),
    "evaluate": lambda fit, rows: fit.evaluate(rows),
    "sample": lambda fit, rows: fit.sample(len(rows), seed=3),
}


def fitted(name: str) -> sb.Fit:
    return sb.fit(MIXTURES[name], ROWS, sb.Full(sparsity=2, max_passes=5), n_components=4, progress=False)


def bits(answer: object) -> bytes:
    return np.asarray(answer).tobytes()


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_answer_is_that_of_a_fresh_fit(name: str, dtype: type) -> None:
    fit, rows = fitted(name), ROWS.astype(dtype)
    fresh = {asked: bits(ask(copy.deepcopy(fit), rows)) for asked, ask in ASKED.items()}
    for _ in range(2):
        for other in (np.float32, np.float64):
            assert len(fit.predict(ROWS.astype(other))) == len(rows)
        assert {asked: bits(ask(fit, rows)) for asked, ask in ASKED.items()} == fresh


@pytest.mark.parametrize("name", MIXTURES)
def test_one_row_has_the_answer_it_has_among_others(name: str) -> None:
    fit = fitted(name)
    for ask in (ASKED["predict"], ASKED["predict_proba"], ASKED["log_predictive"]):
        together = np.asarray(ask(fit, ROWS[:50]))
        alone = np.concatenate([np.asarray(ask(fit, row[None])) for row in ROWS[:50]])
        assert bits(together) == bits(alone)


def test_threads_that_come_at_once_get_the_same_answer() -> None:
    fit = fitted("gaussian")
    expected = bits(copy.deepcopy(fit).predict_proba(ROWS))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: bits(fit.predict_proba(ROWS)), range(16)))
    assert found == [expected] * 16


def test_packed_components_are_not_saved() -> None:
    fit = fitted("gaussian")
    before = pickle.dumps(fit)
    for ask in ASKED.values():
        ask(fit, ROWS)
    assert len(pickle.dumps(fit)) == len(before)


def test_an_update_has_components_of_its_own() -> None:
    fit = fitted("gaussian")
    fresh = copy.deepcopy(fit).update(ROWS + 1.0)
    fit.predict(ROWS)
    later = fit.update(ROWS + 1.0)
    for asked in ("predict_proba", "log_predictive", "evaluate"):
        assert bits(ASKED[asked](later, ROWS)) == bits(ASKED[asked](fresh, ROWS)) != bits(ASKED[asked](fit, ROWS))

"""The process of scikit-learn: its public `fit`, with a look at the mixture at the end of every iteration."""

import warnings
from collections.abc import Callable

import numpy as np
import sklearn
from scipy.special import betaln, multigammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from recorder import Recorder, read_arguments, read_problem


class Observed(BayesianGaussianMixture):
    """Starts from labels, for which there is no public way, and calls back when an iteration ends."""

    labels: np.ndarray
    after: Callable[[float], None]

    def _initialize_parameters(self, X: np.ndarray, *args: object, **options: object) -> None:
        self._initialize(X, np.eye(self.n_components)[self.labels])

    def _compute_lower_bound(self, log_resp: np.ndarray, log_prob_norm: float) -> float:
        bound = super()._compute_lower_bound(log_resp, log_prob_norm)
        self.after(bound)
        return bound


def mixture_of(numbers: dict, dimension: int, passes: int) -> Observed:
    return Observed(
        n_components=numbers["n_components"],
        covariance_type="full",
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=numbers["concentration"],
        mean_prior=np.zeros(dimension),
        mean_precision_prior=numbers["mean_precision"],
        degrees_of_freedom_prior=numbers["dof"],
        covariance_prior=numbers["scale"] * np.eye(dimension),
        reg_covar=0.0,
        max_iter=passes,
        tol=0.0,
    )


def posterior_of(mixture: BayesianGaussianMixture) -> dict[str, np.ndarray]:
    """Its covariances are scales divided by the degrees of freedom."""
    dof = mixture.degrees_of_freedom_
    on, off = mixture.weight_concentration_
    return {
        "stick_on": on,
        "stick_off": off,
        "mean": mixture.means_,
        "mean_precision": mixture.mean_precision_,
        "dof": dof,
        "scale": mixture.covariances_ * dof[:, None, None],
    }


def dropped_constants(numbers: dict, n: int, dimension: int) -> float:
    """What `lower_bound_` leaves out: the normalisers of the prior, one of each Wishart, and that of the rows."""
    dof, scale, concentration = numbers["dof"], numbers["scale"], numbers["concentration"]
    prior_of_component = (
        multigammaln(dof / 2, dimension)
        + dof * dimension / 2 * (np.log(2) - np.log(scale))
        - dimension / 2 * np.log(numbers["mean_precision"])
    )
    wishart = dimension * (dimension - 1) / 4 * np.log(np.pi)
    a_component = wishart - prior_of_component - betaln(1.0, concentration)
    return float(numbers["n_components"] * a_component - n * dimension / 2 * np.log(2 * np.pi))


def main() -> None:
    problem, results, settings = read_arguments()
    rows, labels, numbers = read_problem(problem)
    mixture = mixture_of(numbers, rows.shape[1], settings["passes"])
    recorder = Recorder(results, settings["passes"])
    mixture.labels = labels
    dropped = dropped_constants(numbers, *rows.shape)
    mixture.after = lambda bound: recorder.lap(bound + dropped, lambda: posterior_of(mixture))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        recorder.start()
        mixture.fit(rows)
        recorder.stop()
    recorder.write({"scikit-learn": sklearn.__version__})


if __name__ == "__main__":
    main()

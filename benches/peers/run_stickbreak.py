"""The process of stickbreak: one timed fit, then the posteriors at the checkpoints."""

import numpy as np

import stickbreak as sb
from recorder import Recorder, read_arguments, read_problem
from stickbreak.result.history import Record


def posterior_of(fit: sb.Fit) -> dict[str, np.ndarray]:
    """The sticks follow from the counts, as the last global step found them."""
    behind = np.append(np.cumsum(fit.counts[::-1])[-2::-1], 0.0)
    return {"stick_on": 1 + fit.counts, "stick_off": fit.concentration + behind, **fit.components}


def model_of(numbers: dict, dimension: int) -> sb.Mixture:
    common = {"dof": numbers["dof"], "scale": numbers["scale"] * np.eye(dimension)}
    likelihood: sb.Gaussian | sb.ZeroMeanGaussian
    if numbers["mean_precision"] is None:
        likelihood = sb.ZeroMeanGaussian(**common)
    else:
        likelihood = sb.Gaussian(mean=np.zeros(dimension), mean_precision=numbers["mean_precision"], **common)
    return sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(concentration=numbers["concentration"]))


def algorithm_of(settings: dict, passes: int) -> sb.Full | sb.Memoized:
    common = {"sparsity": settings["sparsity"], "margin": settings.get("margin"), "tol": 0, "max_passes": passes}
    if "bounds_memory" in settings:
        common["bounds_memory"] = settings["bounds_memory"]
    return sb.Memoized(batches=settings["batches"], **common) if settings["batches"] > 1 else sb.Full(**common)


def main() -> None:
    problem, results, settings = read_arguments()
    rows, labels, numbers = read_problem(problem)
    rows = rows.astype(settings["dtype"])
    model = model_of(numbers, rows.shape[1])

    def fit(passes: int, **options: object) -> sb.Fit:
        algorithm = algorithm_of(settings, passes)
        return sb.fit(model, rows, algorithm, init=labels, progress=False, **options)

    recorder = Recorder(results, settings["passes"], settings.get("scored"))

    def after(record: Record) -> bool:
        recorder.lap(record.elbo)
        return record.elbo >= settings.get("target", np.inf)

    recorder.start()
    last = fit(settings["passes"], threads=1, callbacks=[after])
    recorder.stop()
    recorder.save_last(posterior_of(last))
    # A callback does not see the posterior. A shorter fit with the same seed has the same bits, with any threads.
    for index in recorder.checkpoints[:-1]:
        recorder.save(index, posterior_of(fit(index)))
    recorder.write({"stickbreak": sb.__version__}, last.evaluate(rows) if settings["sparsity"] is None else None)


if __name__ == "__main__":
    main()

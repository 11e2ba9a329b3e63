"""The process of bnpy 0.1.7, in Python 3.8 with NumPy 1.18."""

from pathlib import Path

import bnpy
import numpy as np
from bnpy.util import SparseRespUtil
from bnpy.util.lib.sparseResp import LibSparseResp

import bnpy_hook
from recorder import Recorder, read_arguments, read_problem


def posterior_of(hmodel):
    """Its names are m, kappa, nu and B, and eta1 and eta0 for the sticks."""
    post, sticks = hmodel.obsModel.Post, hmodel.allocModel
    of_means = {"mean": post.m, "mean_precision": post.kappa} if hasattr(post, "m") else {}
    return {"stick_on": sticks.eta1, "stick_off": sticks.eta0, "dof": post.nu, "scale": post.B, **of_means}


def check_prior(hmodel, numbers, dimension):
    """bnpy raises small values to floors of its own without a word."""
    prior, sticks = hmodel.obsModel.Prior, hmodel.allocModel
    found = [prior.nu, sticks.gamma1, sticks.gamma0]
    asked = [numbers["dof"], 1.0, numbers["concentration"]]
    np.testing.assert_allclose(found, asked, rtol=1e-12)
    if numbers["mean_precision"] is not None:
        np.testing.assert_allclose(prior.kappa, numbers["mean_precision"], rtol=1e-12)
        np.testing.assert_allclose(prior.m, np.zeros(dimension))
    np.testing.assert_allclose(prior.B, numbers["scale"] * np.eye(dimension), rtol=1e-12)


def use_its_own_selection():
    """bnpy 0.1.7 imports its C++ selection of the top L from a module that is not there, and then never uses it.

    What it falls back to is a Python loop that divides zero by zero where all densities of a row underflow.
    """
    if LibSparseResp.hasEigenLibReady:
        SparseRespUtil.sparsifyLogResp_cpp = LibSparseResp.sparsifyLogResp_cpp
        SparseRespUtil.hasCPP = True


def main():
    use_its_own_selection()
    problem, results, settings = read_arguments()
    rows, labels, numbers = read_problem(problem)
    n, dimension = rows.shape
    # Its scale is an expected covariance times (nu - D - 1).
    covariance = numbers["scale"] / (numbers["dof"] - dimension - 1)
    options = {"nLap": settings["passes"], "nnzPerRowLP": settings["sparsity"] or 0}
    if not settings.get("until_converged", False):
        options["convergeThr"] = -1.0
    if settings["batches"] > 1:
        options["nBatch"] = settings["batches"]
        # Else it forgets the start after the first batch.
        options["doFullPassBeforeMstep"] = int(settings.get("keep_start", False))
    if numbers["mean_precision"] is not None:
        options["kappa"] = numbers["mean_precision"]
    recorder = Recorder(results, settings["passes"], settings.get("scored"))
    bnpy_hook.after = lambda hmodel, loss: recorder.lap(-loss * n * dimension, lambda: posterior_of(hmodel))
    recorder.start()
    data = bnpy.data.XData(X=rows, TrueZ=labels)
    hmodel, _ = bnpy.run(
        data,
        "DPMixtureModel",
        "ZeroMeanGauss" if numbers["mean_precision"] is None else "Gauss",
        "moVB" if settings["batches"] > 1 else "VB",
        doSaveToDisk=False,
        doWriteStdOut=False,
        gamma0=numbers["concentration"],
        nu=int(numbers["dof"]),
        ECovMat="eye",
        sF=covariance,
        K=numbers["n_components"],
        initname="truelabels",
        customFuncPath=str(Path(bnpy_hook.__file__).resolve()),
        **options,
    )
    recorder.stop()
    recorder.save_last(posterior_of(hmodel))
    check_prior(hmodel, numbers, dimension)
    # Without responsibilities given, it makes a dense local step and computes the general form of the bound.
    recorder.write({"bnpy": "0.1.7"}, float(hmodel.calc_evidence(data)) * n * dimension)


if __name__ == "__main__":
    main()

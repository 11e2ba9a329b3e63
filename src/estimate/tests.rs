//! Parameters that a sampler finds open: estimated by the usual fit, and kept.

use super::estimate;
use crate::data::{DenseRows, TableRows};
use crate::error::Error;
use crate::fit::{Job, Settings, fit};
use crate::grounds::Grounds;
use crate::init::Init;
use crate::mcmc::tests::cases::{dirichlet, finite_mixtures, generalized_gamma, named, specification};
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value, vector};

/// Two groups of 30 rows in two columns.
fn rows() -> DenseRows<'static, f64> {
    let place = |row: usize, step: f64| (row as f64 * step).sin() + if row < 30 { -6.0 } else { 6.0 };
    DenseRows::new((0..60).flat_map(|row| [place(row, 1.7), place(row, 2.3)]).collect::<Vec<f64>>(), 2)
}

fn open(process: Named) -> Specification {
    specification(named("Gaussian", []), process)
}

/// The parameters of a fit under this process, with a seed of 3.
fn fitted(process: Named) -> Parameters {
    let (rows, model) = (rows(), open(process));
    let data = TableRows { rows: &rows, weights: None };
    let settings = Settings { seed: 3, ..Settings::usual(&model).expect("weights") };
    let job = Job { specification: &model, rows: &data, init: &Init::KmeansPlusPlus, settings: &settings, ask: None };
    fit(&job, None, &(), &Cancel::default()).and_then(|found| found.parameters()).expect("well-behaved data")
}

#[test]
fn open_parameters_are_those_of_the_usual_fit() {
    let rows = rows();
    let learned = named("PitmanYor", [("discount", vector(vec![1.0, 1.0]))]);
    for (process, of_fit) in [
        (dirichlet(2.0), dirichlet(2.0)),
        (generalized_gamma(1.0, 0.5), dirichlet(1.0)),
        (finite_mixtures(1.0, 1.0), dirichlet(1.0)),
        (learned, dirichlet(1.0)),
    ] {
        let (found, fit) =
            estimate(&open(process.clone()), &rows, 3, false, &(), &Cancel::default()).expect("two groups");
        assert_eq!(fit.expect("a fit").summary.n_components(), 2);
        assert_eq!(found.process, process);
        // Rounding cells have no closed marginal likelihood.
        let expected = fitted(of_fit).with([("resolution", Value::Number(0.0))]);
        assert_eq!(found.likelihood.parameters, expected);
        let grounds = Grounds::for_sampler(&found, &rows, &Cancel::default()).expect("complete");
        let given = |parameters: &Parameters| parameters.number("dof").expect("a number");
        assert_eq!(given(&grounds.parameters().expect("complete")), given(&expected));
    }
}

#[test]
fn given_parameters_need_no_fit() {
    let given =
        specification(named("Poisson", [("shape", Value::Number(2.0)), ("rate", Value::Number(1.0))]), dirichlet(1.0));
    let (found, fit) = estimate(&given, &rows(), 0, false, &(), &Cancel::default()).expect("nothing to do");
    assert!(fit.is_none());
    assert_eq!(found, given);
}

#[test]
fn equal_rows_and_interrupts_are_refused() {
    let equal = DenseRows::new(vec![1.0; 8], 2);
    let refused = estimate(&open(dirichlet(1.0)), &equal, 0, false, &(), &Cancel::default());
    assert!(matches!(refused, Err(Error::InvalidArgument { argument, .. }) if argument == "data"));
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(estimate(&open(dirichlet(1.0)), &rows(), 0, false, &(), &cancel).map(drop), Err(Error::Cancelled));
}

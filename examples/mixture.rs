//! Fits a Dirichlet-process mixture of Gaussians and finds the number of clusters.
//!
//! ```sh
//! cargo run --release --example mixture
//! ```

#![allow(clippy::print_stdout, reason = "a program that prints its result")]

use rand::RngExt;
use rand_distr::StandardNormal;
use stickbreak::Result;
use stickbreak::data::{DenseRows, TableRows};
use stickbreak::fit::{Job, Settings, fit};
use stickbreak::init::Init;
use stickbreak::model::Specification;
use stickbreak::moves::Moves;
use stickbreak::parallel::Cancel;
use stickbreak::rng::{Purpose, stream};

/// Generates rows, fits them and prints what was found. Public, because the integration tests run it.
pub fn main() -> Result<()> {
    // 900 rows of two columns around three centres.
    let centres = [[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]];
    let mut generator = stream(0, Purpose::Draws, 0);
    let mut noise = || generator.sample::<f64, _>(StandardNormal);
    let values: Vec<f64> = (0..900).flat_map(|row| centres[row % 3].map(|centre| centre + noise())).collect();
    let rows = DenseRows::new(&values, 2);

    // Parameters that are not given follow the data. Moves change the number of components, from one on.
    let job = Job {
        specification: &Specification::new("Gaussian", "DirichletProcess"),
        rows: &TableRows { rows: &rows, weights: None },
        init: &Init::KmeansPlusPlus,
        settings: &Settings { moves: Moves::all(), max_passes: 100, tol: 1e-6, ..Settings::default() },
        ask: None,
    };
    let fitted = fit(&job, None, &(), &Cancel::default())?;

    println!("{} after {} passes", fitted.stop_reason.name(), fitted.history.len());
    println!("evidence lower bound: {:.1} nats", fitted.elbo);
    println!("rows by component: {:.0?}", fitted.summary.counts);
    println!("means: {:.2?}", fitted.components()?.0["mean"]);
    let labels = fitted.assign(&rows, 1, false, &Cancel::default())?.components;
    println!("labels of the first rows: {:?}", &labels[..6]);
    Ok(())
}

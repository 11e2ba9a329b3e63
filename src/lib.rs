//! Bayesian nonparametric mixtures and topic models on millions of rows: the core of `stickbreak`.
//!
//! Find the number of clusters, their parameters and the evidence lower bound:
//!
//! ```
//! use stickbreak::data::{DenseRows, TableRows};
//! use stickbreak::fit::{Job, Settings, fit};
//! use stickbreak::init::Init;
//! use stickbreak::model::Specification;
//! use stickbreak::moves::Moves;
//! use stickbreak::parallel::Cancel;
//!
//! // 100 rows of two columns: every second row is 10 further to the right.
//! let spread = |i: u32, step: u32| f64::from(i * step % 101) / 101.0;
//! let values: Vec<f64> = (0..100).flat_map(|i| [10.0 * f64::from(i % 2) + spread(i, 37), spread(i, 59)]).collect();
//! let rows = DenseRows::new(&values, 2);
//! let job = Job {
//!     specification: &Specification::new("Gaussian", "DirichletProcess"),
//!     rows: &TableRows { rows: &rows, weights: None },
//!     init: &Init::KmeansPlusPlus,
//!     settings: &Settings { moves: Moves::all(), max_passes: 100, tol: 1e-6, ..Settings::default() },
//!     ask: None,
//! };
//! let fitted = fit(&job, None, &(), &Cancel::default())?;
//! assert_eq!(fitted.summary.counts.len(), 2);
//!
//! let labels = fitted.assign(&rows, 1, false, &Cancel::default())?.components;
//! assert_ne!(labels[0], labels[1]);
//! # Ok::<(), stickbreak::Error>(())
//! ```
//!
//! `examples/mixture.rs` is a program. [`mcmc`] draws from the exact posterior of the same model.
//!
//! Everything is one small loop over weighted units with sufficient statistics. A local step turns units and components
//! into a [`suffstats::Summary`], a memo adds summaries up, and a global step turns the total into components and the
//! exact evidence lower bound. `ARCHITECTURE.md` describes the modules; equations cite the papers from which they come.

pub mod background;
pub mod component;
pub mod data;
pub mod elbo;
pub mod error;
pub mod estimate;
pub mod events;
pub mod evidence;
pub mod executor;
pub mod fit;
pub mod fitted;
pub mod global_step;
pub mod grounds;
pub mod hash;
pub mod identity;
pub mod init;
pub mod laws;
pub mod likelihood;
pub mod linalg;
pub mod local_step;
pub mod mcmc;
pub mod memo;
pub mod model;
pub mod moves;
pub mod objective;
pub mod parallel;
pub mod parameters;
pub mod partitions;
pub mod payload;
pub mod process;
pub mod real;
pub mod registry;
pub mod responsibilities;
pub mod rng;
pub mod room;
pub mod scoring;
pub mod simd;
pub mod special;
pub mod suffstats;
mod tree_sum;
pub mod visits;

pub use error::{Error, Result};

//! Dirichlet-process mixtures on millions of rows: the core of `stickbreak`.
//!
//! Everything is one small loop over weighted units with sufficient statistics. A local step turns units and components
//! into a [`suffstats::Summary`], a memo adds summaries up, and a global step turns the total into components and the
//! exact evidence lower bound. `ARCHITECTURE.md` describes the modules; equations cite the papers from which they come.

pub mod component;
pub mod data;
pub mod elbo;
pub mod error;
pub mod evidence;
pub mod executor;
pub mod fit;
pub mod fitted;
pub mod global_step;
pub mod grounds;
pub mod hash;
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
pub mod visits;

pub use error::{Error, Result};

//! Code common to the Gaussian likelihoods with a (Normal-)Wishart base measure (mathematics 1a and 1b).

mod constants;
mod evidence;
mod holes;
mod imputation;
mod lanes;
mod model;
mod normal_wishart;
mod patterns;
mod scale;
mod tail;
mod urn;

pub use constants::Constants;
pub use evidence::TAIL_DOF;
pub use holes::Fill;
pub use model::{NormalWishartModel, dofs, n_rows, scales};
pub use normal_wishart::NormalWishart;
pub use scale::{check_dof, check_positive_definite, check_scale, check_scale_beside, default_scale, survives_beside};
pub use tail::{HeavyTail, N_SCALES, ScaleSums, TAILS};

//! Dense linear algebra on small blocks. Only this module names the underlying library.
//!
//! Everything is column-major, single-threaded, and gives the same bits for any memory alignment of the buffers.

mod cholesky;
mod eigen;
mod few_columns;
mod lower_product;
mod product;
mod rank_one;
mod scatter;
mod singular;
#[cfg(test)]
mod testing;

pub use cholesky::{NotPositiveDefinite, cholesky, invert_lower, log_determinant_from_cholesky, solve_lower};
pub use eigen::symmetric_eigen;
pub use lower_product::{LANES, LowerMatrix};
pub use product::{add_gram_of_lower, mirror, multiply, solve_lower_matrix, square_of_lower, transposed};
pub use rank_one::{downdate_packed, log_determinant_packed, pack_lower, squared_length_packed, update_packed};
pub use scatter::{add_moments, packed_diagonal, packed_len, unpack, unpack_lower};
pub use singular::{divide_lower, least_singular_value};

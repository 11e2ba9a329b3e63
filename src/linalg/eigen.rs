//! Eigenvalues and eigenvectors of symmetric matrices.

use faer::{MatRef, Side};

use crate::error::{Error, Result};

/// Returns the eigenvalues, ascending, and the eigenvectors, (D, D) column-major, of the lower triangle of a
/// column-major matrix.
///
/// # Errors
/// [`Error::Numerical`] if the iteration does not converge, as for values that are not finite.
pub fn symmetric_eigen(d: usize, a: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let found = MatRef::from_column_major_slice(a, d, d).self_adjoint_eigen(Side::Lower);
    let found = found.map_err(|_| Error::numerical(None, "the eigenvalues of a matrix were not found"))?;
    let values = found.S().column_vector().iter().copied().collect();
    let vectors = found.U().col_iter().flat_map(|column| column.iter().copied().collect::<Vec<_>>()).collect();
    Ok((values, vectors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::values;

    #[test]
    fn vectors_and_values_make_the_matrix() {
        for d in [1, 2, 5, 20] {
            let raw = values::<f64>(d as u64, d * d);
            let a: Vec<f64> = (0..d * d).map(|entry| raw[entry] + raw[entry % d * d + entry / d]).collect();
            let (lambda, q) = symmetric_eigen(d, &a).expect("finite");
            for i in 0..d {
                for j in 0..d {
                    let value: f64 = (0..d).map(|k| q[k * d + i] * lambda[k] * q[k * d + j]).sum();
                    assert!((value - a[j * d + i]).abs() < 1e-12 * d as f64);
                }
            }
        }
    }
}

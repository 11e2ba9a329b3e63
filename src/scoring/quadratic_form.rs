//! A component whose log weight is a function of `|A (x - c)|^2`.

/// How the log weight depends on the squared length q.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link {
    /// `constant - q / 2`.
    Gaussian,
    /// `constant - half * ln(1 + q)`.
    StudentT {
        /// Half the exponent of the density.
        half: f64,
    },
}

/// One component: `q = scale^2 |factor (x - centre)|^2` and the function of q.
#[derive(Debug, Clone)]
pub struct Quadratic {
    /// Lower-triangular, column-major, (D, D).
    pub factor: Vec<f64>,
    /// Factor of `factor`.
    pub scale: f64,
    /// Centre, (D,), relative to the origin of the rows.
    pub centre: Vec<f64>,
    /// Constant, nats.
    pub constant: f64,
    /// Function from q to the log weight.
    pub link: Link,
}

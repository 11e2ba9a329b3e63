//! Log weights that are a function of `|A (x - c)|^2` with a triangular `A`: the Gaussian family.

use crate::likelihood::scoring::{Scorer, Scratch, Tile};
use crate::linalg::{Scalar, gemm};
use crate::responsibilities::TopL;

/// How the squared length enters the log weight.
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

/// One component: `q = scale^2 |factor (x - centre)|^2` and what to make of it.
#[derive(Debug, Clone)]
pub struct Quadratic {
    /// Lower-triangular, column-major, (D, D).
    pub factor: Vec<f64>,
    /// Multiplies the factor.
    pub scale: f64,
    /// (D,), relative to the origin of the rows.
    pub centre: Vec<f64>,
    /// Nats.
    pub constant: f64,
    /// From q to the log weight.
    pub link: Link,
}

/// Columns of a product: enough for a GEMM to run at speed, few enough for the product to stay in the cache.
const PRODUCT_COLUMNS: usize = 256;
/// Rows of a factor handled together: only the columns at or before the last of them can be non-zero.
/// Few, because every row of a band is as long as the longest.
const FACTOR_ROWS: usize = 4;

/// A band of factor rows of all components.
struct Band<F> {
    /// Rows in the band.
    height: usize,
    /// Columns that are not zero everywhere.
    depth: usize,
    /// `depth x (height * K)`, column-major: component by component, row by row.
    packed: Vec<F>,
    /// `-A c`, one value a packed column.
    offsets: Vec<F>,
}

/// Packed components of the Gaussian family.
pub struct QuadraticScorer<F> {
    dimension: usize,
    bands: Vec<Band<F>>,
    constants: Vec<F>,
    links: Vec<Link>,
    /// Taken from every log weight; depends on the row only.
    row_term: Option<Box<QuadraticScorer<F>>>,
}

impl<F: Scalar> QuadraticScorer<F> {
    /// Packs components of `dimension` columns.
    pub fn new(dimension: usize, components: &[Quadratic], row_term: Option<&Quadratic>) -> Self {
        let n_bands = dimension.div_ceil(FACTOR_ROWS);
        let bands = (0..n_bands)
            .map(|band| {
                let rows = dimension * band / n_bands..dimension * (band + 1) / n_bands;
                pack(dimension, components, rows)
            })
            .collect();
        Self {
            dimension,
            bands,
            constants: components.iter().map(|component| F::from_f64(component.constant)).collect(),
            links: components.iter().map(|component| component.link).collect(),
            row_term: row_term.map(|term| Box::new(Self::new(dimension, std::slice::from_ref(term), None))),
        }
    }

    /// Squared lengths of components `first..first + n` for all rows of the tile, into `scratch.sums`.
    fn squared_lengths(&self, tile: &Tile<F>, first: usize, n: usize, scratch: &mut Scratch<F>) {
        let rows = tile.n_rows();
        scratch.sums.clear();
        scratch.sums.resize(n * rows, F::ZERO);
        for band in &self.bands {
            let columns = band.height * n;
            let from = first * band.height;
            scratch.products.resize((rows * columns).max(scratch.products.len()), F::ZERO);
            let products = &mut scratch.products[..rows * columns];
            let packed = &band.packed[from * band.depth..][..columns * band.depth];
            gemm(rows, columns, band.depth, tile.values(), rows, packed, band.depth, products, rows);
            let offsets = &band.offsets[from..][..columns];
            add_squares(products, offsets, band.height, &mut scratch.sums, rows);
        }
    }

    /// Log weights from squared lengths, in place.
    fn link(&self, component: usize, values: &mut [F]) {
        let constant = self.constants[component];
        match self.links[component] {
            Link::Gaussian => {
                let half = F::from_f64(0.5);
                for q in values {
                    *q = constant - half * *q;
                }
            }
            Link::StudentT { half } => {
                let half = F::from_f64(half);
                for q in values {
                    *q = constant - half * q.ln_1p();
                }
            }
        }
    }
}

fn pack<F: Scalar>(dimension: usize, components: &[Quadratic], rows: std::ops::Range<usize>) -> Band<F> {
    let (height, depth) = (rows.len(), rows.end);
    let mut packed = Vec::with_capacity(depth * height * components.len());
    let mut offsets = Vec::with_capacity(height * components.len());
    for component in components {
        for row in rows.clone() {
            let mut offset = 0.0;
            for column in 0..depth {
                let value =
                    if column <= row { component.scale * component.factor[column * dimension + row] } else { 0.0 };
                offset -= value * component.centre[column];
                packed.push(F::from_f64(value));
            }
            offsets.push(F::from_f64(offset));
        }
    }
    Band { height, depth, packed, offsets }
}

/// `sums[c][r] += sum over the band's rows of (product + offset)^2`, with the widest vectors of the machine.
fn add_squares<F: Scalar>(products: &[F], offsets: &[F], height: usize, sums: &mut [F], rows: usize) {
    // Inlined into each instruction set's own copy, where the compiler vectorises it.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn plain<F: Scalar>(products: &[F], offsets: &[F], height: usize, sums: &mut [F], rows: usize) {
        let components = sums.chunks_exact_mut(rows).zip(products.chunks_exact(rows * height));
        for ((sums, products), offsets) in components.zip(offsets.chunks_exact(height)) {
            for (column, &offset) in products.chunks_exact(rows).zip(offsets) {
                for (sum, &product) in sums.iter_mut().zip(column) {
                    let residual = product + offset;
                    *sum += residual * residual;
                }
            }
        }
    }
    if rows > 0 {
        pulp::Arch::new().dispatch(|| plain(products, offsets, height, sums, rows));
    }
}

impl<F: Scalar> Scorer<F> for QuadraticScorer<F> {
    fn n_components(&self) -> usize {
        self.constants.len()
    }

    fn score_rows(&self, tile: &Tile<F>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        let rows = tile.n_rows();
        let row_term = self.row_term.as_ref().map(|term| {
            term.squared_lengths(tile, 0, 1, scratch);
            term.link(0, &mut scratch.sums);
            scratch.sums.clone()
        });
        let together = (PRODUCT_COLUMNS / FACTOR_ROWS.min(self.dimension)).max(1);
        let mut first = 0;
        while first < self.n_components() {
            let n = together.min(self.n_components() - first);
            self.squared_lengths(tile, first, n, scratch);
            for (k, values) in scratch.sums.chunks_exact_mut(rows).enumerate() {
                self.link(first + k, values);
                if let Some(term) = &row_term {
                    values.iter_mut().zip(term).for_each(|(value, &common)| *value -= common);
                }
                sink.offer((first + k) as u32, values);
            }
            first += n;
        }
    }

    fn score_component(&self, component: usize, tile: &Tile<F>, rows: &[u32], out: &mut [F]) {
        for (value, &row) in out.iter_mut().zip(rows) {
            *value = F::ZERO;
            for band in &self.bands {
                let from = component * band.height;
                let factor_rows = band.packed[from * band.depth..][..band.height * band.depth].chunks_exact(band.depth);
                for (factor, &offset) in factor_rows.zip(&band.offsets[from..]) {
                    let column = |j: usize| tile.values()[j * tile.n_rows() + row as usize];
                    let residual = factor.iter().enumerate().map(|(j, &a)| a * column(j)).sum::<F>() + offset;
                    *value += residual * residual;
                }
            }
        }
        self.link(component, out);
        if let Some(term) = &self.row_term {
            let mut common = vec![F::ZERO; out.len()];
            term.score_component(0, tile, rows, &mut common);
            out.iter_mut().zip(common).for_each(|(value, common)| *value -= common);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::responsibilities::Responsibilities;

    /// The log weight by the plain loops of the definition.
    fn plain(component: &Quadratic, x: &[f64]) -> f64 {
        let d = x.len();
        let mut q = 0.0;
        for i in 0..d {
            let y: f64 = (0..=i).map(|j| component.factor[j * d + i] * (x[j] - component.centre[j])).sum();
            q += (component.scale * y).powi(2);
        }
        match component.link {
            Link::Gaussian => component.constant - 0.5 * q,
            Link::StudentT { half } => component.constant - half * (1.0 + q).ln(),
        }
    }

    fn component(d: usize) -> impl Strategy<Value = Quadratic> {
        (
            prop::collection::vec(-1.0_f64..1.0, d * d),
            0.5_f64..2.0,
            prop::collection::vec(-2.0_f64..2.0, d),
            -5.0_f64..5.0,
            prop::option::of(0.5_f64..9.0),
        )
            .prop_map(move |(factor, scale, centre, constant, half)| Quadratic {
                factor,
                scale,
                centre,
                constant,
                link: half.map_or(Link::Gaussian, |half| Link::StudentT { half }),
            })
    }

    fn case() -> impl Strategy<Value = (usize, Vec<Quadratic>, Quadratic, Vec<f64>)> {
        (1_usize..41, 1_usize..40, 1_usize..12).prop_flat_map(|(d, k, n)| {
            (Just(d), prop::collection::vec(component(d), k), component(d), prop::collection::vec(-3.0_f64..3.0, n * d))
        })
    }

    fn dense<F: Scalar>(scorer: &QuadraticScorer<F>, tile: &Tile<F>) -> Responsibilities {
        let (n, k) = (tile.n_rows(), scorer.n_components());
        let mut sink = TopL::default();
        sink.reset(n, k, k);
        scorer.score_rows(tile, &mut sink, &mut Scratch::default());
        let mut out = Responsibilities::zeros(n, k);
        sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers).expect("finite");
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn packed_scores_equal_the_plain_loop((d, components, common, rows) in case(), with_term in any::<bool>()) {
            let scorer = QuadraticScorer::new(d, &components, with_term.then_some(&common));
            let mut tile = Tile::default();
            tile.fill(&rows, d);
            let found = dense(&scorer, &tile);
            for (row, x) in rows.chunks_exact(d).enumerate() {
                let shift = if with_term { plain(&common, x) } else { 0.0 };
                for (k, component) in components.iter().enumerate() {
                    let expected = plain(component, x) - shift;
                    let slot = row * components.len() + k;
                    let log_weight = found.values[slot].ln() + found.log_normalizers[row];
                    // A responsibility below 1e-290 has lost its digits.
                    if found.values[slot] > 1e-290 {
                        prop_assert!((log_weight - expected).abs() < 1e-10 * (1.0 + expected.abs()));
                    }
                    let mut one = [0.0];
                    scorer.score_component(k, &tile, &[row as u32], &mut one);
                    prop_assert!((one[0] - expected).abs() < 1e-10 * (1.0 + expected.abs()));
                }
            }
        }

        #[test]
        fn float32_is_near_float64((d, components, _common, rows) in case()) {
            let wide = QuadraticScorer::<f64>::new(d, &components, None);
            let narrow = QuadraticScorer::<f32>::new(d, &components, None);
            let (mut wide_tile, mut narrow_tile) = (Tile::default(), Tile::default());
            wide_tile.fill(&rows, d);
            narrow_tile.fill(&rows.iter().map(|&x| x as f32).collect::<Vec<_>>(), d);
            let (a, b) = (dense(&wide, &wide_tile), dense(&narrow, &narrow_tile));
            for (x, y) in a.log_normalizers.iter().zip(&b.log_normalizers) {
                // Sums of up to 41^2 products of rounding error 6e-8, relative to the squared length.
                prop_assert!((x - y).abs() < 1e-4 * (1.0 + x.abs()), "{x} {y}");
            }
        }
    }
}

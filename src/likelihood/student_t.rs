//! Rows with heavy tails: Student t distributions with a full covariance and a Normal-Wishart base measure (mathematics
//! 1k). [`DiagonalStudentT`](crate::likelihood::DiagonalStudentT) has the same name and independent columns.

use crate::data::{Domain, Freedom, Moments, Needs};
use crate::error::Result;
use crate::likelihood::gaussian::Gaussian;
use crate::likelihood::wishart::{
    Constants, Fill, HeavyTail, NormalWishart, NormalWishartModel, ScaleSums, TAIL_DOF, TAILS, n_rows,
};
use crate::likelihood::{Frame, FromParameters};
use crate::parameters::{Parameters, Value};
use crate::registry::{
    DefaultValue, Entry, Feature, Measure, Measured, PRIOR, Parameter, ParameterKind, RESOLUTION, Range, Support,
};
use crate::suffstats::Sufficient;

/// The degrees of freedom with which estimation starts.
pub(super) const START: f64 = 4.0;
/// The words for the covariance of this likelihood, and for independent columns.
const FULL: &str = "full";
pub(super) const DIAGONAL: &str = "diagonal";
/// Which of them it is.
pub(super) const COVARIANCE: Parameter =
    Parameter::new("covariance", ParameterKind::Word(&[FULL, DIAGONAL]), DefaultValue::Word(FULL));

/// x | u, mu, Lambda ~ N(mu, (u Lambda)^-1), u ~ Gamma(f / 2, f / 2) with f = `tail_dof`; the base measure is that of
/// [`Gaussian`]. Statistics: sum u x, the packed lower triangle of sum u x x^T, and those of the scales u.
#[derive(Debug)]
pub struct StudentT {
    normal: Gaussian,
    tail: HeavyTail,
}

/// The parameters of the base measure.
fn of_normal(parameters: &Parameters) -> Parameters {
    let mut own = parameters.clone();
    own.0.remove(TAIL_DOF);
    own.0.remove(COVARIANCE.name);
    own
}

impl FromParameters for StudentT {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Real),
        freedom: Freedom::Subspace,
        measures: &[
            Measured::always("mean", Measure::Place),
            Measured::only("mean_precision", Measure::Shared, COVARIANCE.name, DIAGONAL),
            Measured::only("dof", Measure::Dof, COVARIANCE.name, FULL),
            Measured::only("dof", Measure::Shared, COVARIANCE.name, DIAGONAL),
            Measured::only("scale", Measure::Products, COVARIANCE.name, FULL),
            Measured::only("scale", Measure::Squares, COVARIANCE.name, DIAGONAL),
            Measured::always("covariance", Measure::Products),
            Measured::always("variance", Measure::Squares),
            Measured::always(RESOLUTION.name, Measure::Lengths),
        ],
        faces: &["scores", "points", "seeding", "imputation", "draws", "parameters", "evidence", "laws"],
        supports: &[
            Support::always(Feature::Missing),
            Support { feature: Feature::Imputed, unless: Some((COVARIANCE.name, DIAGONAL)) },
            Support::always(Feature::Moves),
            Support::always(Feature::Hidden),
        ],
        parameters: &[
            Parameter::new(TAIL_DOF, ParameterKind::Number(TAILS), DefaultValue::Evidence),
            COVARIANCE,
            Parameter::new("mean", ParameterKind::Vector, DefaultValue::Data),
            Parameter::new("mean_precision", ParameterKind::Number(Range::POSITIVE), DefaultValue::Evidence),
            Parameter::new("dof", ParameterKind::Number(Range::SURENESS), DefaultValue::Evidence),
            Parameter::new("scale", ParameterKind::VectorOrMatrix, DefaultValue::Evidence),
            RESOLUTION,
            PRIOR,
        ],
        ..Entry::new("StudentT")
    };
    const NEEDS: Needs = Gaussian::NEEDS;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)?;
        Gaussian::check(&of_normal(parameters))
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        let tail_dof = parameters.number(TAIL_DOF)?.unwrap_or(START);
        let complete = Gaussian::resolve(&of_normal(parameters), data)?;
        Ok(complete.with([(TAIL_DOF, Value::Number(tail_dof)), (COVARIANCE.name, Value::Text(FULL.to_owned()))]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let tail_dof = Parameters::required(TAIL_DOF, parameters.number(TAIL_DOF)?)?;
        let normal = Gaussian::build(&of_normal(parameters), frame)?;
        let tail = HeavyTail::new(tail_dof, NormalWishartModel::origin(&normal).len());
        Ok(Self { normal, tail })
    }
}

/// How many rows the sums of a component are of, as those of a Gaussian: each row counts as often as its scale.
fn n_scaled(component: Sufficient<'_>) -> f64 {
    // Rounding may leave the sums of a component without rows below zero.
    ScaleSums::of(component).mass.max(0.0)
}

impl NormalWishartModel for StudentT {
    fn origin(&self) -> &[f64] {
        NormalWishartModel::origin(&self.normal)
    }

    fn prior(&self) -> &NormalWishart {
        self.normal.prior()
    }

    fn n_sums(&self) -> usize {
        self.normal.n_sums()
    }

    fn rounding(&self) -> &[f64] {
        self.normal.rounding()
    }

    fn constants(&self) -> &Constants {
        self.normal.constants()
    }

    fn tail(&self) -> Option<&HeavyTail> {
        Some(&self.tail)
    }

    fn fill(&self) -> Option<&Fill> {
        self.normal.fill()
    }

    /// Mathematics 1k: kappa counts scales, nu counts rows.
    fn posterior(&self, component: Sufficient<'_>) -> Result<NormalWishart> {
        let dof = self.prior().dof + n_rows(self, component).max(0.0);
        Ok(NormalWishart { dof, ..self.normal.posterior_of(n_scaled(component), component)? })
    }

    fn most_likely(&self, component: Sufficient<'_>, blur: &[f64]) -> Result<NormalWishart> {
        self.normal.most_likely(component, blur)
    }

    fn parameters(&self, posteriors: &[NormalWishart]) -> Parameters {
        self.normal.parameters(posteriors)
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        self.normal.rebase_of(n_scaled(component), component, origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::RowBlock;
    use crate::laws::{ColumnLaw, Elliptical};
    use crate::likelihood::{ComponentStreams, build};
    use crate::parallel::Cancel;
    use crate::parameters::{table, vector};
    use crate::scoring::Incomplete;
    use crate::simd::Lines;
    use crate::special::ln_gamma;

    const F: f64 = 3.0;
    const KAPPA: f64 = 0.7;
    const DOF: f64 = 5.0;
    const MEAN: [f64; 2] = [0.3, -0.2];

    /// ln p(x, u) of a row and its scale under the base measure: `u ~ Gamma(f / 2, f / 2)`, and the row given it is a
    /// Student t whose location is uncertain.
    fn log_joint(covariance: &str, row: &[f64], u: f64) -> f64 {
        let half = 0.5 * F;
        let of_scale = half * half.ln() - ln_gamma(half) + (half - 1.0) * u.ln() - half * u;
        let spread = u.recip() + KAPPA.recip();
        if covariance == DIAGONAL {
            let column = |((x, place), scale): ((&f64, f64), f64)| {
                ColumnLaw::Student { place, scale: (spread * scale / DOF).sqrt(), dof: DOF }.log_density(*x)
            };
            return of_scale + row.iter().zip(MEAN).zip([2.0, 1.5]).map(column).sum::<f64>();
        }
        let dof = DOF - 1.0;
        let scale = [2.0, 0.6, 0.6, 1.5].map(|value| spread * value / dof).to_vec();
        of_scale + Elliptical::new(MEAN.to_vec(), scale, dof).expect("definite").log_density(row, &mut Vec::new())
    }

    #[test]
    fn a_row_and_its_drawn_scale_have_their_joint_density() {
        let (cancel, row) = (Cancel::default(), [1.4, 0.9]);
        for (covariance, scale) in [(FULL, table(2, vec![2.0, 0.6, 0.6, 1.5])), (DIAGONAL, vector(vec![2.0, 1.5]))] {
            let parameters = Parameters::from_pairs([
                (TAIL_DOF, Value::Number(F)),
                (COVARIANCE.name, Value::Text(covariance.to_owned())),
                ("mean", vector(MEAN.to_vec())),
                ("mean_precision", Value::Number(KAPPA)),
                ("dof", Value::Number(DOF)),
                ("scale", scale),
                (RESOLUTION.name, Value::Number(0.0)),
            ]);
            let frame = Frame { origin: vec![0.0; 2], ..Frame::default() };
            let likelihood = build::<f64>("StudentT", &parameters, frame).expect("complete");
            let nothing = vec![0.0; likelihood.n_statistics()];
            let prior = Sufficient { count: 0.0, statistics: &nothing };
            let streams = ComponentStreams { key: 5, cancel: &cancel };
            let scorer = likelihood.drawn_scorer(&[prior], &[0.0], streams).expect("proper");
            let mut base = [0.0];
            likelihood.scores().expect("scores").log_base_measures(RowBlock::Dense(&row), &mut base);
            for number in 0..5 {
                let mut statistics = nothing.clone();
                let rows = Incomplete { values: RowBlock::Dense(&row), weights: &[1.0], number: &|_| number };
                let completing = scorer.completing().expect("of tails");
                completing.accumulate(0, rows, &mut statistics, &mut Lines::default());
                let component = Sufficient { count: 1.0, statistics: &statistics };
                let found = likelihood.log_marginal(component).expect("definite") + base[0];
                let expected = log_joint(covariance, &row, ScaleSums::of(component).mass);
                assert!((found - expected).abs() < 1e-12 * expected.abs(), "{covariance}: {found} {expected}");
            }
        }
    }
}

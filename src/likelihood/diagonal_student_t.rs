//! Rows with heavy tails and independent columns, which share the scale of their row (mathematics 1k).

mod densities;
mod evidence;
mod scales;

use std::ops::Range;

use crate::data::{Demands, Domain, Freedom, Moments, Needs, RowBlock, Sought};
use crate::error::Result;
use crate::likelihood::counts::check_presence;
use crate::likelihood::diagonal_gaussian::{ColumnPoint, DiagonalGaussian, NormalGamma, check_survival};
use crate::likelihood::diagonal_student_t::scales::{ScaledColumns, SharedScales};
use crate::likelihood::resolution::{cell_variances, resolved_resolution};
use crate::likelihood::ridge::ridge;
use crate::likelihood::student_t::{COVARIANCE, DIAGONAL, START, StudentT};
use crate::likelihood::wishart::{HeavyTail, N_SCALES, ScaleSums, TAIL_DOF};
use crate::likelihood::{
    AtPoint, Conjugate, Density, Estimate, Frame, FromParameters, Likelihood, PointEstimates, Scores, Seeding,
};
use crate::likelihood::{Metric, capabilities};
use crate::objective::Objective;
use crate::parallel::map;
use crate::parameters::{Parameters, Value, vector};
use crate::registry::{Entry, RESOLUTION};
use crate::scoring::{Column, ColumnScorer, ColumnTerms, Curve, Scorer};
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

/// The degrees of freedom of the precision of a column, unless they are given: those of a [`StudentT`] of one column.
const DOF: f64 = 3.0;

/// x_d | u ~ N(mu_d, 1 / (u lambda_d)), u ~ Gamma(f / 2, f / 2) with f = `tail_dof`, one u for each row; lambda_d ~
/// Gamma(nu / 2, b_d / 2) with nu = `dof` and b = `scale`, and mu_d as in [`DiagonalGaussian`]. Statistics: sum u x,
/// sum u x^2, with missing values sum u and the count of each column, and those of the scales.
#[derive(Debug)]
pub struct DiagonalStudentT {
    /// All that follows from the posteriors of the columns.
    normal: DiagonalGaussian,
    tail: HeavyTail,
}

impl DiagonalStudentT {
    fn frame(&self) -> &Frame {
        self.normal.frame()
    }

    fn d(&self) -> usize {
        self.normal.prior().len()
    }

    /// E log p(x) of a posterior, and what its rows share of the expected squares.
    fn expected(&self, component: Sufficient<'_>) -> ScaledColumns {
        let column = |posterior: NormalGamma| {
            let terms = Column::square(posterior.precision(), posterior.mean, 0.5 * posterior.log_precision());
            (terms, posterior.spread())
        };
        let (columns, spreads) = self.normal.posterior(component).into_iter().map(column).unzip();
        ScaledColumns { columns, spreads }
    }

    /// log p(x) at a point estimate.
    fn at(&self, component: Sufficient<'_>, estimate: Estimate) -> ScaledColumns {
        let column = |point: ColumnPoint| Column::square(point.precision, point.mean, 0.5 * point.precision.ln());
        let columns = self.normal.points(component, estimate).into_iter().map(column).collect();
        ScaledColumns { columns, spreads: vec![0.0; self.d()] }
    }

    /// Packs components, and what completes their rows.
    fn packed<F: Scalar>(
        &self,
        components: Vec<ScaledColumns>,
        log_weights: &[f64],
        complete: impl FnOnce(SharedScales) -> Option<SharedScales>,
    ) -> ColumnScorer<F> {
        let terms = |(component, &constant): (&ScaledColumns, &f64)| ColumnTerms {
            constant,
            columns: component.columns.clone(),
        };
        let terms = components.iter().zip(log_weights).map(terms).collect();
        let spreads = components.iter().map(|component| component.spreads.clone()).collect();
        let completing = complete(SharedScales::new(self.tail.dof, components, self.frame().missing));
        let scorer = ColumnScorer::new(Curve::Square, terms, self.frame().missing);
        scorer.with_scales(self.tail.dof, spreads, completing.map(|scales| Box::new(scales) as _))
    }

    /// Half the squared distances of rows from the means of components, each column in units of the prior scale
    /// (mathematics 5.2).
    fn distances(&self, component: Sufficient<'_>, constant: f64) -> ColumnTerms {
        let columns = self.means(component).into_iter().zip(self.normal.prior());
        let column = |(mean, prior): (f64, &NormalGamma)| Column::square((2.0 * prior.rate).recip(), mean, 0.0);
        ColumnTerms { constant, columns: columns.map(column).collect() }
    }

    /// The means of the values of a component, or those of the base measure in columns without values.
    fn means(&self, component: Sufficient<'_>) -> Vec<f64> {
        let columns = self.normal.sums(component).zip(self.normal.prior());
        columns.map(|(sums, prior)| if sums.mass > 0.0 { sums.sum / sums.mass } else { prior.mean }).collect()
    }
}

impl FromParameters for DiagonalStudentT {
    const ENTRY: Entry = StudentT::ENTRY;
    const NEEDS: Needs = Needs::Variances;

    fn is_meant(parameters: &Parameters) -> bool {
        parameters.has_word(&Self::ENTRY, (COVARIANCE.name, DIAGONAL))
    }

    fn check(parameters: &Parameters) -> Result<()> {
        let d = parameters.vector("mean")?.map(<[f64]>::len);
        parameters.vector("scale")?;
        parameters.check(&Self::ENTRY)?;
        parameters.positives("scale", d).map(drop)
    }

    fn demands(_: &Parameters) -> Result<Demands> {
        Ok(Demands {
            domain: Domain::Real,
            sought: Sought { resolution: true, ..Sought::of(Self::NEEDS) },
            sparse: false,
            missing: true,
            freedom: Freedom::Columns,
        })
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let dof = parameters.number("dof")?.unwrap_or(DOF);
        let rule = |&variance: &f64| dof / DOF * (variance + ridge(variance, &data.variance));
        let scale = parameters.positives("scale", Some(d))?;
        let scale = scale.unwrap_or_else(|| data.variance.iter().map(rule).collect());
        let mean = parameters.vector_of("mean", d)?.map_or_else(|| data.mean.clone(), <[f64]>::to_vec);
        check_survival("scale", &scale, &mean, data)?;
        Ok(Parameters::from_pairs([
            (TAIL_DOF, Value::Number(parameters.number(TAIL_DOF)?.unwrap_or(START))),
            (COVARIANCE.name, Value::Text(DIAGONAL.to_owned())),
            ("mean", vector(mean)),
            ("mean_precision", Value::Number(parameters.number("mean_precision")?.unwrap_or(0.1))),
            ("dof", Value::Number(dof)),
            ("scale", vector(scale)),
            (RESOLUTION.name, resolved_resolution(parameters, data)?),
        ]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let number = |name| Parameters::required(name, parameters.number(name)?);
        let mean = Parameters::required("mean", parameters.vector_of("mean", d)?)?;
        let scale = Parameters::required("scale", parameters.positives("scale", Some(d))?)?;
        let (kappa, shape, rounding) =
            (number("mean_precision")?, 0.5 * number("dof")?, cell_variances(parameters, d)?);
        let column = |j: usize| NormalGamma {
            kappa,
            mean: mean[j] - frame.origin[j],
            shape,
            rate: 0.5 * scale[j],
            rounding: rounding[j],
        };
        let (prior, tail) = ((0..d).map(column).collect(), HeavyTail::new(number(TAIL_DOF)?, d));
        Ok(Self { normal: DiagonalGaussian::with_scales(frame, prior), tail })
    }
}

impl Conjugate for DiagonalStudentT {
    fn n_statistics(&self) -> usize {
        (if self.frame().missing { 4 } else { 2 }) * self.d() + N_SCALES
    }

    fn origin(&self) -> &[f64] {
        &self.frame().origin
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], _: &mut Lines<f64>) {
        scales::accumulate_alone(&self.tail, self.frame().missing, rows.dense(), weights, statistics);
    }

    fn squares(&self) -> Range<usize> {
        self.normal.squares()
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.normal.log_marginal(component)? + self.tail.contribution(component))
    }

    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        Ok(self.normal.expected_at_prior(units)? + self.tail.contribution(units))
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let mut found = self.normal.posterior_parameters(components)?;
        for (ours, theirs) in [("dof", "shape"), ("scale", "rate")] {
            found.map_numbers(theirs, |value| 2.0 * value);
            let value = found.0.remove(theirs).unwrap_or(Value::Absent);
            found.0.insert(ours.to_owned(), value);
        }
        Ok(found)
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        self.normal.rebase(component, origin)
    }

    fn completes(&self) -> bool {
        true
    }

    fn centre(&self, average: Sufficient<'_>) -> Option<Vec<f64>> {
        Some(self.means(average))
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        components.iter().try_for_each(|component| ScaleSums::check(*component))?;
        let counts = |component: &Sufficient<'_>| {
            let all = component.statistics;
            if self.frame().missing { 3 * self.d()..all.len() - N_SCALES } else { 0..0 }
        };
        check_presence(components.iter().map(|one| (one.count, &one.statistics[counts(one)])))
    }
}

impl<F: Scalar> Likelihood<F> for DiagonalStudentT {
    capabilities!(@ scores);
    capabilities!(@ points);
    capabilities!(@ draws);
    capabilities!(@ parameters);
    capabilities!(@ evidence);
    capabilities!(@ laws);
    capabilities!(@ imputation);

    /// With missing values, rows have no distance from each other.
    fn seeding(&self) -> Option<&dyn Seeding> {
        if self.frame().missing { None } else { Some(self) }
    }
}

impl Seeding for DiagonalStudentT {
    fn metric(&self, _: Sufficient<'_>) -> Result<Metric> {
        Ok(Metric::Columns(self.normal.prior().iter().map(|prior| (2.0 * prior.rate).sqrt().recip()).collect()))
    }
}

impl<F: Scalar> Scores<F> for DiagonalStudentT {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let k = components.len();
        let estimate = match density {
            Density::Predictive => return Ok(self.predictive_scorer(components, log_weights)),
            Density::Divergence => {
                let packed = map(k, |k| self.distances(components[k], log_weights[k]));
                return Ok(Box::new(ColumnScorer::new(Curve::Square, packed, self.frame().missing)));
            }
            Density::Expected(Objective::Variational) => {
                let packed = map(k, |k| self.expected(components[k]));
                return Ok(Box::new(self.packed(packed, log_weights, Some)));
            }
            Density::Expected(Objective::Map) => Estimate::Mode,
            Density::Expected(Objective::Ml) => Estimate::MaximumLikelihood,
            Density::PlugIn(estimate) => estimate,
        };
        let packed = map(k, |k| self.at(components[k], estimate));
        Ok(Box::new(self.packed(packed, log_weights, |_| None)))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        Scores::<F>::divergence_from_prior(&self.normal, component)
    }

    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.normal.log_base_measures(rows, out);
    }
}

impl PointEstimates for DiagonalStudentT {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        self.normal.at_point(component, estimate)
    }

    fn check_mode(&self) -> Result<()> {
        self.normal.check_mode()
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        self.normal.point_estimates(components, estimate)
    }
}

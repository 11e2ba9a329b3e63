//! Full mean and full covariance with a Normal-Wishart base measure (mathematics 1a; Hughes & Sudderth 2013, section
//! 2).

use crate::data::{Domain, Freedom, Moments, Needs};
use crate::error::{Error, Result};
use crate::likelihood::resolution::{cell_covariance, resolved_resolution};
use crate::likelihood::wishart::{
    Constants, Fill, NormalWishart, NormalWishartModel, check_dof, check_scale, check_scale_beside, default_scale,
    dofs, n_rows, scales, survives_beside,
};
use crate::likelihood::{Frame, FromParameters};
use crate::linalg::{packed_len, unpack_lower};
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{
    DefaultValue, Entry, Feature, Measure, Measured, PRIOR, Parameter, ParameterKind, RESOLUTION, Range, Support,
};
use crate::suffstats::Sufficient;

/// x | mu, Lambda ~ N(mu, Lambda^-1); Lambda ~ W(dof, scale^-1); mu | Lambda ~ N(mean, (`mean_precision` Lambda)^-1).
/// Statistics: sum x, then the packed lower triangle of sum x x^T.
#[derive(Debug)]
pub struct Gaussian {
    origin: Vec<f64>,
    /// B_0, column-major.
    scale: Vec<f64>,
    rounding: Vec<f64>,
    prior: NormalWishart,
    constants: Constants,
    /// Fills missing values of rows without a component.
    fill: Option<Fill>,
}

impl FromParameters for Gaussian {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Real),
        freedom: Freedom::Subspace,
        measures: &[
            Measured::always("mean", Measure::Place),
            Measured::always("dof", Measure::Dof),
            Measured::always("scale", Measure::Products),
            Measured::always("covariance", Measure::Products),
            Measured::always(RESOLUTION.name, Measure::Lengths),
        ],
        faces: &["scores", "points", "seeding", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[
            Support::always(Feature::Missing),
            Support::always(Feature::Imputed),
            Support::always(Feature::Moves),
        ],
        parameters: &[
            Parameter::new("mean", ParameterKind::Vector, DefaultValue::Data),
            Parameter::new("mean_precision", ParameterKind::NumberOrGamma(Range::POSITIVE), DefaultValue::Evidence),
            Parameter::new("dof", ParameterKind::Number(Range::SURENESS), DefaultValue::Evidence),
            Parameter::new("scale", ParameterKind::Matrix, DefaultValue::Evidence),
            RESOLUTION,
            PRIOR,
        ],
        ..Entry::new("Gaussian")
    };
    const NEEDS: Needs = Needs::Covariance;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)?;
        let mean = parameters.vector("mean")?;
        let scale = parameters.square("scale")?;
        let d = mean.map(<[f64]>::len).or(scale.map(|(d, _)| d));
        if let Some(dof) = parameters.number("dof")? {
            check_dof(dof, d.unwrap_or(1))?;
        }
        if let (Some(mean), Some((d, _))) = (mean, scale)
            && mean.len() != d
        {
            return Err(Error::invalid(
                "mean",
                format!("of length {}", mean.len()),
                format!("of length {d}, as scale"),
            ));
        }
        scale.map_or(Ok(()), |(d, values)| check_scale(d, values))
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        let d = data.dimension();
        let dof = parameters.number("dof")?.unwrap_or(d as f64 + 2.0);
        let complete = Parameters::from_pairs([
            ("mean", vector(parameters.vector("mean")?.map_or_else(|| data.mean.clone(), <[f64]>::to_vec))),
            ("mean_precision", Value::Number(parameters.number("mean_precision")?.unwrap_or(0.1))),
            ("dof", Value::Number(dof)),
            (
                "scale",
                match parameters.square("scale")? {
                    Some((size, values)) => table(size, values.to_vec()),
                    None => table(d, default_scale(d, &data.covariance, dof)),
                },
            ),
            (RESOLUTION.name, resolved_resolution(parameters, data)?),
        ]);
        for (name, size) in
            [("mean", complete.vector("mean")?.map(<[f64]>::len)), ("scale", complete.square("scale")?.map(|s| s.0))]
        {
            if size != Some(d) {
                let found = format!("of size {}", size.unwrap_or(0));
                return Err(Error::invalid(name, found, format!("of size {d}, the number of columns of the data")));
            }
        }
        Self::check(&complete)?;
        Self::check_beside(&complete, data)?;
        Ok(complete)
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        let origin = frame.origin;
        Self::check(parameters)?;
        let missing = |name: &str| Error::invalid(name, "absent", "given");
        let mean = parameters.vector("mean")?.ok_or_else(|| missing("mean"))?;
        let kappa = parameters.number("mean_precision")?.ok_or_else(|| missing("mean_precision"))?;
        let dof = parameters.number("dof")?.ok_or_else(|| missing("dof"))?;
        let (d, scale) = parameters.square("scale")?.ok_or_else(|| missing("scale"))?;
        if d != origin.len() {
            return Err(Error::invalid("scale", format!("of size {d}"), format!("of size {}", origin.len())));
        }
        let relative = mean.iter().zip(&origin).map(|(m, o)| m - o).collect();
        let prior = NormalWishart::new(dof, kappa.recip(), relative, scale.to_vec())?;
        let rounding = cell_covariance(parameters, d)?;
        let fill = frame.missing.then(|| Fill::new(&prior, &rounding));
        Ok(Self { origin, scale: scale.to_vec(), rounding, prior, constants: Constants::default(), fill })
    }
}

impl Gaussian {
    /// Checks that the scale keeps its digits next to the scatter of the data and their squared distance from the prior
    /// mean.
    fn check_beside(parameters: &Parameters, data: &Moments) -> Result<()> {
        let Some((d, scale)) = parameters.square("scale")? else { return Ok(()) };
        check_scale_beside(data, scale)?;
        let kappa = parameters.number("mean_precision")?.unwrap_or(0.0);
        let mean = parameters.vector("mean")?.unwrap_or(&data.mean);
        // Contribution of a single row to the diagonal.
        let square = |j: usize| kappa / (1.0 + kappa) * (mean[j] - data.mean[j]).powi(2);
        if survives_beside(d, scale, square) {
            return Ok(());
        }
        let found = "so far from the data that `scale` is lost to float64 rounding";
        Err(Error::invalid("mean", found, "closer to the data, or used with a larger `scale`"))
    }

    /// Mathematics 1a: kappa = kappa_0 + N, nu = nu_0 + N, m = (kappa_0 m_0 + s) / kappa,
    /// B = B_0 + C + kappa_0 N / kappa (xbar - m_0)(xbar - m_0)^T with the centred scatter C, including the scatter due
    /// to rounding. `n`: how many rows the sums are of.
    ///
    /// # Errors
    /// [`Error::Numerical`] where it has no Cholesky factor.
    pub fn posterior_of(&self, n: f64, component: Sufficient<'_>) -> Result<NormalWishart> {
        let d = self.origin.len();
        if n <= f64::MIN_POSITIVE {
            return Ok(self.prior.clone());
        }
        let (sums, packed) = component.statistics.split_at(d);
        let kappa_0 = self.prior.inverse_kappa.recip();
        let kappa = kappa_0 + n;
        let average: Vec<f64> = sums.iter().map(|s| s / n).collect();
        let away: Vec<f64> = average.iter().zip(&self.prior.mean).map(|(x, m)| x - m).collect();
        let mean = self.prior.mean.iter().zip(&away).map(|(m, a)| m + n / kappa * a).collect();
        let mut scale = unpack_lower(d, &packed[..packed_len(d)]);
        for j in 0..d {
            let below = j * (d + 1)..(j + 1) * d;
            let (squares, prior) = (&mut scale[below.clone()], &self.scale[below]);
            for (((square, prior), mean), from) in squares.iter_mut().zip(prior).zip(&average[j..]).zip(&away[j..]) {
                *square += prior - n * mean * average[j] + kappa_0 * n / kappa * from * away[j];
            }
        }
        scale.iter_mut().zip(&self.rounding).for_each(|(to, variance)| *to += n * variance);
        NormalWishart::new(self.prior.dof + n, kappa.recip(), mean, scale)
    }

    /// See [`Conjugate::rebase`](crate::likelihood::Conjugate::rebase). `n`: how many rows the sums are of.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the shift would cost the digits of the scatter.
    pub fn rebase_of(&self, n: f64, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        // With t = old origin - new origin: sum (x + t) = s + N t, sum (x + t)(x + t)^T = S + s t^T + t s^T + N t t^T.
        let d = self.origin.len();
        let shift: Vec<f64> = origin.iter().zip(&self.origin).map(|(old, new)| old - new).collect();
        if !survives_beside(d, &self.prior.scale(), |j| shift[j].powi(2)) {
            let found = "a fit of data so far from these that float64 loses precision";
            return Err(Error::invalid("init", found, "a fit of data closer to these"));
        }
        let sums = &component.statistics[..d];
        let mut moved = component.statistics.to_vec();
        for i in 0..d {
            moved[i] += n * shift[i];
        }
        let mut index = d;
        for j in 0..d {
            for i in j..d {
                moved[index] += sums[i] * shift[j] + shift[i] * sums[j] + n * shift[i] * shift[j];
                index += 1;
            }
        }
        Ok(moved)
    }
}

impl NormalWishartModel for Gaussian {
    fn origin(&self) -> &[f64] {
        &self.origin
    }

    fn prior(&self) -> &NormalWishart {
        &self.prior
    }

    fn n_sums(&self) -> usize {
        self.origin.len()
    }

    fn rounding(&self) -> &[f64] {
        &self.rounding
    }

    fn fill(&self) -> Option<&Fill> {
        self.fill.as_ref()
    }

    fn constants(&self) -> &Constants {
        &self.constants
    }

    fn posterior(&self, component: Sufficient<'_>) -> Result<NormalWishart> {
        self.posterior_of(n_rows(self, component), component)
    }

    fn most_likely(&self, component: Sufficient<'_>, blur: &[f64]) -> Result<NormalWishart> {
        let (n, d) = (n_rows(self, component), self.origin.len());
        let (sums, packed) = component.statistics.split_at(d);
        let mean: Vec<f64> = sums.iter().map(|s| s / n).collect();
        let mut scatter = unpack_lower(d, &packed[..packed_len(d)]);
        for j in 0..d {
            for i in j..d {
                scatter[j * d + i] -= n * mean[i] * mean[j];
            }
            scatter[j * d + j] += n * blur[j];
        }
        NormalWishart::new(n, n.recip(), mean, scatter)
    }

    fn parameters(&self, posteriors: &[NormalWishart]) -> Parameters {
        let d = self.origin.len();
        let means = posteriors
            .iter()
            .flat_map(|posterior| posterior.mean.iter().zip(&self.origin).map(|(m, o)| m + o))
            .collect();
        let mean_precisions = posteriors.iter().map(|posterior| posterior.inverse_kappa.recip()).collect();
        Parameters::from_pairs([
            ("mean", table(d, means)),
            ("mean_precision", vector(mean_precisions)),
            ("dof", dofs(posteriors)),
            ("scale", scales(posteriors)),
        ])
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        self.rebase_of(n_rows(self, component), component, origin)
    }
}

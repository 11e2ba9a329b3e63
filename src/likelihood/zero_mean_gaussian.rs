//! Mean zero and full covariance with a Wishart base measure (mathematics 1b; the image patches of Hughes & Sudderth
//! 2013).

use crate::data::{Domain, Freedom, Moments, Needs};
use crate::error::{Error, Result};
use crate::likelihood::resolution::{cell_covariance, resolved_resolution};
use crate::likelihood::wishart::{
    Constants, NormalWishart, NormalWishartModel, check_dof, check_scale, check_scale_beside, default_scale, dofs,
    scales, survives_beside,
};
use crate::likelihood::{Frame, FromParameters};
use crate::linalg::unpack_lower;
use crate::parameters::{Parameters, Value, table};
use crate::registry::{
    DefaultValue, Entry, Feature, Measure, Measured, PRIOR, Parameter, ParameterKind, RESOLUTION, Range, Support,
};
use crate::suffstats::Sufficient;

/// x | Lambda ~ N(0, Lambda^-1); Lambda ~ W(dof, scale^-1). Statistics: the packed lower triangle of sum x x^T.
/// Rows are never centred.
#[derive(Debug)]
pub struct ZeroMeanGaussian {
    /// Zeros.
    origin: Vec<f64>,
    /// B_0, column-major.
    scale: Vec<f64>,
    rounding: Vec<f64>,
    prior: NormalWishart,
    constants: Constants,
}

impl FromParameters for ZeroMeanGaussian {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Centred),
        freedom: Freedom::Subspace,
        measures: &[
            Measured::always("dof", Measure::Dof),
            Measured::always("scale", Measure::Products),
            Measured::always("covariance", Measure::Products),
            Measured::always(RESOLUTION.name, Measure::Lengths),
        ],
        faces: &["scores", "points", "seeding", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[Support::always(Feature::Moves)],
        parameters: &[
            Parameter::new("dof", ParameterKind::Number(Range::SURENESS), DefaultValue::Evidence),
            Parameter::new("scale", ParameterKind::Matrix, DefaultValue::Evidence),
            RESOLUTION,
            PRIOR,
        ],
        ..Entry::new("ZeroMeanGaussian")
    };
    const NEEDS: Needs = Needs::Covariance;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)?;
        let scale = parameters.square("scale")?;
        if let Some(dof) = parameters.number("dof")? {
            check_dof(dof, scale.map_or(1, |(d, _)| d))?;
        }
        scale.map_or(Ok(()), |(d, values)| check_scale(d, values))
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        let d = data.dimension();
        let dof = parameters.number("dof")?.unwrap_or(d as f64 + 2.0);
        let (size, scale) = match parameters.square("scale")? {
            Some((size, values)) => (size, values.to_vec()),
            None => (d, default_scale(d, &data.about_zero(), dof)),
        };
        if size != d {
            let allowed = format!("of size {d}, the number of columns of the data");
            return Err(Error::invalid("scale", format!("of size {size}"), allowed));
        }
        check_scale_beside(data, &scale)?;
        if !survives_beside(d, &scale, |j| data.overall[j] + data.mean[j].powi(2)) {
            let found = "so far from zero that its scatter is lost to float64 rounding";
            return Err(Error::invalid(
                "data",
                found,
                "close to zero relative to its scatter, or modelled by `Gaussian`",
            ));
        }
        let complete = Parameters::from_pairs([
            ("dof", Value::Number(dof)),
            ("scale", table(d, scale)),
            (RESOLUTION.name, resolved_resolution(parameters, data)?),
        ]);
        Self::check(&complete)?;
        Ok(complete)
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        let origin = frame.origin;
        Self::check(parameters)?;
        let missing = |name: &str| Error::invalid(name, "absent", "given");
        let dof = parameters.number("dof")?.ok_or_else(|| missing("dof"))?;
        let (d, scale) = parameters.square("scale")?.ok_or_else(|| missing("scale"))?;
        if d != origin.len() {
            return Err(Error::invalid("scale", format!("of size {d}"), format!("of size {}", origin.len())));
        }
        let prior = NormalWishart::new(dof, 0.0, vec![0.0; d], scale.to_vec())?;
        let rounding = cell_covariance(parameters, d)?;
        Ok(Self { origin: vec![0.0; d], scale: scale.to_vec(), rounding, prior, constants: Constants::default() })
    }
}

impl NormalWishartModel for ZeroMeanGaussian {
    fn origin(&self) -> &[f64] {
        &self.origin
    }

    fn prior(&self) -> &NormalWishart {
        &self.prior
    }

    fn n_sums(&self) -> usize {
        0
    }

    fn rounding(&self) -> &[f64] {
        &self.rounding
    }

    /// Mathematics 1b: nu = nu_0 + N, B = B_0 + S, including the scatter due to rounding.
    fn constants(&self) -> &Constants {
        &self.constants
    }

    fn posterior(&self, component: Sufficient<'_>) -> Result<NormalWishart> {
        let mut scale = unpack_lower(self.origin.len(), component.statistics);
        scale.iter_mut().zip(&self.scale).for_each(|(s, b)| *s += b);
        scale.iter_mut().zip(&self.rounding).for_each(|(s, variance)| *s += component.count * variance);
        NormalWishart::new(self.prior.dof + component.count, 0.0, self.origin.clone(), scale)
    }

    fn most_likely(&self, component: Sufficient<'_>, blur: &[f64]) -> Result<NormalWishart> {
        let d = self.origin.len();
        let mut scatter = unpack_lower(d, component.statistics);
        scatter.iter_mut().step_by(d + 1).zip(blur).for_each(|(value, variance)| *value += component.count * variance);
        NormalWishart::new(component.count, 0.0, self.origin.clone(), scatter)
    }

    fn parameters(&self, posteriors: &[NormalWishart]) -> Parameters {
        Parameters::from_pairs([("dof", dofs(posteriors)), ("scale", scales(posteriors))])
    }

    fn rebase(&self, component: Sufficient<'_>, _origin: &[f64]) -> Result<Vec<f64>> {
        // The origin is zero in every fit.
        Ok(component.statistics.to_vec())
    }
}

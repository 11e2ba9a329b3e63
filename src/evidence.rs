//! Re-estimates the base measure by evidence, between passes (mathematics 10).

use crate::elbo::{of_tail, variable_base};
use crate::error::Result;
use crate::likelihood::{Caution, Evidence, GUARD, Given, Loosening};
use crate::model::Model;
use crate::parallel::{map, over_components, try_map};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Maximum number of updates of the base measure between two passes.
const TURNS: usize = 3;
/// Updates stop after one that gains less than this, in nats per component.
const LEAST_GAIN: f64 = 1e-3;

/// The guard that keeps an estimated base measure away from degenerate values, in nats: 0 at the initial base measure,
/// otherwise negative (mathematics 10.1).
///
/// # Errors
/// [`crate::Error::Numerical`].
pub fn guard<F: Scalar>(model: &Model<F>) -> Result<f64> {
    match (&model.base.estimated, model.likelihood.evidence()) {
        (Some(estimated), Some(evidence)) => Ok(-GUARD * evidence.divergence_of(&estimated.start)?),
        _ => Ok(0.0),
    }
}

/// Rounding error of the bound beyond its last digits, nats.
pub fn rounding<F: Scalar>(model: &Model<F>, summary: &Summary) -> f64 {
    let of_marginals = map(summary.n_components(), |k| model.likelihood.rounding_of_marginal(summary.component(k)));
    of_marginals.iter().sum::<f64>() + of_base_measure(model, summary)
}

/// Rounding error of the terms that depend on estimated parameters.
fn of_base_measure<F: Scalar>(model: &Model<F>, summary: &Summary) -> f64 {
    match (&model.base.estimated, model.likelihood.evidence()) {
        (Some(estimated), Some(evidence)) => evidence.rounding(&estimated.start, summary.mass, summary.n_components()),
        _ => 0.0,
    }
}

/// The part of the objective that depends on the base measure.
fn of_base<F: Scalar>(model: &Model<F>, summary: &Summary) -> Result<f64> {
    let gains = try_map(summary.n_components(), |k| model.likelihood.log_marginal(summary.component(k)))?;
    Ok(gains.iter().sum::<f64>() + of_tail(model, summary)? + variable_base(model, summary) + guard(model)?)
}

/// The model with a base measure of higher evidence given the current responsibilities, and its gain, nats; `None` if
/// no better one was found.
pub fn raise<F: Scalar>(model: &Model<F>, summary: &Summary) -> Option<(Model<F>, f64)> {
    raise_further(model, summary, TURNS, f64::NEG_INFINITY)
}

/// As [`raise`], with at most `turns` updates. Gives up once the gain of the last update, made in each turn left, would
/// not lead to a gain of `least`, because updates gain less and less.
pub fn raise_further<F: Scalar>(
    model: &Model<F>,
    summary: &Summary,
    turns: usize,
    least: f64,
) -> Option<(Model<F>, f64)> {
    if model.base.estimated.is_none() || model.base.is_held {
        return None;
    }
    over_components(summary.n_components(), summary.n_statistics, || raised(model, summary, turns, least))
}

fn raised<F: Scalar>(model: &Model<F>, summary: &Summary, turns: usize, least: f64) -> Option<(Model<F>, f64)> {
    let mut now = of_base(model, summary).ok()?;
    let before = now;
    let mut best = None;
    for left in (0..turns).rev() {
        let current = best.as_ref().unwrap_or(model);
        // A numerical failure counts as no update: keeping the base measure is always valid.
        let Some((next, value)) = step(current, summary) else { break };
        if value.is_nan() || value <= now {
            break;
        }
        let gain = value - now;
        (now, best) = (value, Some(next));
        let is_hopeless = least > now - before + gain * left as f64;
        if is_hopeless || gain < LEAST_GAIN * summary.n_components() as f64 {
            break;
        }
    }
    best.map(|model| (model, now - before))
}

/// The model with a base measure that follows the components, but is no more certain about their widths and positions
/// than the initial one (see [`Evidence::cautions`]).
///
/// A base measure estimated from few components may be certain that all components are like these. Then no split of
/// them can raise the bound.
///
/// # Errors
/// [`crate::Error::InvalidArgument`] for invalid parameters, which would be a bug.
pub fn unsure<F: Scalar>(model: &Model<F>, summary: &Summary) -> Result<Model<F>> {
    let Some(estimated) = &model.base.estimated else { return Ok(model.clone()) };
    let cautions = model.likelihood.evidence().map_or_else(Vec::new, Evidence::cautions);
    let has = |name: &str, wanted| cautions.iter().any(|(other, caution)| other == name && *caution == wanted);
    let free = estimated.free.iter().filter(|name| !has(name, Caution::Kept)).cloned().collect();
    let start = model.with_base(estimated.start.clone())?;
    let found = raise(&start.estimating(free), summary).map_or(start, |(found, _)| found);
    let mut parameters = found.base.parameters.clone();
    for (name, value) in estimated.start.0.iter().filter(|(name, _)| has(name, Caution::Capped)) {
        let [estimate, initial] = [&parameters, &estimated.start].map(|all| all.number(name).ok().flatten());
        if estimate > initial {
            parameters.0.insert(name.clone(), value.clone());
        }
    }
    model.with_base(parameters)
}

/// The model with a fixed base measure that lets components be narrow and far apart (see
/// [`Evidence::loose`]); `None` if nothing is estimated or the likelihood has none.
///
/// # Errors
/// [`crate::Error::Numerical`].
pub fn loose<F: Scalar>(model: &Model<F>, summary: &Summary, by: Loosening<'_>) -> Result<Option<Model<F>>> {
    let (Some(estimated), Some(evidence)) = (&model.base.estimated, model.likelihood.evidence()) else {
        return Ok(None);
    };
    let (components, parameters, start) = (summary.components(), &model.base.parameters, &estimated.start);
    let given = Given { components: &components, parameters, start, free: &estimated.free };
    let Some(parameters) = evidence.loose(&given, by)? else { return Ok(None) };
    Ok(Some(model.with_base(parameters)?.holding(true)))
}

fn step<F: Scalar>(model: &Model<F>, summary: &Summary) -> Option<(Model<F>, f64)> {
    let estimated = model.base.estimated.as_ref()?;
    let components = summary.components();
    let (parameters, start) = (&model.base.parameters, &estimated.start);
    let given = Given { components: &components, parameters, start, free: &estimated.free };
    let found = model.likelihood.evidence()?.estimate(&given).ok()?;
    let next = model.with_base(found).ok()?;
    // A component whose rows are all equal has no scatter. Under large weights its scale is small relative to the
    // rounding of the squares.
    let gains = try_map(components.len(), |k| next.likelihood.surviving_marginal(components[k])).ok()?;
    let gains = gains.into_iter().sum::<Option<f64>>()?;
    let value = gains + of_tail(&next, summary).ok()? + variable_base(&next, summary) + guard(&next).ok()?;
    Some((next, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::ComponentId;
    use crate::data::{DenseRows, Moments, TableRows};
    use crate::grounds::survey;
    use crate::model::Specification;
    use crate::parallel::Cancel;

    const BY: Loosening<'static> = Loosening { divisors: &[16.0], certainty: 1.0, precision: 0.01 };

    /// The model of counts, flags or numbers, with its initial base measure.
    fn model(likelihood: &str) -> Model<f64> {
        let values: Vec<f64> = (0..40).map(|index| f64::from(u8::from(index * 7 % 5 < 2))).collect();
        let rows = DenseRows::new(&values[..], 2);
        let specification = Specification::new(likelihood, "DirichletProcess");
        let data: Moments =
            survey(&specification, &TableRows { rows: &rows, weights: None }, &Cancel::default()).expect("flags");
        specification.resolve(&data).and_then(|complete| complete.build(data.mean.clone())).expect("a model")
    }

    fn numbers(model: &Model<f64>, name: &str) -> Vec<f64> {
        match &model.base.parameters.0[name] {
            crate::parameters::Value::Number(value) => vec![*value],
            crate::parameters::Value::Array { data, .. } => data.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_loose_base_measure_expects_a_sixteenth_and_is_held() {
        for (likelihood, names) in [
            ("Gaussian", &["scale"][..]),
            ("DiagonalGaussian", &["rate"]),
            ("SphericalGaussian", &["rate"]),
            ("Poisson", &["shape", "rate"]),
            ("Bernoulli", &["successes", "failures"]),
            ("Multinomial", &["pseudo_counts"]),
        ] {
            let usual = model(likelihood);
            let loose = loose(&usual, &Summary::default(), BY).expect("possible").expect("estimated");
            for name in names {
                for (usual, loose) in numbers(&usual, name).into_iter().zip(numbers(&loose, name)) {
                    assert!((16.0 * loose - usual).abs() <= 1e-12 * usual.abs(), "{likelihood} {name}");
                }
            }
            assert!(loose.base.is_held && raise(&loose, &Summary::default()).is_none());
            if usual.base.parameters.0.contains_key("mean_precision") {
                assert!(numbers(&loose, "mean_precision")[0] <= 0.01);
            }
        }
    }

    #[test]
    fn updates_end_when_their_gains_cannot_reach_what_is_asked() {
        let model = model("Gaussian");
        let mut summary = Summary::empty((0..3).map(ComponentId).collect(), 5, false);
        summary.counts.fill(4.0);
        for (k, statistics) in summary.statistics.chunks_exact_mut(5).enumerate() {
            statistics.copy_from_slice(&[k as f64, 1.0, 2.0 + k as f64, 0.5, 3.0]);
        }
        let gain = |turns, least| raise_further(&model, &summary, turns, least).expect("a better base measure").1;
        let (all, once) = (gain(9, f64::NEG_INFINITY), gain(1, f64::NEG_INFINITY));
        assert!(all > once + 1e-3, "{all} {once}");
        assert!((raise(&model, &summary).expect("the same").1 - gain(TURNS, f64::NEG_INFINITY)).abs() < 1e-12);
        // What is within reach is not given up.
        assert!((gain(9, all - 1e-9) - all).abs() < 1e-12);
        assert!((gain(9, 10.0 * all) - once).abs() < 1e-12);
    }

    #[test]
    fn columns_have_their_own_divisors_and_certainty_keeps_the_expected_variances() {
        let by = Loosening { divisors: &[4.0, 64.0], certainty: 8.0, precision: 0.01 };
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12 * expected.abs().max(1e-9));
        let usual = model("Gaussian");
        let found = loose(&usual, &Summary::default(), by).expect("possible").expect("estimated");
        // In two columns the rule has four degrees of freedom, and the expected covariance is the scale.
        close(numbers(&found, "dof")[0], 32.0);
        let expected = numbers(&usual, "scale");
        for (index, scale) in numbers(&found, "scale").into_iter().enumerate() {
            close(scale / 29.0, expected[index] / [4.0, 16.0, 16.0, 64.0][index]);
        }
        let usual = model("DiagonalGaussian");
        let found = loose(&usual, &Summary::default(), by).expect("possible").expect("estimated");
        let shape = numbers(&usual, "shape")[0];
        close(numbers(&found, "shape")[0], 8.0 * shape);
        let excess = |shape: f64| (shape - 1.0).max(shape / 3.0);
        for ((found, usual), divisor) in
            numbers(&found, "rate").into_iter().zip(numbers(&usual, "rate")).zip([4.0, 64.0])
        {
            close(found / excess(8.0 * shape), usual / excess(shape) / divisor);
        }
        // One width for all columns, or no certainty of its own.
        for likelihood in ["SphericalGaussian", "Poisson"] {
            assert!(loose(&model(likelihood), &Summary::default(), by).expect("possible").is_none(), "{likelihood}");
        }
    }
}

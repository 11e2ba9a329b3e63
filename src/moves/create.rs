//! Fresh parts of a component, from a subsample of its rows (moves recipe, section 3).

use crate::component::{ComponentId, Edit};
use crate::data::Units;
use crate::error::Result;
use crate::global_step::Globals;
use crate::likelihood::Metric;
use crate::local_step::{Assign, ByScore, FromLabels, Keep, LocalStep};
use crate::model::Model;
use crate::moves::plan::Bag;
use crate::moves::seeding;
use crate::parallel::Cancel;
use crate::rng::Choices;
use crate::simd::Scalar;
use crate::suffstats::{Sufficient, Summary};

/// Turns of local and global steps on the subsample at most.
const ITERATIONS: usize = 20;
/// They end once so small a share of the mass changes its component.
const SETTLED: f64 = 1e-3;
/// Parts with less than this share of the mass are dropped.
const LEAST_SHARE: f64 = 1e-3;
/// Nats below the best from which on a part gets nothing of a row.
const MARGIN: f64 = 20.0;

/// How parts start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// As many as this, by k-means++.
    Fresh(usize),
    /// Two, on either side of the plane across the leading principal component; for models without one, by k-means++.
    Bisector,
}

/// Parts of `target` under identities 0, 1, ..., largest first, fitted to a subsample of its rows that is weighted up to its
/// mass; `None` where only one is left.
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
pub(super) fn parts<F: Scalar>(
    model: &Model<F>,
    bag: &Bag,
    target: Sufficient<'_>,
    start: Start,
    choices: &mut dyn Choices,
    cancel: &Cancel,
) -> Result<Option<Globals>> {
    let mass: f64 = bag.rows.masses().iter().sum();
    if mass <= 0.0 {
        return Ok(None);
    }
    let units = bag.rows.units::<F>((target.count / mass).max(1.0));
    let metric = model.likelihood.metric(target)?;
    let fresh = match start {
        Start::Fresh(fresh) => fresh.min(units.len() / 2),
        Start::Bisector => 2,
    };
    let ids: Vec<ComponentId> = (0..fresh as u32).map(ComponentId).collect();
    let labels = match (start, &metric) {
        (Start::Bisector, Metric::Columns(factors)) => seeding::bisect(model, &units, factors)?,
        _ => seeding::labels(model, &units, &metric, &ids, choices, cancel)?,
    };
    let run = |units: &Units<'_, F>, ids: &[ComponentId], assign: &dyn Assign<F>| {
        let step = LocalStep { likelihood: model.likelihood.as_ref(), ids, assign, keep: Keep::Summary, cancel };
        step.run(units, None, &mut []).map(|outcome| outcome.summary)
    };
    let mut summary = run(&units, &ids, &FromLabels { labels: &labels })?;
    let all = summary.mass;
    for iteration in 0.. {
        tidy(&mut summary, all)?;
        let globals = Globals::new(model, &summary, iteration);
        if globals.n_components() < 2 {
            return Ok(None);
        }
        if iteration as usize == ITERATIONS {
            return Ok(Some(globals));
        }
        let scorer = globals.scorer_without_tail(model)?;
        let deal = ByScore {
            scorer: scorer.as_ref(),
            tail: None,
            width: globals.n_components(),
            margin: Some(MARGIN),
            abandon: true,
            row_terms: false,
        };
        let next = run(&units, &summary.ids, &deal)?;
        let moved: f64 = next.counts.iter().zip(&summary.counts).map(|(a, b)| (a - b).abs()).sum();
        summary = next;
        if moved <= SETTLED * all {
            tidy(&mut summary, all)?;
            return Ok(Some(Globals::new(model, &summary, iteration)).filter(|globals| globals.n_components() > 1));
        }
    }
    Ok(None)
}

/// Drops parts with next to nothing, and puts the others into the order of falling counts.
fn tidy(summary: &mut Summary, mass: f64) -> Result<()> {
    let small: Vec<_> = summary
        .ids
        .iter()
        .zip(&summary.counts)
        .filter(|(_, count)| **count < LEAST_SHARE * mass)
        .map(|(id, _)| *id)
        .collect();
    for id in small {
        summary.apply(&Edit::Delete { id })?;
    }
    let mut order: Vec<usize> = (0..summary.n_components()).collect();
    order.sort_by(|&a, &b| summary.counts[b].total_cmp(&summary.counts[a]));
    summary.apply(&Edit::Reorder { order: order.into_iter().map(|at| summary.ids[at]).collect() })
}

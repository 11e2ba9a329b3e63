//! Checkpoints of chains, from which a later run continues with the same bits.

use crate::error::{Error, Result};
use crate::grounds::Grounds;
use crate::hash;
use crate::identity::Identity;
use crate::mcmc::tree_guided::is_forest;
use crate::mcmc::{ChainPlan, Sampler, Sampling, SavedChain, Target};

/// Everything that must agree before chains can continue. The number of draws may differ.
pub fn identity(
    target: &Target,
    sampler: &dyn Sampler,
    labels: &[u32],
    plan: ChainPlan,
    grounds: &Grounds,
) -> Identity {
    let labels = hash::fingerprint(0, labels.iter().map(|&label| u64::from(label)));
    let specification = &grounds.specification;
    let pairs = [
        ("sampler", format!("{sampler:?}")),
        ("data", format!("{} x {}, {:016x}", target.n_rows(), target.table.dimension(), grounds.fingerprint)),
        ("likelihood", format!("{:?}", specification.likelihood)),
        ("process", format!("{:?}", specification.process)),
        ("warmup", plan.warmup.to_string()),
        ("thin", plan.thin.to_string()),
        ("chains", plan.chains.to_string()),
        ("init", format!("{labels:016x}")),
        ("seed", plan.seed.to_string()),
    ];
    Identity(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Reads the chains, if they belong to this run.
///
/// # Errors
/// [`Error::Checkpoint`] naming the first argument that differs, or what is damaged.
pub fn read(bytes: &[u8], sampling: &Sampling<'_>) -> Result<Vec<SavedChain>> {
    let damaged = |what: &str| Error::Checkpoint { message: format!("it is damaged: {what}") };
    let (written, rest): (Identity, _) =
        postcard::take_from_bytes(bytes).map_err(|error| damaged(&error.to_string()))?;
    sampling.identity.expect(&written)?;
    let mut chains: Vec<SavedChain> = postcard::from_bytes(rest).map_err(|error| damaged(&error.to_string()))?;
    if chains.len() != sampling.plan.chains || chains.iter().any(|chain| !fits(chain, sampling)) {
        return Err(damaged("its chains"));
    }
    let most = chains.iter().map(|chain| chain.draws.log_joint.len()).max().unwrap_or(0);
    if most > sampling.plan.draws {
        let message = format!("it has {most} draws, but now draws = {}", sampling.plan.draws);
        return Err(Error::Checkpoint { message });
    }
    for chain in &mut chains {
        chain.state.refresh(sampling.target);
    }
    Ok(chains)
}

/// Whether the parts are consistent, since a file may hold anything.
fn fits(chain: &SavedChain, sampling: &Sampling<'_>) -> bool {
    let Sampling { target, plan, .. } = sampling;
    let n_draws = chain.draws.log_joint.len();
    let n_labels = n_draws.checked_mul(target.n_rows());
    let traced = target.process.traced(&chain.state.process);
    let made = chain.sweep.saturating_sub(plan.warmup) / plan.thin;
    let (clusters, trees) = (&chain.state.clusters, &chain.state.trees);
    clusters.fits(target)
        && (trees.is_empty() || is_forest(trees, clusters.slots()))
        && is_sound(chain, target)
        && n_labels == Some(chain.labels.len())
        && chain.draws.n_clusters.len() == n_draws
        && chain.draws.traced.len() == n_draws * traced.len()
        && made == n_draws
}

/// Whether the state of the process is possible for a chain.
fn is_sound(chain: &SavedChain, target: &Target) -> bool {
    let process = &chain.state.process;
    let traced: Vec<f64> = target.process.traced(process).into_iter().map(|(_, value)| value).collect();
    let numbers = process.auxiliary.map_or([0.0; 2], |auxiliary| [auxiliary.log_u, auxiliary.log_mass]);
    target.process.restored(&traced).is_ok_and(|known| known == process.integrated())
        && process.auxiliary.is_some() == target.process.augments()
        && numbers.iter().all(|number| number.is_finite())
}

//! Checkpoints of chains, from which a later run continues with the same bits.

use crate::error::{Error, Result};
use crate::grounds::Grounds;
use crate::hash;
use crate::identity::Identity;
use crate::mcmc::chain::SavedChain;
use crate::mcmc::{ChainPlan, ChainStart, Chains, Sampling};

/// Everything that must agree before chains can continue. The number of draws may differ. `sampler` shows its settings.
pub fn identity(
    chains: &dyn Chains,
    sampler: &str,
    plan: ChainPlan,
    kept: Option<&[u32]>,
    grounds: &Grounds,
) -> Identity {
    let print = |numbers: &[u32]| hash::fingerprint(0, numbers.iter().map(|&number| u64::from(number)));
    let labels = hash::fingerprint(0, chains.starts().iter().map(u64::from));
    let specification = &grounds.specification;
    let pairs = [
        ("sampler", sampler.to_owned()),
        ("data", format!("{} x {}, {:016x}", chains.n_rows(), chains.dimension(), grounds.fingerprint)),
        ("likelihood", format!("{:?}, {:?}", specification.likelihood, specification.learned)),
        ("process", format!("{:?}", specification.process)),
        ("warmup", plan.warmup.to_string()),
        ("thin", plan.thin.to_string()),
        ("chains", plan.chains.to_string()),
        ("init", format!("{labels:016x}")),
        ("keep_rows", kept.map_or("all".to_owned(), |rows| format!("{} of them, {:016x}", rows.len(), print(rows)))),
        ("seed", plan.seed.to_string()),
    ];
    Identity(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Where chains are after `n_draws` draws, for a run that goes on from there; see [`Sampled::states`](super::Sampled).
///
/// # Errors
/// [`Error::Format`].
pub fn write(states: &[SavedChain], n_draws: usize, identity: &Identity, plan: ChainPlan) -> Result<Vec<u8>> {
    let mut identity = identity.clone();
    // Draws are counted from here.
    let warmup = (plan.warmup + n_draws * plan.thin).to_string();
    identity.0.iter_mut().filter(|(name, _)| name == "warmup").for_each(|(_, value)| value.clone_from(&warmup));
    postcard::to_stdvec(&(&identity, states)).map_err(|error| Error::Format { message: error.to_string() })
}

/// Reads the chains, if they belong to this run.
///
/// # Errors
/// [`Error::Checkpoint`] naming the first argument that differs, or what is damaged.
pub fn read<'a>(bytes: &[u8], sampling: &Sampling<'a>) -> Result<Vec<ChainStart<'a>>> {
    let damaged = |what: &str| Error::Checkpoint { message: format!("it is damaged: {what}") };
    let (written, rest): (Identity, _) =
        postcard::take_from_bytes(bytes).map_err(|error| damaged(&error.to_string()))?;
    sampling.identity.expect(&written)?;
    let saved: Vec<SavedChain> = postcard::from_bytes(rest).map_err(|error| damaged(&error.to_string()))?;
    let chains: Option<Vec<ChainStart<'a>>> = saved.into_iter().map(|chain| restored(chain, sampling)).collect();
    let chains = chains.filter(|chains| chains.len() == sampling.plan.chains).ok_or_else(|| damaged("its chains"))?;
    let most = chains.iter().map(|chain| chain.draws.log_joint.len()).max().unwrap_or(0);
    if most > sampling.plan.draws {
        let message = format!("it has {most} draws, but now draws = {}", sampling.plan.draws);
        return Err(Error::Checkpoint { message });
    }
    Ok(chains)
}

/// The state of a chain, if the parts of the file are consistent, since a file may hold anything.
fn restored<'a>(chain: SavedChain, sampling: &Sampling<'a>) -> Option<ChainStart<'a>> {
    let Sampling { chains, plan, .. } = sampling;
    let SavedChain { state, sweep, draws, labels } = chain;
    let state = chains.restore(&state)?;
    let n_draws = draws.log_joint.len();
    let made = sweep.saturating_sub(plan.warmup) / plan.thin;
    let fits = n_draws.checked_mul(sampling.n_kept()) == Some(labels.len())
        && draws.n_clusters.len() == n_draws
        && draws.sizes.len() as u64 == draws.n_clusters.iter().copied().map(u64::from).sum::<u64>()
        && draws.traced.len() == n_draws * state.traced().len()
        && made == n_draws;
    fits.then_some(ChainStart { state, sweep, draws, labels })
}

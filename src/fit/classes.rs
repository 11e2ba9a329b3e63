//! Partial labels of a job: what they cannot be combined with, and the classes of the first components (mathematics
//! 3.2).

use crate::component::{ComponentId, EditLog};
use crate::data::PartialLabels;
use crate::error::{Error, Result};
use crate::fit::Job;
use crate::fit::position::Position;
use crate::init::Init;
use crate::simd::Scalar;
use crate::visits::UnitOptions;

impl<F: Scalar> Job<'_, F> {
    /// The labels of the rows; `None` if no row has a class.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `labels`, or for `init` if its labels give one component to rows of two classes;
    /// [`Error::NotSupported`] for a job that cannot have labels.
    pub(super) fn labels(&self) -> Result<Option<PartialLabels>> {
        let Some(given) = &self.settings.labels else { return Ok(None) };
        let refuse =
            |found: &str, reason: &str, allowed: &str| Err(Error::not_supported("labels", found, reason, allowed));
        match self.settings.units {
            UnitOptions::Words(_) => {
                return refuse(
                    "labels of documents",
                    "the units of a TopicModel are words",
                    "a Mixture, or labels=None",
                );
            }
            UnitOptions::Nodes(tree) if !tree.on_trial => {
                return refuse("labels with a tree", "a node may stand for rows of several classes", "units=None");
            }
            _ => {}
        }
        if self.rows.has_shards() {
            self.check_shards()?;
        }
        if !self.rows.can_seek() {
            let (reason, allowed) = ("the rows of a block have no numbers", "an array, a memory map, or labels=None");
            return refuse("labels of data that are read in blocks", reason, allowed);
        }
        let n = self.rows.n_rows();
        let Some(labels) = PartialLabels::new(given, n, self.rows.weights())? else { return Ok(None) };
        let refuse = |found: &str, reason: &str| {
            let allowed = "init=\"kmeans++\", the component of each row, or an earlier fit with labels";
            Err(Error::not_supported("init", format!("init={found} with labels"), reason, allowed))
        };
        match self.init {
            Init::Random => return refuse("\"random\"", "a class could be left without a component"),
            Init::Sequential => return refuse("\"sequential\"", "its components have no classes"),
            Init::Table(_) => return refuse("responsibilities", "a component could have rows of several classes"),
            Init::KmeansPlusPlus | Init::Labels(_) | Init::Summary { .. } => {}
        }
        self.init.classes(&labels, self.init.n_components(n)?.unwrap_or(0))?;
        Ok(Some(labels))
    }
}

/// A component whose responsibilities for rows of known class sum to less than this has none of them.
const NO_ROW: f64 = 1e-10;

/// After a pass, makes components free to which no row of their class belongs. They were split off from others of the
/// class, or have lost their rows to them, so nothing tells that they are of the class. The bound stays the same.
pub(super) fn set_free(position: &mut Position) {
    for (&id, sum) in position.memo.total().ids.iter().zip(std::mem::take(&mut position.known_rows)) {
        if sum < NO_ROW {
            position.edits.set_free(id);
        }
    }
}

/// Whether these can be the components of a run with such labels, since files may hold anything: every class has one.
pub(super) fn fits(edits: &EditLog, ids: &[ComponentId], labels: Option<&PartialLabels>) -> bool {
    let n_classes = labels.map_or(0, PartialLabels::n_classes);
    let mut has_component = vec![false; n_classes];
    let known = edits
        .classes(ids)
        .into_iter()
        .flatten()
        .all(|class| has_component.get_mut(class as usize).map(|has_component| *has_component = true).is_some());
    known && has_component.into_iter().all(|has_component| has_component)
}

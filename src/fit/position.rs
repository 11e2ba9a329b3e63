//! The state of a run, and the checkpoint from which a later run continues with the same bits.

use serde::{Deserialize, Serialize};

use crate::component::EditLog;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::fit::stages::Search;
use crate::fitted::Record;
use crate::identity::Identity;
use crate::local_step::Work;
use crate::memo::Memo;
use crate::moves::MoveState;
use crate::parameters::Parameters;

/// Everything that changes during a run, except the local states, which the executor holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Position {
    /// Index of the current pass.
    pub pass: usize,
    /// Number of batches visited in this pass.
    pub done: usize,
    /// Work done by these visits.
    pub work: Work,
    /// Time taken by earlier runs, in seconds.
    #[serde(skip)]
    pub seconds: f64,
    /// The first pass made entirely by this run. Earlier passes come from a file, which may hold anything.
    #[serde(skip)]
    pub first_own: usize,
    /// By component, the responsibilities of rows of known class in these visits; empty if rows have no classes.
    pub known_rows: Vec<f64>,
    /// One record per complete pass.
    pub history: Vec<Record>,
    /// Objectives of the states after the last passes that compare, at most two, nats.
    pub objectives: Vec<f64>,
    /// Parameters of the base measure.
    pub base: Parameters,
    /// Summaries of the batches.
    pub memo: Memo,
    /// All edits of the list of components so far.
    pub edits: EditLog,
    /// State of the moves.
    pub moves: MoveState,
    /// State of the trees.
    pub tree: TreePosition,
    /// State of the search.
    pub search: Search,
}

/// The state of the trees of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TreePosition {
    /// Passes since nodes were last judged.
    pub(super) waited: usize,
    /// Number of times that nodes have been judged.
    pub(super) rounds: u64,
    /// The pass before which nodes were last judged, and whether any node was opened then.
    pub(super) last: Option<(usize, bool)>,
    /// Whether units are rows now.
    pub(super) is_refined: bool,
    /// Number of components when nodes were last opened for moves.
    pub(super) looked: Option<usize>,
}

impl TreePosition {
    /// Counts a pass.
    pub(super) fn wait(&mut self) {
        self.waited += 1;
    }
}

impl Position {
    /// The position before the first visit.
    pub fn first(memo: Memo, edits: EditLog, base: Parameters) -> Self {
        Self {
            pass: 0,
            done: 0,
            work: Work::default(),
            seconds: 0.0,
            first_own: 0,
            known_rows: Vec::new(),
            history: Vec::new(),
            objectives: Vec::new(),
            base,
            memo,
            edits,
            moves: MoveState::default(),
            tree: TreePosition::default(),
            search: Search::default(),
        }
    }

    /// Adds the objective after a pass.
    pub(super) fn add_objective(&mut self, objective: f64) {
        if self.objectives.len() == 2 {
            self.objectives.remove(0);
        }
        self.objectives.push(objective);
    }

    /// Refuses a position that is impossible for a run over these batches, since a file may hold anything.
    fn check(&self, n_batches: usize, n_statistics: usize) -> Result<()> {
        let damaged = |what: &str| Err(checkpoint(format!("it is damaged: {what}")));
        if self.history.len() != self.pass || self.done >= n_batches.max(1) || self.objectives.len() > 2 {
            return damaged("the pass it stopped in");
        }
        if !self.search.fits(n_statistics) {
            return damaged("its search");
        }
        match self.edits.components() {
            Ok(ids) if self.known_rows.len() > ids.len() + 1 => damaged("the classes of its rows"),
            Ok(ids) if self.memo.fits(&ids, n_statistics, n_batches) => {
                if self.moves.fits(&ids, n_statistics, n_batches) { Ok(()) } else { damaged("its moves") }
            }
            _ => damaged("the components of its batches"),
        }
    }
}

impl Identity {
    /// Serialises a checkpoint of a run that took `seconds` to reach `position`.
    ///
    /// # Errors
    /// [`Error::Format`] if serialisation fails; errors of the executor.
    pub fn write(&self, position: &Position, seconds: f64, executor: &mut dyn Executor) -> Result<Vec<u8>> {
        postcard::to_stdvec(&(self, seconds, position, executor.save_states()?))
            .map_err(|error| Error::Format { message: error.to_string() })
    }

    /// Reads the position and the local states, if they belong to a run with this identity.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] naming the first argument that differs, or what is damaged.
    pub fn read(&self, bytes: &[u8], n_batches: usize, n_statistics: usize) -> Result<(Position, Vec<Vec<u8>>)> {
        let damaged = |error: postcard::Error| checkpoint(format!("it is damaged: {error}"));
        let (written, rest): (Self, _) = postcard::take_from_bytes(bytes).map_err(damaged)?;
        self.expect(&written)?;
        let (seconds, mut position, states): (f64, Position, Vec<Vec<u8>>) =
            postcard::from_bytes(rest).map_err(damaged)?;
        position.seconds = seconds;
        position.first_own = position.pass + 1;
        position.check(n_batches, n_statistics)?;
        Ok((position, states))
    }
}

fn checkpoint(message: String) -> Error {
    Error::Checkpoint { message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suffstats::Summary;

    /// Two components with one statistic each, in two batches, one of which has been visited.
    fn position() -> Position {
        let edits = EditLog::with_components(2);
        let mut start = Summary::empty(edits.components().expect("one append"), 1, false);
        (start.counts, start.mass) = (vec![3.0, 1.0], 4.0);
        let mut memo = Memo::starting_from(start.clone(), 2, 4.0);
        memo.replace(1, start.scale(0.5)).expect("the same components");
        Position { done: 1, ..Position::first(memo, edits, Parameters::default()) }
    }

    struct Nothing;

    impl Executor for Nothing {
        fn n_batches(&self) -> usize {
            2
        }

        fn visit(
            &mut self,
            _: usize,
            _: &crate::global_step::Globals,
            _: &EditLog,
            _: &crate::moves::Plan,
        ) -> Result<crate::executor::Visit> {
            Err(Error::Cancelled)
        }

        fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
            Ok(vec![vec![1], vec![2, 3]])
        }

        fn load_states(&mut self, _: &[Vec<u8>]) -> Result<()> {
            Ok(())
        }
    }

    fn identity(seed: &str) -> Identity {
        Identity(vec![("data".into(), "x".repeat(200)), ("seed".into(), seed.into())])
    }

    #[test]
    fn a_checkpoint_holds_the_position_and_the_local_states() {
        let written = position();
        let bytes = identity("7").write(&written, 2.5, &mut Nothing).expect("serialisable");
        let (read, states) = identity("7").read(&bytes, 2, 1).expect("its own");
        assert_eq!((read.pass, read.done, read.seconds), (0, 1, 2.5));
        assert_eq!(read.memo.total(), written.memo.total());
        assert_eq!(read.memo.batch(1), written.memo.batch(1));
        assert!(read.memo.batch(0).is_none() && !read.memo.is_complete());
        assert_eq!(states, [vec![1], vec![2, 3]]);
    }

    #[test]
    fn the_argument_that_differs_is_named() {
        let bytes = identity("7").write(&position(), 0.0, &mut Nothing).expect("serialisable");
        let message =
            |identity: &Identity, n_batches, n_statistics| match identity.read(&bytes, n_batches, n_statistics) {
                Err(Error::Checkpoint { message }) => message,
                other => panic!("{other:?}"),
            };
        assert_eq!(message(&identity("8"), 2, 1), "it was written for seed = 7, but now seed = 8");
        let other_data = Identity(vec![("data".into(), "y".repeat(200))]);
        assert_eq!(message(&other_data, 2, 1), "it was written for another data");
        for (n_batches, n_statistics) in [(1, 1), (3, 1), (2, 2)] {
            assert!(message(&identity("7"), n_batches, n_statistics).starts_with("it is damaged"));
        }
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let bytes = identity("7").write(&position(), 0.0, &mut Nothing).expect("serialisable");
        for length in 0..bytes.len() {
            assert!(identity("7").read(&bytes[..length], 2, 1).is_err());
        }
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Some bit flips leave a possible position; none of them may panic.
            drop(identity("7").read(&bytes, 2, 1));
        }
    }
}

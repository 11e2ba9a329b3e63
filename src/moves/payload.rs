//! Payloads by kind of move: values whose type only one move knows.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::moves::MoveKind;
use crate::payload::{Content, Payload};

/// Payloads by kind of move.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Payloads(pub Vec<(MoveKind, Payload)>);

impl Payloads {
    /// Whether there are no payloads.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Inserts a payload, replacing any other of the same kind.
    pub fn put(&mut self, kind: MoveKind, payload: Payload) {
        self.remove(&kind);
        self.0.push((kind, payload));
    }

    /// Removes and returns the payload of this kind.
    pub fn remove(&mut self, kind: &MoveKind) -> Option<Payload> {
        let place = self.0.iter().position(|(other, _)| other == kind)?;
        Some(self.0.remove(place).1)
    }

    /// The payload of this kind.
    pub fn find(&self, kind: &MoveKind) -> Option<&Payload> {
        self.0.iter().find(|(other, _)| other == kind).map(|(_, payload)| payload)
    }

    /// Returns the value of this kind.
    pub fn get<T: Content>(&self, kind: &MoveKind) -> Result<Option<Cow<'_, T>>> {
        self.find(kind).map(Payload::get).transpose()
    }

    /// Returns the value of this kind for modification in place; inserts the default if it is missing.
    pub fn get_mut<T: Content + Default>(&mut self, kind: &MoveKind) -> Result<&mut T> {
        let place = self.0.iter().position(|(other, _)| other == kind).unwrap_or(self.0.len());
        if place == self.0.len() {
            self.0.push((kind.clone(), Payload::new(T::default())));
        }
        self.0[place].1.get_mut()
    }

    /// Removes and returns the value of this kind, or the default if it is missing.
    pub fn take<T: Content + Default>(&mut self, kind: &MoveKind) -> Result<T> {
        self.remove(kind).map_or_else(|| Ok(T::default()), Payload::into_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: MoveKind = MoveKind::new("some");

    #[test]
    fn a_payload_is_unchanged_after_serialisation() {
        let mut sent = Payloads::default();
        sent.put(KIND, Payload::new(vec![1.5, f64::NAN]));
        let bytes = postcard::to_stdvec(&sent).expect("serialisable");
        let mut came: Payloads = postcard::from_bytes(&bytes).expect("its own bytes");
        assert_eq!(came, sent);
        assert_eq!(came.get::<Vec<f64>>(&KIND).expect("its type").expect("of this kind")[0], 1.5);
        came.get_mut::<Vec<f64>>(&KIND).expect("its type").push(3.0);
        assert_ne!(came, sent);
        assert_eq!(came.take::<Vec<f64>>(&KIND).expect("its type").len(), 3);
        assert!(came.is_empty() && came.take::<Vec<f64>>(&KIND).expect("the default").is_empty());
    }

    #[test]
    fn another_type_is_an_error() {
        let mut payloads = Payloads(vec![(KIND, Payload::new(7_u64))]);
        assert!(payloads.get::<String>(&KIND).is_err() && payloads.get_mut::<String>(&KIND).is_err());
        let bytes = postcard::to_stdvec(&payloads).expect("serialisable");
        let mut came: Payloads = postcard::from_bytes(&bytes).expect("its own bytes");
        // Trailing bytes are an error.
        assert!(came.get::<()>(&KIND).is_err() && came.get_mut::<Vec<u64>>(&KIND).is_err());
        assert!(came.take::<Vec<u64>>(&KIND).is_err());
    }
}

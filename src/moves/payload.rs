//! Payloads: values whose type only one move knows. Within a process they stay values. For workers and checkpoints they
//! are bytes, which are decoded when the move asks for them.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::moves::MoveKind;

/// The values that a payload can hold.
pub trait Content: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static> Content for T {}

/// A value of any type.
trait AnyContent: Any + Debug + Send + Sync {
    fn bytes(&self) -> postcard::Result<Vec<u8>>;
    fn copy(&self) -> Box<dyn AnyContent>;
}

impl<T: Content> AnyContent for T {
    fn bytes(&self) -> postcard::Result<Vec<u8>> {
        postcard::to_stdvec(self)
    }

    fn copy(&self) -> Box<dyn AnyContent> {
        Box::new(self.clone())
    }
}

#[derive(Debug)]
enum Form {
    Value(Box<dyn AnyContent>),
    /// Encoded, as read from a file or from another process.
    Bytes(Vec<u8>),
}

/// A value of a type that only one move knows.
#[derive(Debug)]
pub struct Payload(Form);

impl Payload {
    /// Wraps a value.
    pub fn new<T: Content>(value: T) -> Self {
        Self(Form::Value(Box::new(value)))
    }

    /// Returns the value.
    ///
    /// # Errors
    /// [`Error::Format`] if it has another type.
    pub fn get<T: Content>(&self) -> Result<Cow<'_, T>> {
        match &self.0 {
            Form::Value(value) => (value.as_ref() as &dyn Any).downcast_ref().map(Cow::Borrowed).ok_or_else(other_type),
            Form::Bytes(bytes) => read(bytes).map(Cow::Owned),
        }
    }

    /// Returns the value for modification in place.
    ///
    /// # Errors
    /// As [`Payload::get`].
    pub fn get_mut<T: Content>(&mut self) -> Result<&mut T> {
        if let Form::Bytes(bytes) = &self.0 {
            *self = Self::new(read::<T>(bytes)?);
        }
        match &mut self.0 {
            Form::Value(value) => (value.as_mut() as &mut dyn Any).downcast_mut().ok_or_else(other_type),
            Form::Bytes(_) => Err(other_type()),
        }
    }

    /// Unwraps the value.
    ///
    /// # Errors
    /// As [`Payload::get`].
    pub fn into_value<T: Content>(self) -> Result<T> {
        match self.0 {
            Form::Value(value) => (value as Box<dyn Any>).downcast().map(|value| *value).map_err(|_| other_type()),
            Form::Bytes(bytes) => read(&bytes),
        }
    }

    fn bytes(&self) -> postcard::Result<Cow<'_, [u8]>> {
        match &self.0 {
            Form::Value(value) => value.as_ref().bytes().map(Cow::Owned),
            Form::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }
}

fn read<T: Content>(bytes: &[u8]) -> Result<T> {
    let damaged = |error| Error::Format { message: format!("a payload of a move: {error}") };
    match postcard::take_from_bytes(bytes).map_err(damaged)? {
        (value, []) => Ok(value),
        _ => Err(other_type()),
    }
}

fn other_type() -> Error {
    Error::Format { message: "a payload of a move has another type".to_owned() }
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Form::Value(value) => Form::Value(value.as_ref().copy()),
            Form::Bytes(bytes) => Form::Bytes(bytes.clone()),
        })
    }
}

/// Payloads are equal if their bytes are.
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes().map_err(serde::ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        <&[u8]>::deserialize(deserializer).map(|bytes| Self(Form::Bytes(bytes.to_vec())))
    }
}

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
    ///
    /// # Errors
    /// As [`Payload::get`].
    pub fn get<T: Content>(&self, kind: &MoveKind) -> Result<Option<Cow<'_, T>>> {
        self.find(kind).map(Payload::get).transpose()
    }

    /// Returns the value of this kind for modification in place; inserts the default if it is missing.
    ///
    /// # Errors
    /// As [`Payload::get`].
    pub fn get_mut<T: Content + Default>(&mut self, kind: &MoveKind) -> Result<&mut T> {
        let place = self.0.iter().position(|(other, _)| other == kind).unwrap_or(self.0.len());
        if place == self.0.len() {
            self.0.push((kind.clone(), Payload::new(T::default())));
        }
        self.0[place].1.get_mut()
    }

    /// Removes and returns the value of this kind, or the default if it is missing.
    ///
    /// # Errors
    /// As [`Payload::get`].
    pub fn take<T: Content + Default>(&mut self, kind: &MoveKind) -> Result<T> {
        self.remove(kind).map_or_else(|| Ok(T::default()), Payload::into_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: MoveKind = MoveKind::new("some");

    #[test]
    fn a_payload_is_the_same_after_a_journey() {
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

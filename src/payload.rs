//! Payloads: values whose type only their owner knows, a move or a question. Within a process they stay values. For
//! workers and checkpoints they are bytes, which are decoded when the owner asks for them.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

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

/// A value of a type that only its owner knows.
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
    let damaged = |error| Error::Format { message: format!("a payload: {error}") };
    match postcard::take_from_bytes(bytes).map_err(damaged)? {
        (value, []) => Ok(value),
        _ => Err(other_type()),
    }
}

fn other_type() -> Error {
    Error::Format { message: "a payload has another type".to_owned() }
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

//! Finds the files that erasures put in the place of those that a log names.

use super::{Origin, Sentinel};
use crate::digest::Hex;
use crate::event::erasure::Replacements;
use crate::json::Value;
use crate::layout::{ERASED_SUFFIX, archive_name, is_archive_name};

/// What a sentinel says of the trail of the log before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrailTold {
    /// Nothing: it is of version 1, or of a repair.
    #[default]
    Nothing,
    /// Something that is no trail.
    Malformed,
    /// What it is, and the first seq that it covers.
    Known(Hex, u64),
}

impl TrailTold {
    pub(super) fn read(data: &Value) -> Self {
        let (value, from) = (data.get("trail"), data.get("trail_from"));
        if value.is_none() && from.is_none() {
            return Self::Nothing;
        }
        let value = value
            .and_then(Value::as_str)
            .and_then(|digits| Hex::read(digits.as_bytes()));
        let from = from.and_then(Value::as_i64).and_then(|from| u64::try_from(from).ok());
        value
            .zip(from)
            .map_or(Self::Malformed, |(value, from)| Self::Known(value, from))
    }

    /// The trail, if it is one.
    pub fn known(self) -> Option<(Hex, u64)> {
        match self {
            Self::Known(value, from) => Some((value, from)),
            _ => None,
        }
    }
}

/// The way back from the newest sentinel: an erasure further on put other files in the place of those that earlier ones name.
#[derive(Clone, Debug, Default)]
pub struct WayBack(Replacements);

impl WayBack {
    /// The sentinel of the segment that `after` retired, as erasures since made it.
    #[must_use]
    pub fn back(&mut self, after: &Sentinel, mut earlier: Sentinel) -> Sentinel {
        self.pass(after);
        self.resolve(&mut earlier);
        earlier
    }

    /// Goes past a sentinel.
    pub fn pass(&mut self, after: &Sentinel) {
        if let Some(told) = &after.told.erasure {
            self.0.take(told);
        }
    }

    /// Lets a sentinel name the files that stand in the place of those that it names.
    pub fn resolve(&self, sentinel: &mut Sentinel) {
        sentinel.base_sha256 = sentinel.told.base.and_then(|sha256| self.0.base(sha256));
        let replaced = self.0.archive(&sentinel.told.archive);
        if let (Some((name, digest)), Some((new, erased))) = (&mut sentinel.archive, replaced) {
            *name = match sentinel.told.span.filter(|_| is_archive_name(name)) {
                Some((first, last)) => archive_name(first, last, new.text()) + ERASED_SUFFIX,
                None => String::new(),
            };
            new.text().clone_into(digest);
            sentinel.told.bound = erased;
        }
    }

    /// The same of a whole beginning.
    pub fn resolve_origin(&self, origin: &mut Origin) {
        if let Origin::Ours(sentinel) = origin {
            self.resolve(sentinel);
        }
    }

    /// The base in the place of one that was adopted; `None` if there is none.
    pub fn base(&self, sha256: Hex) -> Option<Hex> {
        self.0.base(sha256)
    }
}

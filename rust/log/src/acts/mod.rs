//! The rules by which records follow from an act, and the records that an act speaks of.
//!
//! An act says what happened to several records of a face at once. The state applies its rule, live and in every replay; a
//! rule depends only on the act and the records, and its version never changes. An unknown act changes nothing.

pub mod blocks;

use std::borrow::Cow;

use crate::json::Value;

/// How a rule reads a canonical record by its id.
pub type Read<'a> = dyn Fn(&str) -> Option<Cow<'a, [u8]>> + 'a;

/// What a face makes of its acts.
#[derive(Debug)]
pub struct Rules {
    /// The records that an act changes, each once, whole as it is afterwards, in the order in which the rule came to them.
    pub effects: for<'a> fn(&'a Value, &'a Read<'a>) -> Vec<(String, Value)>,
    /// The records that an act is about, told by the act alone. A rule may take a record away that it does not mention.
    pub mentions: fn(&Value) -> Vec<Mention>,
    /// How many records an act that names so many ids may touch at most.
    pub most_touched: fn(usize) -> usize,
}

/// A record that an act is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Its id.
    pub id: String,
    /// Whether the act names it or may create it, so that the act is in its history.
    pub is_told: bool,
}

impl Mention {
    /// A record that the act speaks of.
    pub fn told(id: String) -> Self {
        Self { id, is_told: true }
    }
}

/// How many ids an act seems to name, at most, from its canonical bytes: enough to know how much memory it may take.
pub fn ids_named(payload: &[u8]) -> usize {
    const KEY: &[u8] = b"\"ids\":[";
    let Some(start) = memchr::memmem::find(payload, KEY).map(|at| at + KEY.len()) else {
        return 0;
    };
    // A bracket in an id ends the list too early, so the last one counts.
    let end = memchr::memrchr(b']', payload).unwrap_or(start).max(start);
    memchr::memchr_iter(b'"', &payload[start..end]).count() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_without_reading_them() {
        assert_eq!(ids_named(br#"{"act":"x/1","ids":["a","b]","c"],"passed":0.5}"#), 3);
        assert_eq!(ids_named(br#"{"act":"x/1","ids":[]}"#), 0);
        assert_eq!(ids_named(br#"{"act":"x/1"}"#), 0);
        assert_eq!(ids_named(br#"{"ids":["a"#), 0);
    }
}

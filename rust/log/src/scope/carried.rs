//! Reads, writes and checks the scope that a record carries.

use std::cmp::Ordering;
use std::ops::Range;

use super::names::Scope;
use crate::error::{Error, Result};
use crate::json::{Cursor, compare_key, member, members};

/// Where a scope stands in `data`. Names that people use sort behind it, so it is met early.
pub const KEY: &str = "@scope";
const MEMBER: &[u8] = b"\"@scope\":";
/// The key with its path, for messages.
const PATH: &str = "data.@scope";

/// What a record says of whose it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carried {
    /// Names, or none: then it is shared.
    Names(Scope),
    /// A value that is no scope: only a viewer of everything sees the record.
    Malformed,
}

impl Carried {
    /// What a canonical record says.
    pub fn of(record: &[u8]) -> Self {
        carried(record).map_or_else(Self::shared, Self::of_value)
    }

    /// What a record says that carries nothing.
    pub fn shared() -> Self {
        Self::Names(Scope::default())
    }

    /// What the value says that stands there.
    pub fn of_value(value: &[u8]) -> Self {
        Scope::read(value).map_or(Self::Malformed, Self::Names)
    }
}

/// The value of `data["@scope"]` in a canonical record.
#[inline]
pub fn carried(record: &[u8]) -> Option<&[u8]> {
    given(data_of(record)?)
}

/// Whether the first key sorts behind that of a scope, so that there is none. An escape may sort before.
#[inline]
fn begins_behind(object: &[u8]) -> bool {
    matches!(object, [b'{', b'"', first, ..] if *first > KEY.as_bytes()[0] && *first != b'\\')
}

/// The value of `@scope` in an object.
#[inline]
pub fn given(data: &[u8]) -> Option<&[u8]> {
    match place_of(data) {
        ScopePlace::There(value) => Some(&data[value]),
        ScopePlace::Before { .. } => None,
    }
}

#[inline]
fn data_of(record: &[u8]) -> Option<&[u8]> {
    let mut cursor = Cursor::new(record);
    let usual = cursor.pass(b"{\"confidence\":").and_then(|()| cursor.scalar());
    if usual.is_some() && cursor.pass(b",\"data\":").is_some() {
        // Only the beginning is looked at: where the object ends is of no interest.
        return Some(cursor.rest());
    }
    member(record, "data")
}

/// Makes an object at the end of a text carry this scope, unless it has one that may stay.
///
/// # Errors
/// `Invalid` if it carries another one.
pub fn stamp(text: &mut Vec<u8>, start: usize, spelled: &[u8], may_stay: impl FnOnce(&Carried) -> bool) -> Result<()> {
    match place_of(&text[start..]) {
        ScopePlace::There(value) => {
            let given = &text[start..][value];
            if given == spelled || may_stay(&Carried::of_value(given)) {
                return Ok(());
            }
            Err(other_than(spelled, given))
        }
        ScopePlace::Before { .. } if spelled.is_empty() => Ok(()),
        ScopePlace::Before { at, is_last, is_first } => {
            // Each record of a batch comes here: the member is spelled at the end and changes places with what is behind it.
            let comma = |wanted: bool| if wanted { "," } else { "" };
            let length = text.len();
            text.extend_from_slice(comma(!is_first && is_last).as_bytes());
            text.extend_from_slice(MEMBER);
            text.extend_from_slice(spelled);
            text.extend_from_slice(comma(!is_last).as_bytes());
            let added = text.len() - length;
            text[start + at..].rotate_right(added);
            Ok(())
        }
    }
}

/// The error for a record with another scope than its writer.
pub fn other_than(spelled: &[u8], given: &[u8]) -> Error {
    let (own, given) = (String::from_utf8_lossy(spelled), String::from_utf8_lossy(given));
    let reason = match spelled {
        [] => format!("a handle without names writes what is shared, got {given}"),
        _ => format!("must be that of the handle, {own}, got {given}"),
    };
    Error::invalid(PATH, reason)
}

/// Puts another scope, as it is spelled, in place of the one that a record carries, which stands at the end of a text.
pub fn replace(text: &mut Vec<u8>, start: usize, spelled: &[u8]) {
    let Some(value) = carried(&text[start..]) else {
        return;
    };
    let at = value.as_ptr().addr() - text.as_ptr().addr();
    text.splice(at..at + value.len(), spelled.iter().copied());
}

/// Refuses an object that carries something that is no scope, with `Invalid`.
pub fn check(object: &[u8]) -> Result<()> {
    match place_of(object) {
        ScopePlace::There(value) if Scope::read(&object[value.clone()]).is_none() => {
            let given = String::from_utf8_lossy(&object[value]).into_owned();
            Err(Error::invalid(
                PATH,
                format!(
                    "must be an object with one to three of user, agent, session, each a text of 1 to 256 bytes, got {given}"
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// The place of the scope in an object, present or to be inserted.
enum ScopePlace {
    There(Range<usize>),
    Before { at: usize, is_first: bool, is_last: bool },
}

#[inline]
fn place_of(object: &[u8]) -> ScopePlace {
    if begins_behind(object) {
        return ScopePlace::Before {
            at: 1,
            is_first: true,
            is_last: false,
        };
    }
    let address = |part: &[u8]| part.as_ptr().addr() - object.as_ptr().addr();
    let mut is_first = true;
    for (key, value) in members(object) {
        let at = address(key) - 1;
        match compare_key(key, KEY) {
            Ordering::Less => is_first = false,
            Ordering::Equal => {
                let start = address(value);
                return ScopePlace::There(start..start + value.len());
            }
            Ordering::Greater => {
                return ScopePlace::Before {
                    at,
                    is_first,
                    is_last: false,
                };
            }
        }
    }
    ScopePlace::Before {
        at: object.len().saturating_sub(1),
        is_first,
        is_last: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = r#""@scope":{"user":"ann"}"#;

    fn ann() -> Scope {
        Scope::new([Some("ann"), None, None]).expect("a good name")
    }

    #[test]
    fn it_is_found_wherever_it_stands() {
        for (record, expected) in [
            (
                r#"{"confidence":0.7,"data":{"@scope":{"user":"ann"}},"id":"a"}"#,
                Some(r#"{"user":"ann"}"#),
            ),
            (
                r#"{"confidence":0.7,"data":{"1":2,"@scope":7,"a":1},"id":"a"}"#,
                Some("7"),
            ),
            (r#"{"data":{"@scope":{"user":"ann"}}}"#, Some(r#"{"user":"ann"}"#)),
            (r#"{"data":{"a":{"@scope":{"user":"ann"}}}}"#, None),
            // What is escaped is written with a letter that comes behind that of a scope.
            (
                r#"{"confidence":0.7,"data":{"\n":1,"\"":1,"1\t":1,"@\"":1,"@scope":7,"\\":1}}"#,
                Some("7"),
            ),
            (
                r#"{"confidence":0.7,"data":{"\u0001":1,"@scope":7,"@\u007f":1}}"#,
                Some("7"),
            ),
            (r#"{"confidence":0.7,"data":{"\"":1,"\\":1}}"#, None),
            (r#"{"confidence":0.7,"data":{"a":1},"id":"a"}"#, None),
            (r#"{"confidence":0.7,"data":{},"id":"a"}"#, None),
            (r#"{"confidence":0.7,"data":{"A":1,"é":2},"id":"a"}"#, None),
            (
                r#"{"confidence":0.7,"data":{"\u001f":1,"@scope":7},"id":"a"}"#,
                Some("7"),
            ),
            (r#"{"confidence":0.7,"data":{"@":1,"@scope":7},"id":"a"}"#, Some("7")),
            (r#"{"confidence":0.7,"data":"@scope","id":"a"}"#, None),
            (r#"{"confidence":0.7,"id":"a"}"#, None),
            (r#"{"@scope":{"user":"ann"},"confidence":0.7}"#, None),
            ("{}", None),
        ] {
            assert_eq!(carried(record.as_bytes()), expected.map(str::as_bytes), "{record}");
        }
        assert_eq!(Carried::of(br#"{"data":{"@scope":7}}"#), Carried::Malformed);
        assert_eq!(
            Carried::of(br#"{"data":{"@scope":{"user":"ann"}}}"#),
            Carried::Names(ann())
        );
        assert_eq!(Carried::of(b"{}"), Carried::shared());
    }

    #[test]
    fn a_stamp_stands_in_its_place() {
        for (before, after) in [
            ("{}", format!("{{{OWN}}}")),
            (r#"{"a":1}"#, format!(r#"{{{OWN},"a":1}}"#)),
            (r#"{"1":1}"#, format!(r#"{{"1":1,{OWN}}}"#)),
            (r#"{"1":1,"a":{}}"#, format!(r#"{{"1":1,{OWN},"a":{{}}}}"#)),
            (r#"{"\"":1}"#, format!(r#"{{"\"":1,{OWN}}}"#)),
            (
                r#"{"\u0001":1,"\n":1,"\"":1,"\\":1}"#,
                format!(r#"{{"\u0001":1,"\n":1,"\"":1,{OWN},"\\":1}}"#),
            ),
            (r#"{"@\"":1,"@t":1}"#, format!(r#"{{"@\"":1,{OWN},"@t":1}}"#)),
            (r#"{"@scope":{"user":"ann"},"a":1}"#, format!(r#"{{{OWN},"a":1}}"#)),
        ] {
            let mut text = [b"xyz", before.as_bytes()].concat();
            stamp(&mut text, 3, &ann().spelled(), |_| false).expect("it fits");
            assert_eq!(String::from_utf8_lossy(&text[3..]), after);
            assert!(crate::json::scan_record(&text[3..]).is_some(), "{after}");
        }
    }

    #[test]
    fn another_one_is_refused() {
        for wrong in [
            r#"{"@scope":{"user":"bob"}}"#,
            r#"{"@scope":{"agent":"x","user":"ann"}}"#,
            r#"{"@scope":null}"#,
        ] {
            let mut text = wrong.as_bytes().to_vec();
            assert!(stamp(&mut text, 0, &ann().spelled(), |_| false).is_err(), "{wrong}");
            assert!(stamp(&mut text, 0, b"", |_| false).is_err(), "{wrong}");
            assert!(stamp(&mut text, 0, &ann().spelled(), |_| true).is_ok(), "{wrong}");
            assert_eq!(text, wrong.as_bytes());
        }
        let mut text = b"{\"a\":1}".to_vec();
        stamp(&mut text, 0, b"", |_| false).expect("nothing to carry");
        assert_eq!(text, b"{\"a\":1}");
        assert!(check(br#"{"@scope":null}"#).is_err());
        assert!(check(br#"{"@scope":{"user":"bob"},"a":1}"#).is_ok() && check(b"{}").is_ok());
    }
}

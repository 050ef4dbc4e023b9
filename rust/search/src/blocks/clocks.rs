//! Clocks of active hours, one for each scope, that determine the age of blocks.
//!
//! A clock advances while its user is active. A session uses the clock of its owner; a session without an owner has its own.
//! A block ages on the clock of its scope, so that activity of one user does not age the blocks of another.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::fields::quoted;
use super::names::NumberedNames;
use super::shape::Head;
use chronolog::scope::{Carried, given};

/// The name of the setting with the hours of a clock, after the digest of its scope and a colon.
const SETTING: &str = "total_active_hours";

/// All clocks, by the digests of their scopes; that of the shared scope is empty.
#[derive(Default)]
pub struct Clocks {
    names: NumberedNames,
    hours: Vec<f64>,
    /// The clock of each scope, by its number in the state.
    of_scope: HashMap<u32, u32, RandomState>,
}

impl Clocks {
    /// The clock of a scope; `data` contains the scope's fields.
    pub fn of_scope(&mut self, scope: u32, data: &[u8]) -> u32 {
        if let Some(&clock) = self.of_scope.get(&scope) {
            return clock;
        }
        let clock = self.number(&digits(data));
        self.of_scope.insert(scope, clock);
        clock
    }

    /// Applies a setting, if it is a clock.
    pub fn set(&mut self, head: &Head<'_>) {
        let Some((_, name)) = head.split_id() else { return };
        let name = String::from_utf8_lossy(name);
        let whose = name.strip_suffix(SETTING).and_then(|rest| match rest {
            "" => Some(""),
            rest => rest.strip_suffix(':'),
        });
        // The digest must be that of the scope that the record carries.
        if let Some(whose) = whose.filter(|whose| head.data.is_empty() || *whose == digits(head.data)) {
            let value = head.field("value").filter(|_| head.status != b"tombstone");
            let hours = value.and_then(quoted).and_then(|text| {
                let text = std::str::from_utf8(text).ok()?;
                let hours = text.trim().parse().ok();
                hours.filter(|hours: &f64| hours.is_finite() && *hours >= 0.0)
            });
            let clock = self.number(whose);
            self.hours[clock as usize] = hours.unwrap_or(0.0);
        }
    }

    /// The hours on a clock; `shown` on the viewer's own.
    pub fn hours(&self, clock: u32, own: Option<u32>, shown: f64) -> f64 {
        if own == Some(clock) {
            shown
        } else {
            self.hours.get(clock as usize).copied().unwrap_or(0.0)
        }
    }

    /// The clock with this digest.
    pub fn find(&self, digits: &str) -> Option<u32> {
        self.names.find(digits)
    }

    fn number(&mut self, digits: &str) -> u32 {
        let clock = self.names.number(digits);
        if clock as usize == self.hours.len() {
            self.hours.push(0.0);
        }
        clock
    }
}

/// The digest of the clock of the scope in `data`; "@", which never advances, for a malformed scope.
fn digits(data: &[u8]) -> String {
    match given(data).map_or_else(Carried::shared, Carried::of_value) {
        Carried::Names(scope) => scope.of_clock().digits(),
        Carried::Malformed => "@".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(clocks: &mut Clocks, id: &str, data: &str) {
        let record = format!(r#"{{"data":{data},"id":"{id}","kind":"config","status":"active"}}"#);
        clocks.set(&Head::of(record.as_bytes()));
    }

    #[test]
    fn every_scope_has_a_clock_but_a_session_has_that_of_its_owner() {
        let mut clocks = Clocks::default();
        let shared = clocks.of_scope(0, b"{}");
        let ann = clocks.of_scope(2, br#"{"@scope":{"user":"ann"}}"#);
        assert_eq!(clocks.of_scope(3, br#"{"@scope":{"session":"s","user":"ann"}}"#), ann);
        let alone = clocks.of_scope(4, br#"{"@scope":{"session":"s"}}"#);
        assert!(shared != ann && alone != ann && alone != shared);
        apply(&mut clocks, "config:total_active_hours", r#"{"value":"2.5"}"#);
        let digits = digits(br#"{"@scope":{"user":"ann"}}"#);
        let id = format!("config:{digits}:total_active_hours");
        apply(&mut clocks, &id, r#"{"@scope":{"user":"ann"},"value":"7.0"}"#);
        apply(&mut clocks, &id, r#"{"@scope":{"user":"bob"},"value":"9.0"}"#);
        apply(&mut clocks, "config:x:total_active_hours", r#"{"value":"9.0"}"#);
        assert_eq!(clocks.find(&digits), Some(ann));
        assert_eq!(clocks.hours(shared, Some(ann), 8.0), 2.5);
        assert_eq!(clocks.hours(ann, Some(ann), 8.0), 8.0);
        assert_eq!(clocks.hours(ann, Some(shared), 8.0), 7.0);
        assert_eq!(clocks.hours(alone, None, 8.0), 0.0);
        apply(&mut clocks, "config:total_active_hours", r#"{"value":"nan"}"#);
        assert_eq!(clocks.hours(shared, Some(ann), 8.0), 0.0);
    }
}

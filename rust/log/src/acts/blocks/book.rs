//! The records as an act changes them, until all of it is known.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::ids;
use super::payload::{Payload, scope_of};
use crate::acts::Read;
use crate::json::{self, Value, member, members};
use crate::scope::{self, Carried, Scope, SeenAs, Viewer};

const ACTIVE: &str = "active";
/// The status of a record that was taken away.
pub const TOMBSTONE: &str = "tombstone";
/// The status of a link that does not count yet.
pub const FORMING: &str = "forming";
/// What is believed of a record that does not say how sure it is.
const CONFIDENCE: f64 = 0.7;

/// Records read through what was changed already.
pub struct Book<'a> {
    read: &'a Read<'a>,
    at: &'a str,
    depth: i64,
    /// Whose records are changed; all, if there is none.
    writer: Option<Viewer>,
    known: HashMap<String, Option<Value>>,
    /// In the order of their first change.
    changed: Vec<String>,
    is_changed: HashSet<String>,
}

impl<'a> Book<'a> {
    /// Nothing is changed yet.
    pub fn of(read: &'a Read<'a>, payload: &Payload<'a>) -> Self {
        Self {
            read,
            at: payload.at,
            depth: payload.depth,
            writer: payload.scope.clone().map(|scope| Viewer::Named { scope, shared: true }),
            known: HashMap::new(),
            changed: Vec::new(),
            is_changed: HashSet::new(),
        }
    }

    /// All that was changed, as it is now.
    pub fn changed(mut self) -> Vec<(String, Value)> {
        let known = &mut self.known;
        let records = self.changed.into_iter();
        let taken = records.filter_map(|id| known.remove(&id).flatten().map(|record| (id, record)));
        taken.collect()
    }

    /// A record of a kind; one that was taken away is none.
    pub fn record(&mut self, kind: &str, id: &str) -> Option<&Value> {
        if !self.known.contains_key(id) {
            let record = (self.read)(id).and_then(|record| json::parse(&record).ok());
            self.known.insert(id.to_owned(), record);
        }
        let record = self.known.get(id)?.as_ref()?;
        let is_one = record.get("kind").and_then(Value::as_str) == Some(kind) && status(record) != TOMBSTONE;
        is_one.then_some(record)
    }

    /// A link that is forming, without a value for all of it: the first full list of a block is looked at link by link.
    pub fn forming(&self, id: &str, session: &str) -> Option<Spotted> {
        let record = match self.known.get(id) {
            Some(known) => Cow::Owned(known.as_ref()?.to_bytes()),
            None => (self.read)(id)?,
        };
        spotted(&record, session)
    }

    /// A block that counts.
    pub fn active_block(&mut self, id: &str) -> Option<&Value> {
        self.own_block(id).filter(|record| status(record) == ACTIVE)
    }

    /// A block that the writer may change, whatever its status.
    fn own_block(&mut self, id: &str) -> Option<&Value> {
        let writer = self.writer.clone();
        let record = self.record(ids::BLOCK, &ids::block(id))?;
        let is_own = |writer: Viewer| writer.sees(&carried_by(record)) == Some(SeenAs::Own);
        writer.is_none_or(is_own).then_some(record)
    }

    /// The record is this from now on.
    pub fn put(&mut self, id: &str, record: Value) {
        if self.is_changed.insert(id.to_owned()) {
            self.changed.push(id.to_owned());
        }
        self.known.insert(id.to_owned(), Some(record));
    }

    /// A record that was looked at, to be put back.
    fn take(&mut self, id: &str) -> Option<Value> {
        self.known.get_mut(id)?.take()
    }

    /// Changes what is under `data` of a record that is there.
    pub fn change(&mut self, id: &str, change: impl FnOnce(&mut Value)) {
        let Some(mut record) = self.take(id) else {
            return;
        };
        let data = record.remove("data").filter(|data| data.as_object().is_some());
        let mut data = data.unwrap_or(Value::Object(Vec::new()));
        change(&mut data);
        record.set("data", data);
        self.put(id, record);
    }

    /// Changes one field of a record that is there.
    pub fn set(&mut self, id: &str, field: &str, value: Value) {
        if let Some(mut record) = self.take(id) {
            record.set(field, value);
            self.put(id, record);
        }
    }

    /// Lets the clock go on; false if there is no such hour.
    pub fn tick(&mut self, passed: f64) -> bool {
        let scope = match &self.writer {
            Some(Viewer::Named { scope, .. }) => scope.of_clock(),
            _ => Scope::default(),
        };
        let hours = self.hour_of(&scope) + passed;
        if !hours.is_finite() {
            return false;
        }
        if passed > 0.0 {
            let mut text = Vec::new();
            json::write_f64(hours, &mut text);
            let value = Value::Str(String::from_utf8_lossy(&text).into_owned());
            let id = ids::clock(&scope);
            let data = scoped(Value::object([("value", value)]), &scope);
            let record = self.new_record(&id, ids::CONFIG, ACTIVE, data);
            self.put(&id, record);
        }
        true
    }

    /// How late it is on the clock of a scope.
    fn hour_of(&mut self, scope: &Scope) -> f64 {
        let clock = self.record(ids::CONFIG, &ids::clock(scope));
        let stored = clock.and_then(|record| field(record, "value"));
        stored.and_then(hours_in).unwrap_or(0.0)
    }

    /// How late it is for a link, on the clock of what it joins.
    pub fn hour_of_link(&mut self, pair: (&str, &str)) -> f64 {
        let scope = self.scope_of_link(pair);
        self.hour_of(&scope)
    }

    /// The scope of a link: the names of both ends together. Without a writer all is shared.
    fn scope_of_link(&mut self, (one, other): (&str, &str)) -> Scope {
        if self.writer.is_none() {
            return Scope::default();
        }
        let mut scopes = [one, other].map(|end| self.scope_of_block(end)).into_iter();
        let first = scopes.next().unwrap_or_default();
        scopes.fold(first, |sum, scope| sum.joined(&scope))
    }

    fn scope_of_block(&mut self, block: &str) -> Scope {
        let is_named = self.writer.is_some();
        let record = self.record(ids::BLOCK, &ids::block(block)).filter(|_| is_named);
        match record.map(carried_by) {
            Some(Carried::Names(scope)) => scope,
            _ => Scope::default(),
        }
    }

    /// Counts one more use of a block now, whatever its status; hours never go back.
    pub fn reinforce(&mut self, block: &str) {
        let id = ids::block(block);
        if self.own_block(block).is_none() {
            return;
        }
        let scope = self.scope_of_block(block);
        let hours = self.hour_of(&scope);
        self.change(&id, |data| {
            let last = data
                .get("last_reinforced_at")
                .filter(|last| last.as_f64() > Some(hours));
            let last = last.cloned().unwrap_or(Value::Float(hours));
            let uses = one_more(data.get("reinforcement_count"));
            data.set("last_reinforced_at", last);
            data.set("reinforcement_count", uses);
        });
    }

    /// Counts one more use of a link that is there.
    pub fn use_link(&mut self, pair: (&str, &str)) {
        let hours = self.hour_of_link(pair);
        self.change(&ids::edge(pair.0, pair.1), |data| {
            let uses = one_more(data.get("reinforcement_count"));
            data.set("reinforcement_count", uses);
            data.set("last_active_hours", Value::Float(hours));
        });
    }

    /// Links two blocks anew; with a session the link is only forming.
    pub fn link(&mut self, (one, other): (&str, &str), weight: f64, session: Option<&str>) {
        let (from, to) = ids::in_order(one, other);
        let scope = self.scope_of_link((from, to));
        let hours = self.hour_of(&scope);
        let data = Value::object([
            ("created_at", Value::from(self.at)),
            ("from_id", Value::from(from)),
            ("last_active_hours", Value::Float(hours)),
            ("to_id", Value::from(to)),
            ("weight", Value::Float(weight)),
        ]);
        let mut data = scoped(data, &scope);
        if let Some(session) = session {
            data.set("sessions", Value::object([(session, Value::Bool(true))]));
        }
        let status = if session.is_some() { FORMING } else { ACTIVE };
        let id = ids::edge(from, to);
        let record = self.new_record(&id, ids::EDGE, status, data);
        self.put(&id, record);
    }

    fn new_record(&self, id: &str, kind: &str, status: &str, data: Value) -> Value {
        let empty = || Value::Array(Vec::new());
        Value::object([
            ("confidence", Value::Float(CONFIDENCE)),
            ("data", data),
            ("epistemic_boundary", empty()),
            ("evidence", empty()),
            ("id", Value::from(id)),
            ("is_hypothesis", Value::Bool(false)),
            ("kind", Value::from(kind)),
            ("label", Value::from("")),
            ("model_assumptions", Value::Object(Vec::new())),
            ("recursion_depth", Value::from(self.depth)),
            ("source_type", Value::from("observed")),
            ("status", Value::from(status)),
        ])
    }
}

/// What belongs to a scope carries it.
fn scoped(mut data: Value, scope: &Scope) -> Value {
    if let Some(spelled) = json::parse(&scope.spelled()).ok().filter(|_| !scope.is_shared()) {
        data.set(scope::KEY, spelled);
    }
    data
}

/// What a record carries.
fn carried_by(record: &Value) -> Carried {
    match field(record, scope::KEY) {
        None => Carried::shared(),
        Some(value) => scope_of(value).map_or(Carried::Malformed, Carried::Names),
    }
}

/// How often, and how lately, a link was seen that is forming.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spotted {
    /// In how many sessions.
    pub sessions: usize,
    /// At which hour, if it says so.
    pub hours: Option<f64>,
    /// Whether in this session.
    pub is_now: bool,
}

/// How a canonical record was seen, if it is a link that is forming.
fn spotted(record: &[u8], session: &str) -> Option<Spotted> {
    let quoted = |text: &str| Value::from(text).to_bytes();
    if member(record, "kind")? != quoted(ids::EDGE) || member(record, "status")? != quoted(FORMING) {
        return None;
    }
    let data = member(record, "data").unwrap_or_default();
    let hours = member(data, "last_active_hours").and_then(|hours| json::parse(hours).ok()?.as_f64());
    let sessions = member(data, "sessions").unwrap_or_default();
    let session = quoted(session);
    Some(Spotted {
        sessions: members(sessions).count(),
        hours,
        is_now: members(sessions).any(|(name, _)| name == &session[1..session.len() - 1]),
    })
}

/// The status of a record.
pub fn status(record: &Value) -> &str {
    record.get("status").and_then(Value::as_str).unwrap_or(ACTIVE)
}

/// How sure a record is.
pub fn confidence(record: &Value) -> f64 {
    record.get("confidence").and_then(Value::as_f64).unwrap_or(CONFIDENCE)
}

/// What stands under `data` of a record.
pub fn field<'v>(record: &'v Value, name: &str) -> Option<&'v Value> {
    record.get("data")?.get(name)
}

/// A number under `data` of a record.
pub fn number(record: &Value, name: &str) -> Option<f64> {
    field(record, name)?.as_f64()
}

fn one_more(uses: Option<&Value>) -> Value {
    match uses {
        Some(Value::Float(uses)) => Value::Float(uses + 1.0),
        Some(Value::Int(uses)) => Value::Int(uses.saturating_add(1)),
        Some(uses @ Value::Large(_)) => uses.clone(),
        _ => Value::from(1_i64),
    }
}

/// The hours that a setting says: a number that is finite and not below 0, or the text of one.
fn hours_in(value: &Value) -> Option<f64> {
    let hours = match value {
        Value::Str(text) => text.trim().parse().ok()?,
        other => other.as_f64()?,
    };
    Some(hours).filter(|hours: &f64| hours.is_finite() && *hours >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_forming_link_is_spotted() {
        let one =
            |record: &str| spotted(record.as_bytes(), "s \"x\"").map(|seen| (seen.sessions, seen.hours, seen.is_now));
        let link = r#"{"data":{"last_active_hours":2.5,"sessions":{"one":true,"s \"x\"":true},"weight":0.0},"kind":"bedge","status":"forming"}"#;
        assert_eq!(one(link), Some((2, Some(2.5), true)));
        for (data, seen) in [
            (
                r#"{"last_active_hours":7,"sessions":{"s":true}}"#,
                (1, Some(7.0), false),
            ),
            (r#"{"last_active_hours":"x","sessions":["one"]}"#, (0, None, false)),
            ("7", (0, None, false)),
        ] {
            let record = format!(r#"{{"data":{data},"kind":"bedge","status":"forming"}}"#);
            assert_eq!(one(&record), Some(seen), "{record}");
        }
        for other in [
            &link.replace("forming", "active"),
            &link.replace("bedge", "block"),
            "{}",
            "[]",
        ] {
            assert_eq!(one(other), None, "{other}");
        }
    }
}

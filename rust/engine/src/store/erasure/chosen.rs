//! Chooses the records that an erasure takes, with what belongs to them, and notes what only refers to them.
//!
//! Requested records bind what belonged to them in any version, by the table of ties. All of it goes from the past; a record
//! that no longer belongs to them is written again.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chronolog::error::{Error, Result};
use chronolog::event::Op;
use chronolog::event::faces::ties_of;
use chronolog::event::tie::{Bond, SaidRecord, Tie};
use chronolog::json::{self, Value};
use chronolog::scope::{Carried, Scope, Viewer, carried};
use chronomemory_state::state::{Row, State, spelled, unspelled};

use super::erase::Erase;
use crate::store::archives::replay::Doomed;
use crate::store::vectors::records::format::group_space;

/// A reason may contain labels with fewer characters.
const SHORTEST_SENTENCE: usize = 12;

/// The last letter of alphabets whose words stand apart from each other.
const LAST_SPACED: char = '\u{2e7f}';

/// Whether an event says what a record is.
pub(in crate::store) fn says_a_record(op: Op) -> bool {
    matches!(op, Op::Upsert | Op::Migrate | Op::Patch)
}

/// Reads the current record of an id as it is spelled between quotes.
pub(super) type CurrentRecord<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// The current record of an id in a state.
pub(super) fn record_in(state: &State, id: &[u8]) -> Option<Vec<u8>> {
    state.get(&unspelled(id)).map(Cow::into_owned)
}

#[derive(Debug, Default)]
pub(in crate::store) struct Chosen {
    /// Everything whose lines go, groups of embeddings too.
    pub doomed: Doomed,
    pub spaces: BTreeSet<String>,
    scope: Option<Scope>,
    is_derived_wanted: bool,
    /// Who erases, if it must not change what it does not see.
    by: Option<Arc<Viewer>>,
    asked: HashSet<Vec<u8>>,
    /// What of it stays as it is.
    again: HashSet<Vec<u8>>,
    /// What of the rest stays, without what it says of erased records.
    staying: HashSet<Vec<u8>>,
    /// Those of them that hold digests or text of erased records, and how.
    wholes: HashMap<Vec<u8>, Vec<&'static Tie>>,
    /// Records that are erased because an erased record names them as having the same content.
    twins: HashSet<Vec<u8>>,
    seen: BTreeSet<Vec<u8>>,
    /// What the last record carried, as it is spelled, and whether that is the scope: neighbours mostly carry the same.
    last: RefCell<(Vec<u8>, bool)>,
    /// The slots of the records that name others.
    tied: Vec<u32>,
}

impl Chosen {
    /// The records that an order names itself. Errors: `Invalid` for what is no scope.
    pub fn by(order: &Erase) -> Result<Self> {
        let no_scope = || Error::invalid("scope", "it is none: some of user, agent and session, each a name");
        let scope = order
            .scope
            .as_ref()
            .map(|scope| Scope::read(scope).ok_or_else(no_scope));
        let mut chosen = Self {
            scope: scope.transpose()?,
            is_derived_wanted: order.derived,
            by: order.by.clone(),
            again: order.again.iter().map(|id| spelled(id)).collect(),
            ..Self::default()
        };
        for id in &order.ids {
            chosen.ask_for(&spelled(id));
        }
        Ok(chosen)
    }

    fn ask_for(&mut self, id: &[u8]) -> bool {
        self.staying.remove(id);
        self.asked.insert(id.to_vec());
        self.doomed.add(id)
    }

    /// Adds the records of the scope, and those that belong to chosen ones by their current values.
    pub fn know(&mut self, state: &State) {
        let mut meant = state.slots_named(self.doomed.ids());
        if let Some(scope) = &self.scope {
            meant.extend(state.scopes().slots_within(|names| is_within(names, scope)));
        }
        for row in meant.iter().filter_map(|&slot| state.row(slot)) {
            if !row.id().is_empty() {
                self.look(&said_by(&row), &|id| record_in(state, id));
            }
        }
        let rows = (0..state.slots.len() as u32).filter_map(|slot| state.row(slot));
        let tied: Vec<u32> = rows.filter(|row| is_tied(&said_by(row))).map(|row| row.slot).collect();
        let mut grew = !tied.is_empty();
        // What came to it may bind others, and only such as name others.
        while grew {
            grew = false;
            for row in tied.iter().filter_map(|&slot| state.row(slot)) {
                grew |= !row.id().is_empty() && self.look(&said_by(&row), &|id| record_in(state, id));
            }
            grew |= self.stay_no_longer(state);
        }
        self.tied = tied;
    }

    /// Of those that were to stay some may be about nothing else by now; whether there are any.
    fn stay_no_longer(&mut self, state: &State) -> bool {
        let is_gone = |id: &&Vec<u8>| self.left_of(id, &|id| record_in(state, id)).is_none();
        let gone: Vec<Vec<u8>> = self.staying.iter().filter(is_gone).cloned().collect();
        gone.iter().for_each(|id| _ = self.staying.remove(id));
        !gone.is_empty()
    }

    /// Whether a line of this id goes whatever else it says: the record was requested, or it names rows.
    pub fn is_requested_or_group(&self, id: &[u8]) -> bool {
        self.asked.contains(id) || group_space(id).is_some()
    }

    /// Looks at a version of a record; returns whether the choice grew.
    pub fn look(&mut self, said: &SaidRecord<'_>, present: CurrentRecord<'_>) -> bool {
        let mut grew = self.look_at(said, present);
        for (whole, tie) in self.wholes_of(said) {
            if !self.has_part(&whole, tie) {
                self.wholes.entry(whole.clone()).or_default().push(tie);
                grew = true;
            }
            if self.doomed.add(&whole) && self.left_of(&whole, present).is_some() {
                self.staying.insert(whole);
            }
        }
        for twin in self.twins_of(said) {
            let is_seen = present(&twin).is_none_or(|now| self.sees(&now));
            if is_seen && self.twins.insert(twin.clone()) {
                self.staying.remove(&twin);
                self.doomed.add(&twin);
                grew = true;
            }
        }
        grew
    }

    fn look_at(&mut self, said: &SaidRecord<'_>, present: CurrentRecord<'_>) -> bool {
        let SaidRecord { id, record, .. } = *said;
        let is_meant = self.is_meant(record);
        if self.doomed.has(id) {
            if !self.seen.contains(id) {
                self.seen.insert(id.to_vec());
            }
            return is_meant && !self.asked.contains(id) && {
                self.ask_for(id);
                true
            };
        }
        if is_meant {
            self.ask_for(id);
        } else if let Some(space) = group_space(id) {
            if !self.names_one(record) {
                return false;
            }
            self.spaces.insert(space.to_owned());
            self.doomed.add(id);
        } else if self.binds(said) && self.may_change(said, present) {
            self.doomed.add(id);
            if self.left_of(id, present).is_some() {
                self.staying.insert(id.to_vec());
            }
        } else {
            return false;
        }
        self.seen.insert(id.to_vec());
        true
    }

    /// Whether a record, as it was said some time, carries the names of the scope that was asked for.
    fn is_meant(&self, record: &[u8]) -> bool {
        let Some(scope) = &self.scope else {
            return false;
        };
        // What carries nothing is shared, and no scope that is asked for is within that.
        let Some(value) = carried(record) else {
            return matches!(Carried::shared(), Carried::Names(names) if is_within(&names, scope));
        };
        let mut last = self.last.borrow_mut();
        if last.0 != value {
            let is_it = matches!(Carried::of_value(value), Carried::Names(names) if is_within(&names, scope));
            *last = (value.to_vec(), is_it);
        }
        last.1
    }

    /// Whether a record that only a copy knows would go if the log told of it.
    pub fn would_take(&self, said: &SaidRecord<'_>) -> bool {
        self.is_meant(said.record)
            || self.binds(said)
            || (group_space(said.id).is_some() && self.names_one(said.record))
    }

    /// Whether a record of a state goes, or would.
    pub fn takes(&self, said: &SaidRecord<'_>) -> bool {
        self.doomed.has(said.id) || self.would_take(said)
    }

    /// Whether nothing is asked for that any copy could hold.
    pub fn is_empty(&self) -> bool {
        self.doomed.is_empty() && self.scope.is_none()
    }

    fn names_one(&self, group: &[u8]) -> bool {
        let value = json::parse(group).ok();
        let ids = value.as_ref().and_then(|value| value.get("data")?.get("ids"));
        let listed = ids.and_then(Value::as_array).unwrap_or_default();
        let mut named = listed.iter().filter_map(Value::as_str);
        named.any(|id| self.doomed.has(&spelled(id)))
    }

    /// Whether a record is one that goes, and takes along what belongs to it.
    fn goes(&self, id: &str) -> bool {
        let id = spelled(id);
        self.doomed.has(&id) && !self.again.contains(&id) && !self.staying.contains(&id)
    }

    /// Whether a record, as it was said some time, names one that goes.
    fn binds(&self, said: &SaidRecord<'_>) -> bool {
        named_by(said, |tie| tie.bond != Bond::PartOf).any(|(name, _)| self.goes(&name))
    }

    /// Whether who erases sees a record. A patch does not say whose record it changes: the present does.
    fn may_change(&self, said: &SaidRecord<'_>, present: CurrentRecord<'_>) -> bool {
        let now = present(said.id);
        self.sees(now.as_deref().unwrap_or(said.record))
    }

    fn sees(&self, record: &[u8]) -> bool {
        self.by
            .as_ref()
            .is_none_or(|by| by.sees(&Carried::of(record)).is_some())
    }

    /// The records that a version of an erased record names, and that are erased with it.
    fn twins_of(&self, said: &SaidRecord<'_>) -> Vec<Vec<u8>> {
        if !self.doomed.has(said.id) || self.stays(said.id) {
            return Vec::new();
        }
        let twins = named_by(said, |tie| tie.is_mutual);
        twins.map(|(name, _)| spelled(&name)).collect()
    }

    fn has_part(&self, whole: &[u8], tie: &'static Tie) -> bool {
        let known = self.wholes.get(whole);
        known.is_some_and(|known| known.iter().any(|one| std::ptr::eq(*one, tie)))
    }

    /// The records that a version of an erased record is part of: they hold digests or text of it.
    fn wholes_of(&self, said: &SaidRecord<'_>) -> Vec<(Vec<u8>, &'static Tie)> {
        if self.staying.contains(said.id) || !self.doomed.has(said.id) {
            return Vec::new();
        }
        let wholes = named_by(said, |tie| tie.bond == Bond::PartOf);
        wholes.map(|(name, tie)| (spelled(&name), tie)).collect()
    }

    /// The present value of a record without references to erased ones; `None` if all of it goes.
    pub fn left_of(&self, id: &[u8], present: CurrentRecord<'_>) -> Option<Vec<u8>> {
        let is_again = self.is_again(id);
        if (self.asked.contains(id) || self.twins.contains(id)) && !is_again {
            return None;
        }
        let record = present(id)?;
        let said = SaidRecord::read(id, &record);
        let ties: Vec<_> = ties_of(&said).filter(|tie| tie.bond != Bond::PartOf).collect();
        let parts = self.wholes.get(id);
        if ties.is_empty() && parts.is_none() {
            return Some(record);
        }
        let mut value = json::parse(&record).ok()?;
        let mut is_repeating = false;
        for tie in ties
            .iter()
            .filter(|tie| tie.names(&value).iter().any(|name| self.goes(name)))
        {
            if !is_again && (tie.bond == Bond::Belongs || (tie.bond == Bond::Derived && self.is_derived_wanted)) {
                return None;
            }
            is_repeating |= tie.bond == Bond::Repeats;
        }
        ties.iter().for_each(|tie| tie.cut(&mut value, &|name| self.goes(name)));
        parts
            .into_iter()
            .flatten()
            .for_each(|tie| tie.clear_computed(&mut value));
        let mut repeats = ties.iter().filter(|tie| tie.bond == Bond::Repeats);
        if is_repeating && repeats.all(|tie| tie.names(&value).is_empty()) {
            return None;
        }
        Some(value.to_bytes())
    }

    /// Whether the present value of a record was asked for.
    pub fn is_again(&self, id: &[u8]) -> bool {
        self.again.contains(id)
    }

    /// Whether the present value of a record is written again.
    pub fn stays(&self, id: &[u8]) -> bool {
        self.is_again(id) || self.staying.contains(id)
    }

    fn kept(&self) -> impl Iterator<Item = String> {
        self.staying
            .iter()
            .filter(|id| self.seen.contains(*id))
            .map(|id| unspelled(id))
    }

    /// The records that were asked for and were ever there, and the others that go with them.
    pub fn found_ids(&self) -> (Vec<String>, Vec<String>) {
        let of_records = self.seen.iter().filter(|id| group_space(id).is_none());
        let (asked, others): (Vec<_>, Vec<_>) = of_records.partition(|id| self.asked.contains(*id));
        let others = others.into_iter().filter(|id| !self.staying.contains(*id));
        (
            asked.into_iter().map(|id| unspelled(id)).collect(),
            others.map(|id| unspelled(id)).collect(),
        )
    }

    /// The ids of kept records that named an erased one, and of what was derived from these.
    pub fn mentions(&self, state: &State) -> BTreeSet<String> {
        let mut found: BTreeSet<String> = self.kept().collect();
        let rows = self.tied.iter().filter_map(|&slot| state.row(slot));
        let others = rows.filter(|row| !row.id().is_empty() && !self.doomed.has(row.id()));
        let mut derived: Vec<(String, Vec<String>)> = others
            .map(|row| (unspelled(row.id()), origins_of(&row)))
            .filter(|(_, origins)| !origins.is_empty())
            .collect();
        let mut grew = !found.is_empty();
        while grew {
            let before = derived.len();
            derived.retain(|(id, origins)| {
                let is_it = origins.iter().any(|name| found.contains(name));
                if is_it {
                    found.insert(id.clone());
                }
                !is_it
            });
            grew = derived.len() < before;
        }
        found
    }

    /// Some records were changed since: those that may name others now are known again; whether any may, or might before.
    pub fn tie(&mut self, state: &State, touched: &[u32]) -> bool {
        let is_it = |slot: &&u32| state.row(**slot).is_some_and(|row| is_tied(&said_by(&row)));
        let before = touched.iter().any(|slot| self.tied.binary_search(slot).is_ok());
        let now: Vec<u32> = touched.iter().filter(is_it).copied().collect();
        let may = before || !now.is_empty();
        self.tied.extend(now);
        self.tied.sort_unstable();
        self.tied.dedup();
        may
    }

    /// Refuses `again` ids that are not erased, and a reason that contains a name, an id or a sentence that is erased.
    pub fn check(&self, order: &Erase, state: &State) -> Result<()> {
        if let Some(id) = order.again.iter().find(|id| !self.asked.contains(&spelled(id))) {
            return Err(Error::invalid("again", format!("{id:?} is not among what is erased")));
        }
        if order.due_at.is_some() || order.is_reason_trusted {
            return Ok(());
        }
        let names = self.scope.iter().flat_map(Scope::names).flatten().map(str::to_owned);
        let mut texts: Vec<String> = names.collect();
        for id in self.seen.iter().filter(|id| self.asked.contains(*id)) {
            let id = unspelled(id);
            let record = state.get(&id).and_then(|record| json::parse(&record).ok());
            let label = record.and_then(|record| Some(record.get("label")?.as_str()?.to_owned()));
            texts.extend(label.filter(|label| is_sentence(label)));
            texts.push(id);
        }
        match texts.iter().find(|text| is_said_in(&order.reason, text)) {
            Some(text) => Err(Error::invalid(
                "reason",
                format!("it stays for ever, and names what is to be erased: {text:?}"),
            )),
            None => Ok(()),
        }
    }
}

fn origins_of(row: &Row<'_>) -> Vec<String> {
    let said = said_by(row);
    let origins = named_by(&said, |tie| tie.bond == Bond::Derived);
    origins.map(|(name, _)| name).collect()
}

/// The names in a record by some of its ties. It is parsed only if it has such a tie.
fn named_by<F: Fn(&Tie) -> bool>(
    said: &SaidRecord<'_>,
    is_wanted: F,
) -> impl Iterator<Item = (String, &'static Tie)> + use<F> {
    let ties: Vec<&'static Tie> = ties_of(said).filter(|tie| is_wanted(tie)).collect();
    let value = match ties.is_empty() {
        true => Value::Null,
        false => json::parse(said.record).unwrap_or(Value::Null),
    };
    ties.into_iter()
        .flat_map(move |tie| tie.names(&value).into_iter().map(move |name| (name, tie)))
}

/// What a record says now.
pub(super) fn said_by<'a>(row: &'a Row<'_>) -> SaidRecord<'a> {
    SaidRecord {
        id: row.id(),
        record: &row.record,
        kind: Some(&row.class.kind),
    }
}

fn is_tied(said: &SaidRecord<'_>) -> bool {
    group_space(said.id).is_some() || ties_of(said).next().is_some()
}

fn is_within(names: &Scope, scope: &Scope) -> bool {
    let both = names.names().into_iter().zip(scope.names());
    both.into_iter().all(|(has, asked)| asked.is_none() || has == asked)
}

/// Whether a label is more than an ordinary word, which a reason may well contain.
fn is_sentence(label: &str) -> bool {
    label.trim().contains(char::is_whitespace) && label.trim().chars().count() >= SHORTEST_SENTENCE
}

/// Whether a text says another as words of its own, in whatever case.
fn is_said_in(text: &str, words: &str) -> bool {
    let (text, words) = (text.to_lowercase(), words.trim().to_lowercase());
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() && letter <= LAST_SPACED);
    let mut places = text.match_indices(&words).filter(|_| !words.is_empty());
    let (first, last) = (words.chars().next(), words.chars().next_back());
    places.any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + words.len()..].chars().next();
        let is_inside = [(before, first), (last, behind)].map(|(one, next)| is_letter(one) && is_letter(next));
        is_inside == [false, false]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_a_name_only_as_a_word() {
        for (reason, name) in [
            ("asked for", "a"),
            ("ticket 17", "1"),
            ("ticket 17", "tick"),
            ("x", " "),
            ("x", ""),
        ] {
            assert!(!is_said_in(reason, name), "{reason} {name}");
        }
        for (reason, name) in [
            ("for mia", "Mia"),
            ("a letter", "a"),
            ("mia@example.org asked", "mia@example.org"),
            ("MIA.", " mia "),
            ("amia, mia", "mia"),
            ("ミアさんの依頼", "ミア"),
        ] {
            assert!(is_said_in(reason, name), "{reason} {name}");
        }
    }
}

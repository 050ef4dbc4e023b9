//! Checks that a writer may change the records of a draft.
//!
//! One id is one record of one scope. The id of a record that the writer does not see is taken, a wider record is only read, and a
//! record keeps the scope that it was born with.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;

use super::commit::changes;
use crate::store::Store;
use chronolog::error::{Error, Result};
use chronolog::event::Op;
use chronolog::event::act::Act;
use chronolog::event::draft::{Draft, RecordChange};
use chronolog::event::faces::{SEARCH, face_of};
use chronolog::json::{Value, member};
use chronolog::memory::Refused;
use chronolog::scope::{Carried, LEVELS, Scope, SeenAs, Viewer, carried, other_than, replace};
use chronomemory_state::condition::{FieldPath, indexable};
use chronomemory_state::index::{INDEX_KIND, INDEX_PREFIX};
use chronomemory_state::state::{State, spelled, unspelled};
use foldhash::fast::RandomState;

/// What separates a name from the digits of a scope at the end of an id.
const DIGITS_MARK: u8 = b'@';
const DIGITS: usize = 16;

/// Checks that all changes are their writer's to make; gives the parts with the scopes that existing records keep, if those differ.
/// Errors: `IdTaken`, `UnknownRecord`, `OutOfScope`, `Invalid`, `TooLarge`, of several changes which one it is.
pub(super) fn check_claims(state: &State, parts: &[impl Borrow<Draft>]) -> Result<Option<Vec<Arc<Draft>>>> {
    if !check_each(state, parts)? {
        return Ok(None);
    }
    let kept = parts.iter().map(|part| keep_scopes(state, part.borrow()).map(Arc::new));
    let kept = kept.collect::<Result<Vec<_>>>()?;
    check_each(state, &kept)?;
    Ok(Some(kept))
}

/// Whether any record is to keep a narrower scope.
fn check_each(state: &State, parts: &[impl Borrow<Draft>]) -> Result<bool> {
    let count = parts.iter().map(|part| part.borrow().changes().len()).sum();
    let mut claims = Claims::of(count)?;
    for (row, (draft, change)) in changes(parts).enumerate() {
        claims.check(state, draft, change).map_err(|fault| match count {
            1 => fault,
            _ => Error::InBatch {
                row,
                fault: Box::new(fault),
            },
        })?;
    }
    Ok(claims.keeps)
}

/// The changes that their writer may not make, with their places.
pub(super) fn refused_claims<'a>(
    state: &'a State,
    parts: &'a [impl Borrow<Draft>],
) -> Result<impl Iterator<Item = (usize, Error)> + 'a> {
    let mut claims = Claims::of(changes(parts).count())?;
    let numbered = changes(parts).enumerate();
    Ok(numbered
        .filter_map(move |(row, (draft, change))| claims.check(state, draft, change).err().map(|fault| (row, fault))))
}

/// The records that are born in a batch, and what they carry.
type Born<'a> = HashMap<&'a [u8], Option<&'a [u8]>, RandomState>;

/// What was claimed before in the same batch.
struct Claims<'a> {
    /// The records that are born in it; not needed for one change.
    born: Option<Born<'a>>,
    /// The draft that was looked at last, and the digits of its writer once an id asks for them.
    digits: Option<(&'a Draft, String)>,
    /// Whether a record is to keep a narrower scope than that of its writer.
    keeps: bool,
}

impl<'a> Claims<'a> {
    fn of(changes: usize) -> Result<Self> {
        let mut born = (changes > 1).then(Born::default);
        if let Some(born) = &mut born {
            born.try_reserve(changes).map_err(Refused::from)?;
        }
        Ok(Self {
            born,
            digits: None,
            keeps: false,
        })
    }

    fn check(&mut self, state: &State, draft: &'a Draft, change: &RecordChange) -> Result<()> {
        let (writer, id) = (&draft.author.writer, draft.id(change));
        if change.op == Op::Act {
            return check_act(state, writer, id, draft.record(change));
        }
        let here = carried(draft.record(change));
        if change.op == Op::Patch && here.is_some() {
            return Err(moved(id));
        }
        match state.slot_seen_by(writer, id) {
            // What the same batch wrote before is there by then.
            None if change.op != Op::Upsert && self.born.as_ref().is_some_and(|born| born.contains_key(id)) => {}
            None => self.check_new(draft, change, here)?,
            Some((slot, Some(SeenAs::Own))) => {
                let record = state.slots.record(slot);
                let there = carried(&record);
                let keeps = there.is_some() && has_names(writer);
                match change.op == Op::Upsert && there != here {
                    false => {}
                    true if !keeps => return Err(moved(id)),
                    true => {
                        // How it is written then is looked at then.
                        self.keeps = true;
                        return Ok(());
                    }
                }
            }
            Some((_, None)) if change.op == Op::Upsert => return Err(Error::IdTaken(unspelled(id))),
            Some((_, seen)) => check_own(seen, id)?,
        }
        let born = self.born.as_mut().filter(|_| change.op == Op::Upsert);
        match born.map(|born| *born.entry(id).or_insert(here)) {
            Some(there) if there != here => Err(moved(id)),
            _ => Ok(()),
        }
    }

    fn check_new(&mut self, draft: &'a Draft, change: &RecordChange, here: Option<&[u8]>) -> Result<()> {
        let (author, id) = (&draft.author, draft.id(change));
        let Viewer::Named { scope, .. } = &*author.writer else {
            let scope = here.map_or_else(|| Some(Scope::default()), Scope::read);
            return match change.op {
                Op::Upsert => check_digits(id, |digits| {
                    digits == scope.map(|scope| scope.digits()).unwrap_or_default()
                }),
                _ => Ok(()),
            };
        };
        if change.op != Op::Upsert {
            // A writer without names may write this of an unknown id: it is in the log then.
            return match scope.is_shared() {
                true => Ok(()),
                false => Err(Error::UnknownRecord(unspelled(id))),
            };
        }
        // What a face makes of several things carries what they have in common.
        let is_joined =
            |here: &[u8]| face_of(id).is_some() && author.writer.sees(&Carried::of_value(here)) == Some(SeenAs::Own);
        if let Some(here) = here.filter(|here| *here != &*author.spelled && !is_joined(here)) {
            return Err(other_than(&author.spelled, here));
        }
        check_digits(id, |digits| digits == self.digits(draft, scope))
    }

    fn digits(&mut self, draft: &'a Draft, scope: &Scope) -> &str {
        let known = self.digits.take().filter(|(of, _)| std::ptr::eq(*of, draft));
        &self.digits.insert(known.unwrap_or_else(|| (draft, scope.digits()))).1
    }
}

/// Refuses a record that its writer sees so, unless it is the writer's own.
fn check_own(seen: Option<SeenAs>, id: &[u8]) -> Result<()> {
    match seen {
        Some(SeenAs::Own) => Ok(()),
        Some(SeenAs::Wider) => Err(Error::OutOfScope(unspelled(id))),
        None => Err(Error::UnknownRecord(unspelled(id))),
    }
}

fn has_names(writer: &Viewer) -> bool {
    matches!(writer, Viewer::Named { scope, .. } if !scope.is_shared())
}

/// Whether an act is of nothing but what is the writer's own, as far as it is there.
fn check_act(state: &State, writer: &Viewer, id: &[u8], record: &[u8]) -> Result<()> {
    let Viewer::Named { scope, .. } = writer else {
        return Ok(());
    };
    if member(record, "scope").map_or_else(Scope::default, |said| Scope::read(said).unwrap_or_default()) != *scope {
        return Err(Error::invalid("scope", "must be that of the handle"));
    }
    for mention in Act::read(id, record).iter().flat_map(Act::mentions) {
        let id = spelled(&mention.id);
        if let Some((_, seen)) = state.slot_seen_by(writer, &id) {
            check_own(seen, &id)?;
        }
    }
    Ok(())
}

/// Whether records that are there are the writer's own.
pub(in crate::store) fn check_owned<'a>(
    state: &State,
    writer: &Viewer,
    ids: impl Iterator<Item = &'a [u8]>,
) -> Result<()> {
    if *writer == Viewer::Everyone || (writer.is_plain() && state.sight(writer).is_of_all_scopes()) {
        return Ok(());
    }
    for id in ids {
        check_own(state.slot_seen_by(writer, id).and_then(|(_, seen)| seen), id)?;
    }
    Ok(())
}

/// The id of the record that requires a name of a level.
fn requiring(place: usize) -> String {
    format!("search:require:{}", LEVELS[place])
}

/// Whether writers must give a name of a level, by its place.
fn is_required(state: &State, place: usize) -> bool {
    // The id needs no escapes.
    let slot = state.slots.of_spelled(requiring(place).as_bytes());
    slot.and_then(|slot| state.row(slot))
        .is_some_and(|row| *row.class.status == *b"active")
}

/// Whether all records of a draft are settings of the store.
fn is_of_store(draft: &Draft) -> bool {
    let mut changes = draft.changes().iter();
    changes.all(|change| face_of(draft.id(change)) == Some(SEARCH))
}

/// Checks that writers give the names that the store requires.
pub(super) fn check_required(state: &State, parts: &[impl Borrow<Draft>]) -> Result<()> {
    if !state.declares {
        return Ok(());
    }
    for (place, &level) in LEVELS.iter().enumerate() {
        let lacks = |draft: &Draft| !draft.author.gives(place) && !is_of_store(draft);
        if is_required(state, place) && parts.iter().any(|part| lacks(part.borrow())) {
            return Err(Error::ScopeRequired(level));
        }
    }
    Ok(())
}

/// Whether there is anything to check: not where no writer and no record has a scope.
pub(super) fn has_claims(state: &State, parts: &[impl Borrow<Draft>]) -> bool {
    let is_plain = |draft: &Draft| draft.author.writer.is_plain();
    let is_marked = |(draft, change): (&Draft, &RecordChange)| marked_digits(draft.id(change)).is_some();
    !state.scopes().are_all_shared()
        || !parts.iter().all(|part| is_plain(part.borrow()))
        || changes(parts).any(is_marked)
}

/// A draft whose changes keep the scopes that their records carry, as far as these are the writer's own.
fn keep_scopes(state: &State, draft: &Draft) -> Result<Draft> {
    let mut own = Draft::default();
    own.author = draft.author.clone();
    for change in draft.changes() {
        let (id, mut record) = (draft.id(change), draft.record(change).to_vec());
        let there = match state.slot_seen_by(&draft.author.writer, id) {
            Some((slot, Some(SeenAs::Own))) if change.op == Op::Upsert => {
                carried(&state.slots.record(slot)).map(<[u8]>::to_vec)
            }
            _ => None,
        };
        if let Some(there) = there.filter(|_| has_names(&draft.author.writer)) {
            replace(&mut record, 0, &there);
        }
        own.take_over(change, id, &record)?;
    }
    Ok(own)
}

/// Ids that end with the digits of a scope belong to it, so that no other scope can occupy them.
fn check_digits(id: &[u8], is_own: impl FnOnce(&str) -> bool) -> Result<()> {
    match marked_digits(id) {
        Some(digits) if !is_own(digits) => Err(Error::IdTaken(unspelled(id))),
        _ => Ok(()),
    }
}

fn marked_digits(id: &[u8]) -> Option<&str> {
    let (before, digits) = id.split_at_checked(id.len().checked_sub(DIGITS)?)?;
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_marked = before.last() == Some(&DIGITS_MARK) && digits.iter().all(is_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_marked)
}

fn moved(id: &[u8]) -> Error {
    let id = unspelled(id);
    Error::invalid(
        "data.@scope",
        format!("the record {id:?} keeps the scope that it was born with; write a new record instead"),
    )
}

/// A setting that a store has or has not.
pub enum Setting {
    /// An index of this field.
    Index(FieldPath),
    /// Every write must name this level of scope, given by its place in the order of the levels.
    Required(usize),
}

impl Setting {
    /// The index of a field. Errors: `Argument` for a path that cannot be indexed.
    pub fn index(path: &str) -> Result<Self> {
        let place = FieldPath::of_text(path).map_err(|why| Error::argument("path", format!("{path:?}: {why}")))?;
        if indexable(path).is_none() {
            let words = format!("{path:?} stands beside the records and not in them; there is no index of it");
            return Err(Error::argument("path", words));
        }
        Ok(Self::Index(place))
    }

    /// That writes must name a level of scope. Errors: `Argument` for what is no level.
    pub fn required(level: &str) -> Result<Self> {
        let place = LEVELS.iter().position(|known| *known == level);
        let wrong = || {
            Error::must(
                "level",
                format!("be one of {}", LEVELS.join(", ")),
                format!("{level:?}"),
            )
        };
        place.map(Self::Required).ok_or_else(wrong)
    }

    /// The paths of the fields that a store has indexes of, the oldest first.
    pub fn indexes(store: &Store) -> Result<Vec<String>> {
        store.views.declared(&store.state)
    }

    pub(super) fn is_of(&self, store: &Store) -> Result<bool> {
        match self {
            Self::Index(path) => Ok(Self::indexes(store)?.contains(&path.to_string())),
            Self::Required(place) => Ok(is_required(&store.state, *place)),
        }
    }

    /// The change that sets it, or takes it back.
    pub(super) fn draft(&self, is_wanted: bool, depth: i64) -> Result<Draft> {
        let (id, kind, key, value) = match self {
            Self::Index(path) => (format!("{INDEX_PREFIX}{path}"), INDEX_KIND, "path", path.to_string()),
            Self::Required(place) => (requiring(*place), "search_require", "level", LEVELS[*place].to_owned()),
        };
        let mut draft = Draft::default();
        if !is_wanted {
            draft.delete(&id, Some(SEARCH))?;
            return Ok(draft);
        }
        let record = Value::object([
            ("confidence", Value::from(1.0)),
            ("data", Value::object([(key, Value::from(value))])),
            ("id", Value::from(id)),
            ("kind", Value::from(kind)),
        ]);
        draft.upsert_value(&record, depth, Some(SEARCH))?;
        Ok(draft)
    }
}

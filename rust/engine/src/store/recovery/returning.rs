//! What was erased here and would come back with a copy?
//!
//! Who puts an older copy back brings back what was erased since. That is never done unasked: the copy is refused, or, for
//! whoever says so, an event behind its last line tells of it for ever.

use crate::disk::Disk;
use crate::error::{At, Error, Result};
use crate::event::erasure::Erasure;
use crate::event::faces::ERASURES;
use crate::event::{Op, stamp};
use crate::json::{self, Value};
use crate::layout::Layout;
use crate::options::{Checking, Options};
use crate::state::{State, spelled};
use crate::verify::Report;
use crate::wal::writer::{EventBody, Lines, Link};

use crate::store::load::examine::{Look, look_twice};
use crate::store::load::loader::Loader;

/// What begins the id of the event, in the face that says what was erased.
const RETURNED: &str = "erasure:returned:";

/// The kinds of the records in which a state says it.
const KINDS: &[&[u8]] = &[b"erasure", b"returned"];

/// An erasure that a store knows of.
#[derive(Clone, Debug)]
pub(in crate::store) struct KnownErasure {
    id: String,
    record: Vec<u8>,
    told: Erasure,
}

/// The records in which a state says what was erased, and what was brought back.
fn records_of(state: &State) -> impl Iterator<Item = (String, &[u8])> {
    let slots = state.of_kinds(ERASURES, KINDS);
    slots.map(|slot| {
        let id = String::from_utf8_lossy(state.spelled_id(slot)).into_owned();
        (id, state.record_in(slot))
    })
}

/// The erasures that a state knows of.
pub(in crate::store) fn erasures_of(state: &State) -> Vec<KnownErasure> {
    let found = records_of(state).filter_map(|(id, record)| {
        let seq = id.strip_prefix("erasure:")?.parse().ok()?;
        let told = Erasure::read(seq, id.as_bytes(), record)?;
        let record = record.to_vec();
        Some(KnownErasure { id, record, told })
    });
    found.collect()
}

/// What would come back.
#[derive(Debug, Default)]
pub(in crate::store) struct Returning {
    erasures: Vec<KnownErasure>,
    /// The latest moment in the copy.
    latest: i64,
}

impl Returning {
    /// Those of the known erasures that a copy knows nothing of.
    ///
    /// # Errors
    /// `Io`.
    pub fn find(disk: &dyn Disk, source: &Layout, mut known: Vec<KnownErasure>, threads: usize) -> Result<Self> {
        if known.is_empty() {
            return Ok(Self::default());
        }
        let look = Look {
            threads,
            checking: Checking::Quick,
            archives: false,
            is_past: false,
            way: None,
            onlooker: None,
        };
        let seen = look_twice(disk, source, look, Loader::checking_rows, &mut |_, _| {}).at(source.log())?;
        let copy = seen.as_ref().and_then(|seen| seen.taker.state.as_ref());
        known.retain(|one| copy.and_then(|state| state.get(&one.id)) != Some(&one.record[..]));
        Ok(Self {
            erasures: known,
            latest: seen.map_or(0, |seen| seen.found.walk.latest),
        })
    }

    /// Refuses to bring anything back.
    ///
    /// # Errors
    /// `Refused` if something would come back.
    pub fn check(&self, source: &Layout) -> Result<()> {
        let said = |one: &KnownErasure| {
            format!(
                "event {} ({:?}, {} lines)",
                one.told.seq, one.told.reason, one.told.lines
            )
        };
        let said: Vec<String> = self.erasures.iter().map(said).collect();
        match said.is_empty() {
            true => Ok(()),
            false => Err(Error::Refused {
                path: source.folder().display().to_string(),
                reason: format!("it is without what was erased since: {}", said.join(", ")),
                instead: "Take a copy that was made after the erasure. restore(bring_back=True) brings back what was \
                          erased, and says so for ever; erase it again then."
                    .to_owned(),
            }),
        }
    }

    /// The line behind the last one of the copy that tells of it; none if nothing comes back.
    ///
    /// # Errors
    /// `Randomness`.
    pub fn line(&self, copy: &Report, options: &Options, now: i64) -> Result<Vec<u8>> {
        if self.erasures.is_empty() {
            return Ok(Vec::new());
        }
        let number = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
        let next_seq = copy.last_seq + 1;
        let id = format!("{RETURNED}{next_seq}");
        let lines = self.erasures.iter().map(|one| one.told.lines).sum();
        let record = Value::object([
            ("id", Value::Str(id.clone())),
            ("kind", Value::Str("returned".to_owned())),
            (
                "label",
                Value::Str("A copy was brought back without what was erased since".to_owned()),
            ),
            (
                "data",
                Value::object([
                    ("erasures", number(self.erasures.len() as u64)),
                    ("lines", number(lines)),
                ]),
            ),
        ]);
        let mut bytes = Vec::new();
        json::write_value(&record, &mut bytes);
        let mut new = Lines::after(Link {
            head: copy.head,
            next_seq,
        });
        new.salts.draw_on(options.salts());
        new.salts.draw(1).map_err(Error::randomness)?;
        new.push(EventBody {
            op: Op::Upsert,
            id: &spelled(&id),
            record: &bytes,
            ts: &stamp::digits(now.max(self.latest)),
            depth: options.recursion_depth,
        });
        Ok(new.bytes)
    }
}

/// What a state says of erasures whose own events are not kept any more, and of what was brought back.
pub(super) fn notes_of(state: &State, told: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    for (id, record) in records_of(state) {
        if let Some(seq) = id.strip_prefix(RETURNED) {
            let data = json::parse(record).ok();
            let number = |name: &str| data.as_ref().and_then(|record| record.get("data")?.get(name)?.as_i64());
            notes.push(format!(
                "brought back at event {seq}: a copy without {} erasures, of {} lines",
                number("erasures").unwrap_or(0),
                number("lines").unwrap_or(0)
            ));
        }
    }
    for one in erasures_of(state) {
        let Erasure {
            seq, reason, records, ..
        } = &one.told;
        if !told
            .iter()
            .any(|note| note.starts_with(&format!("erased at event {seq},")))
        {
            notes.push(format!(
                "erased at event {seq}: {reason:?}: {records} records, {} lines; the log that tells of it was not kept",
                one.told.lines
            ));
        }
    }
    notes
}

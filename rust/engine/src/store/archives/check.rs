//! Checks that the archives are those that the log names, and lead to what it starts from.
//!
//! The way back is found first, from sentinel to sentinel. Then the retired logs are read from the oldest on: each is judged,
//! its trail is followed, and what it adds up to is held against the base behind it. What is told begins with the newest, and
//! ends with the first that is not the log that was retired.

use std::io;

use chronolog::archive::damage_in;
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Disk, NamedFault, Naming, read_whole};
use chronolog::json::{self, Value};
use chronolog::layout::{ERASING, Layout, base_name};
use chronolog::log::files::open_base;
use chronolog::origin::{Origin, TrailTold};
use chronolog::verify::{ErasureSeen, finding};

use super::bound::{NamedByLogs, unbound};
use super::onlooker::Onlooker;
use super::retired::{RetiredLogs, is_compared};
use super::returned::FilesTold;
use super::way::{End, Hop, PastLogs};
use crate::store::vectors::is_of_this_file;

/// What was found in the archives.
#[derive(Default)]
pub(in crate::store) struct Past {
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// Indexes of archives that say something else than the archives.
    pub altered: Vec<Damage>,
    /// Files that an erasure took away and that are back.
    pub returned: Vec<Damage>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// The live log, as far as its past is concerned.
pub(in crate::store) struct LiveEnd<'a> {
    /// What it starts from.
    pub origin: &'a Origin,
    /// Where its first event stands.
    pub offset: u64,
    /// The seq of that.
    pub seq: Option<u64>,
    /// The events in it that tell of erasures; `None` if nobody looked for them.
    pub erasures: Option<Vec<ErasureSeen>>,
}

impl Past {
    /// Follows the archives back from a log, as far as they were kept; somebody may look on.
    ///
    /// # Errors
    /// What the disk says. Damage is no error.
    pub fn follow(
        disk: &dyn Disk,
        layout: &Layout,
        live: LiveEnd<'_>,
        threads: usize,
        onlooker: Option<&dyn Onlooker>,
    ) -> io::Result<Self> {
        let hop = Hop::live(live.origin, live.offset, live.seq, live.erasures);
        let mut way = PastLogs::find(disk, layout, hop)?;
        let mut past = Self::default();
        let read = RetiredLogs::read(disk, layout, &mut way, threads, onlooker)?;
        if read.gave_up {
            let note = "bases not compared with the history before them: not enough memory";
            past.notes.push(note.to_owned());
        }
        past.tell(disk, layout, &way, read)?;
        past.tell_returned(disk, layout, &way);
        Ok(past)
    }

    fn tell(&mut self, disk: &dyn Disk, layout: &Layout, way: &PastLogs, read: RetiredLogs) -> io::Result<()> {
        let mut before: Vec<NamedByLogs> = vec![NamedByLogs::default(); way.hops.len()];
        for number in (1..way.hops.len()).rev() {
            let mut named = before[number].clone();
            named.take(&way.hops[number]);
            before[number - 1] = named;
        }
        for (number, (hop, beside)) in way.hops.iter().zip(read.beside).enumerate() {
            if let Some(wrong) = &hop.wrong {
                self.damage.push(wrong.clone());
                return Ok(());
            }
            if number > 0 {
                self.altered.extend(beside.altered);
                self.notes.extend(beside.note);
                self.tell_redacted(hop);
                let is_added_up =
                    is_compared(hop) && way.hops.get(number + 1).is_some_and(|older| older.wrong.is_none());
                self.earlier_base(disk, layout, hop, is_added_up)?;
            }
            self.tell_erasures(hop, &before[number], matches!(way.end, End::Beginning));
            self.tell_trail(way, number);
            if read.differing.contains(&number)
                && let Some(sha256) = hop.base.1
            {
                let reason = "it is not what the history before it adds up to";
                let there = open_base(disk, layout, &sha256).ok().flatten();
                let name = there.map_or_else(|| base_name(sha256.text()), |(name, _)| name);
                self.damage.push(finding(&name, DamageKind::BaseDiffers, reason));
            }
        }
        match &way.end {
            End::Beginning | End::Fault(_) => {}
            End::Note(note) => self.notes.push(note.clone()),
            End::Altered(damage) => self.damage.push(damage.clone()),
        }
        Ok(())
    }

    fn tell_redacted(&mut self, hop: &Hop) {
        if hop.redacted.count == 0 {
            return;
        }
        let spelled = |&(first, last): &(u64, u64)| match first == last {
            true => format!("{first}"),
            false => format!("{first}-{last}"),
        };
        let seqs: Vec<String> = hop.redacted.ranges.iter().map(spelled).collect();
        let attested = if hop.redacted.is_steady() { "" } else { " (attested)" };
        self.notes.push(format!(
            "{} lines of {} were erased: seq {}{attested}",
            hop.redacted.count,
            hop.name,
            seqs.join(", ")
        ));
    }

    /// An erasure is told by a sentinel and the event behind it, together or not at all.
    fn tell_erasures(&mut self, hop: &Hop, before: &NamedByLogs, is_all_known: bool) {
        let Some(erasures) = &hop.erasures else {
            return;
        };
        let told = hop.sentinel.as_ref().filter(|sentinel| sentinel.told.erasure.is_some());
        let follows = erasures.first().filter(|seen| told.is_some() && seen.index == 1);
        if let Some(sentinel) = told
            && let Some(reason) = unbound(sentinel, follows.map(|seen| &seen.told), before, is_all_known)
        {
            self.at(hop, (hop.offset, hop.seq), DamageKind::EraseUnbound, reason);
        }
        for stray in erasures.iter().skip(usize::from(follows.is_some())) {
            let place = (stray.place.offset, Some(stray.told.seq));
            self.at(hop, place, DamageKind::EraseUnbound, "no sentinel tells of it");
        }
        if let Some(seen) = follows {
            let told = &seen.told;
            let history = if told.is_dropped {
                "history dropped"
            } else {
                "history redacted"
            };
            self.notes.push(format!(
                "erased at event {}, {}: {:?}: {} records, {} lines, {} of them without salt, {history}",
                told.seq, seen.ts, told.reason, told.records, told.lines, told.unsalted
            ));
        }
    }

    fn at(&mut self, hop: &Hop, (offset, seq): (u64, Option<u64>), kind: DamageKind, reason: &str) {
        self.damage.push(Damage {
            offset,
            seq,
            ..finding(&hop.name, kind, reason)
        });
    }

    fn tell_trail(&mut self, way: &PastLogs, number: usize) {
        let hop = &way.hops[number];
        let seq = hop.seq.unwrap_or(0);
        let (value, from) = match hop.sentinel.as_ref().map(|sentinel| sentinel.told.trail) {
            None | Some(TrailTold::Nothing) => return,
            Some(TrailTold::Malformed) => {
                return self.at(hop, (hop.offset, hop.seq), DamageKind::TrailBroken, "it is no trail");
            }
            Some(TrailTold::Known(value, from)) => (value, from),
        };
        let Some(older) = way.hops.get(number + 1) else {
            let note = format!("trail not compared: nothing is left of what came before event {seq}");
            return self.notes.push(note);
        };
        if older.wrong.is_some() {
            return;
        }
        let found = older.trail.as_ref().filter(|trail| trail.from == from);
        if has_start(way, number + 1, from) == Some(false) {
            self.at(
                hop,
                (hop.offset, hop.seq),
                DamageKind::TrailBroken,
                "it begins elsewhere",
            );
        } else if found.is_none() {
            self.notes
                .push(format!("trail not compared: its start, event {from}, is not there"));
        } else if found.is_some_and(|trail| trail.value() != value) {
            let reason = "it is not the trail of the log before";
            self.at(hop, (hop.offset, hop.seq), DamageKind::TrailBroken, reason);
        }
    }

    /// The base that an archived segment started from: without it the segment says less, a different one is damage.
    /// One that is not there is not missed where the history before it adds up to it.
    fn earlier_base(&mut self, disk: &dyn Disk, layout: &Layout, hop: &Hop, is_added_up: bool) -> io::Result<()> {
        let (named, Some(sha256)) = hop.base else {
            return Ok(());
        };
        let plain = base_name(sha256.text());
        let (name, base) = match open_base(disk, layout, &sha256).map_err(|fault| NamedFault::apart(fault).1) {
            Err(fault) if is_of_this_file(&fault) => {
                let note = format!("history unavailable: {plain} cannot be read: {fault}");
                self.notes.push(note);
                return Ok(());
            }
            Err(fault) => return Err(fault).naming(&layout.inside(&plain)),
            Ok(None) if is_added_up => return Ok(()),
            Ok(None) => {
                self.notes.push(format!("history unavailable: {plain} is not there"));
                return Ok(());
            }
            Ok(Some(there)) => there,
        };
        let reason = match chronolog::archive::file_digest(&*base.log) {
            Ok(found) if found == sha256 => None,
            Ok(_) => Some("it is not the base that an archived segment started from".to_owned()),
            Err(fault) => match damage_in(&fault) {
                Some(reason) => Some(reason),
                None => return Err(fault).naming(&layout.inside(&name)),
            },
        };
        if let Some(reason) = reason {
            self.damage.push(finding(&name, DamageKind::BaseAltered, reason));
        } else if named != Some(sha256) {
            let note = format!("attested: {name} was rewritten by an erasure, and only its word says how");
            self.notes.push(note);
        }
        Ok(())
    }

    /// Says which files are there that an erasure took away.
    fn tell_returned(&mut self, disk: &dyn Disk, layout: &Layout, way: &PastLogs) {
        if is_unfinished(disk, layout, way.hops.first().and_then(|hop| hop.base.0)) {
            let note = "erasure unfinished: whoever opens the store next with the right to write ends it";
            return self.notes.push(note.to_owned());
        }
        let mut told = FilesTold::default();
        for hop in &way.hops {
            hop.sentinel.iter().for_each(|sentinel| told.take(sentinel));
            told.name(&hop.name);
            told.name_base(hop.base.1);
        }
        self.returned.extend(told.returned(disk, layout));
    }
}

/// Whether an erasure that made the base of this log did not come to its end.
fn is_unfinished(disk: &dyn Disk, layout: &Layout, base: Option<Hex>) -> bool {
    let told = read_whole(disk, &layout.inside(ERASING)).ok().flatten();
    let told = told.and_then(|bytes| json::parse(&bytes).ok());
    let named = told.as_ref().and_then(|told| told.get("base")).and_then(Value::as_str);
    base.is_some_and(|base| named == Some(base.text()))
}

/// Whether a trail that ends with a log can begin at a seq; `None` if nobody can tell.
fn has_start(way: &PastLogs, number: usize, from: u64) -> Option<bool> {
    for hop in way.hops.get(number..).unwrap_or_default() {
        if let Some((_, own)) = hop.own_trail() {
            return Some(own == from);
        }
        if hop.seq == Some(from) {
            return Some(true);
        }
    }
    matches!(way.end, End::Beginning).then_some(false)
}

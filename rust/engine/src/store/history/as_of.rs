//! Shows the records as they were known at an earlier event or moment.

use std::sync::{Arc, OnceLock, RwLock};

use chronolog::damage::Damage;
use chronolog::disk::DiskFile;
use chronolog::error::{Error, Result};
use chronolog::layout::LOG;
use chronolog::log::OpenLog;
use chronolog::origin::{Beginning, Origin, WayBack, beginning_of};
use chronolog::scope::Viewer;
use chronolog::verify::BaseState;
use chronomemory_search::text::TextIndex;
use chronomemory_state::condition::FieldIndexes;
use chronomemory_state::index::Indexes;
use chronomemory_state::state::State;

use super::lines::{History, one_back};
use crate::options::Checking;
use crate::store::archives::archive_index::{OrDamage, damaged, why_not_kept};
use crate::store::load::base::Proof;
use crate::store::load::examine::{Look, examine, settled_seq};
use crate::store::load::loader::{Loader, Moment};

/// The store as it was at some event; nothing can be written through it.
pub struct View {
    pub(in crate::store) state: State,
    seq: u64,
    /// The log that it was read from, and how much of it.
    pub(in crate::store) log: Option<(Arc<dyn DiskFile>, u64)>,
    /// Made when first searched.
    pub(in crate::store) text: OnceLock<TextIndex>,
    /// Made when first asked.
    pub(in crate::store) indexes: RwLock<Indexes>,
    /// Likewise.
    pub(in crate::store) field_indexes: RwLock<FieldIndexes>,
}

impl View {
    /// The last event that it knows.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The records as they were known.
    pub fn state(&self) -> &State {
        &self.state
    }
}

/// A log or an archive of one, as far as the past is concerned.
struct PastLog {
    name: String,
    log: Arc<dyn DiskFile>,
    length: u64,
    beginning: Beginning,
    way: WayBack,
}

impl History<'_> {
    /// The store as it was at a moment, in the live log or in an archive.
    ///
    /// # Errors
    /// `HistoryUnavailable` if no kept segment reaches back so far, `Corrupted`, `Io`.
    pub fn as_of(&self, moment: Moment) -> Result<View> {
        self.log.check_is_there()?;
        let Some(log) = self.log.open() else {
            return Ok(View {
                state: State::default(),
                seq: 0,
                log: None,
                text: OnceLock::new(),
                indexes: RwLock::default(),
                field_indexes: RwLock::default(),
            });
        };
        let length = log.file.length().or_damage(LOG)?;
        let mut segment = PastLog {
            name: LOG.to_owned(),
            log: Arc::clone(&log.file),
            length,
            beginning: beginning_of(&*log.file, length).or_damage(LOG)?,
            way: WayBack::default(),
        };
        // The first seq that can be reached if nothing before this segment can.
        let mut reachable = self.live().last_seq();
        while !self.reaches(&segment, moment)? {
            reachable = self.first_state(&segment)?;
            segment = self.before(&segment)?.ok_or_else(|| unavailable(&segment, reachable))?;
        }
        let view = self.view_in(&segment, moment, reachable);
        self.archives.rest();
        view
    }

    /// The seq of the state that a segment starts from.
    fn first_state(&self, segment: &PastLog) -> Result<u64> {
        match &segment.beginning.origin {
            Origin::Nothing => Ok(0),
            Origin::Ours(sentinel) => Ok(sentinel.last_seq),
            Origin::Foreign => {
                settled_seq(&*self.site.disk, &self.site.layout, &*segment.log, segment.length).or_damage(&segment.name)
            }
        }
    }

    fn reaches(&self, segment: &PastLog, moment: Moment) -> Result<bool> {
        if segment.beginning.origin == Origin::Nothing {
            return Ok(true);
        }
        Ok(match moment {
            Moment::Seq(seq) => seq >= self.first_state(segment)?,
            Moment::Time(micros) => micros >= segment.beginning.ts,
        })
    }

    /// The segment that another one followed; `None` if it was not kept or is not there.
    fn before(&self, segment: &PastLog) -> Result<Option<PastLog>> {
        let Origin::Ours(sentinel) = &segment.beginning.origin else {
            return Ok(None);
        };
        let Some(indexed) = self.indexed_before(sentinel)? else {
            return Ok(None);
        };
        let (mut way, mut beginning) = (segment.way.clone(), indexed.beginning.clone());
        beginning.origin = one_back(&mut way, sentinel, &indexed)?;
        Ok(Some(PastLog {
            name: indexed.name.clone(),
            log: Arc::clone(&indexed.archive.log),
            length: indexed.length,
            beginning,
            way,
        }))
    }

    fn view_in(&self, segment: &PastLog, moment: Moment, reachable: u64) -> Result<View> {
        let is_live = segment.name == LOG;
        // Opening checked every hash of the live log, and a damaged line must be found again.
        let is_proven = is_live && self.log.open().is_some_and(OpenLog::is_whole);
        let checking = if is_proven { Checking::Quick } else { Checking::Full };
        let look = Look {
            is_past: !is_live,
            way: Some(&segment.way),
            ..Look::at_log(self.threads, checking)
        };
        let mut loader = Loader::up_to(moment);
        let found = examine(
            &*self.site.disk,
            &self.site.layout,
            &*segment.log,
            look,
            &mut loader,
            &mut |_, _| {},
        )
        .or_damage(&segment.name)?;
        if found.proof == Proof::Nothing && found.report.base == BaseState::Missing && !is_live {
            return Err(unavailable(segment, reachable));
        }
        // Damage in the live log was reported at open, and every good line counts; a past without its base would be a lie.
        let counts = |damage: &&Damage| {
            if damage.path == LOG {
                !is_live
            } else {
                found.proof == Proof::Nothing
            }
        };
        if let Some(worst) = found.report.damage.iter().rev().find(counts) {
            let path = if worst.path == LOG { &segment.name } else { &worst.path };
            return Err(damaged(path, worst));
        }
        let mut state = loader.state.unwrap_or_default();
        // It shows what was living then.
        state.expire(match moment {
            Moment::Time(micros) => micros,
            Moment::Seq(_) => match (loader.last_ts, state.seen_version(&Viewer::Everyone)) {
                (Some(micros), _) => micros,
                // All of it is in the base. The moment of its last event is known only if a record has it.
                (None, (seq, spoken)) if spoken > 0 && seq == loader.last_seq => spoken.min(segment.beginning.ts),
                (None, _) => loader.base_ts.unwrap_or(i64::MAX).min(segment.beginning.ts),
            },
        });
        Ok(View {
            seq: loader.last_seq,
            state,
            log: Some((Arc::clone(&segment.log), segment.length)),
            text: OnceLock::new(),
            indexes: RwLock::default(),
            field_indexes: RwLock::default(),
        })
    }
}

fn unavailable(segment: &PastLog, first_seq: u64) -> Error {
    let reason = match &segment.beginning.origin {
        Origin::Ours(sentinel) => why_not_kept(sentinel),
        _ => format!("the base of {} is not there", segment.name),
    };
    Error::HistoryUnavailable { first_seq, reason }
}

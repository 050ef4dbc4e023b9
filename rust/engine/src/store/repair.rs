//! How does a damaged store become whole again, without hiding that it was not?

use crate::damage::Damage;
use crate::error::{At, Result};
use crate::event::stamp;
use crate::json::Value;

use super::care::{Alone, Turns, take_care};
use super::compact::write_snapshot;
use super::copies::{copy_range, free_name};
use super::retire::{Retirement, clear_out};
use super::{Progress, Store};

/// How many findings the event names; the damaged log is kept whole.
const MOST_FINDINGS: usize = 100;

/// What a repair did.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// What was wrong.
    pub damage: Vec<Damage>,
    /// Where the damaged log is kept, relative to the store's folder.
    pub kept: String,
    /// How many records the store has now.
    pub records: u64,
}

impl Store {
    /// Keeps the damaged log in `quarantine/` as it is and starts a new one from every good line; the new log's first event
    /// says what was done. `None` if nothing is damaged.
    ///
    /// # Errors
    /// `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn repair(&mut self, now: i64, progress: Progress<'_>) -> Result<Option<Repaired>> {
        repair(&Alone::with(self), &|| now, progress)
    }

    fn repair_now(&mut self, now: i64, progress: Progress<'_>) -> Result<Option<Repaired>> {
        self.with_lock(now, |store| {
            store.sync_log()?;
            let damage = Self::verify(&*store.disk, &store.layout, store.options.threads, progress)?.damage;
            store.reload(&mut |_, _| {})?;
            if damage.is_empty() {
                return Ok(None);
            }
            store.take_back_damaged(now)?;
            let Some(log) = &store.log else {
                return Ok(None);
            };
            let quarantine = store.layout.quarantine();
            store.disk.create_dir(&quarantine).at(&quarantine)?;
            store.disk.sync_dir(store.layout.folder()).at(store.layout.folder())?;
            let name = format!("{}-damaged-log", stamp::spell_name(now));
            let target = free_name(&*store.disk, &quarantine, &name)?;
            let digest = copy_range(&*store.disk, &*log.file, 0..log.walk.end, &target, None)?;
            let name = target
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            store.put_snapshot_aside(&quarantine, now)?;
            store.disk.sync_dir(&quarantine).at(&quarantine)?;
            let kept = format!("quarantine/{name}");
            let mut findings: Vec<Value> = damage
                .iter()
                .take(MOST_FINDINGS)
                .map(|damage| Value::Str(damage.to_string()))
                .collect();
            if damage.len() > MOST_FINDINGS {
                findings.push(Value::Str(format!("and {} more", damage.len() - MOST_FINDINGS)));
            }
            let retirement = Retirement {
                label: format!("Repaired at seq={}", store.last_seq()),
                archive: None,
                more: vec![
                    ("repaired".to_owned(), Value::Array(findings)),
                    ("damaged_log".to_owned(), Value::Str(kept.clone())),
                    ("damaged_log_sha256".to_owned(), Value::Str(digest.text().to_owned())),
                ],
            };
            let base = store.write_base(progress)?;
            store.retire(retirement, base, now)?;
            Ok(Some(Repaired {
                damage,
                kept,
                records: store.state.len() as u64,
            }))
        })
    }
}

/// Makes a store whole again that others use. They wait: what is damaged should not be built upon meanwhile.
///
/// # Errors
/// As [`Store::repair`].
pub fn repair(turns: &impl Turns, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<Option<Repaired>> {
    let _care = take_care(turns, now())?;
    // An index that hides something is believed by its own digest; to make all of them again costs little.
    turns.turn(|store| store.drop_indexes())?;
    let repaired = turns.turn(|store| store.repair_now(now(), progress))?;
    if repaired.is_some() {
        write_snapshot(turns)?;
        // The damaged log leads to history that the new one does not: kept beside it.
        let quarantine = turns.turn(|store| Ok(store.layout.quarantine()))?;
        clear_out(turns, Some(&quarantine), now())?;
    }
    Ok(repaired)
}

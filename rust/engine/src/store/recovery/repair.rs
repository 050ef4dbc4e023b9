//! Repairs a damaged store, and tells in the log what was found.
//!
//! First everything is brought back that something in the folder proves: lines by the hashes of their neighbours, the
//! base by a copy or by the archives before it. Then a new log begins that names the state and the findings. If the old
//! log is whole again, it becomes an archive and history goes on; if not, it is set aside with all that it stands on.
//! What cannot be proved is named, by id where there is one.

use std::collections::BTreeSet;
use std::sync::Arc;

use chronolog::damage::{Damage, DamageKind};
use chronolog::error::{At, Result};
use chronolog::event::stamp;
use chronolog::json::Value;
use chronolog::layout::LOG;
use chronolog::log::{Log, OpenLog};
use chronolog::origin::{Origin, Repair};

use super::cure::{Cure, CureSearch, check_copies_can_be_read, lost_end};
use super::judge::verify;
use super::mending::Mending;
use crate::store::archives::archive_index::ArchiveCache;
use crate::store::archives::packing::archive_of;
use crate::store::files::set_aside::QuarantineFolder;
use crate::store::files::snapshots::{header_of, remove_indexes};
use crate::store::follow::LockPurpose;
use crate::store::load::tails::{MENDING_BLOCKS, whole_events};
use crate::store::turns::{Turns, take_care};
use crate::store::upkeep::bases::write_base;
use crate::store::upkeep::compact::{Retirement, write_snapshot};
use crate::store::upkeep::history_files::clear_out;
use crate::store::vectors::changes::regain::{DamagedRows, RowPlan};
use crate::store::{Progress, Store};
use chronolog::verify::{Walk, finding};

/// How many findings the event names; the damaged log is kept whole.
const MOST_FINDINGS: usize = 100;

/// What a repair did.
#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// What was wrong.
    pub damage: Vec<Damage>,
    /// Where the damaged files are kept, relative to the store's folder; `None` if there was nothing left of them to keep.
    pub kept: Option<String>,
    /// How many records the store has now.
    pub records: u64,
    /// How many damaged places were brought back: of the log, proved by the chain, and rows of embeddings, by their digests.
    pub healed: u64,
    /// Whether the events before the repair are still part of the store's history.
    pub history_kept: bool,
    /// The ids of the records that are other now than before the repair.
    pub changed: Vec<String>,
    /// Events and embeddings that could not be brought back.
    pub lost: Vec<String>,
    /// The ids of the records that a lost event spoke of: they are on hold.
    pub unsettled: Vec<String>,
    /// The ids of the records that come from bytes which nothing proves.
    pub unproven: Vec<String>,
}

/// What was done, and the files that may go because they are kept elsewhere.
pub(in crate::store) type Treated = (Repaired, BTreeSet<String>);

/// Under the lock: finds out what is damaged, and makes it whole; `None` if nothing is.
pub(in crate::store) fn repair_now(
    store: &mut Store,
    unproven: bool,
    is_replaced_next: bool,
    now: i64,
    progress: Progress<'_>,
) -> Result<Option<Treated>> {
    store.with_lock_to(LockPurpose::Judge, now, |store| {
        // What the hint knows of the end of the log is needed: it is not written over before the log is looked at.
        store.on_log(Log::sync_quietly)?;
        let mut damage = verify(&*store.site.disk, &store.site.layout, store.options.threads, progress)?.damage;
        store.reload(&mut |_, _| {})?;
        damage.extend(lost_end(&store.log).filter(|_| damage.is_empty()));
        if damage.is_empty() {
            return Ok(None);
        }
        let is_of_rows = damage.iter().all(|damage| damage.kind.is_of_row());
        if is_of_rows {
            // If there is nothing else to do, and they cannot be read, nothing is changed.
            DamagedRows::find(&store.vectors, &store.state)?.check()?;
        }
        if !unproven {
            check_copies_can_be_read(&store.site)?;
        }
        let search = CureSearch {
            site: &store.site,
            log: &store.log,
            threads: store.options.threads,
            is_replaced_next,
        };
        let cure = search.find(unproven)?;
        let outcome = administer(store, cure, damage, now, progress);
        if outcome.is_err() {
            // The memory may be ahead of the files.
            store.log.forget();
        }
        outcome.map(Some)
    })
}

/// Keeps what is damaged and begins a new log from what was found.
fn administer(
    store: &mut Store,
    mut cure: Cure,
    damage: Vec<Damage>,
    now: i64,
    progress: Progress<'_>,
) -> Result<Treated> {
    let aside = QuarantineFolder::begin(&store.site, "damaged", now)?;
    let mut replaced = BTreeSet::new();
    for name in damaged_files(&damage) {
        aside.keep(&name)?;
    }
    let (file, mut walk, origin) = cure.source;
    // A log that tells half of an erasure would be damage in the archive too. Where the other half came back it tells all.
    let tells_half = |damage: &&Damage| damage.kind == DamageKind::EraseUnbound && damage.path == LOG;
    let is_half = tells_half_of_an_erasure(&walk, &origin);
    let found_before = damage.iter().find(tells_half).filter(|_| cure.filled == 0 || is_half);
    // What came back may be no more than that half.
    let found = || {
        finding(
            LOG,
            DamageKind::EraseUnbound,
            "no event of an erasure is bound to its sentinel",
        )
    };
    let half = found_before.cloned().or_else(|| (cure.is_whole && is_half).then(found));
    cure.lost.extend(half.iter().map(|half| {
        format!("{half}; what it tells of was erased, but copies from before it are not known as such any more")
    }));
    let mending = match cure.is_whole && half.is_none() {
        true => Mending::plan(&store.site, &*file, &origin, store.options.threads)?,
        false => None,
    };
    let is_whole = mending.is_some();
    let mending = mending.unwrap_or_default();
    let unavailable = mending
        .gone
        .iter()
        .map(|name| format!("{name}: it was altered, and is set aside"));
    cure.lost.extend(unavailable);
    if !is_whole {
        replaced.extend(aside.keep_everything()?);
    }
    let changed = store.state.differences(&cure.state);
    store.state = cure.state;
    store.vectors.forget();
    store.archives = ArchiveCache::default();
    let mut rows = RowPlan::find(&store.vectors, &store.state)?;
    cure.lost.append(&mut rows.lost);
    for name in mending.names().chain(rows.files()) {
        aside.keep(&name)?;
    }
    aside.sync()?;
    let kept = aside.name_if_used()?;
    let archive = match is_whole {
        true => {
            let (mark, log) = (walk.mark(), (Arc::clone(&file), walk.end));
            let span = (mark.first_seq.unwrap_or(0), mark.last_seq);
            let (name, digest) = archive_of(&store.site, log, span, "", store.options.threads)?;
            Some((name, digest.text().to_owned()))
        }
        false => None,
    };
    let history_kept = archive.is_some() && mending.gone.is_empty();
    let open = (cure.lost.len() + usize::from(!cure.unproven.is_empty())) as u64;
    let retirement = Retirement {
        label: format!("Repaired at seq={}", cure.last_seq),
        archive,
        more: told(&damage, kept.as_deref(), &cure.lost, &cure.unsettled),
        repair: Some(Repair {
            seq: cure.last_seq + 1,
            ts: stamp::spell(now.max(walk.latest)),
            findings: damage.len() as u64,
            open,
        }),
        goes_on: false,
    };
    // The log that is retired is the one that the state was read from.
    walk.follower.mark.last_seq = cure.last_seq;
    let retired = OpenLog::reading(file, walk, origin).at(store.site.log())?;
    store.log.go_over(retired);
    let base = write_base(
        &store.site,
        &header_of(&store.log),
        &mut store.state,
        store.options.salts(),
        progress,
    )?;
    retirement.carry_out(store, base, now)?;
    // The new log tells of the repair: from here on nothing that is put right can be silent about it.
    drop(cure.healed.take());
    mending.carry_out(&store.site)?;
    let brought_back = rows.put_back(&mut store.vectors)?;
    take_back_rows(store, &damage, now)?;
    let repaired = Repaired {
        damage,
        kept,
        records: store.state.len() as u64,
        healed: cure.filled + brought_back,
        history_kept,
        changed,
        lost: cure.lost,
        unsettled: cure.unsettled,
        unproven: cure.unproven,
    };
    Ok((repaired, replaced))
}

/// Rows that are still not what the log says are taken back by events of the new log.
fn take_back_rows(store: &mut Store, damage: &[Damage], now: i64) -> Result<()> {
    // Damaged lines may have named rows; a log with damage in rows only is trusted.
    let of_log = damage
        .iter()
        .filter(|damage| damage.kind != DamageKind::LogMissing && !damage.kind.is_of_row() && !damage.kind.is_of_base())
        .cloned()
        .collect();
    store.log.report.damage = of_log;
    let damaged = DamagedRows::find(&store.vectors, &store.state);
    let depth = store.options.recursion_depth;
    let draft = damaged.and_then(|rows| rows.take_back(&store.vectors, &store.log, depth, now));
    let taken_back = match draft {
        Ok(Some(draft)) => store.write(&[&draft], now).map(|_| ()),
        Ok(None) => Ok(()),
        Err(fault) => Err(fault),
    };
    store.log.report.damage.clear();
    taken_back?;
    store.on_log(Log::sync)
}

/// Before a repair: turns a tail with whole events into damage, by syncing the log and removing the hint.
fn spare_tail(store: &mut Store) -> Result<()> {
    if store.refresh().is_err() || store.log.report.tail.is_none() || store.log.check_poison().is_err() {
        return Ok(());
    }
    store.with_lock_for_a_moment(|store| {
        store.reload(&mut |_, _| {})?;
        let path = store.site.layout.log().to_owned();
        let (Some(tail), Some(log)) = (&store.log.report.tail, store.log.open()) else {
            return Ok(());
        };
        let range = tail.offset..tail.offset + tail.length;
        let head = log.walk.mark().head;
        if whole_events(&*log.file, range, head, MENDING_BLOCKS)
            .at(&path)?
            .is_none()
        {
            return Ok(());
        }
        store.on_log(Log::sync_quietly)?;
        store.site.forget_hint()?;
        store.reload(&mut |_, _| {})
    })
}

/// Whether a log has a sentinel of an erasure without the event behind it, or such an event anywhere else.
fn tells_half_of_an_erasure(walk: &Walk, origin: &Origin) -> bool {
    let is_told = matches!(origin, Origin::Ours(sentinel) if sentinel.told.erasure.is_some());
    let follows = is_told && walk.told_erasures().next().is_some_and(|seen| seen.index == 1);
    is_told != follows || walk.told_erasures().count() > usize::from(follows)
}

/// The files that findings speak of, the log among them; those of rows are looked for on their own.
fn damaged_files(damage: &[Damage]) -> BTreeSet<String> {
    let of_files = damage.iter().filter(|damage| !damage.kind.is_of_row());
    of_files.map(|damage| damage.path.clone()).collect()
}

/// What the sentinel says of a repair.
fn told(damage: &[Damage], kept: Option<&str>, lost: &[String], unsettled: &[String]) -> Vec<(String, Value)> {
    let texts = |all: Vec<String>| {
        let more = all.len().saturating_sub(MOST_FINDINGS);
        let mut some: Vec<Value> = all.into_iter().take(MOST_FINDINGS).map(Value::Str).collect();
        if more > 0 {
            some.push(Value::Str(format!("and {more} more")));
        }
        Value::Array(some)
    };
    vec![
        (
            "repaired".to_owned(),
            texts(damage.iter().map(ToString::to_string).collect()),
        ),
        (
            "kept".to_owned(),
            kept.map_or(Value::Null, |kept| Value::Str(kept.to_owned())),
        ),
        ("lost".to_owned(), texts(lost.to_vec())),
        ("unsettled".to_owned(), texts(unsettled.to_vec())),
    ]
}

/// The same for whoever looks after the store already, and whatever nothing proves: it is about to be set aside.
pub(in crate::store) fn repair_in_turn(turns: &impl Turns, now: &dyn Fn() -> i64) -> Result<()> {
    let treated = turns.turn(|store| repair_now(store, true, true, now(), &mut |_, _| {}))?;
    match treated {
        Some((_, replaced)) => clear_out(turns, &replaced, now()),
        None => Ok(()),
    }
}

/// Makes a store whole again that others use. They wait: what is damaged should not be built upon meanwhile.
pub fn repair(
    turns: &impl Turns,
    unproven: bool,
    now: &dyn Fn() -> i64,
    progress: Progress<'_>,
) -> Result<Option<Repaired>> {
    // First of all: whoever prepares a change moves a tail aside.
    turns.turn(spare_tail)?;
    let _care = take_care(turns, now())?;
    // An index that hides something is believed by its own digest; to make all of them again costs little.
    turns.turn(|store| {
        remove_indexes(&store.site)?;
        store.views.text = Arc::default();
        store.vectors.forget();
        store.archives = ArchiveCache::default();
        Ok(())
    })?;
    let Some((repaired, replaced)) = turns.turn(|store| repair_now(store, unproven, false, now(), progress))? else {
        return Ok(None);
    };
    write_snapshot(turns)?;
    clear_out(turns, &replaced, now())?;
    Ok(Some(repaired))
}

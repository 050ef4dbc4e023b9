//! How is a record erased?
//!
//! Under both locks from the first look to the last file that goes: whoever writes waits meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::event::draft::Draft;
use crate::event::{Op, erasure, stamp};
use crate::json::Value;
use crate::log::Progress;
use crate::remembered::Standing;
use crate::scope::Scope;
use crate::state::spelled;
use crate::wal::writer::EventBody;

use super::copies::holding;
use super::redact::pack_without;
use super::rewrite::{Rewriting, names_of_base, number};
use super::survey::{Volumes, telling};
use super::tell::{Erase, Erased, event_record, say_again, told_ids};
use crate::store::Store;
use crate::store::archives::archive_index::ArchiveCache;
use crate::store::archives::doomed::Doomed;
use crate::store::archives::pruned::pruned_until;
use crate::store::archives::segments::segments;
use crate::store::care::{Alone, Turns, take_care};
use crate::store::files::erasing::Erasing;
use crate::store::load::tails::check_no_tail_is_left;
use crate::store::recovery::judge::verify_at;
use crate::store::upkeep::compact::{compact, write_snapshot};
use crate::store::upkeep::compact_rows::make_way;
use crate::store::upkeep::retire::{Retirement, write_base};
use crate::store::vectors::records::format::{file_name, write_gone};

/// The longest reason, in characters: it stays for ever.
const MOST_REASON: usize = 200;
/// More files are not replaced by one erasure.
const MOST_REPLACED: usize = 50_000;
/// What begins ids that are never erased by themselves.
const RESERVED: [&str; 5] = ["erasure:", "pruned:", "vector:", "act:", "__"];

impl Store {
    /// Erases records from the store and from all of its past; gives what was done.
    ///
    /// # Errors
    /// As [`Engine::erase`](crate::Engine::erase).
    pub fn erase(&mut self, order: &Erase, now: i64, progress: Progress<'_>) -> Result<Erased> {
        erase(&Alone::with(self), order, &|| now, progress)
    }

    /// Under the lock: whether anything may be erased at all.
    fn check_erasable(&mut self) -> Result<()> {
        if let Some(damage) = self.log.report.damage.first() {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        self.log.check_head_is_kept()?;
        if let Standing::Unknown(reason) | Standing::Unreadable(reason) = self.log.head.standing() {
            return Err(Error::busy(format!(
                "nothing is erased while the last head is not known: {reason}"
            )));
        }
        check_no_tail_is_left(&self.site, &self.log)
    }

    /// The records that are meant, with the groups of embeddings that name them, and the spaces of those.
    fn doomed(&mut self, order: &Erase) -> Result<(Doomed, BTreeSet<String>)> {
        let Some(open) = self.log.open() else {
            return Ok(Default::default());
        };
        let live = (&*open.file, open.walk.end);
        let (segments, start) = segments(
            &*self.site.disk,
            &self.site.layout,
            &open.origin,
            live,
            pruned_until(&self.state),
        )?;
        let bases = segments.iter().map(|segment| &segment.start).chain([&start]);
        let volumes = Volumes {
            site: &self.site,
            segments: &segments,
            live,
            bases: bases.filter_map(|start| start.base).collect(),
            threads: self.options.threads,
        };
        let mut doomed = Doomed::default();
        for id in &order.ids {
            doomed.add(&spelled(id));
        }
        if let Some(scope) = &order.scope {
            let no_scope = || Error::invalid("scope", "it is none: some of user, agent and session, each a name");
            volumes.add_scope(&Scope::read(scope).ok_or_else(no_scope)?, &mut doomed)?;
        }
        let spaces = volumes.add_groups(&mut doomed)?;
        Ok((doomed, spaces))
    }

    /// Under the lock: takes the embeddings of the records back; gives the files of rows that must be left behind.
    fn leave_rows(&mut self, doomed: &Doomed, spaces: &BTreeSet<String>, now: i64) -> Result<Vec<String>> {
        let mut draft = Draft::default();
        let mut files = Vec::new();
        {
            let known = self.vectors.known(&self.state);
            for index in known
                .spaces
                .spaces
                .values()
                .filter(|index| spaces.contains(&index.bound.name))
            {
                files.push(file_name(&index.bound));
                let is_doomed = |row: &u32| {
                    let owner = index.owner_of(*row).map(|owner| self.state.spelled_id(owner));
                    index.is_living(*row) && owner.is_some_and(|id| doomed.has(id))
                };
                let rows: Vec<u32> = (0..index.rows).filter(is_doomed).collect();
                let group_of = |row: &u32| index.group_of(*row);
                for rows in rows.chunk_by(|a, b| group_of(a) == group_of(b)) {
                    if let Some(group) = group_of(&rows[0]) {
                        write_gone(&mut draft, &index.bound, group, rows)?;
                    }
                }
            }
        }
        if !draft.is_empty() {
            self.write(&[&draft], now)?;
            self.sync_log()?;
        }
        Ok(files)
    }

    /// Under the lock: does it, or only counts.
    fn erase_now(&mut self, order: &Erase, doomed: &Arc<Doomed>, now: i64, progress: Progress<'_>) -> Result<Erased> {
        let site = Arc::clone(&self.site);
        let (threads, options) = (self.options.threads, self.options.clone());
        let Some(open) = self.log.open() else {
            return Ok(Erased::default());
        };
        let (file, end, mark) = (Arc::clone(&open.file), open.walk.end, *open.mark());
        let (segments, start) = segments(
            &*site.disk,
            &site.layout,
            &open.origin,
            (&*file, end),
            pruned_until(&self.state),
        )?;
        let mut past = Rewriting::new(
            &site,
            doomed,
            options.salts(),
            threads,
            order.dry_run || order.drop_history,
        );
        let total = segments.len() as u64 + 1;
        for (done, segment) in segments.iter().enumerate() {
            past.retired(segment)?;
            progress(done as u64 + 1, total);
        }
        let hits = past.live(&start, &*file, end)?;
        let (backups, quarantine) = holding(&site, doomed, threads)?;
        let mut told = Erased {
            ids: told_ids(&self.state, doomed, order),
            lines: past.lines,
            unsalted: past.unsalted,
            by_log: std::mem::take(&mut past.by_log),
            replaced: past.replaced.len() as u64,
            backups,
            quarantine,
            ..Erased::default()
        };
        if order.dry_run
            || (told.lines == 0 && told.replaced == 0 && told.backups.is_empty() && told.quarantine.is_empty())
        {
            return Ok(told);
        }
        if past.replaced.len() > MOST_REPLACED {
            return Err(Error::limit(
                "more than 50,000 files of the past would be replaced: compact without history first",
            ));
        }
        let (lines, span) = (past.lines, past.span);
        let (mut replaced, mut remove) = (std::mem::take(&mut past.replaced), std::mem::take(&mut past.remove));
        let mut kept = past.sum()?;
        let archive = match order.drop_history {
            true => {
                replaced.clear();
                remove.extend(segments.iter().map(|segment| segment.name.clone()));
                let starts = segments.iter().map(|segment| &segment.start).chain([&start]);
                remove.extend(
                    starts
                        .filter_map(|start| start.base)
                        .flat_map(|base| names_of_base(&base)),
                );
                None
            }
            false => {
                let span = (mark.first_seq.unwrap_or(0), mark.last_seq);
                let (name, digest) = pack_without(&site, &*file, end, &hits, span)?;
                Some((name, digest.text().to_owned()))
            }
        };
        let erased = if order.drop_history { 0 } else { hits.len() as u64 };
        let base = write_base(&site, &self.log, &mut kept, options.salts(), progress)?;
        remove.extend(told.backups.iter().chain(&told.quarantine).cloned());
        let unnamed = self.vectors.unnamed_rows(&self.state)?;
        let in_vectors = |path: &std::path::PathBuf| Some(format!("vectors/{}", path.file_name()?.to_string_lossy()));
        remove.extend(unnamed.iter().filter_map(in_vectors));
        let retirement = Retirement {
            label: format!("Erased at seq={}", mark.last_seq),
            archive,
            more: vec![
                ("erased".to_owned(), number(erased)),
                ("replaced".to_owned(), Value::Array(replaced)),
                ("repaired".to_owned(), Value::Array(Vec::new())),
            ],
            repair: None,
        };
        let depth = options.recursion_depth;
        let mut new = retirement.sentinel(&self.log, base.text(), depth, now)?;
        let ts = stamp::digits(now.max(self.log.latest()));
        let seq = new.link.next_seq;
        let record = event_record(seq, order, doomed.len() as u64, lines, told.unsalted, span, &told);
        debug_assert!(erasure::Erasure::read(seq, format!("erasure:{seq}").as_bytes(), &record).is_some());
        new.push(EventBody {
            op: Op::Erase,
            id: format!("erasure:{seq}").as_bytes(),
            record: &record,
            ts: &ts,
            depth,
        });
        told.again = say_again(&mut new, &self.state, &kept, doomed, order, &options, &ts)?;
        told.seq = Some(seq);
        Erasing {
            base: Some(base),
            remove,
        }
        .write(&site)?;
        // The commit point is in here.
        self.log.retire(&new, now)?;
        self.archives = ArchiveCache::default();
        self.vectors.forget();
        self.reload(&mut |_, _| {})?;
        self.make_ready()?;
        self.log.tell_head();
        self.finish_erasing()?;
        Ok(told)
    }
}

fn check_order(order: &Erase) -> Result<()> {
    let reserved = |id: &&String| RESERVED.iter().any(|prefix| id.starts_with(prefix)) || id.is_empty();
    if let Some(id) = order.ids.iter().find(reserved) {
        return Err(Error::invalid("ids", format!("{id:?} is not erased by itself")));
    }
    if order.reason.chars().count() > MOST_REASON {
        return Err(Error::must(
            "reason",
            "have at most 200 characters",
            format!("{}", order.reason.chars().count()),
        ));
    }
    match order.again.iter().find(|id| !order.ids.contains(id)) {
        Some(id) => Err(Error::invalid("again", format!("{id:?} is not among the ids"))),
        None => Ok(()),
    }
}

/// Erases records from a store and from all of its past; gives what was done.
///
/// # Errors
/// `Corrupted` if anything is damaged or missed, `Busy` if the history has a hole, `Invalid`, `Locked`, `Io`, `Closed`,
/// `Poisoned`; nothing has happened then. What goes wrong behind the commit point is ended by whoever opens the store next.
pub fn erase(turns: &impl Turns, order: &Erase, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<Erased> {
    check_order(order)?;
    turns.turn(|store| store.check_tail_at_the_end())?;
    if order.drop_history && !order.dry_run {
        // So that no kept hash is one of a line that goes: the log that is retired begins with a sentinel.
        compact(turns, true, now, progress)?;
    }
    let _care = take_care(turns, now())?;
    let (site, threads) = turns.turn(|store| Ok((Arc::clone(&store.site), store.options.threads)))?;
    let found = verify_at(&*site.disk, &site.layout, threads, now(), progress)?;
    if let Some(damage) = found.damage.first() {
        return Err(Error::Corrupted(Box::new(damage.clone())));
    }
    let (doomed, spaces) = turns.turn(|store| {
        let now = now();
        store.with_lock(now, |store| {
            store.check_erasable()?;
            store.anchor(now)?;
            let (doomed, spaces) = store.doomed(order)?;
            let told = telling(&store.state, &doomed, &told_ids(&store.state, &doomed, order));
            match told.iter().any(|text| order.reason.contains(text.as_str())) {
                true => Err(Error::invalid(
                    "reason",
                    "it stays for ever, and names what is to be erased",
                )),
                false => Ok((doomed, spaces)),
            }
        })
    })?;
    let doomed = Arc::new(doomed);
    if doomed.is_empty() {
        return Ok(Erased::default());
    }
    if !order.dry_run && !spaces.is_empty() {
        let files = turns.turn(|store| {
            let now = now();
            store.with_lock(now, |store| store.leave_rows(&doomed, &spaces, now))
        })?;
        make_way(turns, now, &files)?;
    }
    let told = turns.turn(|store| {
        let now = now();
        store.with_lock(now, |store| {
            store.sync_log()?;
            store.settle_hint()?;
            store.erase_now(order, &doomed, now, progress)
        })
    })?;
    if told.seq.is_some() {
        write_snapshot(turns)?;
    }
    Ok(told)
}

//! How is a record erased?
//!
//! Under both locks from the first look to the last file that goes: whoever writes waits meanwhile.

use std::sync::Arc;

use crate::error::{At, Error, Result};
use crate::event::draft::Draft;
use crate::event::faces::ERASURES;
use crate::event::{Op, erasure, salt, stamp};
use crate::json::{RecordSpans, Value};
use crate::log::Progress;
use crate::origin::ALONE;
use crate::remembered::Standing;
use crate::state::{State, Watermark};
use crate::verify::{BaseState, Walk};
use crate::wal::writer::EventBody;

use super::beside::both;
use super::chosen::Chosen;
use super::copies::{Unwanted, holding, outside};
use super::order::{Erase, Erased, is_reserved};
use super::redact::pack_without;
use super::rewrite::{Rewriting, names_of_base, number};
use super::survey::{Found, Sight, Volumes, Watcher};
use super::tell::{event_record, say_again};
use crate::store::Store;
use crate::store::archives::archive_index::ArchiveCache;
use crate::store::archives::pruned::pruned_until;
use crate::store::archives::segments::{Segment, Start, segments};
use crate::store::care::{Alone, Turns, take_care};
use crate::store::files::erasing::Erasing;
use crate::store::files::known_copies::KnownCopies;
use crate::store::files::snapshots::header_of;
use crate::store::follow::swap::take_in_lines;
use crate::store::load::tails::check_no_tail_is_left;
use crate::store::recovery::judge::prove;
use crate::store::upkeep::compact::write_snapshot;
use crate::store::upkeep::history_files::clear_leftovers;
use crate::store::upkeep::retire::{Retirement, base_salt, write_frozen};

/// What goes, as far as a moment ago told.
struct Ahead {
    chosen: Chosen,
    /// How far the state was then.
    mark: Watermark,
}

/// What goes, and where it is said.
#[derive(Default)]
struct Surveyed {
    chosen: Chosen,
    /// The history that is kept tells of all rows that ever were.
    is_told: bool,
    /// The retired logs, the oldest first, and what the live one starts from.
    past: Option<(Vec<Segment>, Start)>,
    found: Found,
}

impl Store {
    /// Erases records from the store and from all of its past; gives what was done.
    ///
    /// # Errors
    /// As [`Engine::erase`](crate::Engine::erase).
    pub fn erase(&mut self, order: &Erase, now: i64, progress: Progress<'_>) -> Result<Erased> {
        erase(&Alone::with(self), order, &|| now, progress)
    }

    /// How many erasures the log tells of.
    pub(in crate::store) fn erasures(&self) -> usize {
        self.state.of_kinds(ERASURES, &[b"erasure"]).count()
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

    /// Looks ahead, as far as the present tells what goes.
    fn look_ahead(&mut self, order: &Erase) -> Result<Ahead> {
        self.refresh()?;
        self.settle();
        let mut chosen = Chosen::by(&*order.now(self)?)?;
        chosen.know(&self.state);
        Ok(Ahead {
            chosen,
            mark: self.state.changes().watermark(),
        })
    }

    /// Under the lock: the records that are meant, with what goes with them, and where all of that is said. What was seen of the
    /// live log while it was proved counts if nothing has changed since.
    fn survey(&self, order: &Erase, ahead: Ahead, sight: Sight) -> Result<Surveyed> {
        let Some(open) = self.log.open() else {
            return Ok(Surveyed {
                chosen: ahead.chosen,
                ..Surveyed::default()
            });
        };
        let is_same = ahead.mark.is(&self.state.changes().watermark());
        let mut chosen = match is_same {
            true => ahead.chosen,
            false => {
                let mut chosen = Chosen::by(order)?;
                chosen.know(&self.state);
                chosen
            }
        };
        let (end, head) = (open.walk.end, open.mark().head);
        let sight = Some(sight).filter(|sight| is_same && sight.tells_all(end, head));
        let (segments, start) = segments(
            &*self.site.disk,
            &self.site.layout,
            &open.origin,
            (&*open.file, end),
            pruned_until(&self.state),
        )?;
        let starts = || segments.iter().map(|segment| &segment.start).chain([&start]);
        let begins_with_nothing = starts().next().is_some_and(|start| start.base.is_none());
        let is_told = begins_with_nothing
            && starts().skip(1).all(|start| !start.is_word)
            && segments.iter().all(|segment| segment.redacted == 0);
        let volumes = Volumes {
            site: &self.site,
            segments: &segments,
            live: (&open.file, end),
            bases: starts().filter_map(|start| start.base).collect(),
            threads: self.options.threads,
        };
        let found = volumes.look_through(&mut chosen, &self.state, sight)?;
        chosen.check(order, &self.state)?;
        Ok(Surveyed {
            chosen,
            is_told,
            past: Some((segments, start)),
            found,
        })
    }

    /// Goes on behind an erasure: the state is what is kept, if a replay was needed to tell, or what was there without some
    /// slots; and then what the new log says.
    fn go_on_behind(&mut self, kept: Option<State>, slots: &[u32]) -> Result<()> {
        match kept {
            Some(kept) => self.state = kept,
            None => self.state.erase(slots),
        }
        let Some(open) = self.log.open() else {
            return Err(Error::Closed);
        };
        let (file, end) = (Arc::clone(&open.file), open.walk.end);
        take_in_lines(&mut self.log, &mut self.state, |_, loader| {
            let read = Walk::new(None).go(&*file, end, ALONE, loader, &mut |_, _| {});
            read.at(self.site.log())
        })?;
        self.state.expire(self.clock);
        self.log.report.base = BaseState::Anchored;
        self.vectors.on_disk.read_anew(Watermark::default());
        let events = self.live().events();
        self.snapshots.read_anew(events.max(self.state.len() as u64));
        Ok(())
    }

    /// Under the lock: puts a line behind the log that says nothing and has a salt, so that its hash is no way to guess those
    /// before it.
    fn mark(&mut self, now: i64) -> Result<()> {
        let Some(source) = &self.options.randomness else {
            return Err(Error::invalid(
                "history",
                "it is dropped only where there is randomness at hand to salt its end with",
            ));
        };
        let mut draft = Draft::default();
        let record = format!("{{\"~\":\"{}\"}}", salt::of_line(source).map_err(Error::randomness)?);
        draft.put(Op::Mark, erasure::MARK_ID, record.as_bytes(), RecordSpans::default())?;
        self.write(&[&draft], now)?;
        self.sync_log()?;
        self.settle_hint()
    }

    /// Under the lock: does it, or only counts.
    fn erase_now(&mut self, order: &Erase, surveyed: &Surveyed, now: i64, progress: Progress<'_>) -> Result<Erased> {
        let (chosen, found) = (&surveyed.chosen, &surveyed.found);
        let doomed = &Arc::new(chosen.doomed.clone());
        let site = Arc::clone(&self.site);
        let (threads, options) = (self.options.threads, self.options.clone());
        let (Some(open), Some((segments, start))) = (self.log.open(), &surveyed.past) else {
            return Ok(Erased::default());
        };
        let (file, end, mark) = (Arc::clone(&open.file), open.walk.end, *open.mark());
        let mut past = Rewriting::new(&site, doomed, options.salts(), threads, order, found);
        let total = segments.len() as u64 + 1;
        for (done, (segment, lines)) in segments.iter().zip(&found.retired).enumerate() {
            past.retired(segment, lines)?;
            progress(done as u64 + 1, total);
        }
        past.live(start, &*file, end, &found.live)?;
        let hits = &found.live.hits;
        let unwanted = Unwanted {
            chosen,
            spaces: Some(&chosen.spaces).filter(|_| surveyed.is_told),
            drops_history: order.drop_history,
        };
        let (backups, quarantine) = holding(&site, &unwanted, threads)?;
        let (ids, belonging) = chosen.told();
        let bases = segments.iter().map(|segment| &segment.start).chain([start]);
        let bases = bases
            .filter_map(|start| start.base)
            .flat_map(|base| names_of_base(&base));
        let is_there = |name: &String| site.disk.exists(&site.layout.inside(name));
        let dropped: Vec<String> = segments
            .iter()
            .map(|segment| segment.name.clone())
            .chain(bases.filter(is_there))
            .collect();
        let mut told = Erased {
            ids,
            belonging,
            mentions: chosen.mentions(&self.state),
            lines: past.lines,
            unsalted: past.unsalted,
            by_log: std::mem::take(&mut past.by_log),
            replaced: match order.drop_history {
                true if past.lines > 0 => dropped.len() as u64,
                _ => past.files,
            },
            backups,
            quarantine,
            ..Erased::default()
        };
        let is_only_aside = told.lines == 0 && told.replaced == 0 && told.backups.is_empty();
        if is_only_aside && order.drop_history {
            // All that was set aside goes with a history that is dropped; only what holds it is a reason to drop one.
            let holding_it = Unwanted {
                drops_history: false,
                ..unwanted
            };
            if holding(&site, &holding_it, threads)?.1.is_empty() {
                told.quarantine.clear();
            }
        }
        if order.dry_run || (is_only_aside && told.quarantine.is_empty()) {
            return Ok(told);
        }
        if past.replaced.len() > erasure::MOST_REPLACED {
            return Err(Error::limit(
                "more than 50,000 files of the past would be replaced: compact without history first",
            ));
        }
        let (lines, span) = (past.lines, past.span);
        let (mut replaced, mut remove) = (std::mem::take(&mut past.replaced), std::mem::take(&mut past.remove));
        let mut kept = past.sum()?;
        if order.drop_history {
            replaced.clear();
            remove.extend(dropped);
            self.mark(now)?;
            self.settle();
        }
        let erased = if order.drop_history { 0 } else { hits.len() as u64 };
        let going = self.state.slots_named(doomed.ids());
        let records = match &mut kept {
            Some(kept) => kept.freeze()?,
            None => self.state.freeze_without(&going)?,
        };
        let (header, salt) = (header_of(&self.log), base_salt(options.salts())?);
        let pack = || {
            if order.drop_history {
                return Ok(None);
            }
            let span = (mark.first_seq.unwrap_or(0), mark.last_seq);
            let (name, digest) = pack_without(&site, (&file, end), hits, span, threads)?;
            Ok(Some((name, digest.text().to_owned())))
        };
        let write = || write_frozen(&site, &header, salt.as_deref(), &records, &mut |_, _| {});
        let is_worth_a_thread = threads > 1 && end >= options.beside_from_bytes;
        let (archive, base) = both(is_worth_a_thread, pack, write)?;
        drop(records);
        remove.extend(told.backups.iter().chain(&told.quarantine).cloned());
        let unnamed = self.vectors.unnamed_rows(&self.state)?;
        let moved = self.leave_rows(chosen)?;
        remove.extend(moved.files.iter().cloned());
        let in_vectors = |path: &std::path::PathBuf| Some(format!("vectors/{}", path.file_name()?.to_string_lossy()));
        remove.extend(unnamed.iter().filter_map(in_vectors));
        let retirement = Retirement {
            label: format!("Erased at seq={}", self.log.link().next_seq - 1),
            archive,
            more: vec![
                ("erased".to_owned(), number(erased)),
                ("replaced".to_owned(), Value::Array(replaced)),
                ("repaired".to_owned(), Value::Array(Vec::new())),
            ],
            repair: None,
            goes_on: !order.drop_history,
        };
        let depth = options.recursion_depth;
        let mut new = retirement.sentinel(&self.log, base.text(), depth, now)?;
        let ts = stamp::digits(now.max(self.log.latest()));
        let seq = new.link.next_seq;
        let record = event_record(seq, order, lines, span, &told);
        debug_assert!(erasure::Erasure::read(seq, format!("erasure:{seq}").as_bytes(), &record).is_some());
        new.push(EventBody {
            op: Op::Erase,
            id: format!("erasure:{seq}").as_bytes(),
            record: &record,
            ts: &ts,
            depth,
        });
        told.again = say_again(&mut new, (&self.state, kept.as_ref()), chosen, &moved, &options, &ts)?;
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
        if self.go_on_behind(kept, &going).is_err() {
            self.reload(&mut |_, _| {})?;
        }
        self.make_ready()?;
        self.log.tell_head();
        self.finish_erasing()?;
        Ok(told)
    }
}

fn check_order(order: &Erase) -> Result<()> {
    if let Some(id) = order.ids.iter().find(|id| is_reserved(id)) {
        return Err(Error::invalid("ids", format!("{id:?} is not erased by itself")));
    }
    erasure::check_reason(&order.reason)
}

/// Erases records from a store and from all of its past; gives what was done.
///
/// # Errors
/// `Corrupted` if anything is damaged or missed, `Busy` if the history has a hole, `Invalid`, `Locked`, `Io`, `Closed`,
/// `Poisoned`; nothing has happened then. What goes wrong behind the commit point is ended by whoever opens the store next.
pub fn erase(turns: &impl Turns, order: &Erase, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<Erased> {
    check_order(order)?;
    turns.turn(|store| store.check_tail_at_the_end())?;
    let _care = take_care(turns, now())?;
    let (site, threads) = turns.turn(|store| Ok((Arc::clone(&store.site), store.options.threads)))?;
    // Others go on meanwhile. What is seen here need not be looked for under the lock, if they change nothing.
    let ahead = turns.turn(|store| store.look_ahead(order))?;
    let watcher = Watcher::of(&ahead.chosen);
    let damage = prove(&*site.disk, &site.layout, threads, &watcher, progress)?;
    let sight = watcher.sight();
    if let Some(damage) = damage.into_iter().next() {
        return Err(Error::Corrupted(Box::new(damage)));
    }
    if !order.dry_run {
        clear_leftovers(turns, now())?;
    }
    let known = KnownCopies::read(&site)?;
    let (mut told, chosen) = turns.turn(|store| {
        let now = now();
        store.with_lock(now, |store| {
            store.check_erasable()?;
            store.anchor(now)?;
            store.sync_log()?;
            store.settle_hint()?;
            store.settle();
            let order = &*order.now(store)?;
            let surveyed = store.survey(order, ahead, sight)?;
            let told = match surveyed.chosen.is_empty() {
                true => Erased::default(),
                false => store.erase_now(order, &surveyed, now, progress)?,
            };
            Ok((told, surveyed.chosen))
        })
    })?;
    if !chosen.is_empty() {
        // Others go on meanwhile: it may take long to reach them.
        (told.copies, told.missing_copies) = outside(&site, &known, &chosen, threads);
    }
    if told.seq.is_some() {
        write_snapshot(turns)?;
    }
    Ok(told)
}

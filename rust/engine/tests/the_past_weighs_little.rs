//! Compacted again and again, few bases stay, and every moment is still told as it was, wherever a crash came.

use crate::crash_disk::CrashDisk;
use crate::scenario::{Model, contents, fresh_disk, layout, model_of, open, record};
use crate::upkeep::Upkeep;
use chronomemory::testing::archive;
use chronomemory::testing::disk::read_upto;
use chronomemory::{Disk, Draft, Durability, Erase, Error, Moment, Prune, Query, Store};

const RECORDS: u64 = 12;

/// One step of a store's life: so many records are written, and then it is compacted.
fn live_on(
    store: &mut Store,
    clock: &mut i64,
    writes: u64,
    models: &mut Vec<(u64, Model)>,
) -> chronomemory::Result<()> {
    for _ in 0..writes {
        *clock += 1;
        let number = *clock as u64;
        // Text that does not shrink to nothing when it is packed.
        let label: String = (0..20)
            .map(|n| format!("{:x}", number.wrapping_mul(2_654_435_761 * (n + 3))))
            .collect();
        let mut draft = Draft::default();
        draft.upsert_value(&record(&format!("R{}", number % RECORDS), &label), 0, None)?;
        store.commit(&draft, crate::scenario::START + *clock * 1000)?;
        models.push((store.last_seq(), contents(store)));
    }
    *clock += 1;
    store.compact(true, crate::scenario::START + *clock * 1000, &mut |_, _| {})?;
    Ok(())
}

fn bases(disk: &CrashDisk) -> (Vec<String>, Vec<String>) {
    let names = disk.list(&layout().bases()).unwrap_or_default();
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
    names.into_iter().partition(|name| !name.ends_with(".zst"))
}

fn weight(disk: &CrashDisk, names: &[String]) -> u64 {
    let length = |name: &String| disk.status(&layout().bases().join(name)).expect("a base").length;
    names.iter().map(length).sum()
}

fn check_past(disk: &CrashDisk, models: &[(u64, Model)], what: &str) {
    let store = open(disk, Durability::Full).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{what}: {report:?}");
    assert!(
        !report.notes.iter().any(|note| note.contains("unavailable")),
        "{what}: {:?}",
        report.notes
    );
    let reached = store.last_seq();
    for (seq, model) in models.iter().filter(|(seq, _)| *seq <= reached) {
        let view = store
            .past()
            .as_of(Moment::Seq(*seq))
            .unwrap_or_else(|fault| panic!("{what}, {seq}: {fault}"));
        let everything = Query {
            faces: true,
            ..Query::default()
        };
        assert_eq!(
            model_of(everything.records(view.state()).expect("memory")),
            *model,
            "{what}, {seq}"
        );
    }
}

#[test]
fn few_bases_stay_and_every_moment_is_told_as_it_was() {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let (mut clock, mut models) = (0, Vec::new());
    let (mut most, mut least) = (0, usize::MAX);
    live_on(&mut store, &mut clock, 30, &mut models).expect("a life");
    disk.create(&layout().bases().join("notes.json.zst"))
        .expect("somebody's file");
    for day in 0..60 {
        live_on(&mut store, &mut clock, 1 + day % 3, &mut models).expect("a life");
        let (plain, mut packed) = bases(&disk);
        packed.retain(|name| name != "notes.json.zst");
        assert_eq!(plain.len(), 1, "only the newest is not packed");
        let newest = weight(&disk, &plain);
        assert!(weight(&disk, &packed) <= newest, "day {day}: {packed:?}");
        most = most.max(packed.len());
        least = if day > 40 { least.min(packed.len()) } else { least };
    }
    assert!((2..8).contains(&most) && least > 0, "{most} {least}");
    assert!(disk.exists(&layout().bases().join("notes.json.zst")));
    store.close().expect("close");
    models.retain(|(seq, _)| seq % 5 == 0);
    check_past(&disk, &models, "after 60 days");
}

/// A store that was compacted once, and one whose next compactions pack a base, and leave one out.
fn prepared() -> (CrashDisk, i64, Vec<(u64, Model)>) {
    let disk = fresh_disk();
    let mut store = open(&disk, Durability::Full).expect("open");
    let (mut clock, mut models) = (0, Vec::new());
    live_on(&mut store, &mut clock, 16, &mut models).expect("a life");
    store.close().expect("close");
    (disk, clock, models)
}

fn go_on(disk: &CrashDisk, clock: &mut i64, models: &mut Vec<(u64, Model)>) -> chronomemory::Result<()> {
    let mut store = open(disk, Durability::Full)?;
    for writes in [1, 1, 14, 1] {
        live_on(&mut store, clock, writes, models)?;
    }
    store.close()
}

#[test]
fn at_every_operation_the_whole_past_is_within_reach() {
    let (whole, mut clock, mut models) = prepared();
    let first = whole.steps() + 1;
    go_on(&whole, &mut clock, &mut models).expect("a life");
    let last = whole.steps();
    let (plain, packed) = bases(&whole);
    assert_eq!((plain.len(), packed.len()), (1, 2), "one is left out, two are packed");
    check_past(&whole, &models, "whole");
    let (mut both, mut drafts) = (0, 0);
    for step in first..=last {
        let (disk, mut clock, mut told) = prepared();
        disk.crash_at(step);
        let _ = go_on(&disk, &mut clock, &mut told);
        assert!(disk.crashed());
        for (after, what) in [
            (disk.after_kill(), format!("killed at {step}")),
            (disk.after_crash(step), format!("power lost at {step}")),
        ] {
            let names = after.list(&layout().bases()).unwrap_or_default();
            both += u64::from(names.iter().any(|name| names.contains(&format!("{name}.zst"))));
            drafts += u64::from(names.iter().any(|name| name.ends_with(".json.zst.tmp")));
            if step % 3 == 0 {
                check_past(&after, &models, &what);
            }
            let mut store = open(&after, Durability::Full).expect("open");
            live_on(&mut store, &mut clock.clone(), 1, &mut Vec::new()).expect("the next compaction ends it");
            store.close().expect("close");
            let (plain, _) = bases(&after);
            assert_eq!(plain.len(), 1, "{what}");
            if step % 3 == 1 {
                let reached = models
                    .iter()
                    .filter(|(seq, _)| *seq < told.last().map_or(0, |told| told.0));
                check_past(&after, &reached.cloned().collect::<Vec<_>>(), &what);
            }
        }
    }
    assert!(both > 0 && drafts > 0, "{both} {drafts}");
}

#[test]
fn what_is_not_as_it_should_be_stays() {
    let (disk, mut clock, mut models) = prepared();
    let (plain, _) = bases(&disk);
    let there = layout().bases().join(&plain[0]);
    let taken = layout().bases().join(format!("{}.zst", plain[0]));
    disk.create_dir(&taken).expect("somebody's folder");
    let mut store = open(&disk, Durability::Full).expect("open");
    live_on(&mut store, &mut clock, 1, &mut models).expect("a life");
    assert!(disk.exists(&there), "nothing can take its place");
    disk.remove_dir(&taken).expect("the folder goes");
    let file = disk.open(&there, chronomemory::Access::Write).expect("a base");
    file.write_at(b"#", 40).expect("damage");
    live_on(&mut store, &mut clock, 1, &mut models).expect("a life");
    assert!(disk.exists(&there) && !disk.exists(&taken), "damage is not packed away");
    store.close().expect("close");
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(!report.valid(), "{report:?}");
}

/// The packed bases that hold a text.
fn packed_with(disk: &CrashDisk, text: &str) -> usize {
    let (_, packed) = bases(disk);
    let holds = |name: &&String| {
        let base = archive::open(disk, &layout().bases().join(name)).expect("a base").log;
        let mut bytes = Vec::new();
        read_upto(&*base, &mut bytes, 0, base.length().expect("a length") as usize).expect("bytes");
        String::from_utf8_lossy(&bytes).contains(text)
    };
    packed.iter().filter(holds).count()
}

#[test]
fn what_is_erased_goes_from_packed_bases_too() {
    let (disk, mut clock, mut models) = prepared();
    go_on(&disk, &mut clock, &mut models).expect("a life");
    assert!(packed_with(&disk, "\"R3\"") > 0 && packed_with(&disk, "\"R4\"") > 0);
    let order = Erase {
        ids: vec!["R3".to_owned()],
        reason: "asked for".to_owned(),
        ..Erase::default()
    };
    let mut store = open(&disk, Durability::Full).expect("open");
    let told = store
        .erase(&order, crate::scenario::START + 5_000_000, &mut |_, _| {})
        .expect("an erasure");
    assert!(told.replaced > 0);
    assert_eq!(packed_with(&disk, "\"R3\""), 0);
    let mut after = models.clone();
    after.iter_mut().for_each(|(_, model)| drop(model.remove("R3")));
    store.close().expect("close");
    check_past(&disk, &after, "after the erasure");
    let mut store = open(&disk, Durability::Full).expect("open");
    live_on(&mut store, &mut clock, 1, &mut Vec::new()).expect("the next compaction");
    store.close().expect("close");
    assert_eq!((packed_with(&disk, "\"R3\""), bases(&disk).0.len()), (0, 1));
    check_past(&disk, &after, "compacted after the erasure");
}

const LATER: i64 = crate::scenario::START + 50_000_000;

/// A store with five archives and two packed bases.
fn with_archives() -> (CrashDisk, i64, Vec<(u64, Model)>) {
    let (disk, mut clock, mut models) = prepared();
    go_on(&disk, &mut clock, &mut models).expect("a life");
    (disk, clock, models)
}

fn pruning(before: i64) -> Prune {
    Prune {
        before: Some(before),
        reason: "after 90 days".to_owned(),
        ..Prune::default()
    }
}

fn archives(disk: &CrashDisk) -> Vec<String> {
    disk.list(&layout().archives()).unwrap_or_default()
}

/// From which seq on the past is there: nothing behind it is missing.
fn first_within_reach(disk: &CrashDisk, models: &[(u64, Model)], what: &str) -> Option<u64> {
    let store = open(disk, Durability::Full).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{what}: {report:?}");
    let everything = Query {
        faces: true,
        ..Query::default()
    };
    let mut first = None;
    for (seq, model) in models {
        match store.past().as_of(Moment::Seq(*seq)) {
            Ok(view) => {
                first.get_or_insert(*seq);
                assert_eq!(
                    model_of(everything.records(view.state()).expect("memory")),
                    *model,
                    "{what}, {seq}"
                );
            }
            Err(Error::HistoryUnavailable { .. }) => assert_eq!(first, None, "{what}: a hole at {seq}"),
            Err(fault) => panic!("{what}: {fault}"),
        }
    }
    first
}

#[test]
fn the_oldest_archives_go_up_to_a_base_that_is_there() {
    let (disk, clock, models) = with_archives();
    let mut store = open(&disk, Durability::Full).expect("open");
    let all = archives(&disk).len();
    let nothing = store
        .prune(&pruning(crate::scenario::START), LATER)
        .expect("nothing is so old");
    assert_eq!(
        (nothing.seq, nothing.archives.len(), archives(&disk).len()),
        (None, 0, all)
    );
    // So old are all but the newest archive; the base of that is packed, and there.
    let before = crate::scenario::START + (clock - 2) * 1000;
    let dry = Prune {
        dry_run: true,
        ..pruning(before)
    };
    let would = store.prune(&dry, LATER).expect("a dry run");
    assert_eq!((would.seq, archives(&disk).len()), (None, all));
    let told = store.prune(&pruning(before), LATER).expect("a pruning");
    assert_eq!(told.archives, would.archives);
    assert_eq!(archives(&disk).len(), all - told.archives.len());
    assert!(told.seq.is_some() && !told.archives.is_empty() && told.archives.len() < all);
    let record = store
        .state()
        .get(&format!("pruned:{}", told.seq.unwrap_or(0)))
        .map(std::borrow::Cow::into_owned);
    assert!(record.is_some_and(|record| String::from_utf8_lossy(&record).contains("after 90 days")));
    assert!(
        store.past().of_record("R1").is_ok(),
        "what went on purpose is not missed"
    );
    store.close().expect("close");
    let first = first_within_reach(&disk, &models, "pruned");
    assert!(first.is_some_and(|first| first >= told.last_seq), "{first:?} {told:?}");
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    let said = format!("pruned at event {}: \"after 90 days\"", told.seq.unwrap_or(0));
    assert!(
        report.notes.iter().any(|note| note.starts_with(&said)),
        "{:?}",
        report.notes
    );
    assert!(
        !report.notes.iter().any(|note| note.contains("unavailable")),
        "{:?}",
        report.notes
    );
    // All goes on: erasing, compacting, pruning the rest.
    let mut store = open(&disk, Durability::Full).expect("open");
    let order = Erase {
        ids: vec!["R3".to_owned()],
        reason: "asked for".to_owned(),
        ..Erase::default()
    };
    store.erase(&order, LATER + 1, &mut |_, _| {}).expect("an erasure");
    store.prune(&pruning(i64::MAX), LATER + 2).expect("the rest");
    assert_eq!(
        (archives(&disk).len(), bases(&disk).0.len(), bases(&disk).1.len()),
        (0, 1, 0)
    );
    live_on(&mut store, &mut (clock + 100_000), 1, &mut Vec::new()).expect("a life");
    store.close().expect("close");
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid() && report.returned.is_empty(), "{report:?}");
    assert!(!disk.exists(&layout().quarantine()), "nothing was taken for somebody's");
}

#[test]
fn at_every_operation_of_a_pruning_nothing_has_a_hole() {
    let (whole, clock, models) = with_archives();
    let before = crate::scenario::START + (clock - 2) * 1000;
    let first = whole.steps() + 1;
    let mut store = open(&whole, Durability::Full).expect("open");
    let last_seq = store.prune(&pruning(before), LATER).expect("a pruning").last_seq;
    store.close().expect("close");
    let left = archives(&whole).len();
    for step in first..=whole.steps() {
        let (disk, _, _) = with_archives();
        disk.crash_at(step);
        if let Ok(mut store) = open(&disk, Durability::Full) {
            let _ = store.prune(&pruning(before), LATER).and_then(|_| store.close());
        }
        assert!(disk.crashed());
        for (after, what) in [
            (disk.after_kill(), format!("killed at {step}")),
            (disk.after_crash(step), format!("power lost at {step}")),
        ] {
            let reach = first_within_reach(&after, &models, &what);
            let mut store = open(&after, Durability::Full).expect("open");
            let is_told = contents(&store).keys().any(|id| id.starts_with("pruned:"));
            assert!(
                is_told || reach == models.first().map(|(seq, _)| *seq),
                "{what}: gone unsaid"
            );
            live_on(&mut store, &mut (clock + 100_000), 1, &mut Vec::new()).expect("the next compaction");
            store.close().expect("close");
            let reach = first_within_reach(&after, &models, &what);
            assert_eq!(is_told, reach.is_none_or(|first| first >= last_seq), "{what}");
            assert_eq!(
                is_told,
                archives(&after).len() == left + 1,
                "{what}: {:?}",
                archives(&after)
            );
        }
    }
}

#[test]
fn of_the_backups_the_newest_stay() {
    let (disk, _, _) = prepared();
    let mut store = open(&disk, Durability::Full).expect("open");
    for n in 0..3 {
        store.backup(LATER + n * 1_000_000, &mut |_, _| {}).expect("a backup");
    }
    disk.create_dir(&layout().backups().join("mine"))
        .expect("somebody's folder");
    let order = Prune {
        keep_backups: Some(1),
        ..Prune::default()
    };
    let newest = disk.list(&layout().backups()).expect("backups")[2].clone();
    let told = store.prune(&order, LATER).expect("a pruning");
    assert_eq!((told.seq, told.backups.len()), (None, 2));
    assert_eq!(
        disk.list(&layout().backups()).expect("backups"),
        [newest, "mine".to_owned()]
    );
}

//! A writer in a hurry keeps the lock between its commits for a short while only, and then others get it.

use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use crate::scenario::{Action, START, contents, draft, fresh_disk, layout};
use crate::stage::{Play, SECOND};
use chronomemory::{Access, Disk, Durability, Error, Options, Store};

fn attended(disk: &CrashDisk) -> Store {
    let options = Options {
        attended: true,
        ..Options::default()
    };
    Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {}).expect("open")
}

fn write(store: &mut Store, n: u32, now: i64) -> chronomemory::Result<()> {
    store.commit(&draft(&Action::Put(n)), now).map(|_| ())
}

#[test]
fn one_write_keeps_nothing_and_a_rush_keeps_the_lock_for_a_moment() {
    let disk = fresh_disk();
    let (mut one, mut two) = (attended(&disk), attended(&disk));
    write(&mut one, 1, START).expect("a write");
    assert!(!one.log().lock.is_leased(), "a single write");
    write(&mut one, 2, START + 100).expect("a write");
    assert!(one.log().lock.is_leased(), "a second one at once");
    assert!(matches!(write(&mut two, 3, START + 100), Err(Error::Locked { .. })));
    assert!(one.end_lease(START + 200), "it may still go on");
    assert!(!one.end_lease(START + 900), "it did not");
    write(&mut two, 4, START + 1_000).expect("the other's turn");
    one.refresh().expect("a look");
    assert_eq!(contents(&one), contents(&two));
}

/// Puts a copy of the log in its place, as a checkout does, without the lock.
fn replace(disk: &CrashDisk) {
    let (log, copy) = (layout().log().to_owned(), layout().log().with_extension("copy"));
    let old = disk.open(&log, Access::Read).expect("the log");
    let mut bytes = vec![0; usize::try_from(old.length().expect("a length")).expect("a size")];
    old.read_at(&mut bytes, 0).expect("the bytes");
    disk.create(&copy)
        .expect("a copy")
        .write_at(&bytes, 0)
        .expect("its bytes");
    disk.rename(&copy, &log).expect("in its place");
}

#[test]
fn a_log_that_is_replaced_in_a_lease_is_told_of() {
    for ends in [None, Some(900)] {
        let disk = fresh_disk();
        let mut one = attended(&disk);
        for n in 0..3 {
            write(&mut one, n, START + i64::from(n)).expect("a write");
        }
        assert!(one.log().lock.is_leased());
        replace(&disk);
        write(&mut one, 3, START + 50).expect("nobody looks at every commit");
        if let Some(later) = ends {
            assert!(!one.end_lease(START + later));
        }
        let fault = write(&mut one, 4, START + 400).expect_err("the log is another one");
        assert!(fault.to_string().contains("replaced"), "{fault}");
        assert!(!one.log().lock.is_leased(), "others may have the lock");
        // It wrote what is not there any more: to go on in silence would hide that.
        write(&mut one, 5, START + 500).expect_err("what it wrote is missing");
        one.close().expect("close");
        let mut next = attended(&disk);
        write(&mut next, 6, START + 600).expect("whoever opens it goes on from what is there");
        assert_eq!(contents(&next).len(), 4, "the first three, and the last");
    }
}

#[test]
fn a_log_that_is_replaced_in_the_last_lease_is_told_of_at_the_end() {
    let disk = fresh_disk();
    let mut one = attended(&disk);
    (0..3).for_each(|n| write(&mut one, n, START + i64::from(n)).expect("a write"));
    replace(&disk);
    assert!(one.close().is_err());
    one.close().expect("once is enough");
}

#[test]
fn a_writer_that_never_pauses_lets_others_in() {
    let disk = fresh_disk();
    let (mut hot, mut patient) = (attended(&disk), attended(&disk));
    let mut waited = 0;
    for step in 0..200_u32 {
        let now = START + i64::from(step) * 50;
        write(&mut hot, step, now).expect("a write");
        if step > 10 {
            match write(&mut patient, 1_000 + step, now) {
                Ok(()) => waited = 0,
                Err(Error::Locked { .. }) => waited += 50,
                Err(fault) => panic!("{fault}"),
            }
            assert!(waited <= 2_000, "waited {waited} µs");
            patient.end_lease(now + 10_000);
        }
    }
    hot.close().expect("close");
    patient.close().expect("close");
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{report:?}");
}

#[test]
fn nothing_is_kept_while_nobody_looks_after_the_store() {
    let disk = fresh_disk();
    let mut store = attended(&disk);
    write(&mut store, 1, START).expect("a write");
    write(&mut store, 2, START + 100).expect("a write");
    assert!(store.log().lock.is_leased());
    store.leave_alone(true);
    assert!(!store.log().lock.is_leased(), "what was kept is given back");
    write(&mut store, 3, START + 200).expect("a write");
    write(&mut store, 4, START + 300).expect("a write");
    assert!(!store.log().lock.is_leased(), "and nothing more is kept");
    write(&mut attended(&disk), 5, START + 310).expect("another writer need not wait");
    store.leave_alone(false);
    write(&mut store, 6, START + 400).expect("a write");
    assert!(store.log().lock.is_leased(), "until someone is back");
}

#[test]
fn a_turn_keeps_others_from_writing_until_it_ends_or_a_second_has_passed() {
    let disk = fresh_disk();
    let play = Play::on(disk.clone(), Durability::Normal).expect("open");
    let mut other = attended(&disk);
    let is_locked = |written: chronomemory::Result<()>| matches!(written, Err(Error::Locked { .. }));
    let turn = play.engine.in_turn(|| {
        assert!(is_locked(write(&mut other, 1, START)));
        play.write(1);
        play.live(SECOND / 2);
        assert!(is_locked(write(&mut other, 2, START)), "writing does not end a turn");
        let inner = play.engine.in_turn(|| is_locked(write(&mut other, 3, START)));
        assert!(inner.expect("a turn inside of a turn"));
        assert!(is_locked(write(&mut other, 4, START)), "which does not end it either");
    });
    turn.expect("a turn");
    write(&mut other, 5, START + SECOND).expect("the turn has ended");
    let long = play.engine.in_turn(|| {
        play.live(2 * SECOND);
        write(&mut other, 6, START + 3 * SECOND).expect("a turn that took too long has ended");
        play.write(1);
    });
    long.expect("a turn");
    write(&mut other, 7, START + 4 * SECOND).expect("the lock is free");
}

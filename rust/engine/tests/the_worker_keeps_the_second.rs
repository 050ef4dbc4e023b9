//! What mode `normal` acknowledged is on disk a second later, for the worker sees to it, whenever the power fails.
//!
//! Time passes only when the test says so, and the disk forgets what was not synced. Every failure names the run, the
//! operation and the seed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::crash_disk::CrashDisk;
use crate::scenario::{chance, contents, fresh_disk, layout, record};
use crate::stage::{Play, SECOND, Stage};
use chronomemory::{Draft, Durability, Engine, Machine, Options};

const MILLI: i64 = 1_000;

/// Writes, pauses of all lengths, a rush, enough events for a snapshot, and a write while the disk is at work.
fn perform(play: &Play) {
    let other = play.clone();
    play.meanwhile(move |is_before| {
        other.stage.wait(20 * MILLI);
        if is_before {
            other.write(1);
        }
        other.stage.wait(20 * MILLI);
    });
    for pause in [10 * MILLI, 480 * MILLI, 450 * MILLI, 5 * MILLI, 3 * SECOND] {
        play.write(1);
        play.live(pause);
    }
    for _ in 0..6 {
        play.write(1);
        play.live(100);
    }
    play.live(890 * MILLI);
    play.write(60);
    play.live(2 * SECOND);
    play.engine.compact(true, &mut |_, _| {}).ok();
    for _ in 0..4 {
        play.write(2);
        play.live(700 * MILLI);
    }
    play.live(3 * SECOND);
}

fn open(disk: CrashDisk) -> Option<Play> {
    Play::on(disk, Durability::Normal).ok()
}

#[test]
fn a_write_that_is_a_second_old_survives_a_crash_at_every_operation() {
    let disk = fresh_disk();
    let first = disk.steps() + 1;
    let whole = open(disk.clone()).expect("open");
    perform(&whole);
    assert_eq!(whole.lost(1), None, "at the end");
    let mut crashes = 0;
    for step in first..=disk.steps() {
        let disk = fresh_disk();
        disk.crash_at(step);
        let Some(play) = open(disk.clone()) else { continue };
        perform(&play);
        assert!(disk.crashed(), "operation {step}");
        for number in chance::wanted("Normal", step, 4, true) {
            assert_eq!(play.lost(number * 7919 + step), None, "Normal {step} {number}");
            crashes += 1;
        }
    }
    chance::tell("crash points of the worker", crashes);
    assert!(chance::is_replay() || crashes > 300, "{crashes}");
}

#[test]
fn nothing_is_kept_where_nobody_looks_after_the_store() {
    let play = open(fresh_disk()).expect("open");
    play.write(1);
    play.live(2 * SECOND);
    play.write(1);
    // Without the worker: the check above would notice.
    play.stage.wait(2 * SECOND);
    let lost = (0..40).filter(|seed| play.lost(*seed).is_some()).count();
    assert!(lost > 0, "an unsynced write survived every crash");
    play.live(0);
    assert_eq!(
        (0..40).find_map(|seed| play.lost(seed)),
        None,
        "who comes late syncs at once"
    );
}

/// Numbers that look as if nobody had chosen them.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn time(&mut self, limit: i64) -> i64 {
        i64::try_from(self.below(limit.unsigned_abs())).expect("a time")
    }
}

/// Does what chance says, with a look at what a power failure would leave after every step; or until the power fails.
fn improvise(play: &Play, seed: u64) {
    let mut dice = Dice(seed);
    let (other, mut later) = (play.clone(), Dice(seed ^ 0xABCD));
    play.meanwhile(move |_| {
        other.stage.wait(later.time(25 * MILLI));
        if later.below(3) == 0 {
            other.write(1);
        }
        other.stage.wait(later.time(20 * MILLI));
        assert_eq!(other.lost(seed), None, "run {seed}, while the disk is at work");
    });
    for step in 0..30 {
        match dice.below(10) {
            0..=3 => play.write(1),
            4 => play.write(40),
            5 => (0..5).for_each(|_| {
                play.write(1);
                play.live(dice.time(400));
            }),
            6 if dice.below(3) == 0 => drop(play.engine.compact(dice.below(2) == 0, &mut |_, _| {})),
            6 => drop(play.engine.sync()),
            _ => {}
        }
        let pause = [MILLI, 300 * MILLI, SECOND, 3 * SECOND][usize::try_from(dice.below(4)).expect("a number")];
        play.live(dice.time(pause));
        if play.disk.crashed() {
            return;
        }
        assert_eq!(play.lost(seed + step), None, "run {seed}, step {step}");
    }
}

#[test]
fn and_whatever_happens_meanwhile() {
    let mut crashes = 0;
    for seed in chance::wanted("Chance", 0, 20, true) {
        let disk = fresh_disk();
        let play = open(disk.clone()).expect("open");
        improvise(&play, seed);
        let steps = disk.steps();
        for round in 0..4 {
            let disk = fresh_disk();
            disk.crash_at(disk.steps() + 1 + Dice(seed * 31 + round).below(steps));
            let Some(play) = open(disk.clone()) else { continue };
            improvise(&play, seed);
            for number in 0..3 {
                let lost = play.lost(seed * 7919 + number);
                assert_eq!(lost, None, "Chance 0 {seed}, round {round}");
                crashes += 1;
            }
        }
    }
    chance::tell("crash points of chance", crashes);
}

/// Two, for the first one makes the log and is synced with it.
fn write_two(engine: &Engine) {
    let mut draft = Draft::default();
    for id in ["R1", "R2"] {
        draft.upsert_value(&record(id, "kept"), 0, None).expect("a record");
        engine.commit(&mut draft).expect("a write");
        assert!(draft.is_empty(), "it is ready for the next");
    }
}

#[test]
fn a_thread_of_the_machine_does_it_too() {
    let disk = fresh_disk();
    let (options, machine) = (Options::default(), Arc::new(Machine::default()));
    let engine = Engine::open_on(Arc::new(disk.clone()), layout(), options, machine).expect("open");
    write_two(&engine);
    let began = Instant::now();
    let is_kept = |seed| {
        let after = crate::scenario::open(&disk.after_crash(seed), Durability::Full).expect("open");
        contents(&after).len() == 2
    };
    // How long a loaded machine takes is not what is tested here.
    while !(0..20).all(is_kept) {
        assert!(began.elapsed() < Duration::from_secs(30), "nobody has synced");
        std::thread::sleep(Duration::from_millis(20));
    }
    engine.close().expect("close");
}

#[test]
fn where_the_system_gives_no_thread_the_worker_does_all_itself() {
    struct Alone(Stage);
    impl chronomemory::Host for Alone {
        fn now(&self) -> i64 {
            self.0.now()
        }
        fn steady(&self) -> Duration {
            self.0.steady()
        }
        fn spawn(&self, _: &str, _: chronomemory::Work) -> std::io::Result<chronomemory::Join> {
            Err(std::io::Error::from(std::io::ErrorKind::OutOfMemory))
        }
    }
    use chronomemory::Host;
    let (disk, host) = (fresh_disk(), Arc::new(Alone(Stage::default())));
    let lent: Arc<dyn Host> = Arc::clone(&host) as Arc<dyn Host>;
    let engine = Engine::open_unattended(Arc::new(disk.clone()), layout(), Options::default(), lent).expect("open");
    write_two(&engine);
    host.0.wait(MILLI);
    assert_eq!(engine.attend().expect("a look"), Some(Duration::from_millis(899)));
    host.0.wait(899 * MILLI);
    assert_eq!(engine.attend().expect("a look"), None);
    for seed in 0..40 {
        let after = crate::scenario::open(&disk.after_crash(seed), Durability::Full).expect("open");
        assert_eq!(contents(&after).len(), 2, "seed {seed}");
    }
}

#[test]
fn whoever_must_not_wait_writes_only_where_nobody_is_waited_for() {
    let at_once = |play: &Play, id: &str| {
        let mut draft = Draft::default();
        draft.upsert_value(&record(id, "at once"), 0, None).expect("a record");
        let written = play.engine.commit_at_once(&mut draft).expect("a look").is_some();
        // What was not written can still be.
        assert_eq!(draft.is_empty(), written);
        written
    };
    let play = Play::on(fresh_disk(), Durability::Normal).expect("open");
    assert!(!at_once(&play, "A"), "there is no log yet");
    play.write(1);
    assert!(!at_once(&play, "A"), "the lock would have to be taken");
    play.stage.wait(100);
    play.write(1);
    assert!(at_once(&play, "A"), "the lock is kept from the commit before");
    play.stage.wait(2_000);
    assert!(at_once(&play, "B"), "for the last time: others have waited long enough");
    assert!(!at_once(&play, "C"), "and now it is given back");
    play.write(1);
    assert!(at_once(&play, "C"));
    play.stage.wait(2 * SECOND);
    assert!(!at_once(&play, "D"), "a sync is overdue");

    let strict = Play::on(fresh_disk(), Durability::Full).expect("open");
    for _ in 0..5 {
        strict.write(1);
        assert!(!at_once(&strict, "A"), "it would wait for the disk");
    }
    let stored = crate::scenario::open(&play.disk, Durability::Full).expect("open");
    let found: Vec<String> = contents(&stored).into_keys().collect();
    assert_eq!(found, ["A", "B", "C", "W0", "W1", "W2"]);
}

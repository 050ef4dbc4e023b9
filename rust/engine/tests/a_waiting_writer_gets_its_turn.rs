//! Writers that wait get the lock beside one that takes it again the moment it let go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chronomemory::{Disk, RealDisk};

/// Below the five seconds after which a writer gives up, far above what a loaded machine needs.
const LONGEST_WAIT: Duration = Duration::from_secs(4);

#[test]
fn greedy_writers_do_not_starve_the_others() {
    let folder = std::env::temp_dir().join(format!("chronomemory-turn-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("lock");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Two of them: they must not hand the lock to and fro between themselves either.
        for _ in 0..2 {
            scope.spawn(|| {
                let lock = RealDisk::default().lock_file(&path).expect("a lock file");
                while !over.load(Ordering::Relaxed) {
                    assert!(lock.acquire(Duration::from_secs(60)).expect("a lock"));
                    std::thread::sleep(Duration::from_micros(500));
                    lock.release().expect("a release");
                }
            });
        }
        let patient = RealDisk::default().lock_file(&path).expect("a lock file");
        let waits: Vec<Duration> = (0..20)
            .map(|_| {
                let began = Instant::now();
                assert!(patient.acquire(Duration::from_secs(60)).expect("a lock"));
                let waited = began.elapsed();
                patient.release().expect("a release");
                std::thread::sleep(Duration::from_millis(5));
                waited
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        let longest = waits.iter().max().expect("twenty waits");
        assert!(*longest < LONGEST_WAIT, "{waits:?}");
    });
    std::fs::remove_dir_all(&folder).expect("clean up");
}

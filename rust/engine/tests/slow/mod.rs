//! A disk on which every sync is counted and made to wait.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronomemory::{DiskFile, Identity};

use crate::around::Twist;

/// Files are slow to sync.
#[derive(Clone)]
pub struct Slow {
    pub delay: Duration,
    pub syncs: Arc<AtomicU64>,
}

impl Twist for Slow {
    fn hand_out(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(SlowFile {
            inner: file,
            slow: self.clone(),
        })
    }
}

struct SlowFile {
    inner: Arc<dyn DiskFile>,
    slow: Slow,
}

impl DiskFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.slow.syncs.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.slow.delay);
        self.inner.sync()
    }
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn identity(&self) -> io::Result<Identity> {
        self.inner.identity()
    }
}

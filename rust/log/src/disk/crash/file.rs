//! A file and a lock file on the crash disk.

use std::io;
use std::time::Duration;

use super::world::{FileContents, PendingChange, SharedWorld, overwrite};
use crate::disk::{DiskFile, Identity, LockFile};

pub(super) struct CrashFile {
    pub(super) world: SharedWorld,
    pub(super) inode: u64,
}

impl CrashFile {
    fn with<T>(&self, act: impl FnOnce(&mut FileContents) -> T) -> T {
        act(self.world.look().files.entry(self.inode).or_default())
    }
}

impl DiskFile for CrashFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|contents| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(contents.live.len());
            let n = buffer.len().min(contents.live.len() - start);
            buffer[..n].copy_from_slice(&contents.live[start..start + n]);
            Ok(n)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let was_off = self.world.look().crashed;
        let verdict = self.world.look().step();
        // A write that meets the crash was under way: any part of it may have reached the disk.
        if verdict.is_ok() || (!was_off && self.world.look().crashed) {
            self.with(|contents| {
                overwrite(&mut contents.live, usize::try_from(offset).unwrap_or(usize::MAX), bytes);
                contents.pending.push(PendingChange::Write(offset, bytes.to_vec()));
            });
        }
        verdict
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.world.look().step()?;
        self.with(|contents| {
            contents.live.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
            contents.pending.push(PendingChange::Truncate(length));
        });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let was_off = self.world.look().crashed;
        let verdict = self.world.look().step_of_sync();
        match &verdict {
            Ok(()) => self.with(FileContents::settle),
            // The system gives up on what it could not write: the pages count as clean from now on.
            Err(_) if !was_off && !self.world.look().crashed => self.with(|contents| contents.pending.clear()),
            Err(_) => {}
        }
        verdict
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.with(|contents| contents.live.len() as u64))
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity {
            device: 0,
            inode: self.inode,
        })
    }
}

pub(super) struct CrashLock {
    pub(super) world: SharedWorld,
    pub(super) inode: u64,
}

impl LockFile for CrashLock {
    fn acquire(&self, _patience: Duration) -> io::Result<bool> {
        Ok(self.world.look().locked.insert(self.inode))
    }

    fn release(&self) -> io::Result<()> {
        self.world.look().locked.remove(&self.inode);
        Ok(())
    }

    fn note(&self) -> io::Result<String> {
        let world = self.world.look();
        let bytes = world.files.get(&self.inode).map(|contents| contents.live.clone());
        Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
    }

    fn write_note(&self, note: &str) -> io::Result<()> {
        let mut world = self.world.look();
        world.step()?;
        let contents = world.files.entry(self.inode).or_default();
        contents.live = note.as_bytes().to_vec();
        contents.pending.push(PendingChange::Truncate(0));
        contents.pending.push(PendingChange::Write(0, note.as_bytes().to_vec()));
        Ok(())
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity {
            device: 0,
            inode: self.inode,
        })
    }
}

//! Plans and carries out what a repair does to the bases and archives of the past.
//!
//! A copy takes the place of an altered base or archive; one without a copy is taken away, once it is kept elsewhere: a
//! missing file is unavailable history, an altered one is damage for ever. All is planned first and done when the log
//! stands that tells of the repair, so an interrupted repair leaves the damage as it was, or a store that says that it
//! was repaired.

use std::io;
use std::sync::Arc;

use chronolog::archive;
use chronolog::digest::Hex;
use chronolog::disk::{Bytes, Disk, DiskFile, read_whole};
use chronolog::error::{At, Result};
use chronolog::event::mend::{Budget, mend_bytes};
use chronolog::hint::Hint;
use chronolog::layout::{Layout, base_name};
use chronolog::log::Site;
use chronolog::log::files::{copy_range, is_ours, open_base};
use chronolog::origin::{Origin, Sentinel, WayBack, foreign_traces, origin_of};

use crate::store::archives::check::{LiveEnd, Past};
use crate::store::files::held::Overlay;
use crate::store::files::proofs::{called_copy_of_base, copy_of_archive, copy_of_base, is_it};

/// So much may be hashed in search of the byte that an archive has lost.
const MENDING_BLOCKS: u64 = 20_000_000;
/// How often the history is looked through while altered files are taken out of it.
const MOST_LOOKS: usize = 1000;

/// One file, named from the store's folder on, and what is to be in its place.
struct MendingStep {
    name: String,
    /// `None` if it is to be taken away.
    instead: Option<Arc<dyn DiskFile>>,
}

/// What is to be done, in order.
#[derive(Default)]
pub(in crate::store) struct Mending {
    steps: Vec<MendingStep>,
    pub gone: Vec<String>,
}

impl Mending {
    /// The files that are replaced or taken away, from the store's folder on.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.steps.iter().map(|step| step.name.clone())
    }
}

/// Finds out what is to be done, on a disk where it is done already.
struct Plan<'a> {
    disk: &'a dyn Disk,
    layout: &'a Layout,
    after: Overlay<'a>,
    mending: Mending,
}

impl Plan<'_> {
    fn put(&mut self, name: &str, file: Arc<dyn DiskFile>) {
        self.after.show(self.layout.inside(name), Arc::clone(&file));
        self.mending.steps.push(MendingStep {
            name: name.to_owned(),
            instead: Some(file),
        });
    }

    fn take_away(&mut self, name: &str) {
        self.after.hide(self.layout.inside(name));
        self.mending.steps.push(MendingStep {
            name: name.to_owned(),
            instead: None,
        });
    }

    /// What the file of a base is called, and whether it is the right one; `None` if it is not there.
    fn base_there(&self, sha256: &Hex) -> Option<(String, bool)> {
        let (name, base) = open_base(&self.after, self.layout, sha256).ok().flatten()?;
        Some((name, archive::has_digest(&*base.log, sha256)))
    }

    /// A copy in the place of a base that is altered or gone.
    fn put_copy_of_base(&mut self, sha256: &Hex, is_past: bool) {
        let found = self.base_there(sha256);
        let copy = match found {
            Some((_, true)) => return,
            // Most bases of the past are not kept: nobody looks for those everywhere.
            None if is_past => called_copy_of_base(self.disk, self.layout, sha256),
            _ => copy_of_base(self.disk, self.layout, sha256),
        };
        let again = || found.and_then(|_| self.mended(&base_name(sha256.text()), sha256.text()));
        if let Some(copy) = copy.map(|(_, copy)| copy).or_else(again) {
            self.put(&base_name(sha256.text()), copy);
        }
    }

    /// Copies in the place of what is altered or gone, as far back as archives lead.
    fn put_copies(&mut self, mut sentinel: Sentinel) {
        let (mut way, mut is_past) = (WayBack::default(), false);
        loop {
            if let Some(sha256) = &sentinel.base_sha256 {
                self.put_copy_of_base(sha256, is_past);
            }
            is_past = true;
            let Some((name, digest)) = sentinel.safe_archive() else {
                return;
            };
            let path = self.layout.inside(name);
            if !archive::open(&self.after, &path).is_ok_and(|archive| is_it(&archive, digest)) {
                let copy = copy_of_archive(self.disk, self.layout, name, digest).map(|(_, archive)| archive.packed);
                let Some(copy) = copy.or_else(|| self.mended(name, digest)) else {
                    return;
                };
                self.put(name, copy);
            }
            let Ok(archive) = archive::open(&self.after, &path) else {
                return;
            };
            match archive.log.length().and_then(|length| origin_of(&*archive.log, length)) {
                Ok(Origin::Ours(earlier)) if earlier.last_seq < sentinel.last_seq => {
                    sentinel = way.back(&sentinel, earlier);
                }
                Ok(Origin::Foreign) => {
                    way.pass(&sentinel);
                    let adopted = adopted_by(&*archive.log).ok().flatten();
                    if let Some(sha256) = adopted.and_then(|sha256| way.base(sha256)) {
                        self.put_copy_of_base(&sha256, is_past);
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    /// A small file that lost a byte, brought back; `None` if that is not what happened to it.
    fn mended(&self, name: &str, digest: &str) -> Option<Arc<dyn DiskFile>> {
        let bytes = read_whole(self.disk, &self.layout.inside(name)).ok().flatten()?;
        let wanted = Hex::read(digest.as_bytes())?;
        let mended = mend_bytes(&bytes, &wanted, &mut Budget::of(MENDING_BLOCKS))?;
        Some(Arc::new(Bytes(mended)))
    }
}

/// The base that a log adopted, which another tool had compacted.
fn adopted_by(log: &dyn DiskFile) -> io::Result<Option<Hex>> {
    let traces = foreign_traces(log, log.length()?, u64::MAX, Hint::None)?;
    Ok(traces.adoption.map(|adoption| adoption.base_sha256))
}

impl Mending {
    /// What makes the history of a whole log whole, or `None` if it cannot be made so. Nothing is changed.
    pub fn plan(site: &Site, log: &dyn DiskFile, origin: &Origin, threads: usize) -> Result<Option<Self>> {
        let mut plan = Plan {
            disk: &*site.disk,
            layout: &site.layout,
            after: Overlay::of(&*site.disk),
            mending: Self::default(),
        };
        let base = match origin {
            Origin::Ours(sentinel) => {
                plan.put_copies(sentinel.clone());
                sentinel.base_sha256
            }
            Origin::Foreign => {
                let adopted = adopted_by(log).at(site.log())?;
                adopted.iter().for_each(|sha256| plan.put_copy_of_base(sha256, false));
                adopted
            }
            Origin::Nothing => None,
        };
        // The base of the log itself: from now on that of an archived one.
        if let Some(sha256) = &base
            && let Some((name, false)) = plan.base_there(sha256)
        {
            plan.take_away(&name);
            if !origin.has_archive() {
                // Nothing came before that adds up to it.
                plan.mending.gone.push(name);
            }
        }
        let Origin::Ours(sentinel) = origin else {
            // Nothing came before it that is ours.
            return Ok(Some(plan.mending));
        };
        for _ in 0..MOST_LOOKS {
            let archives = site.layout.archives();
            let look = || {
                let live = LiveEnd {
                    origin,
                    offset: 0,
                    seq: Some(sentinel.last_seq + 1),
                    erasures: None,
                };
                Past::follow(&plan.after, &site.layout, live, threads, None).at(&archives)
            };
            let past = look()?;
            if past.damage.is_empty() {
                return Ok(Some(plan.mending));
            }
            // A file that could not be read for a moment is none that is altered: nothing whole is taken away.
            if look()?.damage != past.damage {
                let fault = "what could not be read a moment ago can be read now: repair again";
                return Err(io::Error::other(fault)).at(&archives);
            }
            // What a log says of its past is wrong, and no other file would make it right.
            if past.damage.iter().any(|damage| damage.kind.is_of_history()) {
                return Ok(None);
            }
            for damage in past.damage {
                if !is_ours(&*site.disk, &site.layout.inside(&damage.path)) {
                    return Ok(None);
                }
                plan.take_away(&damage.path);
                plan.mending.gone.push(damage.path);
            }
        }
        Ok(None)
    }

    /// Does what was planned, one file after the other; whatever is replaced is kept already.
    pub fn carry_out(&self, site: &Site) -> Result<()> {
        for step in &self.steps {
            let path = site.layout.inside(&step.name);
            match &step.instead {
                Some(file) => {
                    let length = file.length().at(&path)?;
                    copy_range(&*site.disk, &**file, 0..length, &path, None)?;
                }
                None => site.disk.remove(&path).at(&path)?,
            }
            if let Some(folder) = path.parent() {
                site.disk.sync_dir(folder).at(folder)?;
            }
        }
        Ok(())
    }
}

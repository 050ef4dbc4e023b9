//! Finds files that an erasure took away and that are there again.

use std::collections::BTreeSet;

use chronolog::archive;
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::Disk;
use chronolog::layout::{
    ERASING, Layout, base_name, digest_in_base_name, is_archive_file, is_base_file, packed_base_name,
    short_digest_in_archive_name,
};
use chronolog::log::files::{is_folder, is_ours};
use chronolog::origin::{Origin, Sentinel, WayBack, origin_of};
use chronolog::verify::finding;

/// How many digits of a digest stand in the name of an archive.
const SHORT_DIGITS: usize = 16;

/// What logs say of files: those that erasures took away, and those that lie on the way.
#[derive(Default)]
pub(super) struct FilesTold {
    /// The digests of the former.
    olds: BTreeSet<String>,
    /// The names of the latter, from the store's folder on.
    named: BTreeSet<String>,
}

impl FilesTold {
    /// What a sentinel says. Its own files must be those that count now.
    pub fn take(&mut self, sentinel: &Sentinel) {
        let replaced = sentinel.told.erasure.iter().flat_map(|told| &told.replaced);
        self.olds.extend(replaced.map(|one| one.old.text().to_owned()));
        self.name_base(sentinel.base_sha256);
    }

    /// A base lies on the way, packed or not.
    pub fn name_base(&mut self, sha256: Option<Hex>) {
        let names = sha256.map(|sha256| [base_name(sha256.text()), packed_base_name(sha256.text())]);
        self.named.extend(names.into_iter().flatten());
    }

    /// A file lies on the way.
    pub fn name(&mut self, name: &str) {
        self.named.insert(name.to_owned());
    }

    /// The files of erased content that are there.
    pub fn returned(&self, disk: &dyn Disk, layout: &Layout) -> Vec<Damage> {
        if self.olds.is_empty() {
            return Vec::new();
        }
        let short: BTreeSet<&str> = self.olds.iter().filter_map(|old| old.get(..SHORT_DIGITS)).collect();
        let mut found: Vec<String> = Vec::new();
        for name in listed(disk, &layout.bases(), is_base_file) {
            if digest_in_base_name(&name).is_some_and(|digest| self.olds.contains(digest)) {
                found.push(format!("base/{name}"));
            }
        }
        for name in listed(disk, &layout.archives(), is_archive_file) {
            if short_digest_in_archive_name(&name).is_some_and(|digest| short.contains(digest)) {
                found.push(format!("archive/{name}"));
            }
        }
        found.retain(|name| !self.named.contains(name));
        let reason = "an erasure took it away, and it is back";
        let told = found.iter();
        told.map(|name| finding(name, DamageKind::ErasedReturned, reason))
            .collect()
    }
}

/// The same for whoever opens a store: only the first lines of archives are read, as far back as they lead.
pub(in crate::store) fn returned_at(disk: &dyn Disk, layout: &Layout, origin: &Origin) -> Vec<Damage> {
    let Origin::Ours(newest) = origin else {
        return Vec::new();
    };
    if disk.exists(&layout.inside(ERASING)) {
        return Vec::new();
    }
    let (mut told, mut way, mut sentinel) = (FilesTold::default(), WayBack::default(), newest.clone());
    loop {
        told.take(&sentinel);
        let Some((name, _)) = sentinel.safe_archive() else {
            break;
        };
        told.name(name);
        let earlier = archive::open(disk, &layout.inside(name))
            .and_then(|archive| origin_of(&*archive.log, archive.log.length()?));
        match earlier {
            Ok(Origin::Ours(earlier)) if earlier.last_seq < sentinel.last_seq => {
                sentinel = way.back(&sentinel, earlier);
            }
            // What cannot be followed is for whoever verifies.
            _ => break,
        }
    }
    told.returned(disk, layout)
}

fn listed(disk: &dyn Disk, folder: &std::path::Path, is_named_so: fn(&str) -> bool) -> Vec<String> {
    let mut names = match is_folder(disk, folder) {
        true => disk.list(folder).unwrap_or_default(),
        false => Vec::new(),
    };
    names.retain(|name| is_named_so(name) && is_ours(disk, &folder.join(name)));
    names
}

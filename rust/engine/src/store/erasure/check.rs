//! Searches a file for texts, unpacked if it is packed.

use std::path::Path;

use memchr::memmem;

use chronolog::archive::{self, FRAME_BYTES};
use chronolog::disk::{Disk, read_upto};
use chronolog::error::{At, Result};

/// Whether a file of a store holds one of some texts, which are given in lower case. Letters of ASCII count alike in both
/// cases.
///
/// # Errors
/// `Io`.
pub fn holds_any(disk: &dyn Disk, path: &Path, texts: &[Vec<u8>]) -> Result<bool> {
    let file = archive::open(disk, path).at(path)?;
    let length = file.log.length().at(path)?;
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
    let (mut buffer, mut at) = (Vec::new(), 0);
    while at < length {
        // What a text may need of the piece before stays in front.
        let kept = buffer.len().saturating_sub(longest.saturating_sub(1));
        buffer.drain(..kept);
        let read = read_upto(&*file.log, &mut buffer, at, FRAME_BYTES).at(path)?;
        if read == 0 {
            break;
        }
        let fresh = buffer.len() - read;
        buffer[fresh..].make_ascii_lowercase();
        at += read as u64;
        if texts.iter().any(|text| memmem::find(&buffer, text).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronolog::disk::CrashDisk;

    #[test]
    fn a_text_is_found_in_any_case_and_across_pieces() {
        let disk = CrashDisk::new();
        let path = Path::new("/file");
        disk.create_dir(Path::new("/")).expect("a folder");
        let mut bytes = vec![b'x'; FRAME_BYTES - 3];
        bytes.extend_from_slice(b"A SecreT");
        disk.create(path)
            .and_then(|file| file.write_at(&bytes, 0))
            .expect("a file");
        let holds = |text: &str| holds_any(&disk, path, &[text.as_bytes().to_vec()]).expect("a look");
        assert!(holds("a secret") && holds("secret") && !holds("another"));
    }
}

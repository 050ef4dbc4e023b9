//! Hash table from ids to rows: buckets of one cache line, written once and read in place.

/// A bucket: eight entries of 32 bits of the hash and a row.
const ENTRIES: usize = 8;
const BUCKET_BYTES: usize = ENTRIES * 8;
/// Entries a bucket has on average.
const LOAD: usize = 5;
/// Marks an empty entry.
const EMPTY: u32 = u32::MAX;

/// Builds the table of rows with these hashes, each given as hash and row.
pub(super) fn build(entries: impl ExactSizeIterator<Item = Option<u64>>) -> Vec<u8> {
    let buckets = entries.len().div_ceil(LOAD).max(1);
    let mut table = vec![0xff; buckets * BUCKET_BYTES];
    let mut used = vec![0_u8; buckets];
    for (row, hash) in (0_u32..).zip(entries) {
        let Some(hash) = hash else { continue };
        let mut bucket = bucket_of(hash, buckets);
        while usize::from(used[bucket]) == ENTRIES {
            bucket = (bucket + 1) % buckets;
        }
        let at = bucket * BUCKET_BYTES + usize::from(used[bucket]) * 8;
        table[at..at + 4].copy_from_slice(&tag_of(hash).to_le_bytes());
        table[at + 4..at + 8].copy_from_slice(&row.to_le_bytes());
        used[bucket] += 1;
    }
    table
}

/// How many buckets a table of this length has.
pub(super) fn bucket_count(table_bytes: usize) -> usize {
    table_bytes / BUCKET_BYTES
}

/// Calls `visit` with every row whose hash may be this one, until it returns true; `bucket` gives the bytes of a bucket.
pub(super) fn find<'a>(
    hash: u64,
    buckets: usize,
    bucket: impl Fn(std::ops::Range<usize>) -> Option<&'a [u8]>,
    mut visit: impl FnMut(u32) -> bool,
) {
    if buckets == 0 {
        return;
    }
    let mut at = bucket_of(hash, buckets);
    for _ in 0..buckets {
        let Some(bytes) = bucket(at * BUCKET_BYTES..(at + 1) * BUCKET_BYTES) else {
            return;
        };
        for entry in bytes.chunks_exact(8) {
            let word = |part: &[u8]| part.try_into().map_or(EMPTY, u32::from_le_bytes);
            let (tag, row) = (word(&entry[..4]), word(&entry[4..]));
            if row == EMPTY {
                return;
            }
            if tag == tag_of(hash) && visit(row) {
                return;
            }
        }
        at = (at + 1) % buckets;
    }
}

fn bucket_of(hash: u64, buckets: usize) -> usize {
    // The high bits choose the bucket, the low ones are compared.
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

fn tag_of(hash: u64) -> u32 {
    hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_hash() {
        let hash = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (row % 3) << 60;
        for rows in [0, 1, 7, 8, 9, 1000, 40_000_u64] {
            let hashes: Vec<Option<u64>> = (0..rows).map(|row| (row % 5 != 4).then(|| hash(row))).collect();
            let table = build(hashes.iter().copied());
            let buckets = bucket_count(table.len());
            for row in 0..rows {
                let mut found = Vec::new();
                find(
                    hash(row),
                    buckets,
                    |range| table.get(range),
                    |row| {
                        found.push(u64::from(row));
                        false
                    },
                );
                assert_eq!(found.contains(&row), row % 5 != 4, "row {row} of {rows}");
                assert!(found.len() <= 4, "few others share a tag");
            }
            find(
                hash(rows + 7),
                buckets,
                |range| table.get(range),
                |row| {
                    assert_ne!(hash(u64::from(row)), hash(rows + 7));
                    false
                },
            );
        }
    }

    #[test]
    fn a_table_whose_hashes_are_all_alike_is_still_one() {
        let table = build((0..100).map(|_| Some(u64::MAX)));
        let mut found = 0;
        find(
            u64::MAX,
            bucket_count(table.len()),
            |range| table.get(range),
            |_| {
                found += 1;
                false
            },
        );
        assert_eq!(found, 100);
    }
}

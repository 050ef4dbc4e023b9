//! Finds the heaviest of those up to a place, and adds to them, in O(log n): a Fenwick tree of maxima.

/// Weighted entries, ordered by a key.
pub(in crate::store) struct Heaviest {
    keys: Vec<u64>,
    tree: Vec<Option<(u64, usize)>>,
}

impl Heaviest {
    /// Nothing yet; these are the keys that may come.
    pub fn by(mut keys: Vec<u64>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        let tree = vec![None; keys.len() + 1];
        Self { keys, tree }
    }

    /// Adds an entry with a weight. Of two that weigh the same, the one that came first counts.
    pub fn add(&mut self, key: u64, weight: u64, entry: usize) {
        let mut at = self.keys.partition_point(|known| *known < key) + 1;
        while at < self.tree.len() {
            if self.tree[at].is_none_or(|(known, _)| known < weight) {
                self.tree[at] = Some((weight, entry));
            }
            at += at & at.wrapping_neg();
        }
    }

    /// The heaviest entry with a key below this one, with its weight.
    pub fn below(&self, key: u64) -> Option<(u64, usize)> {
        let mut at = self.keys.partition_point(|known| *known < key);
        let mut best: Option<(u64, usize)> = None;
        while at > 0 {
            if let Some(here) = self.tree[at]
                && best.is_none_or(|known| known.0 < here.0)
            {
                best = Some(here);
            }
            at &= at - 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_as_a_plain_search_does() {
        let entries: Vec<(u64, u64)> = (0..200).map(|n| (n * 7919 % 101, n * 104_729 % 53)).collect();
        let mut heaviest = Heaviest::by(entries.iter().map(|(key, _)| *key).collect());
        for (number, (key, weight)) in entries.iter().enumerate() {
            heaviest.add(*key, *weight, number);
            for asked in [0, 1, 17, 50, 100, 200] {
                let plain = entries[..=number]
                    .iter()
                    .filter(|(key, _)| *key < asked)
                    .map(|(_, weight)| *weight)
                    .max();
                assert_eq!(heaviest.below(asked).map(|(weight, _)| weight), plain);
            }
        }
    }
}

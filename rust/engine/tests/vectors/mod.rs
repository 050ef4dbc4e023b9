//! Rows that are hard to search, and the right answers for them.

use chronomemory::testing::vector::codes::{GROUP_ROWS, PART_GROUPS};
use chronomemory::testing::vector::{Codes, Cpu, MemoryPart, RowHit, RowSearch, VectorRows, search};
use roaring::RoaringBitmap;

/// A small generator: the same numbers everywhere.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Roughly a bell curve around zero.
    pub fn bell(&mut self) -> f32 {
        let sum: f64 = (0..6).map(|_| (self.next() >> 11) as f64 / (1u64 << 53) as f64).sum();
        (sum - 3.0) as f32
    }

    pub fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.bell()).collect()
    }
}

/// The kinds of rows that tests look at.
pub const KINDS: [&str; 12] = [
    "random",
    "clustered",
    "all the same",
    "few different",
    "some zero",
    "tiny",
    "huge",
    "tiny and huge",
    "spikes",
    "half steps",
    "rising",
    "not finite",
];

/// So many rows of a kind, end to end.
pub fn rows(kind: &str, count: usize, dim: usize, numbers: &mut Numbers) -> Vec<f32> {
    let centres: Vec<_> = (0..5).map(|_| numbers.vector(dim)).collect();
    let mut data = Vec::new();
    for row in 0..count {
        let near = |numbers: &mut Numbers, centre: &[f32], share: f32| -> Vec<f32> {
            centre.iter().map(|value| value + share * numbers.bell()).collect()
        };
        let scaled = |numbers: &mut Numbers, factor: f32| -> Vec<f32> {
            numbers.vector(dim).iter().map(|value| value * factor).collect()
        };
        data.extend(match kind {
            "random" => numbers.vector(dim),
            "clustered" => near(numbers, &centres[row % 5], 0.01),
            "all the same" => centres[0].clone(),
            "few different" => centres[numbers.below(5)].clone(),
            "some zero" if row % 3 == 0 => vec![0.0; dim],
            "some zero" => numbers.vector(dim),
            "tiny" => scaled(numbers, 1e-30),
            "huge" => scaled(numbers, 1e30),
            "tiny and huge" => {
                let factor = [1e-44, 1e-30, 1.0, 1e30, 1e38][row % 5];
                scaled(numbers, factor)
            }
            "spikes" => {
                let mut spiky = scaled(numbers, 1e-3);
                spiky[numbers.below(dim)] = 1.0;
                spiky
            }
            // Every component but one lies halfway between two codes: as much is lost as can be.
            "half steps" => {
                let mut halves: Vec<_> = (0..dim).map(|_| numbers.below(7) as f32 - 2.5).collect();
                halves[numbers.below(dim)] = 127.0;
                halves
            }
            // Neighbours differ by less than a float32 can tell: equal scores in long rows.
            "rising" => near(numbers, &centres[1], 1e-7 * (count - row) as f32),
            "not finite" => {
                let mut odd = numbers.vector(dim);
                odd[row % dim] = [1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY][row % 4];
                odd
            }
            other => panic!("there are no {other} rows"),
        });
    }
    data
}

/// The reference score, as plainly as it can be written.
pub fn score(query: &[f32], row: &[f32]) -> f32 {
    let sum = |left: &[f32], right: &[f32]| {
        let mut lanes = [0f64; 8];
        for (index, (left, right)) in left.iter().zip(right).enumerate() {
            lanes[index % 8] += f64::from(*left) * f64::from(*right);
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    };
    let norms = [sum(query, query).sqrt(), sum(row, row).sqrt()];
    if norms.iter().any(|norm| !norm.is_finite() || *norm == 0.0) {
        return 0.0;
    }
    let score = (sum(query, row) / (norms[0] * norms[1])) as f32;
    if score == 0.0 { 0.0 } else { score }
}

/// The right answer: every row scored, sorted and cut.
pub fn brute_force(
    rows: VectorRows<'_>,
    query: &[f32],
    k: usize,
    filter: Option<&RoaringBitmap>,
    least: Option<f32>,
) -> Vec<RowHit> {
    let mut hits: Vec<_> = (0..rows.count())
        .filter(|row| filter.is_none_or(|filter| filter.contains(*row)))
        .map(|row| RowHit {
            row,
            score: score(query, rows.row(row)),
        })
        .filter(|hit| least.is_none_or(|least| hit.score >= least))
        .collect();
    hits.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.row.cmp(&right.row)));
    hits.truncate(k);
    hits
}

/// The same, with scores as bits.
pub fn bits(hits: &[RowHit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.row, hit.score.to_bits())).collect()
}

/// The codes of all whole groups.
pub fn codes(rows: VectorRows<'_>) -> Vec<MemoryPart> {
    let groups = rows.count() as usize / GROUP_ROWS;
    let parts = (0..groups).step_by(PART_GROUPS).map(|first| {
        let rows = rows.part(first * GROUP_ROWS, PART_GROUPS * GROUP_ROWS);
        MemoryPart::of(rows, PART_GROUPS.min(groups - first), Cpu::best()).expect("codes")
    });
    parts.collect()
}

/// Holds an answer against brute force, bit for bit; no score may lie outside the bounds of its codes.
pub fn assert_exact(rows: VectorRows<'_>, codes: &[MemoryPart], queries: &[f32], asked: &RowSearch<'_>, what: &str) {
    let queries = VectorRows::packed(queries, rows.dim()).expect("queries");
    let doubt = |row: u32| panic!("{what}: row {row} is outside its bounds");
    let asked = &RowSearch {
        doubt: Some(&doubt),
        ..*asked
    };
    let parts: Vec<_> = codes.iter().map(|part| part.part(part.groups())).collect();
    let codes = Codes::new(&parts, rows.dim()).expect("parts");
    let answers = search(rows, codes, queries, asked).expect("an answer");
    assert_eq!(answers.len(), queries.count() as usize);
    for (number, answer) in (0..).zip(&answers) {
        let right = brute_force(rows, queries.row(number), asked.k, asked.filter, asked.min_score);
        assert_eq!(
            bits(answer),
            bits(&right),
            "{what}: query {number} of {} on {:?}, k {}",
            queries.count(),
            asked.cpu,
            asked.k
        );
    }
}

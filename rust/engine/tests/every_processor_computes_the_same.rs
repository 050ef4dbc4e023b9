//! Codes, scores and answers are the same bits on every way a processor can go.

use chronomemory::testing::vector::score::Scorer;
use chronomemory::testing::vector::{Cpu, MemoryPart, RowSearch, VectorRows};

use crate::vectors::{KINDS, Numbers, assert_exact, codes, rows, score};

/// Around every width of a register, and some beyond.
const DIMS: [usize; 18] = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 384, 771];

#[test]
fn scores_are_the_reference_score() {
    let mut numbers = Numbers(11);
    for dim in DIMS {
        for kind in KINDS {
            let data = rows(kind, 20, dim, &mut numbers);
            for query in data.chunks(dim).take(4) {
                for cpu in Cpu::every() {
                    let scorer = Scorer::new(query, cpu);
                    for row in data.chunks(dim) {
                        assert_eq!(
                            scorer.score(row).to_bits(),
                            score(query, row).to_bits(),
                            "{kind} rows of {dim} on {cpu:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn codes_are_the_same_bytes() {
    let mut numbers = Numbers(12);
    for dim in DIMS {
        for kind in KINDS {
            let data = rows(kind, 48, dim, &mut numbers);
            let matrix = VectorRows::packed(&data, dim).expect("rows");
            let planes = |cpu: Cpu| {
                let part = MemoryPart::of(matrix, 3, cpu).expect("groups");
                let (high, low) = part.planes();
                (high.to_vec(), low.to_vec())
            };
            let portable = planes(Cpu::portable());
            for cpu in Cpu::every() {
                assert_eq!(planes(cpu), portable, "{kind} rows of {dim} on {cpu:?}");
            }
        }
    }
}

#[test]
fn answers_are_those_of_brute_force() {
    let mut numbers = Numbers(13);
    for dim in DIMS {
        for kind in KINDS {
            let data = rows(kind, 300, dim, &mut numbers);
            let matrix = VectorRows::packed(&data, dim).expect("rows");
            let codes = codes(matrix);
            for batch in [1, 3, 6, 17] {
                for cpu in Cpu::every() {
                    let asked = RowSearch {
                        cpu,
                        ..RowSearch::best(8)
                    };
                    let queries = &data[..batch * dim];
                    assert_exact(matrix, &codes, queries, &asked, &format!("{kind} rows of {dim}"));
                }
            }
        }
    }
}

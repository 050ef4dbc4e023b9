//! A search answers as if every row had been scored, bit for bit.

use std::collections::BTreeSet;
use std::sync::Mutex;

use chronomemory::testing::vector::{Codes, Cpu, RowSearch, VectorRows, search};
use proptest::prelude::*;
use roaring::RoaringBitmap;

use crate::vectors::{KINDS, Numbers, assert_exact, codes, rows};

/// Queries that are rows, nearly rows, and nothing like them.
fn queries(data: &[f32], dim: usize, count: usize, numbers: &mut Numbers) -> Vec<f32> {
    let mut queries = Vec::new();
    for number in 0..count {
        let like = numbers.below(data.len() / dim) * dim;
        let row = &data[like..like + dim];
        match number % 4 {
            0 => queries.extend(row),
            1 => queries.extend(
                row.iter()
                    .map(|value| value + value.abs().max(1e-30) * 0.05 * numbers.bell()),
            ),
            2 => queries.extend(numbers.vector(dim)),
            _ => queries.extend(row.iter().map(|value| -value)),
        }
    }
    queries
}

#[test]
fn for_every_kind_of_rows() {
    let mut numbers = Numbers(1);
    for kind in KINDS {
        for (count, dim) in [(1, 1), (700, 1), (333, 3), (500, 17), (1500, 64), (900, 100)] {
            let data = rows(kind, count, dim, &mut numbers);
            let matrix = VectorRows::packed(&data, dim).expect("rows");
            let codes = codes(matrix);
            for (batch, k, threads) in [(1, 1, 1), (1, 10, 2), (3, 7, 2), (9, 25, 2), (20, 3, 1)] {
                let queries = queries(&data, dim, batch, &mut numbers);
                let asked = RowSearch {
                    threads,
                    ..RowSearch::best(k)
                };
                let what = format!("{count} {kind} rows of {dim}");
                assert_exact(matrix, &codes, &queries, &asked, &what);
                let strict = RowSearch {
                    min_score: Some(0.3),
                    ..asked
                };
                assert_exact(matrix, &codes, &queries, &strict, &format!("{what}, at least 0.3"));
            }
        }
    }
}

#[test]
fn for_every_k() {
    let mut numbers = Numbers(2);
    for kind in KINDS {
        let data = rows(kind, 300, 20, &mut numbers);
        let matrix = VectorRows::packed(&data, 20).expect("rows");
        let codes = codes(matrix);
        let queries = queries(&data, 20, 2, &mut numbers);
        for k in (0..=10).chain([70, 76, 149, 299, 300, 301, usize::MAX]) {
            assert_exact(matrix, &codes, &queries, &RowSearch::best(k), kind);
        }
    }
}

#[test]
fn for_every_density_of_filter() {
    let mut numbers = Numbers(3);
    for kind in ["random", "clustered", "all the same", "some zero"] {
        let data = rows(kind, 2000, 24, &mut numbers);
        let matrix = VectorRows::packed(&data, 24).expect("rows");
        let codes = codes(matrix);
        for one_in in [1, 2, 5, 40, 500, 100_000] {
            let mut filter: RoaringBitmap = (0..2000).filter(|_| numbers.below(one_in) == 0).collect();
            filter.insert_range(5_000..5_010);
            let block: RoaringBitmap = (700..700 + 1000 / one_in as u32).collect();
            for filter in [&filter, &block, &RoaringBitmap::new()] {
                for batch in [1, 5, 12] {
                    let queries = queries(&data, 24, batch, &mut numbers);
                    let asked = RowSearch {
                        filter: Some(filter),
                        threads: 2,
                        ..RowSearch::best(10)
                    };
                    assert_exact(matrix, &codes, &queries, &asked, &format!("{kind}, one in {one_in}"));
                }
            }
        }
    }
}

#[test]
fn for_queries_without_direction() {
    let mut numbers = Numbers(4);
    let data = rows("random", 300, 9, &mut numbers);
    let matrix = VectorRows::packed(&data, 9).expect("rows");
    let codes = codes(matrix);
    let filter: RoaringBitmap = (100..1000).step_by(3).collect();
    for lost in [0.0, f32::NAN, f32::INFINITY] {
        let queries: Vec<_> = [vec![lost; 9], data[..9].to_vec()].concat();
        for (filter, min_score) in [
            (None, None),
            (Some(&filter), Some(0.0)),
            (None, Some(0.1)),
            (None, Some(-0.0)),
        ] {
            let asked = RowSearch {
                filter,
                min_score,
                ..RowSearch::best(7)
            };
            assert_exact(matrix, &codes, &queries, &asked, "a query without direction");
        }
    }
}

#[test]
fn when_the_codes_lag_behind_or_run_ahead() {
    let mut numbers = Numbers(5);
    let data = rows("clustered", 1000, 12, &mut numbers);
    let all = VectorRows::packed(&data, 12).expect("rows");
    for known in [0, 15, 16, 500, 1000] {
        let codes = codes(VectorRows::packed(&data[..12 * known], 12).expect("rows"));
        for there in [1, 17, 499, 1000] {
            let matrix = VectorRows::packed(&data[..12 * there], 12).expect("rows");
            let queries = queries(&data, 12, 6, &mut numbers);
            let filter: RoaringBitmap = (0..1000).filter(|row| row % 7 != 0).collect();
            for filter in [None, Some(&filter)] {
                let asked = RowSearch {
                    filter,
                    ..RowSearch::best(5)
                };
                assert_exact(matrix, &codes, &queries, &asked, &format!("{known} of {there}"));
                assert_exact(matrix, &codes, &queries[..12], &asked, &format!("{known} of {there}"));
            }
        }
    }
    assert_eq!(all.count(), 1000);
}

#[test]
fn when_thousands_defeat_the_bounds_at_once() {
    let mut numbers = Numbers(7);
    for kind in ["all the same", "rising", "few different"] {
        let data = rows(kind, 20_000, 16, &mut numbers);
        let matrix = VectorRows::packed(&data, 16).expect("rows");
        let codes = codes(matrix);
        let filter: RoaringBitmap = (0..20_000).filter(|row| row % 9 != 0).collect();
        for (batch, k, threads) in [(1, 10, 1), (1, 10, 3), (3, 500, 2), (17, 10, 2)] {
            let asked = RowSearch {
                threads,
                ..RowSearch::best(k)
            };
            let queries = queries(&data, 16, batch, &mut numbers);
            assert_exact(matrix, &codes, &queries, &asked, kind);
            let filtered = RowSearch {
                filter: Some(&filter),
                min_score: Some(-0.5),
                ..asked
            };
            assert_exact(matrix, &codes, &queries, &filtered, kind);
        }
    }
}

#[test]
fn when_there_are_many_pieces() {
    let mut numbers = Numbers(8);
    let data = rows("clustered", 3000, 8000, &mut numbers);
    let matrix = VectorRows::packed(&data, 8000).expect("rows");
    let codes = codes(matrix);
    for (batch, threads) in [(1, 1), (2, 2), (6, 2)] {
        let asked = RowSearch {
            threads,
            ..RowSearch::best(10)
        };
        let queries = queries(&data, 8000, batch, &mut numbers);
        assert_exact(matrix, &codes, &queries, &asked, "many pieces");
    }
}

#[test]
fn a_row_that_is_not_what_its_codes_stand_for_is_reported() {
    let mut numbers = Numbers(11);
    for (count, near) in [(2000, 3), (20_000, 9000)] {
        let dim = 16;
        let query = numbers.vector(dim);
        let mut data = rows("random", count, dim, &mut numbers);
        for row in 0..near {
            let alike: Vec<f32> = query.iter().map(|value| value + 1e-4 * numbers.bell()).collect();
            data[row * 2 * dim..][..dim].copy_from_slice(&alike);
        }
        let codes = codes(VectorRows::packed(&data, dim).expect("rows"));
        data[2 * dim..][..dim].fill(0.0);
        data[4 * dim..][..dim].copy_from_slice(&query.iter().map(|value| -value).collect::<Vec<_>>());
        let told = Mutex::new(BTreeSet::new());
        let doubt = |row: u32| {
            told.lock().expect("nobody panicked").insert(row);
        };
        let asked = RowSearch {
            doubt: Some(&doubt),
            threads: 2,
            ..RowSearch::best(3)
        };
        let matrix = VectorRows::packed(&data, dim).expect("rows");
        let queries = VectorRows::packed(&query, dim).expect("a query");
        let parts: Vec<_> = codes.iter().map(|part| part.part(part.groups())).collect();
        let codes = Codes::new(&parts, dim).expect("parts");
        search(matrix, codes, queries, &asked).expect("an answer");
        assert_eq!(
            told.into_inner().expect("nobody panicked"),
            BTreeSet::from([2, 4]),
            "{count} rows"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_the_floats_are(
        dim in 1usize..40,
        values in prop::collection::vec(
            prop_oneof![any::<f32>(), -1f32..1f32, Just(0.0), Just(1.0), Just(f32::MAX), Just(f32::from_bits(1))],
            1..4000,
        ),
        k in 1usize..60,
        batch in 1usize..20,
        threads in 1usize..4,
        least in prop::option::of(-1f32..1f32),
        filter in prop::option::of(prop::collection::btree_set(0u32..600, 0..400)),
    ) {
        let data = &values[..values.len() / dim * dim];
        prop_assume!(!data.is_empty());
        let matrix = VectorRows::packed(data, dim).expect("rows");
        let codes = codes(matrix);
        let filter = filter.map(RoaringBitmap::from_iter);
        let queries: Vec<_> = data.iter().rev().copied().cycle().take(batch * dim).collect();
        for cpu in Cpu::every() {
            let asked = RowSearch { filter: filter.as_ref(), min_score: least, threads, cpu, ..RowSearch::best(k) };
            assert_exact(matrix, &codes, &queries, &asked, "any floats");
        }
    }
}

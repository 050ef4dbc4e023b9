//! Adds products in a fixed order, so that every processor comes to the same bits.

/// How many sums run beside each other.
pub const LANES: usize = 8;

/// The sum of eight lanes, always added in this order.
#[inline(always)]
pub(super) fn tree(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Calls with eight components of each at a time, padded with zeros, which leave every bit of a sum.
#[inline(always)]
pub(super) fn by_eights(query: &[f64], row: &[f32], mut step: impl FnMut(&[f64; LANES], &[f32; LANES])) {
    let (query_eights, query_rest) = query.as_chunks();
    let (row_eights, row_rest) = row.as_chunks();
    for at in 0..query_eights.len().min(row_eights.len()) {
        step(&query_eights[at], &row_eights[at]);
    }
    if !row_rest.is_empty() {
        let (mut query, mut row) = ([0.0; LANES], [0.0; LANES]);
        query[..query_rest.len()].copy_from_slice(query_rest);
        row[..row_rest.len()].copy_from_slice(row_rest);
        step(&query, &row);
    }
}

/// The product of query and row, and of the row with itself, by lanes and tree. Both have the same length.
#[inline(always)]
pub(super) fn dot_and_square(query: &[f64], row: &[f32]) -> (f64, f64) {
    let mut dot = [0.0; LANES];
    let mut square = [0.0; LANES];
    by_eights(query, row, |query, row| {
        for lane in 0..LANES {
            let value = f64::from(row[lane]);
            dot[lane] += query[lane] * value;
            square[lane] += value * value;
        }
    });
    (tree(dot), tree(square))
}

/// Whether a vector of this norm points anywhere.
#[inline(always)]
pub(super) fn has_direction(norm: f64) -> bool {
    norm > 0.0 && norm.is_finite()
}

//! The tasks of biases in the scores: ALiBi, T5, KERPLE, Transformer-XL.
//!
//! Each tells a score how far away its key is. A query is at position `m` and a key at `n`, so that `j = m - n` is the
//! distance. A call has `s` queries and `t` keys, and the queries are the LAST `s` of the `t` positions: query `i` is
//! at `m = t - s + i`. Because these are tables and sums, all tasks are about plain lists of numbers, in row-major
//! order.
//!
//! Sources: Press et al. 2022, "Train Short, Test Long"; Raffel et al. 2020, "T5"; Chi et al. 2022, "KERPLE"; Dai et al. 2019,
//! "Transformer-XL".

/// Task `biases/slopes`. ALiBi's slopes, `[nh]`.
///
/// ```text
/// slope of head t = 2^(-8t / n),   t = 1 .. n        if n is a power of two
/// ```
///
/// If `n` is not a power of two, let `p` be the largest one below it: first come the slopes of `p` heads, and then
/// every other one of those of `2p` heads, from the first on, as many as are left. There is at least one head.
pub fn alibi_slopes(num_heads: usize) -> Vec<f64> {
    // task biases/slopes: begin
    todo!("task biases/slopes")
    // task biases/slopes: end
}

/// Task `biases/scores`. The scores of one head with ALiBi, `[s, t]`.
///
/// ```text
/// score = product / sqrt(hd) - slope · j        j = m - n, m = t - s + i
/// ```
///
/// `products` are the products of queries and keys, `[s, t]`. A later key, `n > m`, has the score minus infinity, even
/// if its product is NaN, and the autograder takes the softmax of each row.
pub fn alibi_scores(products: &[f32], [s, t]: [usize; 2], head_dim: usize, slope: f64) -> Vec<f32> {
    // task biases/scores: begin
    todo!("task biases/scores")
    // task biases/scores: end
}

/// Task `biases/bucket`. T5's bucket of a key that is `relative` positions from its query: KEY minus QUERY, so an
/// earlier key has a negative number.
///
/// ```text
/// n = num_buckets                    half of it if bidirectional
/// d = -relative, at least 0          its size if bidirectional
/// e = n / 2                          in whole numbers
/// bucket = d                                                  if d < e
/// bucket = e + floor((n - e) · ln(d / e) / ln(max / e))       if not, and at most n - 1
/// ```
///
/// If bidirectional, a later key has its bucket `n` places further on. Take the logarithms in `f64`, and count a value
/// that is a whole number up to its last digits as that number: ln 2 / ln 16 · 8 is 2. The autograder reads T5's table
/// with your bucket.
pub fn t5_bucket(
    relative: i64,
    bidirectional: bool,
    num_buckets: usize,
    max_distance: usize,
) -> usize {
    // task biases/bucket: begin
    todo!("task biases/bucket")
    // task biases/bucket: end
}

/// Task `biases/t5-backward`. The gradient of T5's table, `[num_buckets, nh]`.
///
/// ```text
/// bias[head][pair] = table[buckets[pair]][head]
/// dtable[bucket][head] = sum of dy[head][pair] over the pairs in this bucket
/// ```
///
/// `dy` is the gradient of the bias, `[nh, s * t]`, and `buckets` has the bucket of each pair of a query and a key,
/// `[s * t]`. The autograder finds the buckets with your `t5_bucket`, so write that first. Add up in `f64`.
pub fn t5_backward(
    dy: &[f32],
    buckets: &[usize],
    num_buckets: usize,
    num_heads: usize,
) -> Vec<f32> {
    // task biases/t5-backward: begin
    todo!("task biases/t5-backward")
    // task biases/t5-backward: end
}

/// Task `biases/kerple`. KERPLE's bias at distance `j`, and its slopes by `r1` and by `r2`.
///
/// ```text
/// -r1 ln(1 + r2 j)        if not power
/// -r1 j^r2                if power
/// ```
///
/// An `r1` or `r2` below 0.01 counts as 0.01, an exponent above 2 counts as 2, and the slopes are those at the numbers
/// that count. At distance 0 the bias is 0, and so are its slopes.
pub fn kerple(power: bool, [r1, r2]: [f64; 2], j: f64) -> (f64, [f64; 2]) {
    // task biases/kerple: begin
    todo!("task biases/kerple")
    // task biases/kerple: end
}

/// Task `biases/transformer-xl`. The scores of one head of one text, `[s, t]`.
///
/// ```text
/// score = ((q_i + u) · k_n + (q_i + v) · r_j) / sqrt(hd)        j = m - n, m = t - s + i
/// ```
///
/// Shapes: `q` `[s, hd]`, `k` `[t, hd]`, `u` and `v` `[hd]`, while `r` is `W_r R_j`, `[t, hd]`, the nearest distance
/// first. A later key has the score minus infinity, no matter what it holds.
pub fn relative_scores(q: &[f32], k: &[f32], [u, v]: [&[f32]; 2], r: &[f32]) -> Vec<f32> {
    // task biases/transformer-xl: begin
    todo!("task biases/transformer-xl")
    // task biases/transformer-xl: end
}

//! The components as plain loops, on one thread, with memory that is there: what anyone would write first in
//! a language that compiles loops. Slices in, slices out; no dfdx.

/// `y = x / sqrt(mean(x^2) + eps) * gamma` over groups of `gz`, `[rows, h]`.
pub fn norm(x: &[f32], gamma: &[f32], gz: usize, eps: f32, y: &mut [f32]) {
    let groups = gamma.len() / gz;
    for (nth, (x, y)) in x.chunks(gz).zip(y.chunks_mut(gz)).enumerate() {
        let gamma = &gamma[nth % groups * gz..][..gz];
        let rms = (x.iter().map(|x| x * x).sum::<f32>() / gz as f32 + eps).sqrt();
        for ((y, x), gamma) in y.iter_mut().zip(x).zip(gamma) {
            *y = x / rms * gamma;
        }
    }
}

/// Its gradients. `dgamma` is added to.
pub fn norm_backward(
    x: &[f32],
    gamma: &[f32],
    (gz, eps): (usize, f32),
    dy: &[f32],
    dx: &mut [f32],
    dgamma: &mut [f32],
) {
    let groups = gamma.len() / gz;
    for (nth, ((x, dy), dx)) in x.chunks(gz).zip(dy.chunks(gz)).zip(dx.chunks_mut(gz)).enumerate() {
        let first = nth % groups * gz;
        let (gamma, dgamma) = (&gamma[first..][..gz], &mut dgamma[first..][..gz]);
        let rms = (x.iter().map(|x| x * x).sum::<f32>() / gz as f32 + eps).sqrt();
        let along = x.iter().zip(dy).zip(gamma).map(|((x, dy), gamma)| x / rms * dy * gamma);
        let along = along.sum::<f32>() / gz as f32;
        for j in 0..gz {
            let xhat = x[j] / rms;
            dx[j] = (gamma[j] * dy[j] - xhat * along) / rms;
            dgamma[j] += dy[j] * xhat;
        }
    }
}

/// Half-split RoPE, `[s, nh, d]`, by tables `[s, d]`. With `-1.0` for `direction` it is its gradient.
pub fn rope(x: &[f32], (cos, sin): (&[f32], &[f32]), d: usize, direction: f32, y: &mut [f32]) {
    let heads = x.len() / cos.len();
    for (nth, (x, y)) in x.chunks(d).zip(y.chunks_mut(d)).enumerate() {
        let row = nth / heads * d;
        let (cos, sin) = (&cos[row..][..d], &sin[row..][..d]);
        for i in 0..d / 2 {
            let (a, b, sin) = (x[i], x[i + d / 2], direction * sin[i]);
            y[i] = a * cos[i] - b * sin;
            y[i + d / 2] = b * cos[i] + a * sin;
        }
    }
}

/// Rows of a table, `[v, e]`. Ids below `first`, or of rows that are not there, give zeros.
pub fn lookup(table: &[f32], e: usize, first: usize, ids: &[usize], y: &mut [f32]) {
    for (id, y) in ids.iter().zip(y.chunks_mut(e)) {
        match id.checked_sub(first).and_then(|row| table.get(row * e..(row + 1) * e)) {
            Some(row) => y.copy_from_slice(row),
            None => y.fill(0.0),
        }
    }
}

/// Its gradient. `dtable` is added to.
pub fn lookup_backward(dy: &[f32], e: usize, first: usize, ids: &[usize], dtable: &mut [f32]) {
    for (id, dy) in ids.iter().zip(dy.chunks(e)) {
        let row = id.checked_sub(first).and_then(|row| dtable.get_mut(row * e..(row + 1) * e));
        let Some(row) = row else { continue };
        row.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
    }
}

/// `y = (x - mean) / sqrt(var + eps) * gamma + beta`, `[rows, h]`.
pub fn layernorm(x: &[f32], gamma: &[f32], beta: &[f32], eps: f32, y: &mut [f32]) {
    let h = gamma.len();
    for (x, y) in x.chunks(h).zip(y.chunks_mut(h)) {
        let (mean, std) = mean_and_std(x, eps);
        for j in 0..h {
            y[j] = (x[j] - mean) / std * gamma[j] + beta[j];
        }
    }
}

/// Its gradients. Those of gamma and beta are added to.
pub fn layernorm_backward(
    x: &[f32],
    gamma: &[f32],
    eps: f32,
    dy: &[f32],
    dx: &mut [f32],
    (dgamma, dbeta): (&mut [f32], &mut [f32]),
) {
    let h = gamma.len();
    for ((x, dy), dx) in x.chunks(h).zip(dy.chunks(h)).zip(dx.chunks_mut(h)) {
        let (mean, std) = mean_and_std(x, eps);
        let (mut level, mut along) = (0.0, 0.0);
        for j in 0..h {
            level += gamma[j] * dy[j];
            along += gamma[j] * dy[j] * (x[j] - mean) / std;
        }
        for j in 0..h {
            let xhat = (x[j] - mean) / std;
            dx[j] = (gamma[j] * dy[j] - level / h as f32 - xhat * along / h as f32) / std;
            dgamma[j] += dy[j] * xhat;
            dbeta[j] += dy[j];
        }
    }
}

fn mean_and_std(x: &[f32], eps: f32) -> (f32, f32) {
    let mean = x.iter().sum::<f32>() / x.len() as f32;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / x.len() as f32;
    (mean, (variance + eps).sqrt())
}

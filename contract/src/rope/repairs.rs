//! Repairs of an NTK-aware RoPE.

use crate::oracle::Oracle;
use crate::repair::{Repair, number, one_value, same};
use crate::rope::interface::*;
use crate::rope::oracle::RopeLoops;

type Rope = dyn NtkAwareRope;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Rope>] = &[
    Repair { call: "frequencies", explain: base },
    Repair { call: "tables", explain: positions_of_tables },
    Repair { call: "forward", explain: positions_of_calls },
];

/// The base that the frequencies are powers of, after the ratio has changed it.
fn base(rope: &Rope) -> Option<String> {
    for ratio in [1.0, 4.0] {
        let (d, base) = (8, 10_000.0f64);
        let theta = rope.frequencies(d, base, ratio).ok().filter(|theta| theta.len() == d / 2)?;
        let of = |theta: &[f64]| {
            let powers = (1..theta.len()).map(|i| theta[i].powf(-(d as f64) / (2 * i) as f64));
            one_value(powers).filter(|_| same(theta[0], 1.0))
        };
        let (got, right) = (of(&theta)?, of(&Oracle.frequencies(d, base, ratio))?);
        if !same(got, right) {
            let (got, right) = (number(got), number(right));
            return Some(format!(
                "for ratio {ratio}, the base {base} becomes {right}, but {got} was used"
            ));
        }
    }
    None
}

/// How far a position may be wrong.
const NEAR: usize = 40;

fn positions_of_tables(rope: &Rope) -> Option<String> {
    let (d, base, rows) = (8, 500.0, 3..7);
    let got = rope.tables(d, base, 1.0, rows.clone()).ok()?;
    let all = Oracle.tables(d, base, 1.0, 0..NEAR);
    let row = |table: &Tables, row: usize| -> Option<[Vec<f32>; 2]> {
        let of = |table: &[f32]| Some(table.get(row * d..row * d + d)?.to_vec());
        Some([of(&table.cos)?, of(&table.sin)?])
    };
    let position = |at: usize| {
        let got = row(&got, at)?;
        (0..NEAR).find(|&n| row(&all, n).is_some_and(|right| near(&got.concat(), &right.concat())))
    };
    let got: Vec<usize> = (0..rows.len()).map(position).collect::<Option<_>>()?;
    let right: Vec<usize> = rows.collect();
    (got != right).then(|| format!("the positions {right:?} were taken as {got:?}"))
}

fn positions_of_calls(rope: &Rope) -> Option<String> {
    let (head_dim, base, max_seq_len) = (4, 100.0, 6);
    let settings = RopeSettings { head_dim, base, max_seq_len, ratio: 1, dynamic: false };
    let mut module = rope.build(&settings).ok()?;
    let (shape, offset) = ([1, 3, 1, head_dim], 2);
    let x: Vec<f32> = (0..12).map(|i| ((i * 29 + 7) % 32) as f32 / 7.0 - 2.1).collect();
    let y = module.forward(&RopeCase { shape, offset, x: x.clone() }).ok()?;
    let position = |at: usize| {
        let [x, y] = [&x, &y].map(|values| values.get(at * head_dim..(at + 1) * head_dim));
        (0..NEAR).find(|&n| {
            let tables = Oracle.tables(head_dim, base, 1.0, n..n + 1);
            let (shape, layout) = ([1, 1, 1, head_dim], Layout::HalfSplit);
            let case = RotateCase { shape, tables, x: x.unwrap_or_default().to_vec(), layout };
            let right: Vec<f32> = Oracle.rotate(&case).iter().map(|&y| y as f32).collect();
            near(y.unwrap_or_default(), &right)
        })
    };
    let got: Vec<usize> = (0..3).map(position).collect::<Option<_>>()?;
    (got != [2, 3, 4]).then(|| {
        format!("three rows at offset {offset} are at positions [2, 3, 4], but {got:?} were used")
    })
}

fn near(got: &[f32], right: &[f32]) -> bool {
    got.len() == right.len() && got.iter().zip(right).all(|(got, right)| (got - right).abs() < 1e-4)
}

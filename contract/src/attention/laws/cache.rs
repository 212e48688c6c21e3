//! The cache: what it keeps, and what it refuses.

use super::tolerance::{WHY, tolerances};
use super::values::forward;
use super::{Attention, case_of, sizes};
use crate::attention::interface::*;
use crate::attention::oracle::{cut, joined, positions};
use crate::category::Category;
use crate::component::{NET, law};
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::widen;
use crate::run::Run;
use crate::violation::*;

type Cache = Box<dyn KeyValueCache>;

fn cache(attention: &Attention, capacity: usize) -> Step<Cache> {
    answer("cache", || attention.cache(capacity)).map_err(|b| b.on(format!("capacity {capacity}")))
}

/// Keys and values of these sizes.
fn piece(run: &Run, shape: [usize; 4]) -> KeysValues {
    let n: usize = shape.iter().product();
    let mut draw = Draw::new(run, (n * 8 + shape[1]) as u64);
    KeysValues { shape, k: draw.values(n), v: draw.values(n) }
}

/// What a push gives must be `all`, bit for bit: a cache moves values and computes none.
fn expect_push(cache: &mut Cache, piece: &KeysValues, all: &KeysValues, why: &str) -> Step {
    expect_push_in(Manner::Plain, cache, piece, all, why)
}

fn expect_push_in(
    manner: Manner,
    cache: &mut Cache,
    piece: &KeysValues,
    all: &KeysValues,
    why: &str,
) -> Step {
    let got = answer("push", || cache.push_in(manner, piece))?;
    holds("push", got.shape == all.shape, || {
        format!("the cache should hold {:?}. It holds {:?}", all.shape, got.shape)
    })?;
    same_values("push", &all.shape, &got.k, &all.k, &format!("keys: {why}"))?;
    same_values("push", &all.shape, &got.v, &all.v, &format!("values: {why}"))?;
    expect_positions(cache, all.shape[1])
}

fn expect_positions(cache: &Cache, expected: usize) -> Step {
    let got = answer("positions", || cache.positions())?;
    let words = || format!("the cache should have {expected} positions. It says {got}");
    holds("positions", got == expected, words)
}

/// A piece of a script, by its number of tokens.
#[derive(Debug, Clone, Copy)]
enum Push {
    /// It fits, and all that is kept comes back.
    Fits(usize),
    /// There is no room for it, and nothing changes.
    Full(usize),
}

/// Pushes pieces into a cache, and looks at what is kept after each.
fn expect_script(
    attention: &Attention,
    run: &Run,
    [b, nkv, hd]: [usize; 3],
    script: &[Push],
    manner: Manner,
    capacity: usize,
) -> Step {
    let mut cache = cache(attention, capacity)?;
    let mut all: Option<KeysValues> = None;
    let mut push = |(nth, push): (usize, &Push)| {
        let (Push::Fits(s) | Push::Full(s)) = *push;
        let mut next = piece(&Run { seed: run.seed + nth as u64, ..*run }, [b, s, nkv, hd]);
        if manner == Manner::Broadcast {
            let row = s * nkv * hd;
            for x in [&mut next.k, &mut next.v] {
                (row..b * row).for_each(|i| x[i] = x[i - row]);
            }
        }
        if let Push::Full(_) = push {
            let rule = format!("{s} tokens, which is more than there is room for");
            refusal("push", &rule, || cache.push_in(manner, &next))?;
            return expect_positions(&cache, positions(all.as_ref()));
        }
        let grown = all.take().map_or_else(|| next.clone(), |all| joined(&all, &next));
        let why = format!("all pieces that fit, in their order, up to number {}", nth + 1);
        let pushed = expect_push_in(manner, &mut cache, &next, &grown, &why);
        all = Some(grown);
        pushed
    };
    let input = || {
        let words = manner.words();
        format!("{words}\ncapacity {capacity}, pieces [{b}, s, {nkv}, {hd}], of s = {script:?}")
    };
    script.iter().enumerate().try_for_each(&mut push).map_err(|b| b.on(input().trim_start()))
}

/// A cache gives back all keys and values that it was given, in order, bit for bit, in every batch row.
#[law("attention/cache-keeps", see = "attention#cache", about = State, points = 2,
    formula = "push(a), push(b)  ⇒  a then b",
    stays = "What a cache is, in small numbers.")]
pub(super) fn cache_keeps(attention: &Attention, run: &Run) -> Verdict {
    expect_positions(&cache(attention, 3)?, 0).map_err(|violation| violation.on("a new cache"))?;
    for pieces in [vec![6], vec![2, 1, 3], vec![1; 6]] {
        for b in [1, 2] {
            let script: Vec<Push> = pieces.iter().map(|s| Push::Fits(*s)).collect();
            expect_script(attention, run, [b, 2, 3], &script, Manner::Plain, 8)?;
        }
    }
    Ok(None)
}

/// A text in pieces, or token by token, gives the same as in one call.
#[law("attention/pieces-are-one-call", see = "attention#cache", about = State, points = 3,
    formula = "y of the pieces = y of the whole",
    stays = "A law without an oracle: it is what a user of the cache relies on.")]
pub(super) fn pieces_are_one_call(attention: &Attention, _: &Run) -> Verdict {
    for heads in [(2, 2), (4, 2), (3, 1)] {
        let whole = case_of(sizes([2, 6, 6], heads, 4), 21);
        let y = forward(attention, &whole)?;
        let all =
            KeysValues { shape: whole.sizes.of_keys(), k: whole.k.clone(), v: whole.v.clone() };
        let of_q = |x: &[f32], from: usize, to: usize| -> Vec<f32> {
            let one = heads.0 * 4;
            x.chunks(6 * one).flat_map(|row| row[from * one..to * one].to_vec()).collect()
        };
        for pieces in [vec![1; 6], vec![4, 2], vec![1, 3, 2]] {
            let input = format!("6 tokens in pieces of {pieces:?}\n{whole}");
            let mut cache = cache(attention, 6)?;
            let mut from = 0;
            for s in pieces {
                let next = answer("push", || cache.push(&cut(&all, from, from + s)));
                let KeysValues { shape, k, v } = next.map_err(|violation| violation.on(&input))?;
                let sizes = AttendSizes { queries: s, keys: shape[1], ..whole.sizes };
                let case = AttendCase { sizes, q: of_q(&whole.q, from, from + s), k, v };
                let full = case.k.len() == sizes.of_keys().iter().product::<usize>();
                holds("push", full && shape[1] == from + s, || {
                    format!("the cache should hold {} positions. It holds {shape:?}", from + s)
                })
                .map_err(|violation| violation.on(&input))?;
                let tolerance = tolerances(&case, &[]).y;
                let expected = widen(&of_q(&y, from, from + s));
                let why = format!("rows {from}..{} of one call with all tokens. {WHY}", from + s);
                let got = forward(attention, &case)?;
                let at = |i: usize| 2.0 * tolerance[i];
                within("forward", &sizes.of_queries(), &got, &expected, at, &why)
                    .map_err(|violation| violation.on(&input))?;
                from += s;
            }
        }
    }
    Ok(None)
}

/// A piece that does not fit is refused, and one that just fits is taken.
#[law("attention/full-cache-refuses", see = "attention#cache", about = Refusal, points = 2,
    formula = "p + s > capacity  ⇒  an error")]
pub(super) fn full_cache_refuses(attention: &Attention, run: &Run) -> Verdict {
    let room = [(4, vec![4], 2), (4, vec![4], 1), (5, vec![2, 3], 2), (4, vec![3], 2)];
    for (capacity, pieces, last) in room.into_iter().chain([(2, vec![], 3), (0, vec![], 1)]) {
        let mut cache = cache(attention, capacity)?;
        let input = format!("capacity {capacity}, pieces of {pieces:?}, and then of {last}");
        for s in pieces {
            answer("push", || cache.push(&piece(run, [1, s, 2, 3])))
                .map_err(|violation| violation.on(&input))?;
        }
        let rule = format!("{last} tokens more than the cache has room for");
        refusal("push", &rule, || cache.push(&piece(run, [1, last, 2, 3])))
            .map_err(|violation| violation.on(&input))?;
    }
    Ok(None)
}

/// A refused piece leaves the cache as it was, and the next piece that fits goes on from there.
#[law("attention/refused-piece-changes-nothing", see = "attention#cache", about = State, points = 2,
    formula = "push(a), error, push(b)  ⇒  a then b")]
pub(super) fn refused_piece_changes_nothing(attention: &Attention, run: &Run) -> Verdict {
    for bad in [[2, 9, 2, 3], [1, 1, 2, 3], [2, 1, 1, 3], [2, 1, 2, 2], [2, 1, 3, 2], [1, 2, 2, 3]]
    {
        let mut cache = cache(attention, 6)?;
        let input = format!("capacity 6, 3 positions of [2, s, 2, 3], then a bad piece {bad:?}");
        let (first, next) = (piece(run, [2, 3, 2, 3]), piece(run, [2, 3, 2, 3]));
        let mut script = || {
            expect_push(&mut cache, &first, &first, "the only piece")?;
            // A panic is no refusal.
            refusal("push", "a piece that does not fit", || cache.push(&piece(run, bad)))
                .map_err(|violation| violation.at(Category::Refusal))?;
            expect_positions(&cache, 3)?;
            let why = "the two pieces that fit, which fill it: the one between them was refused";
            expect_push(&mut cache, &next, &joined(&first, &next), why)
        };
        script().map_err(|violation| violation.on(input))?;
    }
    Ok(None)
}

/// A piece whose batch, heads or head size differ from those that are kept is refused.
#[law("attention/cache-refuses-other-shapes", see = "attention#cache", about = Refusal, points = 1,
    formula = "[b, nkv, hd] differs from what is kept  ⇒  an error",
    stays = "The refusal alone, whatever comes after it.")]
pub(super) fn cache_refuses_other_shapes(attention: &Attention, run: &Run) -> Verdict {
    for (bad, rule) in [
        ([1, 1, 2, 3], "a batch of 1 for a cache of 2 texts"),
        ([3, 1, 2, 3], "a batch of 3 for a cache of 2 texts"),
        ([2, 1, 4, 3], "4 heads for a cache of 2 heads"),
        ([2, 1, 2, 4], "heads of 4 for a cache with heads of 3"),
        ([2, 1, 3, 2], "3 heads of 2 for a cache of 2 heads of 3"),
        ([1, 2, 2, 3], "2 tokens of one text for a cache of 2 texts"),
    ] {
        let mut cache = cache(attention, 8)?;
        let first = piece(run, [2, 2, 2, 3]);
        answer("push", || cache.push(&first))
            .and_then(|_| refusal("push", rule, || cache.push(&piece(run, bad))))
            .map_err(|violation| violation.on(format!("first {first}\nthen a piece {bad:?}")))?;
    }
    Ok(None)
}

/// Two caches share nothing: each block of a model has its own.
#[law("attention/caches-are-apart", see = "attention#cache", about = State, points = 1,
    formula = "push to one  ⇒  the other unchanged")]
pub(super) fn caches_are_apart(attention: &Attention, run: &Run) -> Verdict {
    let [mut one, mut other] = [cache(attention, 5)?, cache(attention, 5)?];
    let [a, b, c] = [[1, 2, 2, 3], [1, 3, 2, 3], [1, 1, 2, 3]].map(|shape| piece(run, shape));
    let mut script = || {
        expect_push(&mut one, &a, &a, "the first piece of the first cache")?;
        expect_push(&mut other, &b, &b, "the first piece of the second cache")?;
        expect_push(&mut one, &c, &joined(&a, &c), "the pieces of the first cache alone")
    };
    script().map_err(|violation| violation.on("two caches in turns, pieces [1, s, 2, 3]"))?;
    Ok(None)
}

/// Pieces of any size are kept, in any number of batch rows and heads.
#[law("attention/cache-any-size", see = "attention#cache", about = State, points = 1,
    formula = "push(a), push(b), push(c)  ⇒  a then b then c", stays = NET)]
pub(super) fn cache_any_size(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "push")
}

/// Pieces of `s` tokens after one of `p`. At their ends, what does not fit is refused, and what was kept stays.
#[derive(Debug, Clone, Copy)]
pub(in crate::attention) struct Pieces {
    /// `b`, `nkv` and `hd`.
    pub of: [usize; 3],
    pub p: usize,
    pub s: usize,
    pub manner: Manner,
    /// Positions that are left at the end of the second script.
    pub left: usize,
}

pub(in crate::attention) fn matches_pieces(
    attention: &Attention,
    pieces: Pieces,
    run: &Run,
) -> Step {
    use Push::{Fits, Full};
    let Pieces { of, p, s, manner, left } = pieces;
    let from = usize::from(p == 0);
    // One token too many, then a piece that fills the cache, then another token.
    let filled = [Fits(p), Fits(1), Full(s + 1), Fits(s), Full(1)];
    expect_script(attention, run, of, &filled[from..], manner, p + 1 + s)?;
    // A piece that would fit into an empty cache, twice: who forgot what was kept has taken it by then.
    let bad = (s + left + 1).max(p);
    let twice = [Fits(p), Full(bad), Full(bad), Fits(s)];
    expect_script(attention, run, of, &twice[from..], manner, p + s + left)
}

/// A piece that holds what arithmetic does not keep. A cache computes nothing.
pub(in crate::attention) fn keeps_special(attention: &Attention, run: &Run) -> Step {
    let mut cache = cache(attention, 4)?;
    let mut first = piece(run, [1, 2, 2, 3]);
    first.k[..4].copy_from_slice(&[f32::NAN, f32::INFINITY, 0.0, 1e-45]);
    first.v[8..].copy_from_slice(&[f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX]);
    let next = piece(run, [1, 1, 2, 3]);
    expect_push(&mut cache, &first, &first, "the only piece")
        .and_then(|()| expect_push(&mut cache, &next, &joined(&first, &next), "both pieces"))
        .map_err(|violation| violation.on(&first))
}

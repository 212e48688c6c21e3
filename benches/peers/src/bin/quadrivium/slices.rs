//! The implementation `quadrivium-slices`: the loops on slices. Memory for results is the caller's, and is written again by each call.

use peers::*;
use quadrivium::kernels::*;
use quadrivium::rope::Layout;
use std::cell::RefCell;

pub fn make(name: &str) -> Option<Call> {
    let (operation, pass) = name.split_once(' ')?;
    let backward = match pass {
        "forward" => false,
        "forward+backward" => true,
        _ => return None,
    };
    let (x, dy) = (x(), vec![1.0; SEQ * HIDDEN]);
    match operation {
        "norm-128" | "norm-4096" => {
            let group_size = if operation == "norm-128" { GROUP } else { HIDDEN };
            let weight = ones();
            let sizes = [x.len(), if backward { x.len() } else { 0 }, HIDDEN];
            Some(call(sizes, backward, move |[y, dx, dweight]| {
                group_rms_norm(&x, &weight, group_size, EPS, y).expect("a norm");
                if backward {
                    let gradients = (&mut dx[..], &mut dweight[..]);
                    group_rms_norm_backward(&x, &weight, group_size, EPS, &dy, gradients)
                        .expect("gradients");
                }
            }))
        }
        "rope" => {
            let (cos, sin) = angles();
            // Both halves of a head turn by the same angles.
            let twice = |rows: Vec<f32>| {
                rows.chunks(HEAD / 2).flat_map(|row| [row, row]).flatten().copied().collect()
            };
            let (cos, sin): (Vec<f32>, Vec<f32>) = (twice(cos), twice(sin));
            let positions: Vec<usize> = (0..SEQ).collect();
            let sizes = [x.len(), if backward { x.len() } else { 0 }];
            Some(call(sizes, backward, move |[y, dx]| {
                let layout = Layout::HalfSplit;
                let angles = CosSin { cos: &cos, sin: &sin, rotary_dim: HEAD, layout };
                apply_rotary_pos_emb(&x, angles, &positions, HEAD, y).expect("heads");
                if backward {
                    apply_rotary_pos_emb_backward(&dy, angles, &positions, HEAD, dx)
                        .expect("gradients");
                }
            }))
        }
        "embedding" => {
            let (table, ids) = (table(), ids());
            let sizes = [x.len(), if backward { table.len() } else { 0 }];
            Some(call(sizes, backward, move |[y, dtable]| {
                vocab_embedding(&table, &ids, HIDDEN, y).expect("rows");
                if backward {
                    vocab_embedding_backward(&ids, HIDDEN, &dy, dtable).expect("gradients");
                }
            }))
        }
        _ => None,
    }
}

/// A call that writes into memory of such sizes: first its output, then gradients, which begin with zeros.
fn call<const N: usize>(
    sizes: [usize; N],
    backward: bool,
    run: impl Fn(&mut [Vec<f32>; N]) + 'static,
) -> Call {
    let memory = std::rc::Rc::new(RefCell::new(sizes.map(|size| vec![0.0; size])));
    Box::new(move || {
        let mut written = memory.borrow_mut();
        written.iter_mut().skip(1).filter(|_| backward).for_each(|gradient| gradient.fill(0.0));
        run(&mut written);
        drop(written);
        let memory = memory.clone();
        Box::new(move || match &memory.borrow()[..] {
            [_, gradients @ ..] if backward => gradients.to_vec(),
            [y, ..] => vec![y.clone()],
            [] => Vec::new(),
        })
    })
}

//! From the tensors of a whole model to those that ranks cut, and back.

use crate::train::Named;

/// A matrix of `rows` rows, column by column.
pub(crate) fn transposed(matrix: &[f32], rows: usize) -> Vec<f32> {
    let columns = matrix.len() / rows.max(1);
    (0..columns).flat_map(|column| matrix.iter().skip(column).step_by(columns).copied()).collect()
}

/// After the name of a matrix of which each rank has rows, or columns, which are its rows here.
const ROWS: &str = "_proj.rows";
const COLUMNS: &str = "_proj.columns";

/// Whether the tensor of this name is a part of a matrix that the ranks cut.
pub(crate) fn is_part(name: &str) -> bool {
    name.ends_with(ROWS) || name.ends_with(COLUMNS)
}

/// A tensor of a whole model as the ranks cut it: the matrices of its blocks are cut by their rows, some after they were
/// transposed.
pub fn to_be_cut(whole: &Named) -> Named {
    let Some((block, matrix)) = whole.name.rsplit_once('.').and_then(|(of, _)| of.rsplit_once('.'))
    else {
        return whole.clone();
    };
    let (ending, is_by_rows) = match matrix {
        "q_proj" | "k_proj" | "v_proj" | "gate_proj" | "up_proj" => (ROWS, true),
        "o_proj" | "down_proj" => (COLUMNS, false),
        _ => return whole.clone(),
    };
    let name = format!("{block}.{}{ending}", matrix.trim_end_matches("_proj"));
    let mut cut = Named { name, cut: true, ..whole.clone() };
    if !is_by_rows {
        transpose(&mut cut);
    }
    cut
}

/// A tensor whose parts have been put together, as a whole model has it.
pub fn whole_again(mut cut: Named) -> Named {
    for (ending, is_by_rows) in [(ROWS, true), (COLUMNS, false)] {
        if let Some(name) = cut.name.strip_suffix(ending) {
            (cut.name, cut.cut) = (format!("{name}_proj.weight"), false);
            if !is_by_rows {
                transpose(&mut cut);
            }
            break;
        }
    }
    cut
}

fn transpose(matrix: &mut Named) {
    matrix.values = transposed(&matrix.values, matrix.shape[0]);
    matrix.shape.reverse();
}

//! Products of queries and keys, before and after they turn.

use crate::error::{Error, Result};
use crate::heat::heat_maps;
use crate::plot::Figure;

/// The title of [`products`].
pub const PRODUCTS: &str = "Does the same token still give the same product once it has turned?";

/// Two squares of `q_m · k_n / sqrt(hd)`, as they are and turned. `ids` are the tokens, and frames show the
/// columns of one token that occurs several times.
///
/// # Errors
/// No products, and what plotters reports.
pub fn products(ids: &[usize], plain: &[Vec<f64>], turned: &[Vec<f64>]) -> Result<Figure> {
    if plain.is_empty() {
        return Err(Error::Figure("there are no tokens to show".into()));
    }
    let marked = most_frequent(&ids[..ids.len().min(plain.len())]);
    let captions = match marked.len() {
        0 => ["before".to_string(), "after".to_string()],
        n => [
            format!("before: {n} times one token, equal columns"),
            "after: the columns differ".to_string(),
        ],
    };
    let maps = [(&*captions[0], plain), (&*captions[1], turned)];
    Figure::paint(PRODUCTS, (960, 500), |area| heat_maps(area, "q·k/√hd", maps, &marked))
}

/// Where the most frequent id is; nothing if no id occurs twice. Of several, the first.
fn most_frequent(ids: &[usize]) -> Vec<usize> {
    let places = |id: usize| (0..ids.len()).filter(move |&t| ids[t] == id).collect::<Vec<_>>();
    let mut best = Vec::new();
    for &id in ids {
        let places = places(id);
        if places.len() > best.len().max(1) {
            best = places;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_id_is_found() {
        assert_eq!(most_frequent(&[5, 7, 5, 7, 7]), [1, 3, 4]);
        assert!(most_frequent(&[1, 2, 3]).is_empty());
    }

    #[test]
    fn no_tokens_are_an_error() {
        assert!(products(&[], &[], &[]).is_err());
        assert!(products(&[5], &[vec![0.0]], &[vec![0.0]]).is_ok());
    }
}

fn mask(s: usize, p: usize) -> Vec<bool> {
    let mut seen = Vec::new();
    for i in 0..s {
        for j in 0..p + s {
            seen.push(j <= p + i);
        }
    }
    seen
}
notebook_support::attention::check_mask(mask)

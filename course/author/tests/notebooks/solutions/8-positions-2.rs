fn scaled(turned: &[f64], exponent: f64) -> Vec<f64> {
    let half = turned.len() / 2;
    let mut y = Vec::new();
    for j in 0..turned.len() {
        let i = j % half; // the plane
        let zeta = (i as f64 / half as f64 + 0.4) / 1.4;
        y.push(turned[j] * zeta.powf(exponent));
    }
    y
}
notebook_support::rotations::check_xpos(scaled)

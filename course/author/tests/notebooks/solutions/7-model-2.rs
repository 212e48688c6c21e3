fn softmax_backward(y: &[f32], dy: &[f32]) -> Vec<f32> {
    let along: f32 = y.iter().zip(dy).map(|(y, dy)| y * dy).sum();
    y.iter().zip(dy).map(|(y, dy)| y * (dy - along)).collect()
}
notebook_support::attention::check_softmax_backward(softmax_backward)

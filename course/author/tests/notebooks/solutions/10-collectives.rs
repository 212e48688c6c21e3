use contract::collectives::interface::{Communicator, Entropy, RankError};

fn entropy_of(
    comm: &dyn Communicator,
    logits: &[f32],
    targets: &[usize],
    first: usize,
) -> Result<Entropy, RankError> {
    let (t, n) = (targets.len(), logits.len() / targets.len());
    let vocab_size = n * comm.world_size();
    for (place, &target) in targets.iter().enumerate() {
        if target >= vocab_size {
            return Err(RankError::Target { target, place, vocab_size });
        }
    }

    let mut largest: Vec<f32> = Vec::new(); // [t]
    for row in logits.chunks(n) {
        largest.push(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    }
    comm.all_reduce_max(&mut largest)?;

    let mut totals: Vec<f32> = Vec::new(); //     [t]
    let mut of_targets: Vec<f32> = Vec::new(); // [t]
    for (i, row) in logits.chunks(n).enumerate() {
        let is_mine = (first..first + n).contains(&targets[i]);
        totals.push(row.iter().map(|logit| (logit - largest[i]).exp()).sum());
        of_targets.push(if is_mine { row[targets[i] - first] } else { 0.0 });
    }
    comm.all_reduce_sum(&mut totals)?;
    comm.all_reduce_sum(&mut of_targets)?;

    let mut loss = 0.0;
    let mut dlogits = Vec::new(); // [t, n]
    for (i, row) in logits.chunks(n).enumerate() {
        loss += totals[i].ln() + largest[i] - of_targets[i];
        for (j, logit) in row.iter().enumerate() {
            let hot = if first + j == targets[i] { 1.0 } else { 0.0 };
            dlogits.push(((logit - largest[i]).exp() / totals[i] - hot) / t as f32);
        }
    }
    Ok(Entropy { loss: loss / t as f32, dlogits })
}
notebook_support::collectives::check_entropy(entropy_of)

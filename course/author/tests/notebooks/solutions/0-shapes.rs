use std::ops::Range;

fn shard_range(vocab_size: usize, world_size: usize, rank: usize) -> Result<Range<usize>, String> {
    if rank >= world_size {
        return Err(format!("there is no rank {rank} in a world of {world_size}"));
    }
    if vocab_size % world_size != 0 {
        return Err(format!("{world_size} ranks can't own equally many of {vocab_size} ids"));
    }
    let n = vocab_size / world_size;
    Ok(rank * n..(rank + 1) * n)
}

notebook_support::parallel::check_range(shard_range)

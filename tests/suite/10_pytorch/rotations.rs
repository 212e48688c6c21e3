//! rotations beside PyTorch. TO DO.

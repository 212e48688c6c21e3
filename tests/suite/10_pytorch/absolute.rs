//! absolute beside PyTorch. TO DO.

//! frequencies beside PyTorch. TO DO.

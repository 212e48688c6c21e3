//! biases beside PyTorch. TO DO.

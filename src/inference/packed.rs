//! Weights of 8 or 4 bits, as they lie in memory.

use half::bf16;

/// Rows of a block: as many as the widest register has lanes.
pub(super) const ROWS: usize = 16;

/// Whole numbers with a factor for each group of neighbours in a row: `w = q * scale`.
///
/// Sixteen rows lie together: first the words of each row that hold its first numbers, 4 of 8 bits or 8 of 4, then the next
/// words. One register takes in a word of each row. Numbers are kept above 0, with half their range added.
/// Rows and columns are filled up with zeros.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    /// 8 or 4.
    pub(super) bits: usize,
    columns: usize,
    group_size: usize,
    /// `[blocks, words of a row, ROWS]`
    words: Vec<u32>,
    /// `[blocks, groups of a row, ROWS]`
    scales: Vec<bf16>,
}

impl Packed {
    /// Room for a matrix. A group has a whole number of words.
    pub(super) fn new(bits: usize, [rows, columns]: [usize; 2], group_size: usize) -> Self {
        let group_size = group_size.min(columns.next_multiple_of(32 / bits));
        let mut packed = Self { bits, columns, group_size, words: vec![], scales: vec![] };
        let (blocks, groups) = (rows.div_ceil(ROWS), columns.div_ceil(group_size));
        let zero = (0..32 / bits).fold(0, |word, nth| word | 1 << (nth * bits + bits - 1));
        packed.words = vec![zero; blocks * groups * packed.words_of_group() * ROWS];
        packed.scales = vec![bf16::ZERO; blocks * groups * ROWS];
        packed
    }

    pub(super) fn bytes(&self) -> usize {
        4 * self.words.len() + 2 * self.scales.len()
    }

    pub(super) fn words_of_group(&self) -> usize {
        self.group_size.div_ceil(32 / self.bits)
    }

    fn groups(&self) -> usize {
        self.columns.div_ceil(self.group_size)
    }

    /// Columns with those that fill up.
    pub(super) fn width(&self) -> usize {
        self.groups() * self.words_of_group() * (32 / self.bits)
    }

    /// The words of a block, `[words of a row, ROWS]`.
    pub(super) fn words(&self, block: usize) -> &[u32] {
        let len = self.groups() * self.words_of_group() * ROWS;
        &self.words[block * len..][..len]
    }

    /// The factors of a group in each row of a block.
    pub(super) fn scales(&self, block: usize, group: usize) -> &[bf16] {
        &self.scales[(block * self.groups() + group) * ROWS..][..ROWS]
    }

    /// Rounds a row: the largest of each group becomes 127, or 7, or a little less, because the factor is rounded up to a `bf16` first.
    pub(super) fn set(&mut self, row: usize, weights: &[f32]) {
        let (bits, most) = (self.bits, ((1 << (self.bits - 1)) - 1) as f32);
        let (block, lane) = (row / ROWS, row % ROWS);
        let (groups, words, per_word) = (self.groups(), self.words_of_group(), 32 / bits);
        for (group, weights) in weights.chunks(self.group_size).enumerate() {
            let largest = weights.iter().fold(0.0f32, |a, w| a.max(w.abs()));
            let scale = rounded_up(largest / most);
            self.scales[(block * groups + group) * ROWS + lane] = scale;
            let one = scale.to_f32();
            for (place, w) in weights.iter().enumerate() {
                let q = if one > 0.0 { (w / one).round().clamp(-most, most) as i32 } else { 0 };
                let q = q + (1 << (bits - 1));
                let word = (block * groups + group) * words + place / per_word;
                let (word, shift) = (&mut self.words[word * ROWS + lane], place % per_word * bits);
                *word = *word & !(((1 << bits) - 1) << shift) | (q as u32) << shift;
            }
        }
    }

    /// The weights of a row.
    pub(super) fn get(&self, row: usize, into: &mut [f32]) {
        let (block, lane, per_word) = (row / ROWS, row % ROWS, 32 / self.bits);
        let (groups, words) = (self.groups(), self.words_of_group());
        for (group, into) in into.chunks_mut(self.group_size).enumerate() {
            let scale = self.scales(block, group)[lane].to_f32();
            for (place, w) in into.iter_mut().enumerate() {
                let word = (block * groups + group) * words + place / per_word;
                let q = self.words[word * ROWS + lane] >> (place % per_word * self.bits);
                let q = (q & ((1 << self.bits) - 1)) as i32 - (1 << (self.bits - 1));
                *w = q as f32 * scale;
            }
        }
    }
}

/// The nearest `bf16` that is not below a positive number.
fn rounded_up(x: f32) -> bf16 {
    bf16::from_bits(((x.to_bits() + 0xFFFF) >> 16) as u16)
}

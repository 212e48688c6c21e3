//! What a reader of `cargo course model train` sees.

use crate::corpus::Corpus;
use crate::error::{Result, shown};
use crate::network::{Apart, Differs};
use crate::run::State;
use crate::text::Text;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use learner::terminal::Terminal;
use notebook_support::attention::maps::{Head, Maps};
use notebook_support::plot::thousands;
use quadrivium::checkpoint::CheckpointConfig;
use quadrivium::inference::WeightReport;
use quadrivium::loss::perplexity;
use quadrivium::model::Arithmetic;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Steps that the bar's loss is a mean of.
const RECENT: usize = 20;

/// Standard output, and on a terminal a bar below it.
#[derive(Debug)]
pub struct Show {
    terminal: Terminal,
    bar: ProgressBar,
    /// Whether a checkpoint is a line.
    checkpoints: bool,
}

impl Default for Show {
    fn default() -> Self {
        Self::new()
    }
}

impl Show {
    /// Standard output.
    pub fn new() -> Self {
        Self { terminal: Terminal::stdout(), bar: ProgressBar::hidden(), checkpoints: true }
    }

    /// Nothing.
    pub fn silent() -> Self {
        Self { terminal: Terminal::silent(), bar: ProgressBar::hidden(), checkpoints: true }
    }

    pub(crate) fn entry(&mut self, name: &str, text: &str) -> Result<()> {
        Ok(self.terminal.entry(name, text)?)
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<()> {
        let Self { terminal, bar, .. } = self;
        Ok(bar.suspend(|| terminal.line(line))?)
    }

    /// A sentence, as many lines as it takes.
    pub(crate) fn sentence(&mut self, text: &str) -> Result<()> {
        Ok(self.terminal.text("  ", text)?)
    }

    /// What is learned from, and what is held out.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn text(&mut self, text: &Text, corpus: &Corpus) -> Result<()> {
        let Corpus { tokens, trained, held_out, .. } = corpus;
        self.entry("text", &format!("{}: {} bytes", text.name, thousands(text.content.len())))?;
        let counts = format!(
            "{} to learn from, {} held out; {} different ones",
            thousands(trained.len()),
            thousands(held_out.len() - 1),
            tokens.len()
        );
        self.entry("tokens", &counts)?;
        match corpus.rows_without_token() {
            0 => Ok(()),
            rows => {
                let all = thousands(tokens.len() + rows);
                let words = format!(
                    "{} of the table's {all} have no token; the loss counts them, too",
                    thousands(rows)
                );
                self.entry("rows", &words)
            }
        }
    }

    /// The model learned from another text.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn another_text(&mut self) -> Result<()> {
        let words = "The model learned from another text (name it with --text): what is held out here may be among what \
                     it has seen.";
        self.line("")?;
        self.sentence(words)?;
        self.line("")
    }

    /// The sizes of the model.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn model(&mut self, config: &CheckpointConfig) -> Result<()> {
        let CheckpointConfig {
            hidden_size,
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads,
            ..
        } = config;
        let parameters = thousands(Arithmetic::of(config)?.parameters().total() as usize);
        let heads = if *num_key_value_heads == 1 { "head" } else { "heads" };
        let sizes = format!(
            "{parameters} parameters: {num_hidden_layers} blocks, {hidden_size} elements a token, \
             {num_attention_heads} query heads over {num_key_value_heads} key {heads}"
        );
        self.entry("model", &sizes)
    }

    /// Whose parts it is made of.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn parts(&mut self, parts: &str) -> Result<()> {
        self.entry("yours", parts)
    }

    /// Where the steps begin.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn begin(&mut self, state: &State, goes_on: bool, trigram: f64) -> Result<()> {
        let (step, steps) = (state.step, state.settings.steps);
        let (b, s) = state.settings.size.batch();
        self.entry("steps", &format!("{} of {b} x {s} tokens", thousands(steps)))?;
        self.entry("to beat", &format!("{trigram:.3}, the held-out loss of a 3-gram model"))?;
        if goes_on && step < steps {
            self.entry("goes on", &format!("after step {}", thousands(step)))?;
        }
        if step == steps {
            return self.entry("finished", "this run is; --fresh begins it again");
        }
        self.line("")?;
        self.bar_of(state, "");
        Ok(())
    }

    /// One of many runs: a bar with its name, and no line for each checkpoint.
    pub(crate) fn begin_one(&mut self, name: &str, state: &State) {
        self.checkpoints = false;
        self.bar_of(state, &format!("{name} "));
    }

    /// The bar of a run's steps. Before the first one, it is unknown how long they take.
    fn bar_of(&mut self, state: &State, prefix: &str) {
        let (step, steps) = (state.step as u64, state.settings.steps as u64);
        self.bar = ProgressBar::new(steps).with_position(step).with_prefix(prefix.to_string());
        self.bar.reset_eta();
        let left = move |bar: &ProgressState, to: &mut dyn Write| {
            let _ = match bar.pos() > step {
                true => write!(to, ", {:#} left", HumanDuration(bar.eta())),
                false => Ok(()),
            };
        };
        let template = "  {prefix}{wide_bar} step {pos} of {len}{msg}{left}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.with_key("left", left));
        }
    }

    /// Something that looks at all held-out tokens, which takes a while.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn measured<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.doing("measuring the held-out text ..".into());
        let measured = work();
        self.end();
        measured
    }

    /// What is being done, in words, where no steps can be counted.
    pub(crate) fn doing(&mut self, words: String) {
        self.bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("  {msg}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(words);
    }

    /// A step was made.
    pub fn step(&self, state: &State) {
        let recent = &state.losses[state.losses.len().saturating_sub(RECENT)..];
        let loss: f32 = recent.iter().sum::<f32>() / recent.len() as f32;
        self.bar.set_message(format!(", loss {loss:.3}"));
        self.bar.set_position(state.step as u64);
    }

    /// A checkpoint is there.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn checkpoint(&mut self, state: &State) -> Result<()> {
        if !self.checkpoints {
            return Ok(());
        }
        let recent = &state.losses[state.losses.len().saturating_sub(RECENT)..];
        let loss: f32 = recent.iter().sum::<f32>() / recent.len() as f32;
        let loss = if recent.is_empty() { "    -".into() } else { format!("{loss:5.3}") };
        let held_out = state.held_out.last().map_or(f64::NAN, |(_, loss)| *loss);
        let step = thousands(state.step);
        self.line(&format!("  step {step:>7}   loss {loss}   held out {held_out:5.3}"))
    }

    /// All steps are made.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// How long it took, since the program made its first step, which is the one after `begun`.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn took(&mut self, begun: usize, tokens: usize, time: Duration) -> Result<()> {
        if tokens == 0 {
            return Ok(());
        }
        self.bar.finish_and_clear();
        let seconds = time.as_secs_f64();
        let speed = thousands((tokens as f64 / seconds) as usize);
        self.line("")?;
        let since =
            if begun > 0 { format!(" since step {}", thousands(begun)) } else { String::new() };
        self.entry("took", &format!("{seconds:.0} s{since}, {speed} tokens a second"))
    }

    /// The model beside the 3-gram model. `advice` is for whom it is not better.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn result(
        &mut self,
        corpus: &Corpus,
        trigram: &[f64],
        model: &[f64],
        advice: Option<&str>,
    ) -> Result<()> {
        self.line("")?;
        let asked = format!("  held out, {} tokens", thousands(model.len()));
        self.line(&format!("{asked:<32}  loss  perplexity  bits a byte"))?;
        let mut means = Vec::new();
        for (name, losses) in [("3-gram, Kneser-Ney", trigram), ("this model", model)] {
            let loss = crate::corpus::mean(losses);
            let bits = loss * losses.len() as f64 / corpus.held_out_bytes as f64 / 2f64.ln();
            let perplexity = perplexity(loss);
            self.line(&format!("    {name:<28} {loss:5.3} {perplexity:11.2} {bits:12.3}"))?;
            means.push(loss);
        }
        self.line("")?;
        let verdict = match means[1] < means[0] {
            true => format!("The model is {:.3} below the 3-gram model.", means[0] - means[1]),
            false => {
                let advice = advice.map(|words| format!(" {words}")).unwrap_or_default();
                format!("The 3-gram model is not beaten.{advice}")
            }
        };
        self.sentence(&verdict)
    }

    /// The loss with weights kept in some way, and `beside` it that with those of the file.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn kinds(&mut self, beside: Option<f64>, loss: f64, weights: &WeightReport) -> Result<()> {
        if beside.is_none() {
            self.line("")?;
            self.line("  weights                       MB     loss        more   off by")?;
        }
        let (kind, size) = (weights.kind.to_string(), weights.bytes as f64 / 1e6);
        let more = beside.map_or(String::new(), |beside| format!("{:+.5}", loss - beside));
        let off = 100.0 * weights.error.relative();
        self.line(&format!("    {kind:<22} {size:9.1} {loss:8.5} {more:>11} {off:6.3} %"))
    }

    /// Where everything is.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn written(&mut self, checkpoint: &Path, figure: &Path) -> Result<()> {
        self.line("")?;
        self.entry("model", &shown(checkpoint))?;
        self.entry("figure", &shown(figure))
    }

    /// The losses of the model and of the 3-gram model, by how many tokens the model sees.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn positions(
        &mut self,
        rows: impl Iterator<Item = (usize, usize, f64, f64)>,
    ) -> Result<()> {
        self.line("")?;
        self.line("  tokens that the model sees        this model       3-gram")?;
        for (from, to, model, trigram) in rows {
            let seen = if from == to { from.to_string() } else { format!("{from} to {to}") };
            self.line(&format!("    {seen:<26} {model:13.3} {trigram:12.3}"))?;
        }
        Ok(())
    }

    /// What each head looks at, and beside them a head that prefers nothing.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn heads(&mut self, maps: &Maps) -> Result<()> {
        let tokens = maps.tokens.len();
        self.entry("prompt", &format!("{tokens} tokens: {}", maps.tokens.join(" ")))?;
        self.line("")?;
        self.line("                                  weight on")?;
        self.line("  block  head    back   itself   one before   first   word's start   others")?;
        let mut row = |name: &str, head: &Head| {
            let [back, itself] = [head.steps_back(), head.itself()];
            let [before, first] = [head.before(), head.first()];
            let words = maps.words(head).map(|words| words.map(|weight| format!("{weight:.2}")));
            let [word, others] = words.unwrap_or(["-".into(), "-".into()]);
            self.line(&format!(
                "  {name:<11} {back:7.1} {itself:8.2} {before:12.2} {first:7.2} {word:>14} {others:>8}"
            ))
        };
        for (b, block) in maps.blocks.iter().enumerate() {
            for (h, head) in block.iter().enumerate() {
                row(&format!("{:>5}  {:>4}", b + 1, h + 1), head)?;
            }
        }
        row("all alike", &Head::alike(tokens))?;
        self.line("")?;
        let words = "Means over the tokens from the third on; back: positions. Word's start: the weight on the first token of \
                     their word, of those that stand two or more behind it; others: on tokens as far back that begin no \
                     word. In the last line all that is seen has the same weight.";
        Ok(self.terminal.text("  ", words)?)
    }

    /// Where a figure is.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn figure(&mut self, figure: &Path) -> Result<()> {
        self.line("")?;
        self.entry("figure", &shown(figure))
    }

    /// Where maps are, and their numbers.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn maps(&mut self, figure: &Path, numbers: &Path) -> Result<()> {
        self.figure(figure)?;
        self.entry("numbers", &shown(numbers))
    }

    /// The learner's parts agree with the library's.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn agrees(&mut self, apart: Apart) -> Result<()> {
        let Apart { most: [loss, norm], bounds } = apart;
        let text = format!(
            "At every step your parts gave the library's loss and gradients: the losses were at most {loss:.1e} \
             apart, the norms of the gradients {norm:.1e} of their size. {:.1e} and {:.1e} are allowed.",
            bounds[0], bounds[1]
        );
        self.line("")?;
        Ok(self.terminal.text("  ", &text)?)
    }

    /// The learner's parts do not agree.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn differs(&mut self, differs: &Differs) -> Result<()> {
        self.bar.finish_and_clear();
        let Differs { step, what, mine, library, bound } = differs;
        self.line("")?;
        self.line(&format!("  Step {step} is the first that differs. Its {what}:"))?;
        self.line("")?;
        self.line(&format!("    yours          {mine}"))?;
        self.line(&format!("    the library's  {library}"))?;
        self.line(&format!("    allowed        {bound:.1e} apart"))?;
        self.line("")?;
        let words = "Both had the same weights and the same tokens. `cargo course check` looks at your parts one by one.";
        Ok(self.terminal.text("  ", words)?)
    }
}

//! The components of the course, in their order. The only list of them: numbers, names, pages, matrices and
//! counts are made of it.

use crate::category::Category;
use crate::component::{Bug, Component, Exhibit, Invariant, Promise, exhibits, promises};
use crate::diagnosis::{self, Accuracy};
use crate::grade;
use crate::matrix::{self, Matrix};
use crate::mutants::asked;
use crate::mutants::mixer::{Axes, conditions};
use crate::mutants::way::{NotAsked, Way};
use crate::mutants::{self, Fate, Mutant, Told};
use crate::quiz::{self, Riddle};
use crate::run::Run;
use crate::task::{Grading, Spec, Task};
use crate::violation::Violation;
use interfaces::interface;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::LazyLock;

/// Lists the components: slug and interface. The order is that of the tasks' numbers.
macro_rules! components {
    ($($slug:ident: $interface:ident,)+) => {
        /// All components, in their order.
        pub static COMPONENTS: &[Entry] = &[$({
            assert!(
                same(stringify!($slug), <dyn interface::$interface as Component>::SLUG),
                concat!(
                    "contract/src/registry.rs lists ", stringify!($interface), " as ", stringify!($slug), ", and `slug` in contract/src/",
                    stringify!($slug), "/mod.rs, or that interface's own, says something else"
                )
            );
            Entry::of::<dyn interface::$interface>()
        },)+];
    };
}

/// Equal texts, for the compiler.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    a.len() == b.len() && i == a.len()
}

components! {
    embedding: VocabEmbedding,
    norm: GroupRmsNorm,
    layernorm: LayerNorm,
    parallel: ParallelVocabEmbedding,
    rope: NtkAwareRope,
    attention: GroupedQueryAttention,
    feedforward: SwiGlu,
    loss: CrossEntropy,
    model: Llama,
    absolute: AbsolutePositions,
    biases: ScoreBiases,
    frequencies: StretchedRope,
    rotations: Rotations,
    collectives: Collectives,
}

/// All tasks, in their order.
pub static TASKS: LazyLock<Vec<Task>> = LazyLock::new(|| {
    let of = |(row, entry): (usize, &Entry)| entry.make_tasks(row + 1);
    let tasks: Vec<Task> = COMPONENTS.iter().enumerate().flat_map(of).collect();
    for (row, task) in tasks.iter().enumerate() {
        let twice = tasks[..row].iter().any(|other| other.name == task.name);
        assert!(
            !twice,
            "contract/src/{}/tasks.rs: two tasks are called {}",
            task.component, task.name
        );
    }
    tasks
});

/// The task with this number or this name.
pub fn task(called: &str) -> Option<&'static Task> {
    TASKS.iter().find(|task| task.number == called || task.name == called)
}

/// The component that is meant by its place (`1`) or its slug (`norm`, `norm/`, `norm::`). Whole words only: `norm`
/// is not `layernorm`.
pub fn component_called(words: &str) -> Option<&'static Entry> {
    let words = words.replace("::", "/");
    let slug = words.strip_suffix("/").unwrap_or(&words);
    COMPONENTS.iter().find(|entry| entry.slug == slug || entry.number().to_string() == words)
}

/// The tasks that are meant by a number (`1.2`), a name (`norm/forward`) or its beginning (`norm/for`), or a
/// component: see [`component_called`]. `4.1` is not `4.10`.
pub fn tasks_called(words: &str) -> Vec<&'static Task> {
    if let Some(entry) = component_called(words) {
        return entry.tasks().collect();
    }
    let words = words.replace("::", "/");
    if let Some(task) = task(&words) {
        return vec![task];
    }
    let begins = |task: &&Task| words.contains('/') && task.name.starts_with(&words);
    TASKS.iter().filter(begins).collect()
}

/// The component with this slug.
pub fn component(slug: &str) -> Option<&'static Entry> {
    COMPONENTS.iter().find(|entry| entry.slug == slug)
}

/// What is known of a component without its types.
pub struct Entry {
    /// What it is called everywhere.
    pub slug: &'static str,
    /// Its short name, as the board has it.
    pub name: &'static str,
    /// Its whole name.
    pub title: &'static str,
    promises: fn() -> Vec<Promise>,
    exhibits: fn() -> Vec<Exhibit>,
    variants: fn() -> Vec<(&'static str, &'static str)>,
    matrix: fn(Range<u64>) -> Matrix,
    accuracy: fn() -> Accuracy,
    mutants: fn(usize, Told<'_>) -> Vec<(Mutant, Fate)>,
    asked: fn() -> Vec<(&'static str, Way, bool)>,
    axes: fn() -> &'static Axes,
    oracle_breaks: fn() -> Vec<(&'static str, Violation)>,
    repaired: fn() -> Vec<(&'static str, Option<String>)>,
    told: fn() -> Vec<(Exhibit, Option<Category>)>,
    riddles: fn(u64, usize) -> Vec<Riddle>,
    specs: fn() -> &'static [Spec],
}

impl Entry {
    const fn of<P: Component + ?Sized>() -> Self {
        Self {
            slug: P::SLUG,
            name: P::NAME,
            title: P::TITLE,
            promises: promises::<P>,
            exhibits: exhibits::<P>,
            variants: || P::variants().iter().map(|variant| (variant.id, variant.about)).collect(),
            matrix: matrix::matrix::<P>,
            accuracy: diagnosis::accuracy::<P>,
            mutants: mutants::fates::<P>,
            asked: asked::asked::<P>,
            axes: P::axes,
            oracle_breaks: oracle_breaks::<P>,
            repaired: repaired::<P>,
            told: told::<P>,
            riddles: quiz::riddles::<P>,
            specs: P::tasks,
        }
    }

    /// Its place among the components, counted from 1.
    pub fn number(&self) -> usize {
        COMPONENTS.iter().take_while(|entry| entry.slug != self.slug).count() + 1
    }

    /// Its tasks, in their order.
    pub fn tasks(&self) -> impl Iterator<Item = &'static Task> + use<> {
        let slug = self.slug;
        TASKS.iter().filter(move |task| task.component == slug)
    }

    /// Its tasks, when it is the `place`-th component, counted from 1.
    fn make_tasks(&self, place: usize) -> Vec<Task> {
        let (specs, promises) = ((self.specs)(), self.promises());
        // The programs about types are the component's, and so is the property of the learner's file.
        let types = |spec: &&Spec| matches!(spec.grading, Grading::Types(_));
        let properties = |spec: &&Spec| matches!(spec.grading, Grading::Property { .. });
        assert!(
            specs.iter().filter(types).count() <= 1 && specs.iter().filter(properties).count() <= 1,
            "contract/src/{}/tasks.rs: two tasks about types, or two about a property, would be graded alike",
            self.slug
        );
        let weight = |id: &str| Some(promises.iter().find(|promise| promise.id == id)?.weight);
        let task = |(row, spec)| {
            let number = format!("{place}.{}", row + 1);
            Task::new(number, (self.slug, self.name), spec, specs, weight)
        };
        specs.iter().enumerate().map(task).collect()
    }

    /// Its invariants, the most informative first.
    pub fn promises(&self) -> Vec<Promise> {
        (self.promises)()
    }

    /// Its known bugs.
    pub fn exhibits(&self) -> Vec<Exhibit> {
        (self.exhibits)()
    }

    /// Its correct variants: name, and how it is written.
    pub fn variants(&self) -> Vec<(&'static str, &'static str)> {
        (self.variants)()
    }

    /// Its kill matrix: see [`matrix::matrix`].
    pub fn matrix(&self, seeds: Range<u64>) -> Matrix {
        (self.matrix)(seeds)
    }

    /// Each `step`-th of its mutants, and what becomes of it: see [`mutants::fates`].
    pub fn mutants(&self, step: usize, told: Told<'_>) -> Vec<(Mutant, Fate)> {
        (self.mutants)(step, told)
    }

    /// How many mutants it has.
    pub fn count_of_mutants(&self) -> usize {
        conditions((self.axes)()).len() * self.exhibits().len()
    }

    /// Each method of its interface, each way to ask it, and whether some invariant does: see [`asked::asked`].
    pub fn asked(&self) -> Vec<(&'static str, Way, bool)> {
        (self.asked)()
    }

    /// What is not asked, and why.
    pub fn not_asked(&self) -> &'static [NotAsked] {
        (self.axes)().not_asked
    }

    /// The invariants that its own oracle breaks, and how. There should be none.
    pub fn oracle_breaks(&self) -> Vec<(&'static str, Violation)> {
        (self.oracle_breaks)()
    }

    /// Its oracle, correct variants and bugs, each with the repair that explains what it answers. See
    /// [`diagnosis::repair`].
    pub fn repaired(&self) -> Vec<(&'static str, Option<String>)> {
        (self.repaired)()
    }

    /// Its bugs, each with what a report says that it is about, in the first task that has the invariant whose name it
    /// carries. `None` if there is no such task, or if it passes.
    pub fn told(&self) -> Vec<(Exhibit, Option<Category>)> {
        (self.told)()
    }

    /// Wrong answers of its bugs as questions: see [`quiz`].
    pub fn riddles(&self, seed: u64, count: usize) -> Vec<Riddle> {
        (self.riddles)(seed, count)
    }

    /// How well its bugs are named: see [`diagnosis::accuracy`].
    pub fn accuracy(&self) -> Accuracy {
        (self.accuracy)()
    }
}

fn oracle_breaks<P: Component + ?Sized>() -> Vec<(&'static str, Violation)> {
    let judge =
        |law: &Invariant<P>| Some((law.id, *law.judge(&P::oracle(), &Run::default()).err()?));
    P::invariants().iter().filter_map(judge).collect()
}

fn repaired<P: Component + ?Sized>() -> Vec<(&'static str, Option<String>)> {
    let calls: Vec<&str> = P::repairs().iter().map(|repair| repair.call).collect();
    let repaired = |id, implementation: &P| (id, diagnosis::repair(implementation, &calls));
    let variants =
        P::variants().iter().map(|variant| repaired(variant.id, &(variant.implementation)()));
    let bugs = P::bugs().iter().map(|bug| repaired(bug.id, &(bug.implementation)()));
    std::iter::once(repaired("the oracle", &P::oracle())).chain(variants).chain(bugs).collect()
}

fn told<P: Component + ?Sized>() -> Vec<(Exhibit, Option<Category>)> {
    // A report names the same with fewer sizes and inputs, except for bugs of one size.
    let run = Run { shrink: false, ..Run::default() };
    let about = |(bug, exhibit): (&Bug<P>, Exhibit)| {
        let has_law = |task: &&Task| match task.grading {
            Grading::Invariants { ids, .. } => ids.contains(&bug.named_by),
            _ => false,
        };
        let task = TASKS.iter().filter(|task| task.component == P::SLUG).find(has_law);
        let grade = task.map(|task| grade::by_invariants(task, &*(bug.implementation)(), &run));
        (exhibit, grade.and_then(|grade| grade.category))
    };
    let bugs: Vec<_> = P::bugs().iter().zip(exhibits::<P>()).collect();
    bugs.into_par_iter().map(about).collect()
}

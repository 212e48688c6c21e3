//! Landlock: which files may be opened, and that no other process may be reached.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

/// Reading and starting programs below `readable`, and all but starting programs below `writable`. A path that is not there
/// is nothing that may be reached. No TCP port, no abstract socket and no signal to others, where the kernel knows of that.
pub fn restrict(readable: &[&str], writable: &[&str]) -> crate::Result<()> {
    // The oldest that says all that is needed; what newer kernels add is asked for and not required.
    let (oldest, newest) = (ABI::V1, ABI::V6);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(oldest))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(newest)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(newest) & !AccessFs::Execute))?
        .restrict_self()?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock".into()),
        _ => Ok(()),
    }
}

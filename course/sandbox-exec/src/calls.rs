//! seccomp: which system calls there are.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// What is started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A learner's program: it computes, and has no need of other processes, of a network, or of anyone else.
    Run,
    /// A compiler: it starts a linker.
    Build,
}

impl Kind {
    /// By its name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "run" => Some(Self::Run),
            "build" => Some(Self::Build),
            _ => None,
        }
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Takes the other calls away. They fail, as if they were not permitted.
pub fn restrict(kind: Kind) -> crate::Result<()> {
    let not_permitted = SeccompAction::Errno(libc::EPERM as u32);
    match kind {
        Kind::Run => {
            // Two filters, since each has one answer for all that it forbids.
            install(new_threads_the_old_way(), SeccompAction::Allow, unknown())?;
            install(computing()?, not_permitted, SeccompAction::Allow)
        }
        Kind::Build => install(of(FORBIDDEN), SeccompAction::Allow, not_permitted),
    }
}

fn install(rules: Rules, others: SeccompAction, these: SeccompAction) -> crate::Result<()> {
    let filter = SeccompFilter::new(rules, others, these, std::env::consts::ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)?;
    Ok(())
}

fn of(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

/// A C library that does not find it asks again by `clone`, whose flags can be looked at.
fn new_threads_the_old_way() -> Rules {
    of(&[libc::SYS_clone3])
}

fn unknown() -> SeccompAction {
    SeccompAction::Errno(libc::ENOSYS as u32)
}

/// What a program needs that computes, reads and writes files, and has threads.
fn computing() -> crate::Result<Rules> {
    let mut rules = of(COMPUTING);
    #[cfg(target_arch = "x86_64")]
    rules.extend(of(COMPUTING_X86_64));
    // A thread, and no process.
    let flag = libc::CLONE_THREAD as u64;
    let is_thread =
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    // No page that was not the program's from the start is ever executed.
    let executed = libc::PROT_EXEC as u64;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let is_data =
            SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(executed), 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![is_data])?]);
    }
    // An abort, and no signal that looks as if it came from outside.
    let abort = libc::SIGABRT as u64;
    let is_abort = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, abort)?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![is_abort])?]);
    // Copies of descriptors, and their flags. No locks, and no word of what others do to a file: that could be a message.
    let about_descriptors = [
        libc::F_DUPFD,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_DUPFD_CLOEXEC,
    ];
    let is_one = |what: &libc::c_int| {
        let equal =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *what as u64)?;
        SeccompRule::new(vec![equal])
    };
    let rules_of = about_descriptors.iter().map(is_one).collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_fcntl, rules_of);
    // Forbidden already, in another way.
    rules.insert(libc::SYS_clone3, Vec::new());
    Ok(rules)
}

const COMPUTING: &[i64] = &[
    // To begin and to end. `execve` is how this program becomes the other; Landlock says which one.
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_prlimit64,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Files and pipes.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_ioctl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_ppoll,
    // Threads, its own signals, clocks.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_membarrier,
];

/// Older names of the same.
#[cfg(target_arch = "x86_64")]
const COMPUTING_X86_64: &[i64] = &[
    libc::SYS_arch_prctl,
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_dup2,
    libc::SYS_poll,
    libc::SYS_time,
];

/// What no compiler needs: a network, other processes' memory, mounts, the kernel's parts.
const FORBIDDEN: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_mknodat,
];

//! The sandbox: what separates a submission's code from the machine.
//!
//! The outer line is bubblewrap: separate namespaces for users, processes, network and the rest, a root of a few paths
//! that can only be read, and an empty `/tmp` of limited size. The inner line is the program `sandbox-exec`: limits of
//! resources, and with them Landlock and seccomp. Each line is there alone for the tests that show what it holds.

use crate::error::{Error, Result};
use crate::parts::Parts;
use crate::record::Sandbox;
use crate::settings::Limits;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A sandbox, and its limits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cage {
    /// Which lines there are.
    pub kind: Sandbox,
    /// What it may use.
    pub limits: Limits,
    /// The program `sandbox-exec`, where the sandbox's own user can read it.
    sandbox_exec: PathBuf,
    /// The user whom a submission's program runs as, if this one is root: limits on processes do not hold for root.
    user: Option<u32>,
}

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// What `sandbox-exec` needs of a system to start.
const LIBRARIES: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
/// And what a linker needs.
const TOOLS: &[&str] = &["/bin", "/lib", "/lib64", "/usr", "/etc/alternatives"];

/// What a program reads unguessable numbers from, and where others go.
const RUN_DEVICES: [&str; 3] = ["/dev/null", "/dev/urandom", "/dev/random"];

/// Bytes of a program's stack.
pub const STACK: u64 = 8 << 20;
/// Files that a program may have open.
pub const OPEN: u64 = 64;
/// Bytes of the longest file that a compiler may write.
pub const BUILT: u64 = 512 << 20;

/// Within the sandbox.
const PROGRAM: &str = "/submission";
const SANDBOX_EXEC: &str = "/sandbox-exec";

impl Cage {
    /// A sandbox of this kind, with its files in `stage`.
    ///
    /// # Errors
    /// The files can't be written.
    pub fn new(kind: Sandbox, limits: Limits, parts: &Parts, stage: &Path) -> Result<Self> {
        let sandbox_exec = stage.join("sandbox-exec");
        std::fs::copy(&parts.sandbox_exec, &sandbox_exec)
            .and_then(|_| share(&sandbox_exec))
            .map_err(Error::file(&sandbox_exec, "can't be written"))?;
        Ok(Self { kind, limits, sandbox_exec, user: user() })
    }

    /// Whether each program has its own namespaces.
    pub fn has_namespaces(&self) -> bool {
        self.kind.has_namespaces()
    }

    fn has_guard(&self) -> bool {
        matches!(self.kind, Sandbox::Full | Sandbox::Confined)
    }

    /// A command that runs a submission's program. Its standard streams are the caller's to set.
    pub fn run(&self, program: &Path) -> Command {
        let Limits { cpu_seconds, memory_mib, processes, file_mib, .. } = self.limits;
        let mut orders: Vec<String> = Vec::new();
        if self.has_guard() {
            orders.extend(["guard".to_string(), "run".to_string()]);
        }
        orders.extend([
            format!("cpu={cpu_seconds}"),
            format!("memory={}", memory_mib << 20),
            format!("processes={processes}"),
            format!("file={}", file_mib << 20),
            // Regardless of what the shell of the lecturer allows.
            format!("stack={STACK}"),
            format!("open={OPEN}"),
            "core=0".to_string(),
        ]);
        orders.extend(RUN_DEVICES.map(|path| format!("read={path}")));
        orders.push("write=/dev/null".to_string());
        let mut command = if self.has_namespaces() {
            orders.push("write=/tmp".to_string());
            let mut bwrap = namespaces();
            bwrap.args(["--unshare-cgroup-try", "--disable-userns"]);
            // For `sandbox-exec`. The program after it is whole in itself, and can't open them.
            bind(&mut bwrap, there(LIBRARIES).chain(there(&["/etc/ld.so.cache"])));
            bwrap.arg("--ro-bind").arg(&self.sandbox_exec).arg(SANDBOX_EXEC);
            bwrap.arg("--ro-bind").arg(program).arg(PROGRAM);
            bwrap.args(["--size", &(file_mib << 20).to_string(), "--tmpfs", "/tmp"]);
            for device in RUN_DEVICES {
                bwrap.args(["--dev-bind", device, device]);
            }
            bwrap.args(["--remount-ro", "/", "--chdir", "/tmp", "--", SANDBOX_EXEC]);
            bwrap.args(&orders).args(["--", PROGRAM]);
            bwrap
        } else {
            // No `/tmp` to write to: without namespaces it would be shared by all.
            let mut sandbox_exec = Command::new(&self.sandbox_exec);
            sandbox_exec.args(&orders).arg("--").arg(program).current_dir("/");
            sandbox_exec
        };
        quiet(&mut command);
        self.as_nobody(&mut command);
        command
    }

    /// A command that runs rustc with these arguments in `stage/course`, which it may read, as it may the parts; it may write
    /// to `stage/out` alone.
    pub fn compile(&self, parts: &Parts, stage: &Path, arguments: &[String]) -> Command {
        let Limits { build_seconds, build_memory_mib, .. } = self.limits;
        let (course, out) = (stage.join("course"), stage.join("out"));
        let mut orders: Vec<String> = Vec::new();
        if self.has_guard() {
            orders.extend(["guard".to_string(), "build".to_string()]);
        }
        orders.extend([
            format!("cpu={build_seconds}"),
            format!("memory={}", build_memory_mib << 20),
            format!("file={BUILT}"),
            "core=0".to_string(),
        ]);
        orders.extend(there(TOOLS).map(|path| format!("read={path}")));
        orders.extend(["/etc/ld.so.cache", "/dev"].map(|path| format!("read={path}")));
        for path in [&parts.sysroot, &parts.deps, &course] {
            orders.push(format!("read={}", path.display()));
        }
        orders.extend(["write=/dev/null".to_string(), format!("write={}", out.display())]);
        let mut command = if self.has_namespaces() {
            let mut bwrap = namespaces();
            bwrap.arg("--unshare-cgroup-try");
            bind(&mut bwrap, there(TOOLS).chain(there(&["/etc/ld.so.cache"])));
            // First, since what follows may lie below it.
            bwrap.args(["--size", &(256_u64 << 20).to_string(), "--tmpfs", "/tmp"]);
            if there(TOOLS).any(|path| parts.course.starts_with(path)) {
                // Where the course lies below one of these paths, nothing of it is to be seen.
                bwrap.arg("--tmpfs").arg(&parts.course);
            }
            for path in [&parts.sysroot, &parts.deps, &course] {
                bwrap.arg("--ro-bind").arg(path).arg(path);
            }
            bwrap.arg("--ro-bind").arg(&self.sandbox_exec).arg(SANDBOX_EXEC);
            bwrap.arg("--bind").arg(&out).arg(&out);
            bwrap.args(["--proc", "/proc"]);
            for device in ["/dev/null", "/dev/zero", "/dev/urandom"] {
                bwrap.args(["--dev-bind", device, device]);
            }
            bwrap.args(["--remount-ro", "/", "--chdir"]).arg(&course).args(["--", SANDBOX_EXEC]);
            orders.push("write=/tmp".to_string());
            orders.push("read=/proc".to_string());
            bwrap.args(&orders);
            bwrap
        } else {
            let mut sandbox_exec = Command::new(&self.sandbox_exec);
            sandbox_exec.args(&orders).current_dir(&course);
            sandbox_exec
        };
        command.arg("--").arg(&parts.rustc).args(arguments);
        quiet(&mut command);
        // The linker's own files, and the linker.
        command.env("TMPDIR", &out).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }

    /// Processes are counted, and files refused, for users other than root.
    #[cfg(target_os = "linux")]
    fn as_nobody(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt;
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn as_nobody(&self, _: &mut Command) {}
}

/// Nothing of this process's environment; one thread for each kind of work, and no more memory than is used.
fn quiet(command: &mut Command) {
    command.env_clear();
    command.env("RAYON_NUM_THREADS", "1").env("MALLOC_ARENA_MAX", "2").env("RUST_BACKTRACE", "0");
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
}

fn namespaces() -> Command {
    let mut bwrap = Command::new(program());
    bwrap.args([
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
    ]);
    bwrap.args(["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent"]);
    bwrap.args(["--new-session", "--cap-drop", "ALL"]);
    bwrap
}

/// bubblewrap's own name; the environment may name another place.
fn program() -> PathBuf {
    std::env::var_os("QUADRIVIUM_BWRAP").map_or_else(|| "bwrap".into(), PathBuf::from)
}

/// The paths that this system has.
fn there<'p>(paths: &'p [&'p str]) -> impl Iterator<Item = &'p str> {
    paths.iter().copied().filter(|path| Path::new(path).exists())
}

/// The same paths within: those that are links here are links there.
fn bind<'p>(bwrap: &mut Command, paths: impl Iterator<Item = &'p str>) {
    for path in paths {
        match std::fs::read_link(path) {
            Ok(target) => bwrap.arg("--symlink").arg(target).arg(path),
            Err(_) => bwrap.args(["--ro-bind", path, path]),
        };
    }
}

/// The user whom programs run as in the sandbox, if it is another one than this process's.
#[cfg(target_os = "linux")]
pub(crate) fn user() -> Option<u32> {
    rustix::process::geteuid().is_root().then_some(NOBODY)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn user() -> Option<u32> {
    None
}

/// Gives a folder to the sandbox's user. Anyone else who knows the name of a file in it may reach that file, as a
/// compiler's sandbox does.
pub fn give(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, chown};
        if let Some(user) = user() {
            chown(folder, Some(user), Some(user))?;
        }
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o711))?;
    }
    Ok(())
}

/// Lets the sandbox's user read and start a program of this grader's, regardless of the umask of the lecturer's shell.
pub fn share(program: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// What to do where the sandbox's user can't read its files.
const REACH: &str =
    "see whether the folder of temporary files (TMPDIR) can be reached by other users";

/// Whether the sandbox holds on this machine: `probe` is a program in it, the compiler or one made of a submission.
///
/// # Errors
/// What is missing, and what to do.
pub fn check(cage: &Cage, mut probe: Command) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(Error::Sandbox {
            what: "submissions are graded on Linux: the sandbox is made of its kernel's means",
            got: std::env::consts::OS.to_string(),
            to_do: "use Linux; or, for your own code, `cargo course check`",
        });
    }
    probe.stderr(Stdio::piped());
    let failed = |what, got: String, to_do| Err(Error::Sandbox { what, got, to_do });
    match probe.output() {
        Err(error) if cage.has_namespaces() && error.kind() == std::io::ErrorKind::NotFound => {
            failed(
                "submissions run in a sandbox, which the program bwrap makes",
                "no program `bwrap`".to_string(),
                "install bubblewrap (Debian and Ubuntu: apt install bubblewrap); or, for your own code only, --sandbox none",
            )
        }
        Err(error) => failed("submissions run in a sandbox", error.to_string(), "fix this first"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
            if said.starts_with("bwrap: Can't find source path") {
                return failed(
                    "submissions run in a sandbox, into which bwrap puts files",
                    said,
                    REACH,
                );
            }
            if said.starts_with("bwrap:") {
                return failed(
                    "submissions run in a sandbox of namespaces, which bwrap asks the kernel for",
                    said,
                    "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1 or user.max_user_namespaces; on Ubuntu \
                     kernel.apparmor_restrict_unprivileged_userns=0; in a container its seccomp profile forbids them). Where \
                     that can't be: --sandbox confined, which needs none",
                );
            }
            if said.starts_with("sandbox-exec:") {
                return failed(
                    "submissions run behind Landlock and seccomp",
                    said,
                    "use a kernel that has them (Linux 5.13 or newer); or --sandbox namespaces, which does without",
                );
            }
            // A submission's has no order and says so.
            if said.starts_with("submission:") || output.status.success() {
                return Ok(());
            }
            failed("a program starts in the sandbox", format!("{said} ({})", output.status), REACH)
        }
    }
}

"""Measures quadrivium beside PyTorch, candle and burn, at the same shapes, in turns, and prints one table.

    python3 benches/peers/run.py [--model | --encodings | --decode] [--device cuda [--built FOLDER]] [--rounds N] [--only NAME]
                               [--without NAME,..] [--threads N] [--json FILE] [--date DATE]

The first run installs PyTorch and builds the other libraries, under `target/peers`; that takes long. An implementation that
can't be installed, or that computes something else than quadrivium, is named and left out.

What is the same for all implementations:
- float32 on the CPU, the same inputs, made before; a plain sum is the loss; gradients are made anew by each call.
- Each operation has new processes (not on a GPU). Every implementation has a turn in each round, in an order that rotates. A turn is calls
  that are not timed, for 50 ms, and one that is; its results are dropped inside the timing.
- The number of threads, and allocators that keep their memory (below).

With --encodings it measures position encodings beside PyTorch and the functions of transformers.
With --model it measures a whole model beside PyTorch: a step of training, a step whose blocks are recomputed, a prompt, 32 decoded
tokens. The most memory of each is that of a process of its own, above what it has before the model is made; allocators are as they come.
With --decode it measures one token after a prompt, and the prompt, beside transformers and candle, from checkpoints that all of them
read, with weights of 4 bytes and fewer. They are random, and are written once, under `target/peers/models`; the largest takes 1.6 GB,
and all implementations have it in memory at once.
With --device cuda the implementations are quadrivium and PyTorch on an NVIDIA GPU; memory is not measured.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
import tomllib
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "target" / "peers"
MODELS = TARGET / "models"
PYTHON = TARGET / "python" / ("Scripts" if os.name == "nt" else "bin") / "python"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"

OURS = "quadrivium"
TORCH = ["torch-eager", "torch-compiled"]
SLICES = f"{OURS}-slices"
IMPLEMENTATIONS = [OURS, SLICES, *TORCH, "candle", "burn", "copy"]
PASSES = ["forward", "forward+backward"]
OPERATIONS = [f"{name} {mode}" for name in ["norm-128", "norm-4096", "rope", "embedding", "shard"] for mode in PASSES]
WORKS = ["64 step 128 8", "128 step 128 4", "256 step 128 4", "768 step 128 1"]
WORKS += [f"{h} step {s} 1" for h, s in [(256, 512), (256, 2048), (512, 512), (768, 512)]]
WORKS += ["384 step 512 4", "384 recomputed 512 4"]
WORKS += [f"{h} prefill {s} 1" for h, s in [(128, 512), (256, 512), (512, 512), (768, 128), (768, 512), (768, 2048)]]
WORKS += [f"{h} decode {s} 1" for h in [64, 256, 768] for s in [128, 2048]]
MODEL = [f"model-{work}" for work in WORKS]
ENCODED = ["yarn", "partial", "xpos", "axial", "learnable", "sinusoidal", "learned", "alibi", "t5", "kerple", "linear"]
ENCODINGS = [f"encoding-{name} {mode}" for name in ENCODED for mode in PASSES]
TOLERANCE = 1e-3

# What decodes, and how far its logits may be from those of the first, as a share of the largest logit. With the wrong tokens or
# weights, they would be off by about as much as the largest.
# - 1e-3: sums in another order, as everywhere.
# - 3e-2: weights of 8 or 11 bits and, except in quadrivium, activations as well.
# - 5e-2: weights of 8 bits with one factor for a row or for 32; candle rounds what they are multiplied by as well.
# - 0.5: weights of 4 bits are off by 7 %, and what comes out of each layer by as much more.
DECODERS = {
    "quadrivium-f32": 1e-3,
    "quadrivium-bf16": 3e-2,
    "quadrivium-int8": 5e-2,
    "quadrivium-int4": 0.5,
    "transformers-f32": 1e-3,
    "transformers-compiled": 1e-3,
    "transformers-bf16": 3e-2,
    "candle-f32": 1e-3,
    "candle-f16": 3e-2,  # it can't multiply matrices of bf16 on a CPU
    "candle-q8_0": 5e-2,
    "candle-q4_0": 0.5,
}
DECODED = [f"{work}-{size}" for work in ["decode", "prompt"] for size in ["1M", "25M", "100M", "400M"]]
PROMPT_ROUNDS = 3  # a prompt of the largest model takes seconds
PAUSE = 0.02  # seconds between turns, until the last implementation's threads sleep

# New memory is dear: the first touch of each page goes through the kernel. quadrivium's device keeps its memory, so
# every other implementation keeps its own, too. Without this PyTorch (with glibc) is many times slower; --fresh-memory
# shows it.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",  # glibc, for PyTorch
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(1 << 26),
    "MIMALLOC_PURGE_DELAY": "-1",  # mimalloc, for all Rust implementations
}


class Missing(Exception):
    """Why an implementation is left out."""


def run(*command, **options):
    """A command's output."""
    try:
        done = subprocess.run(command, cwd=HERE, text=True, capture_output=True, **options)
    except OSError as error:
        raise Missing(f"{command[0]}: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Missing(f"{pathlib.Path(command[0]).name} failed: {' / '.join(lines[-3:])}")
    return done.stdout.strip()


def install_torch(python):
    """PyTorch in its own environment, if there is none yet. Returns its version."""
    global PYTHON
    if python:
        PYTHON = python
        return run(PYTHON, "-W", "ignore", "-c", "import torch; print(torch.__version__)")
    wanted = HERE / "requirements.txt"
    stamp = TARGET / "python" / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        run(sys.executable, "-m", "venv", TARGET / "python")
        index = []
        try:
            urllib.request.urlopen(f"{CPU_WHEELS}/torch/", timeout=10).close()
            index = ["--extra-index-url", CPU_WHEELS]
        except OSError:
            pass  # the default index has a larger wheel, which computes the same on a CPU
        run(PYTHON, "-m", "pip", "install", "--quiet", *index, "-r", wanted)
        stamp.write_text(wanted.read_text())
    return run(PYTHON, "-W", "ignore", "-c", "import torch; print(torch.__version__)")


def install_transformers(python):
    install_torch(python)
    return run(PYTHON, "-W", "ignore", "-c", "import torch, transformers; print(transformers.__version__, 'torch', torch.__version__)")


def decoder(implementation):
    """The program of one that decodes, and its kind of weights."""
    library, _, kind = implementation.partition("-")
    return f"decode-{library}", kind


def build(implementation, device, built):
    """A Rust implementation's program, if it is not `built`. Returns the version of its library."""
    program = decoder(implementation)[0] if implementation in DECODERS else implementation.removesuffix("-slices")
    if not built:
        feature = "cuda" if device == "cuda" else program
        # candle's products with few bits are slow unless the compiler may use all that this processor has.
        native = {"RUSTFLAGS": "-C target-cpu=native"} if program == "decode-candle" else {}
        command = ["cargo", "build", "--release", "--locked", "--target-dir", TARGET, "--features", feature, "--bin", program]
        run(*command, env=os.environ | native)
    libraries = {"candle": "candle-nn", "copy": "rayon", "decode-quadrivium": OURS, "decode-candle": "candle-transformers"}
    library = libraries.get(program, program)
    packages = tomllib.loads((HERE / "Cargo.lock").read_text())["package"]
    return next(package["version"] for package in packages if package["name"] == library)


class Implementation:
    """A process that answers a line with a line."""

    def __init__(self, name, options, environment):
        program = [(options.built or TARGET / "release") / name]
        if name in TORCH:
            program = [PYTHON, HERE / "torch_implementations.py", name, str(options.threads), options.device]
        elif name == SLICES:
            program = [(options.built or TARGET / "release") / OURS, "slices"]
        elif name in DECODERS:
            program, kind = decoder(name)
            program = [(options.built or TARGET / "release") / program, kind, MODELS]
            if name.startswith("transformers"):
                program = [PYTHON, HERE / "torch_decode.py", kind, str(options.threads), MODELS]
        self.log = TARGET / f"{name}.log"
        with open(self.log, "w") as log:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=log, text=True, env=environment)

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has stopped; there is nothing to read
        answer = self.process.stdout.readline().strip()
        if not answer or answer == "none":
            said = self.log.read_text().strip().splitlines()[-3:]
            raise Missing("it does not have it" if answer else f"it stopped: {' / '.join(said)}")
        return [float(number) for number in answer.split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def differs(name, numbers, ours):
    largest = max(map(abs, ours))
    most = [DECODERS[name] * largest if name in DECODERS else TOLERANCE * abs(two) for two in ours]
    return len(numbers) != len(ours) or any(not abs(one - two) <= off for one, two, off in zip(numbers, ours, most))


def measure(operation, implementations, rounds, leave_out):
    """The seconds of each call of each implementation that computes the same."""
    times, ours = {}, None
    for name, implementation in implementations.items():
        try:
            if name != "copy":
                numbers = implementation.ask(f"check {operation}")
                ours = ours or numbers
                if differs(name, numbers, ours):
                    raise Missing(f"it computes {numbers}, and quadrivium {ours}")
            times[name] = []
        except Missing as why:
            leave_out(name, operation, why)
    for nth in range(rounds):
        order = list(times)
        turn = nth % len(order)
        for name in order[turn:] + order[:turn]:
            time.sleep(PAUSE)
            try:
                times[name] += implementations[name].ask(operation)
            except Missing as why:
                del times[name]
                leave_out(name, operation, why)
    return times


def most_memory(operation, program, environment):
    """The bytes that a process takes for an operation, above those that it has before. None where the system does not say."""
    try:
        implementation = program(environment)
        try:
            implementation.ask("nothing")
        except Missing:
            pass  # it is awake now
        before = status(implementation, "VmRSS")
        implementation.ask(operation)
        most = status(implementation, "VmHWM") - before
        implementation.end()
        return most
    except (OSError, Missing):
        return None


def status(implementation, name):
    lines = open(f"/proc/{implementation.process.pid}/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


def machine(device):
    model = platform.processor()
    try:
        lines = open("/proc/cpuinfo").read().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    about = {"cpu": model, "cores": cores(), "os": platform.platform()}
    if device == "cuda":
        about["gpu"], about["driver"] = run("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").split(", ")
    return about


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def seconds_of_others():
    """The processor time that other programs have used so far; 0 where the system does not say it like Linux."""
    try:
        user, nice, system, _, _, irq, soft = map(int, open("/proc/stat").readline().split()[1:8])
    except (OSError, ValueError):
        return 0.0
    own = os.times()
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK") - sum(own[:4])


def table(title, results, names, cell):
    print(f"\n{title}\n")
    rows = [["", *names]]
    for operation, times in results.items():
        rows.append([operation, *(cell(times[name], times[names[0]]) if name in times else "-" for name in names)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print(row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:])), sep="  ")


def ratio(times, ours):
    return f"{statistics.median(times) / statistics.median(ours):.2f}"


def share(bytes_, ours):
    return f"{bytes_ / ours:.2f}" if bytes_ and ours else "-"


def milliseconds(times, _):
    return f"{statistics.median(times) * 1e3:.1f} ({min(times) * 1e3:.1f}..{max(times) * 1e3:.1f})"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--model", action="store_true", help="a whole model, beside PyTorch")
    options.add_argument("--encodings", action="store_true", help="position encodings, beside PyTorch and transformers")
    options.add_argument("--decode", action="store_true", help="decoding from checkpoints, beside transformers and candle")
    options.add_argument("--python", type=pathlib.Path, help="a Python that has PyTorch; none is installed then")
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--built", type=pathlib.Path, metavar="FOLDER", help="where quadrivium's program is; none is built then")
    options.add_argument("--rounds", type=int, default=21)
    options.add_argument("--only", default="", metavar="NAME", help="only the operations whose name has this in it")
    options.add_argument("--without", default="", metavar="NAME,..", help="implementations to leave out")
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write all times there")
    options.add_argument("--date", default=datetime.date.today().isoformat(), help="the date to write there")
    options.add_argument("--fresh-memory", action="store_true", help="allocators as they come: they give memory back")
    options = options.parse_args()
    every, implementations_of = (OPERATIONS, IMPLEMENTATIONS)
    if options.model or options.encodings:
        every, implementations_of = (MODEL, [OURS, *TORCH]) if options.model else (ENCODINGS, [OURS, "torch-eager"])
    elif options.decode:
        every, implementations_of = DECODED, list(DECODERS)
    elif options.device == "cuda":
        implementations_of = [OURS, *TORCH]
    if options.decode and options.device != "cpu":
        sys.exit("--decode is for a CPU")
    implementations_of = [name for name in implementations_of if name not in options.without.split(",")]
    first = implementations_of[0]  # quadrivium, which the others are compared with
    if not first.startswith(OURS):
        sys.exit("the others are compared with quadrivium: leave out another one")
    operations = [operation for operation in every if options.only in operation]
    if not operations:
        sys.exit(f"no operation has {options.only!r} in its name: {', '.join(every)}")

    versions, left_out = {}, []

    def leave_out(implementation, operation, why):
        left_out.append({"implementation": implementation, "operation": operation, "why": str(why)})
        print(f"left out: {implementation}, {operation}: {why}", file=sys.stderr)

    TARGET.mkdir(parents=True, exist_ok=True)
    for name in implementations_of:
        print(f"{name}: installed or built, if it is not yet", file=sys.stderr)
        try:
            if name in TORCH:
                versions[name] = install_torch(options.python)
            elif name.startswith("transformers"):
                versions[name] = install_transformers(options.python)
            else:
                versions[name] = build(name, options.device, options.built)
        except Missing as why:
            leave_out(name, "all", why)
    if first not in versions:
        sys.exit("quadrivium itself does not build")

    about = {"date": options.date, **machine(options.device), "threads": options.threads, "rounds": options.rounds}
    about |= {"python": platform.python_version(), "versions": versions}
    if not options.built:
        about["rustc"] = run("rustc", "--version")
    about["memory"] = "fresh" if options.fresh_memory else "kept"
    threads = ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"]
    environment = dict(os.environ, **dict.fromkeys(threads, str(options.threads)))
    environment |= {"TORCHINDUCTOR_CACHE_DIR": str(TARGET / "inductor"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    fresh = dict(environment)
    environment |= {} if options.fresh_memory else KEEP_MEMORY

    memory, implementations = {}, {}
    results, start, others = {}, time.monotonic(), seconds_of_others()
    for operation in operations:
        rounds = min(options.rounds, PROMPT_ROUNDS) if operation.startswith("prompt") else options.rounds
        print(f"{operation}: {rounds} rounds", file=sys.stderr)
        # On a GPU a process works for seconds before its first call, and its host's memory does not matter.
        if options.device == "cpu" or not implementations or any(implementation.process.poll() for implementation in implementations.values()):
            implementations = {name: Implementation(name, options, environment) for name in versions}
        results[operation] = measure(operation, implementations, rounds, leave_out)
        if options.device == "cpu":
            for implementation in implementations.values():
                implementation.end()
        if first not in results[operation]:
            sys.exit("quadrivium itself does not run")
        if options.model and options.device == "cpu":
            program = lambda name: lambda environment: Implementation(name, options, environment)
            memory[operation] = {name: most_memory(operation, program(name), fresh) for name in versions}

    if options.device == "cuda":
        for implementation in implementations.values():
            implementation.end()
    others = (seconds_of_others() - others) / (time.monotonic() - start)
    about["others"] = round(max(others, 0.0), 2)  # cores that other programs kept busy
    names = [name for name in implementations_of if name in versions]
    for what, value in about.items():
        print(f"{what}: {value}")
    table("time / quadrivium's time; above 1, quadrivium is faster", results, names, ratio)
    table("milliseconds: median (lowest..highest)", results, names, milliseconds)
    if memory:
        table("bytes / quadrivium's bytes; above 1, quadrivium takes less", memory, names, share)
    for out in left_out:
        print(f"\nleft out: {out['implementation']}, {out['operation']}: {out['why']}")
    if about["others"] > 0.1:
        print(f"\nOther programs kept {about['others']} cores busy: measure again on a machine that is idle.")
    if options.json:
        rows = {operation: {name: summary(list_) for name, list_ in row.items()} for operation, row in results.items()}
        options.json.write_text(json.dumps(about | {"results": rows, "memory_bytes": memory, "left_out": left_out}, indent=1) + "\n")


def summary(times):
    return {"median": statistics.median(times), "lowest": min(times), "highest": max(times), "seconds": times}


if __name__ == "__main__":
    main()

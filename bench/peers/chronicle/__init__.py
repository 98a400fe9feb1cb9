"""Chronicle Queue, the fastest log of the Java world: its own small program, built by Maven.

It is no engine like the peers in Python: a program in Java runs the same workloads and prints the
same figures, so what Python would cost on top of it is not in them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from measure import Job, warm_memory

NAME = "chronicle"
MODE = "Chronicle Queue 5.27ea11 in a JVM, warmed up; no checksums; not through Python"
WORKLOADS = (
    "append",
    "append_threads",
    "append_processes",
    "sync_one",
    "append_latency",
    "iterate",
    "seek_read",
    "spinning",
)

SOURCE = Path(__file__).parent
BUILD = SOURCE.parent.parent / ".build" / "chronicle"
BUILD_SECONDS_MAX = 120
PROCESS_COUNT = 2
# What the library reaches into of the JDK, and its telemetry and banner switched off.
JVM = [
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED",
    "--add-exports=jdk.compiler/com.sun.tools.javac.file=ALL-UNNAMED",
    "--add-opens=jdk.compiler/com.sun.tools.javac=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "-Dchronicle.analytics.disable=true",
    "-Dchronicle.announcer.disable=true",
    "-Dchronicle.queue.warnSlowAppenderMs=100000",
]


def build() -> str | None:
    """Compile the program; the reason, if that cannot be done here."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    jar = BUILD / "bench-chronicle-1.jar"
    newest = max(path.stat().st_mtime for path in SOURCE.rglob("*") if path.suffix != ".pyc")
    if jar.exists() and jar.stat().st_mtime > newest:
        return None
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(SOURCE / "pom.xml"),
        f"-Dbench.build={BUILD}",
        "package",
    ]
    try:
        result = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX
        )
    except subprocess.TimeoutExpired:
        return f"Maven took longer than {BUILD_SECONDS_MAX} s"
    if result.returncode:
        lines = [line for line in result.stdout.splitlines() if "ERROR" in line]
        return f"Maven failed: {lines[0][:200] if lines else result.returncode}"
    return None


def measure(workload: str, job: Job) -> dict[str, float]:
    """Run one workload in a JVM, or in two where it takes two processes."""
    warm_memory(job.warm_bytes, job.directory)
    if workload == "append_processes":
        return _processes(job)
    if workload == "spinning":
        return _spinning(job)
    with _start(workload, job) as program:
        return _answer(program)


def _processes(job: Job) -> dict[str, float]:
    programs = [_start("append_when_told", job) for _ in range(PROCESS_COUNT)]
    for program in programs:
        _ready(program)
    for program in programs:
        program.stdin.write("\n")
        program.stdin.flush()
    answers = [_answer(program) for program in programs]
    rate = sum(answer["rate"] for answer in answers)
    return {"rate": rate, "ns": 1e9 / rate}


def _spinning(job: Job) -> dict[str, float]:
    reader = _start("spinning", job)
    _ready(reader)
    writer = _start("write_evenly", job)
    writer.stdin.write("\n")
    writer.stdin.flush()
    figures = _answer(reader)
    writer.communicate()
    return figures


def _start(workload: str, job: Job) -> subprocess.Popen[str]:
    command = [
        "java",
        *JVM,
        "-cp",
        f"{BUILD}/bench-chronicle-1.jar:{BUILD}/lib/*",
        "bench.Main",
        workload,
        job.directory,
        str(job.payload_bytes),
        str(job.count_max),
        str(job.seconds_max),
        str(job.read_count),
    ]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _ready(program: subprocess.Popen[str]) -> None:
    for line in program.stdout:
        if line.strip() == "ready":
            return
    raise RuntimeError("the program ended before it was ready")


def _answer(program: subprocess.Popen[str]) -> dict[str, float]:
    output, errors = program.communicate()
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    causes = [line for line in errors.splitlines() if "Exception" in line or "Error" in line]
    raise RuntimeError(causes[0] if causes else "the program gave no figures")

"""Faults of large and long runs: what the codes F11, R1, R2, R3, R4, R5 and R6 of the fault list must get."""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from test_runs import contents, crowdwise, strays  # noqa: F401 - a fixture is used by its name

import crowdwise as cw
from crowdwise.engine import resources
from crowdwise.errors import FileError
from crowdwise.io.chunks import Source, too_large
from crowdwise.io.other_tables import check_parquet
from crowdwise.io.stored import PARTS, Folder
from crowdwise.limits import LIMITS
from crowdwise.result.parquet import FileBytes
from crowdwise.result.store import read_checkpoint

WRITTEN = ["crowdwise.json", "labels.csv", "result.crowdwise", "tasks.csv", "workers.csv"]
# Read every file in three parts, as if it were too large.
IN_PARTS = """
import functools
import crowdwise.io, crowdwise.io.large
crowdwise.io.too_large = lambda *_: True
crowdwise.io.large.split_labels = functools.partial(crowdwise.io.large.split_labels, parts=3)
"""
# Say which iterations there are; die some iterations after the first checkpoint.
ITERATIONS = """
import os, signal
from pathlib import Path
from crowdwise.engine.run import Run
deaths = []


def report(self, progress, real=Run.report):
    real(self, progress)
    print(progress.stage, progress.iteration, file=sys.stderr)
    if Path({checkpoint!r}).exists():
        deaths.append(progress)
        if len(deaths) == 4:
            os.kill(os.getpid(), signal.SIGKILL)


Run.report = report
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A small simulated file of answers."""
    folder = tmp_path_factory.mktemp("crowd")
    cw.simulate.crowd("confusion", tasks=80, workers=10, classes=3, per_task=4, seed=2).save(folder)
    return folder / "answers.csv"


def words(answers, out, *more):
    return [
        "aggregate",
        answers,
        "--model",
        "dawid-skene",
        "--tol",
        0,
        "--max-iter",
        60,
        "--no-page",
        "--out",
        out,
        *more,
    ]


@pytest.fixture(scope="module", params=["memory", "parts"])
def unbroken(request, answers, crowdwise, tmp_path_factory):  # noqa: F811
    """How answers are read, and what a run writes where it is left in peace."""
    out, before = tmp_path_factory.mktemp("unbroken"), IN_PARTS if request.param == "parts" else ""
    done = crowdwise(*words(answers, out), before=before)
    assert done.status == 3, done.stderr
    assert ("are on disk in parts" in done.stderr) == (request.param == "parts")
    return before, out


def iterations(stderr):
    return [int(line.split()[1]) for line in stderr.splitlines() if line.startswith("iteration ")]


# --------------------------------------------------------------------------------------------- R1, R2: killed


def test_r2_a_killed_fit_continues_from_its_last_checkpoint(unbroken, answers, crowdwise, tmp_path):  # noqa: F811
    before, whole = unbroken
    out, checkpoint = tmp_path / "out", tmp_path / "out" / "checkpoint.crowdwise"
    every = words(answers, out, "--checkpoint-every", 0.001)
    killed = crowdwise(*every, before=before + ITERATIONS.format(checkpoint=str(checkpoint)))
    assert killed.status == -signal.SIGKILL, killed.stderr
    done = int(read_checkpoint(checkpoint)[0]["iteration"]["loop.done"])
    assert 1 <= done < iterations(killed.stderr)[-1]
    resumed = crowdwise(*every, "--resume", before=before + ITERATIONS.format(checkpoint="never"))
    assert resumed.status == 3, resumed.stderr
    assert f"continuing from {checkpoint}" in resumed.stderr
    assert iterations(resumed.stderr) == list(range(done + 1, 61))  # only those since the checkpoint
    assert contents(out) == contents(whole)
    assert cw.load(out).trace.equals(cw.load(whole).trace)
    left = sorted(path.name for path in out.iterdir() if not path.name.startswith("tables-"))
    assert left == WRITTEN
    assert len(list(out.glob("tables-*"))) == len(list(whole.glob("tables-*")))


ALWAYS_DUE = """
from crowdwise.engine.run import Run


def report(self, progress):
    self.journal.next_save = 0.0  # else a slow disk delays the next checkpoint


Run.report = report
"""
STRUCK = """
import os, signal
import crowdwise.cli.job as job
real, seen = job.write_checkpoint, []


def write_checkpoint(path, checkpoint):
    seen.append(path)
    if len(seen) == 2:
        setattr(os, {name!r}, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    return real(path, checkpoint)


job.write_checkpoint = write_checkpoint
"""


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_r1_a_kill_while_a_checkpoint_is_written_leaves_the_old_one(name, unbroken, answers, crowdwise, tmp_path):  # noqa: F811
    before, whole = unbroken
    every = words(answers, tmp_path, "--checkpoint-every", 0.001)
    killed = crowdwise(*every, before=before + ALWAYS_DUE + STRUCK.format(name=name))
    assert killed.status == -signal.SIGKILL, killed.stderr
    assert len(strays(tmp_path)) == 1
    assert int(read_checkpoint(tmp_path / "checkpoint.crowdwise")[0]["iteration"]["loop.done"]) >= 1
    assert crowdwise(*every, "--resume", before=before).status == 3
    assert contents(tmp_path) == contents(whole)
    assert strays(tmp_path) == []


def test_r2_a_checkpoint_of_other_answers_is_refused(answers, crowdwise, tmp_path):  # noqa: F811
    file, out = tmp_path / "answers.csv", tmp_path / "out"
    file.write_bytes(answers.read_bytes())
    every = words(file, out, "--checkpoint-every", 0.001)
    killed = crowdwise(*every, before=IN_PARTS + ITERATIONS.format(checkpoint=str(out / "checkpoint.crowdwise")))
    assert killed.status == -signal.SIGKILL
    file.write_text(file.read_text().rsplit("\n", 2)[0] + "\n")  # one answer less
    refused = crowdwise(*every, "--resume", before=IN_PARTS)
    assert refused.status == 2
    assert "the checkpoint belongs to a different fit" in refused.stderr
    assert "Omit --resume to start from the beginning" in refused.stderr


# --------------------------------------------------------------------------------------------- R3: signals

WHILE_READING = """
import os, signal
import crowdwise.io.large as large
real = large.{place}


def struck(*given, **named):
    os.kill(os.getpid(), {number})
    return real(*given, **named)


large.{place} = struck
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("place", ["_flush", "write_part"])
def test_r3_a_signal_while_parts_are_made_leaves_nothing(place, number, status, answers, crowdwise, tmp_path):  # noqa: F811
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    code = IN_PARTS + WHILE_READING.format(place=place, number=number.value)
    for more in (["--out", out], []):
        code += f"import tempfile\ntempfile.tempdir = {str(scratch)!r}\n"
        done = crowdwise("aggregate", answers, *more, before=code)
        assert done.status == status, done.stderr
        assert "no incomplete files are left" in done.stderr
    assert list(scratch.iterdir()) == []
    assert not out.exists() or list(out.rglob("*")) == []


def test_r3_a_signal_in_a_fit_of_parts_leaves_a_checkpoint_and_the_parts(answers, crowdwise, tmp_path):  # noqa: F811
    code = (
        "import os, signal\nfrom crowdwise.engine.run import Run\n"
        "Run.report = lambda self, progress: progress.iteration == 5 and os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = crowdwise(*words(answers, tmp_path / "out"), before=IN_PARTS + code)
    assert done.status == 130, done.stderr
    assert "dawid-skene was interrupted after 5 iteration(s); say --resume to continue from" in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["checkpoint.crowdwise", PARTS]
    kept = sorted(path.name for path in (tmp_path / "out" / PARTS).iterdir())
    assert kept == ["lock", "part-00000", "part-00001", "part-00002", "parts.json"]
    assert crowdwise(*words(answers, tmp_path / "out", "--resume"), before=IN_PARTS).status == 3
    assert crowdwise(*words(answers, tmp_path / "whole"), before=IN_PARTS).status == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


# --------------------------------------------------------------------------------------------- R4: the disk is full


@pytest.mark.parametrize("number", [1, 9, 30])
@pytest.mark.parametrize(
    ("owner", "name"), [(np, "save"), (pl.DataFrame, "write_ipc"), (pl.DataFrame, "write_parquet")]
)
def test_r4_a_full_disk_is_reported_and_old_results_stay(owner, name, number, answers, command, monkeypatch, tmp_path):
    monkeypatch.setattr("crowdwise.io.too_large", lambda *_: True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    out, calls, real = tmp_path / "out", [], getattr(owner, name)
    assert command("aggregate", answers, "--model", "majority-vote", "--no-page", "--out", out)[0] == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def full(*given, **named):
        calls.append(given)
        if len(calls) == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*given, **named)

    monkeypatch.setattr(owner, name, full)
    for more in (["--out", out], []):
        calls.clear()
        status, _, err = command("aggregate", answers, "--model", "pooled", "--max-iter", 3, "--no-page", *more)
        if len(calls) < number:
            assert status == 3  # there were fewer files
            continue
        assert status == 1, err
        assert f"cannot write {tmp_path}" in err
        assert "No space left on device" in err
        if more:
            assert all(path.read_bytes() == data for path, data in before.items())
    gc.collect()
    assert strays(tmp_path) == []
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not list((tmp_path).rglob("rows"))


def test_r4_a_limit_on_the_size_of_files_is_reported(answers, crowdwise, tmp_path):  # noqa: F811
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))\n"
    done = crowdwise("aggregate", answers, "--out", tmp_path / "out", before=IN_PARTS + limit)
    assert done.status == 1, done.stderr
    assert "File too large" in done.stderr
    assert f"cannot write {tmp_path}" in done.stderr
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").rglob("*")) == []


# --------------------------------------------------------------------------------------------- R6: two runs


def test_r6_a_second_run_with_the_same_folder_is_refused_with_the_holder(answers, crowdwise, tmp_path):  # noqa: F811
    held = Folder(tmp_path / PARTS)
    refused = crowdwise("aggregate", answers, "--out", tmp_path, before=IN_PARTS)
    assert refused.status == 1
    assert f"is in use by another run (process {os.getpid()}). Wait until it has finished" in refused.stderr
    del held
    done = crowdwise("aggregate", answers, "--out", tmp_path, before=IN_PARTS)  # the lock file of a dead run is no lock
    assert done.status == 0, done.stderr
    assert not (tmp_path / PARTS).exists()


# --------------------------------------------------------------------------------------------- F11, R5: memory


def long_names(path):
    """40 000 answers with long ids: 480 MB of text, which take no time to fit."""
    rng, pad = np.random.default_rng(0), "x" * 12_000
    with path.open("w") as file:
        file.write("task,worker,label\n")
        for n in rng.permutation(40_000).tolist():
            file.write(f"{n // 4:05d}{pad},w{n % 23},{'abc'[n // 4 % 3 if n % 7 else n % 3]}\n")
    return path


def test_f11_a_limit_of_the_system_is_held_where_a_fit_in_memory_fails(tmp_path):
    file = long_names(tmp_path / "answers.csv")
    code = (
        "import resource\nresource.setrlimit(resource.RLIMIT_DATA, (1_150_000_000, 1_150_000_000))\n"
        "import crowdwise.io\n{before}\nfrom crowdwise.cli import main\nmain()"
    )

    def run(before, *more, timeout=100):
        start = [sys.executable, "-c", code.format(before=before), "aggregate", file, "--model", "dawid-skene"]
        env = {**os.environ, "POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
        given = [*map(str, start), "--threads", "1", "--no-page", "--out", str(tmp_path / "out"), *more]
        return subprocess.run(given, capture_output=True, text=True, timeout=timeout, env=env)

    for more in ([], ["--memory", "450MB"]):  # by itself, and as told
        done = run("", *more)
        assert done.returncode == 0, done.stderr
        assert "answers.csv needs more memory than may be used: StoredLabels(40000 answers, 10000 tasks" in done.stderr
        assert pl.scan_csv(tmp_path / "out" / "labels.csv").select(pl.len()).collect().item() == 10_000
    try:
        failed = run("crowdwise.io.too_large = lambda *_: False", timeout=30).returncode not in (0, 3)
    except subprocess.TimeoutExpired:  # a thread of the table library that gets no memory may wait for ever
        failed = True
    assert failed


def test_r5_tables_are_split_if_the_estimate_exceeds_what_may_be_used(table, command, monkeypatch):
    path = table("task,worker,label\n" + "".join(f"t{n % 99},w{n % 7},{'ab'[n % 2]}\n" for n in range(600)))
    monkeypatch.setattr("crowdwise.io.chunks.SMALL", 0)
    source = Source((path,))
    assert not too_large(source, None)
    assert too_large(source, 250_000_000)
    assert not too_large(source, 300_000_000)
    for room, split in ((400_000_000, False), (10_000, None)):
        monkeypatch.setattr("crowdwise.engine.resources.available", lambda room=room: room)
        assert too_large(source, None) is (split is None)
    status, _, err = command("aggregate", path, "--model", "majority-vote")
    assert status == 1
    assert "only 0 MB of memory may be used for answers.csv; at least 150 MB are needed to read it in parts" in err
    monkeypatch.setattr("crowdwise.io.large.MIN_TABLE_MEMORY", 0)
    monkeypatch.setattr("crowdwise.io.chunks.IN_MEMORY", 1e6)
    status, out, err = command("aggregate", path, "--model", "majority-vote")
    assert (status, len(out.splitlines())) == (0, 100), err
    assert "answers.csv needs more memory than may be used: StoredLabels(600 answers, 99 tasks" in err


@pytest.mark.parametrize("version", [1, 2])
def test_the_limits_of_control_groups_are_seen(version, tmp_path):
    group = tmp_path / ("memory/outer/inner" if version == 1 else "outer/inner")
    group.mkdir(parents=True)
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file") if version == 1 else \
        ("memory.max", "memory.current", "inactive_file")  # fmt: skip
    for folder, limit in ((group, str(2**63 - 4096) if version == 1 else "max"), (group.parent, "1000000")):
        (folder / names[0]).write_text(f"{limit}\n")
        (folder / names[1]).write_text("400000\n")
        (folder / "memory.stat").write_text(f"cache 5\n{names[2]} 100000\n")
    own = tmp_path / "own"
    own.write_text("5:cpu:/else\n4:memory:/outer/inner\n" if version == 1 else "0::/outer/inner\n")
    assert resources._control_group(tmp_path, own) == [700_000]
    assert resources._control_group(tmp_path, tmp_path / "none") == []


@pytest.mark.parametrize(("limit", "name"), [("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")])
def test_limits_of_the_process_are_seen(limit, name, monkeypatch):
    monkeypatch.setattr(resources, "_status", lambda: {name: 3 * 10**9, "VmRSS": 10**9})
    monkeypatch.setattr(resources, "_machine", lambda: 10**12)
    monkeypatch.setattr(resources, "_control_group", lambda *_: [10**11])
    assert resources.available() == 10**11

    def limits(which):
        return (
            (10**10, 10**10) if which == getattr(resource, limit) else (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert resources.available() == 7 * 10**9


@pytest.mark.parametrize(("used", "to_load"), [(50_000_000, 200_000_000), (250_000_000, 0), (900_000_000, 0)])
def test_r5_what_the_libraries_use_is_counted_once(used, to_load, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)  # which other tests load
    monkeypatch.setattr(resources, "_status", lambda: {"VmRSS": used, "VmData": used})
    monkeypatch.setattr(resources, "_machine", lambda: 10**11)
    monkeypatch.setattr(resources, "_control_group", lambda *_: [10**10])
    assert resources.available() == 10**10 - to_load
    data = next(each for each in LIMITS if each.status == "VmData")
    most = data.reserved() + 300_000_000  # which has the libraries already
    endless = resource.RLIM_INFINITY, resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda which: (most, most) if which == data.number else endless)
    assert resources.available() == most - max(used, data.reserved())


def test_what_needs_all_answers_is_refused_before_a_fit_of_parts(answers, command, monkeypatch, tmp_path):
    monkeypatch.setattr("crowdwise.io.too_large", lambda *_: True)
    (tmp_path / "table.csv").write_text("task,label,text\n1,2,3\n")
    status, out, err = command("aggregate", answers, "--content", tmp_path / "table.csv")
    assert (status, out) == (1, "")
    assert "--content needs all answers in memory, but these are in parts (StoredLabels(" in err
    assert "If there is enough memory, allow more with --memory" in err
    status, _, err = command("learn", answers, "--features", tmp_path / "table.csv", "--out", tmp_path / "out")
    assert (status, "learn needs all answers in memory" in err) == (1, True)


def test_parts_are_inspected_and_scored(answers, command, monkeypatch, tmp_path):
    truth = pl.read_csv(answers).select("task", label="label").unique("task", keep="first", maintain_order=True)
    truth.write_csv(tmp_path / "truth.csv")
    words = (["inspect", answers], ["aggregate", answers, "--truth", tmp_path / "truth.csv", "--json"])
    whole = [command(*each) for each in words]
    monkeypatch.setattr("crowdwise.io.too_large", lambda *_: True)
    split = [command(*each) for each in words]
    assert [each[0] for each in whole + split] == [0] * 4, split
    assert split[0][1] == whole[0][1]
    assert json.loads(split[1][1])["scores"] == json.loads(whole[1][1])["scores"]


@pytest.mark.parametrize("words", [["inspect"], ["workers", "--model", "majority-vote"]])
def test_commands_take_a_folder_of_tables(words, answers, command, tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.csv").write_bytes(answers.read_bytes())
    name, *more = words
    status, out, err = command(name, tmp_path, *more)
    assert status == 0, err
    assert "10" in out
    status, _, err = command(name, tmp_path / "none", *more)
    assert status == 1
    (tmp_path / "empty").mkdir()
    status, _, err = command(name, tmp_path / "empty")
    assert (status, "no saved result at" in err) == (1, True)


TRUNCATED = """
import os, sys
from pathlib import Path
from crowdwise.errors import FileError
from crowdwise.io.other_tables import check_parquet
from crowdwise.result import parquet
path, real = Path(sys.argv[1]), parquet.claims
def claims(data):
    os.truncate(path, int(sys.argv[2]))
    return real(data)
parquet.claims = claims
try:
    check_parquet(path, None)
except FileError as error:
    print(error)
"""


@pytest.mark.parametrize("left", [0, 100, 50_000])
def test_f10_a_parquet_file_that_is_truncated_while_it_is_read_is_an_error(left, tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"task": range(100_000)}).write_parquet(path, compression="uncompressed", row_group_size=5_000)
    assert check_parquet(path, None) == 100_000
    done = subprocess.run([sys.executable, "-c", TRUNCATED, path, str(left)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("a.parquet is not a complete Parquet file: it ")


def test_f10_bytes_that_were_cut_off_meanwhile_are_an_error(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(100)))
    with path.open("rb") as file:
        data = FileBytes(file)
        assert (data[50], data[-2:], len(data)) == (50, b"bc", 100)
        os.truncate(path, 10)
        assert data[5] == 5
        with pytest.raises(ValueError, match="truncated while it was read"):
            data[20]


def test_f7_samples_of_json_lines_are_read_like_the_whole(tmp_path):
    lines = [f'{{"task": "t{n}",\r"worker": "w", "label": "x"}}' for n in range(40)]  # \r is a space of JSON
    (tmp_path / "a.jsonl").write_bytes("\n".join(lines).encode() + b"\n")
    found = pl.concat(Source((tmp_path / "a.jsonl",)).sample("task"))
    assert {*found} <= {f"t{n}" for n in range(40)}
    assert len(found)
    for bad in ('{"task": 1, "task": 2}', '{"task": ' + "9" * 5000 + "}", '{"task": '):
        (tmp_path / "b.jsonl").write_text(f"{lines[0]}\n{bad}\n{lines[1]}\n")
        with pytest.raises(FileError, match=r"b\.jsonl:\d+: invalid JSON record"):
            list(Source((tmp_path / "b.jsonl",)).sample("task"))

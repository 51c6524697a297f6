"""Processes and threads: what the code R13 of the fault list must get.

Most tests run a script in a process of its own, where a hang ends as a failure that shows where every thread waits.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import ForkError
from crowdwise.kernels import threads

SECONDS = 120  # after which a process hangs

START = f"""
import faulthandler, multiprocessing, os, signal, sys, threading
faulthandler.dump_traceback_later({SECONDS - 5}, exit=True)
import numpy as np
import crowdwise as cw

def crowd():
    return cw.simulate.crowd("confusion", tasks=13_000, workers=100, classes=3, per_task=4, seed=6).answers

def fit(answers, threads=4, **options):
    return cw.aggregate(answers, max_iter=3, run=cw.Run(threads=threads, **options))

def same(one, other):
    return one.posterior.tobytes() == other.posterior.tobytes()

def in_fork(work):
    "Whether work() is true in a forked process; one that hangs is killed."
    child = os.fork()
    if child == 0:
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(60)
        status = 1
        try:
            status = 0 if work() else 3
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def run(script):
    """Run a script after START; it must print "done" and end by itself."""
    start = [sys.executable, "-c", f"{START}\n{script}\nprint('done')"]
    done = subprocess.run(start, capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done.stderr


# ------------------------------------------------------------------------------------------------ processes


def test_r13_every_way_to_start_a_process_gives_the_same_bits():
    """Forked processes fit answers that were read before; others do everything."""
    run("""
answers = crowd()
before, frame = fit(answers), answers.frame()  # starts the threads that a fork does not copy
jobs = [(way, multiprocessing.get_context(way).Pool(1)) for way in ("fork", "forkserver", "spawn")]
waiting = [(way, pool.apply_async(fit if way == "fork" else cw.aggregate, [answers if way == "fork" else frame],
            {} if way == "fork" else {"max_iter": 3})) for way, pool in jobs]
for way, result in waiting:
    assert same(result.get(90), before), way
assert len(waiting[1][1].get().labels) == 13_000
for _, pool in jobs:
    pool.terminate()
""")


def test_r13_a_fork_while_other_threads_load_compile_and_fit_does_not_hang():
    run("""
from crowdwise.kernels import preload
preload()
while "numba" not in sys.modules:
    pass
assert in_fork(lambda: len(fit(crowd()).posterior)), "while the compiled kernels load"
answers = crowd()
before, ended = fit(answers), threading.Event()

def busy():
    while not ended.is_set():
        fit(answers)
        cw.aggregate(answers, "glad", max_iter=1)  # which loads other kernels, at first

others = [threading.Thread(target=busy) for _ in range(2)]
for other in others:
    other.start()
assert all(in_fork(lambda: same(fit(answers), before)) for _ in range(5)), "while two threads fit"
assert in_fork(lambda: in_fork(lambda: same(fit(answers), before))), "a fork of a fork"
ended.set()
""")


REFUSED = {
    "cw.read(file)", "cw.load(saved)", "cw.Labels([0, 0], [0, 1], ['a', 'b'])", "cw.aggregate(frame)",
    "cw.rate(result)", "cw.simulate.crowd(tasks=9)", "cw.compare(answers)", "cw.review(result)",
    "cw.next_answers(result)", "cw.cost_curve(result)", "cw.match_labels(result, {'task': ['a'], 'label': ['b']})",
    "result.workers",
    "result.tables()", "result.summary()", "result.save(file)", "result.report(file)", "result._repr_html_()",
    "result.explain(1)",
}  # fmt: skip


def test_r13_tables_are_refused_in_a_forked_process_where_polars_would_hang(tmp_path):
    run(f"""
answers = crowd()
result, file = fit(answers), {str(tmp_path / "a.csv")!r}
frame, saved = answers.frame(), result.save({str(tmp_path / "a.crowdwise")!r})
frame.head(9).write_csv(file)
for call in {sorted(REFUSED)}:
    def refused():
        try:
            eval(call)
        except cw.errors.ForkError as error:
            return "multiprocessing.get_context('spawn')" in str(error)
        print("not refused:", call)
    assert in_fork(refused), call
assert in_fork(lambda: same(fit(answers), result)), "a fit needs no tables"
assert result.workers.height == 100, "and the process that forked is as before"
""")


def test_r13_a_fork_before_polars_works_may_do_everything():
    run("""
import crowdwise.answers  # which imports polars
table = {"task": [1, 1, 2], "worker": [1, 2, 1], "label": ["a", "a", "b"]}
assert in_fork(lambda: cw.aggregate(table).workers.height == 2)
""")


def test_r13_the_refusal_says_what_to_do_and_goes_from_process_to_process(monkeypatch):
    monkeypatch.setattr("crowdwise.forks._Fork.lost", True)
    with pytest.raises(ForkError) as caught:
        cw.Labels([1], [1], [1])
    said = (
        "was forked from one in which polars was at work, and polars, which holds all tables, would wait here for "
        "ever. Start processes with multiprocessing.get_context('spawn') or joblib; or read the answers before the "
        "fork, only fit in this process, and return the result"
    )
    assert said in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_r13_joblib_within_joblib():
    run("""
from joblib import Parallel, delayed
answers = crowd()
before, frame = fit(answers), answers.frame()

def inner(backend):
    return Parallel(2, backend=backend)(delayed(cw.aggregate)(frame, max_iter=3) for _ in range(2))

for outer, within in (("threading", "threading"), ("loky", "threading")):
    found = Parallel(2, backend=outer)(delayed(inner)(within) for _ in range(2))
    assert all(same(each, before) for part in found for each in part), (outer, within)
""")


# -------------------------------------------------------------------------------------------------- threads


def test_r13_the_first_compiled_fits_in_several_threads_at_once():
    run("""
from concurrent.futures import ThreadPoolExecutor
answers, together = crowd(), threading.Barrier(4)

def one(n):
    together.wait()
    return fit(answers, threads=n + 1)

with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(one, range(4)))
assert all(same(each, found[0]) for each in found)
many = [fit(answers, threads=n) for n in range(1, 60, 3)]
assert all(same(each, found[0]) for each in many)
assert sum(each.name.startswith("crowdwise") for each in threading.enumerate()) < 60, "threads are used again"
import atexit
atexit.register(lambda: same(fit(answers), found[0]) or os._exit(5))  # when no thread can be started any more
""")


def blocks(n):
    return np.arange(n + 1)


def test_r13_work_within_work_does_not_wait_for_itself():
    done = []
    threads.run(lambda b, *_: threads.run(lambda *block: done.append((b, *block)), blocks(8), 4), blocks(8), 4)
    assert sorted(done) == [(b, c, c, c + 1) for b in range(8) for c in range(8)]


def test_r13_without_more_threads_one_does_all_the_work(monkeypatch):
    class NoThreads:
        def submit(self, work):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", NoThreads)
    done = []
    threads.run(lambda *block: done.append(block), blocks(5), 4)
    assert done == [(b, b, b + 1) for b in range(5)]


def test_r13_the_first_block_that_fails_is_reported_whatever_the_threads():
    def fails(b, *_):
        if b >= 3:
            raise ValueError(f"block {b}")

    for n in (1, 2, 8):
        for _ in range(50):
            with pytest.raises(ValueError, match=r"^block 3$"):
                threads.run(fails, blocks(40), n)


# ---------------------------------------------------------------------------------------------- interruption


def test_r13_no_thread_works_on_after_an_interrupt():
    here, working, done = threading.get_ident(), threading.Event(), []

    def work(b, *_):
        if threading.get_ident() == here:
            working.wait(10)  # another thread is within a block
            signal.raise_signal(signal.SIGINT)
        working.set()
        sum(range(300_000))
        done.append(b)

    with pytest.raises(KeyboardInterrupt):
        threads.run(work, blocks(200), 4)
    after = len(done)
    threading.Event().wait(0.05)
    assert len(done) == after < 199
    threads.run(lambda b, *_: done.append(b), blocks(20), 4)
    assert len(done) == after + 20


def test_r13_an_interrupted_cell_leaves_a_process_that_fits_as_before():
    """KeyboardInterrupt at any moment: in the main thread, as Ctrl-C in a notebook raises it, and in another."""
    run("""
import ctypes, time
answers = crowd()
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))

def interrupted(seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        fit(answers)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False

hits = sum(interrupted(seconds) for seconds in (0.02, 0.1, 0.3))  # while kernels load or compile
first = fit(answers)
began = time.perf_counter()
assert same(fit(answers), first)
took = time.perf_counter() - began
hits += sum(interrupted(took * part / 12) for part in range(1, 12))
assert hits > 6, hits
assert same(fit(answers), first)

for part in range(1, 6):
    left = []
    def cell():
        try:
            for _ in range(100):
                fit(answers)
        except KeyboardInterrupt:
            left.append(True)
    thread = threading.Thread(target=cell)
    thread.start()
    time.sleep(took * part / 6)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
    thread.join(60)
    assert left == [True], part
assert same(fit(answers), first)
""")

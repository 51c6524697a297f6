"""A table read in parts is the table read in memory: the same answers, the same record of how they were read, the same
refusals. Chunks are so small that their borders fall everywhere."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from splitting import assert_same_answers, read_in_parts

import crowdwise as cw
from crowdwise.errors import CrowdwiseError, FileError, ParameterError
from crowdwise.io.chunks import Source


def rows(count: int = 60, seed: int = 0) -> list[tuple[str, str, str]]:
    """Answers of five workers in random order, some of them without a label."""
    rng = np.random.default_rng(seed)
    every = [(f"t{n // 4:02d}", f"w{n % 5}", str(rng.choice(["cat", "dog", "", "ox"]))) for n in range(count)]
    return [every[n] for n in rng.permutation(count)]


def csv(answers: list[tuple[str, ...]], header: str = "task,worker,label", end: str = "\n", mark: str = ",") -> str:
    return end.join([header.replace(",", mark), *(mark.join(each) for each in answers)]) + end


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


HARD = [(quoted(f"task, {n % 7}\n\n{n % 3}"), quoted(f'the "{n % 4}"'), "a\u00e9"[n % 2]) for n in range(40)]

FILES: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "plain": ("a.csv", csv(rows()).encode(), {}),
    "bom": ("a.csv", b"\xef\xbb\xbf" + csv(rows()).encode(), {}),
    "crlf": ("a.csv", csv(rows(), end="\r\n").encode(), {}),
    "no line break at the end": ("a.csv", csv(rows()).encode()[:-1], {}),
    "quotes": ("a.csv", csv(HARD).encode(), {"duplicates": "each"}),
    "quotes and crlf": ("a.csv", csv(HARD, end="\r\n").encode(), {"duplicates": "first"}),
    "quoted header": ("a.csv", csv(rows(), header='"task","work\ner","label"').encode(), {"worker": "work\ner"}),
    "blank lines": ("a.csv", csv(rows()).replace("\nt01", "\n\n\nt01").encode(), {}),
    "blank lines and crlf": ("a.csv", csv(rows(), end="\r\n").replace("\nt01", "\n\r\nt01").encode(), {}),
    "semicolons": ("a.csv", csv(rows(), mark=";").encode(), {}),
    "tabs": ("a.tsv", csv(rows(), mark="\t").encode(), {}),
    "given delimiter": ("a.txt", csv(rows(), mark="^").encode(), {"delimiter": "^"}),
    "gzip": ("a.csv.gz", gzip.compress(csv(rows()).encode()), {}),
    "gzip without its ending": ("a.csv", gzip.compress(csv(rows(), mark=";").encode()), {}),
    "latin-1": ("a.csv", csv(HARD).encode("latin-1"), {"encoding": "latin-1", "duplicates": "each"}),
    "utf-16": ("a.csv", csv(HARD).encode("utf-16"), {"duplicates": "each"}),
    "utf-16-le": ("a.csv", csv(rows()).encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "more columns": ("a.csv", csv([(*r, "xy"[n % 2]) for n, r in enumerate(rows())], "task,worker,label,note")
                     .encode(), {}),
    "named columns": ("a.csv", csv(rows(), header="url,who,verdict").encode(),
                      {"task": "url", "worker": "who", "label": "verdict"}),
    "missing": ("a.csv", csv(rows()).encode(), {"missing": ["ox", "dog"]}),
    "no task": ("a.csv", csv([("" if n % 9 == 4 else t, w, v) for n, (t, w, v) in enumerate(rows())]).encode(), {}),
    "sorted": ("a.csv", csv(sorted(rows())).encode(), {}),
    "one task": ("a.csv", csv([("t", f"w{n}", "ab"[n % 2]) for n in range(50)]).encode(), {}),
    "one huge task": ("a.csv", csv([("m" if n % 10 else f"t{n}", f"w{n}", "ab"[n % 2]) for n in range(99)])
                      .encode(), {}),
    "skewed": ("a.csv", csv([(f"t{int(n**0.5)}", f"w{n}", "ab"[n % 2]) for n in range(99)]).encode(), {}),
    "look-alikes": ("a.csv", csv([(f"t{n}", "w", ("cat", "Cat ", "dog")[n % 3]) for n in range(30)]).encode(), {}),
    "weights": ("a.csv", csv([(*r, "0.5"[: 1 + 2 * (n % 2)]) for n, r in enumerate(rows())], "task,worker,label,weight")
                .replace(",0\n", ",1\n").encode(), {}),
    "checks": ("a.csv", csv([(*r, str(n % 3 == 0), "cat" if r[0] < "t03" else "") for n, r in enumerate(rows())],
                            "task,worker,label,is_check,gold").encode(), {}),
    "wide": ("a.csv", csv([(f"t{n}", *("cat", "dog", "")[n % 3 :], *("a", "b")[: n % 3]) for n in range(30)],
                          header="item,ann,bob,cy").encode(), {}),
    "wide with gold": ("a.csv", csv([(f"t{n}", "xy"[n % 2], "x", "yz"[n % 2], "xq"[n % 2] * (n % 3 == 0))
                                     for n in range(30)], "id,ann,bob,cy,gold").encode(),
                       {"wide": True, "gold": "gold"}),
    "json lines": ("a.jsonl", "\n".join(
        json.dumps({"task": t, "worker": w, "label": v}) for t, w, v in rows()).encode(), {}),
    "json lines, gzip": ("a.jsonl.gz", gzip.compress(b"\n\n".join(
        json.dumps({"task": n // 3, "worker": n % 3, "label": n % 2 == 0}).encode() for n in range(30))), {}),
    "json lines with a key that comes late": ("a.jsonl", b"\n".join(
        json.dumps({"task": n // 3, "worker": n % 3, "label": n % 2, **({"gold": 1} if n > 20 else {})}).encode()
        for n in range(30)), {}),
    "json lines of mixed types": ("a.jsonl", b"\n".join(
        json.dumps({"task": n // 3 if n < 20 else str(n // 3), "worker": n % 3, "label": None if n < 9 else n % 2})
        .encode() for n in range(30)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_parts_is_the_file_in_memory(name: str, tmp_path: Path) -> None:
    file, data, options = FILES[name]
    (tmp_path / file).write_bytes(data)
    parts, size = ((3, 40), (5, 97), (2, 61), (17, 211))[list(FILES).index(name) % 4]
    assert_same_answers(cw.read(tmp_path / file, **options), read_in_parts(tmp_path / file, parts, size, **options))


@pytest.mark.parametrize("name", ["plain", "quotes and crlf", "blank lines", "utf-16"])
def test_chunks_of_any_size_have_the_rows_and_lines_of_the_file(name: str, tmp_path: Path) -> None:
    file, data, _ = FILES[name]
    (tmp_path / file).write_bytes(data)
    source = Source((tmp_path / file,))
    whole = next(source.chunks(1 << 20))
    for size in range(16, len(data), 1 + len(data) // 20):
        chunks = list(source.chunks(size))
        assert len(chunks) > 1 or size > len(data) // 2
        assert pl.concat([chunk.frame for chunk in chunks]).equals(whole.frame)
        assert np.concatenate([chunk.line for chunk in chunks]).tolist() == whole.line.tolist()
        assert [chunk.done for chunk in chunks] == sorted(chunk.done for chunk in chunks)
        assert chunks[-1].done == 1


# ------------------------------------------------------------------------------------------------ Parquet, typed ids

TASKS = [n // 4 for n in range(120)]
COLUMNS: dict[str, pl.Series] = {
    "ints": pl.Series(TASKS),
    "large ints": pl.Series([10**17 + n for n in TASKS]),
    "negative ints": pl.Series([n - 15 for n in TASKS], dtype=pl.Int32),
    "texts": pl.Series([f"t{n:03d}" for n in TASKS]),
    "categories": pl.Series([f"t{n:03d}" for n in TASKS], dtype=pl.Categorical),
    "floats": pl.Series([n / 2 for n in TASKS]),
    "booleans": pl.Series([n % 2 == 0 for n in TASKS]),
    "dates": pl.Series(TASKS).cast(pl.Date),
    "with nulls": pl.Series([None if n == 7 else n for n in TASKS]),
    "all equal": pl.Series([5] * 120),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_typed_ids_of_tasks_keep_their_type(kind: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"task": COLUMNS[kind], "worker": [n % 60 for n in range(120)], "label": ["a", None, "b"] * 40}
    )
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "a.parquet", row_group_size=13)
    whole = cw.read(tmp_path / "a.parquet", duplicates="first")
    assert_same_answers(whole, read_in_parts(tmp_path / "a.parquet", 4, 200, duplicates="first"))


@pytest.mark.parametrize("labels", [[True, False], [3, 1], ["b", "a"], [0.5, None]], ids=str)
@pytest.mark.parametrize("column", ["categories", "ints"])
def test_typed_workers_and_labels_keep_their_type(labels: list[Any], column: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": TASKS, "worker": COLUMNS[column].reverse(), "label": labels * 60})
    frame.write_parquet(tmp_path / "a.parquet")
    whole = cw.read(tmp_path / "a.parquet", duplicates="last")
    assert_same_answers(whole, read_in_parts(tmp_path / "a.parquet", 3, 300, duplicates="last"))


@pytest.mark.parametrize("workers", ["ints", "texts"])
def test_d3_anonymous_answers_are_by_different_workers_in_all_parts(workers: str, tmp_path: Path) -> None:
    named = COLUMNS[workers].to_list()
    frame = pl.DataFrame(
        {"task": TASKS, "worker": [w if n < 60 else None for n, w in enumerate(named)], "label": ["a", "b"] * 60}
    )
    frame.write_parquet(tmp_path / "a.parquet")
    whole = cw.read(tmp_path / "a.parquet", anonymous="each", duplicates="first")
    split = read_in_parts(tmp_path / "a.parquet", 4, 300, anonymous="each", duplicates="first")
    assert (split.n_workers, split.n_answers) == (whole.n_workers, whole.n_answers)
    assert sorted(split.answers_per_worker) == sorted(whole.answers_per_worker)
    named_ones = pl.col("worker").str.starts_with("anonymous").not_()
    assert split.load().frame().filter(named_ones).equals(whole.frame().filter(named_ones))
    refused = refusal(tmp_path / "a.parquet", duplicates="first")
    assert "have no worker, one at row" in refused
    assert "Use anonymous='each'" in refused


# ------------------------------------------------------------------------------------------------ several files


@pytest.mark.parametrize("form", ["folder", "pattern"])
def test_files_of_a_folder_or_pattern_are_one_table(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    (folder / "later").mkdir(parents=True)
    every = rows(120)
    (folder / "a.csv").write_text(csv(every[:50]))
    (folder / "b.csv").write_text("task,worker,label\n")  # as Spark writes for an empty partition
    (folder / "c.csv").write_text(
        csv([(label, worker, task) for task, worker, label in every[50:70]], "label,worker,task", mark=";")
    )
    (folder / "later" / "d.csv.gz").write_bytes(gzip.compress(csv(every[70:]).encode()))
    for name in ("_SUCCESS", ".hidden.csv", "notes.md"):
        (folder / name).write_text("nothing")
    path = folder if form == "folder" else folder / "**" / "[a-d].csv*"
    whole = cw.read(path)
    assert whole.intake.source == "4 files in answers"
    assert whole.intake.notes == ("delimiter ';'", "gzip")
    one_file = tmp_path / "one.csv"
    one_file.write_text(csv(every))
    assert whole.frame().equals(cw.read(one_file).frame())
    assert_same_answers(whole, read_in_parts(path, 3, 80))


def test_files_with_other_columns_or_types(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": TASKS, "worker": [n % 60 for n in range(120)], "label": ["a", "b"] * 60})
    frame.head(60).cast({"task": pl.Int32, "worker": pl.String}).write_parquet(tmp_path / "a.parquet")
    frame.tail(60).select("label", "task", "worker").write_parquet(tmp_path / "b.parquet")
    whole = cw.read(tmp_path, duplicates="first")
    assert (whole.tasks.dtype, whole.workers.dtype) == (pl.Int64, pl.String)
    assert_same_answers(whole, read_in_parts(tmp_path, 5, 300, duplicates="first"))
    frame.drop("label").write_parquet(tmp_path / "c.parquet")
    message = refusal(tmp_path)
    assert (
        message
        == "c.parquet does not have the columns of a.parquet: label only in one. Give files with the same columns"
    )
    assert refusal_in_memory(tmp_path) == message


# ------------------------------------------------------------------------------------------------ gold


def gold_file(folder: Path, extra: str = "") -> Path:
    (folder / "gold.csv").write_text("task,label\nt00,cat\nt03,zebra\nt05,\nt05,\nelsewhere,dog\n" + extra)
    return folder / "gold.csv"


@pytest.mark.parametrize("form", ["file", "frame", "mapping"])
def test_d25_d26_gold_of_any_form(form: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(csv(rows()))
    file = gold_file(tmp_path)
    gold = {
        "file": file,
        "frame": pl.read_csv(file),
        "mapping": {"t00": "cat", "t03": "zebra", "t05": None, "far": "dog"},
    }
    whole, split = (
        cw.read(tmp_path / "a.csv", gold=gold[form]),
        read_in_parts(tmp_path / "a.csv", 4, 50, gold=gold[form]),
    )
    assert_same_answers(whole, split)
    assert "gold for 1 task(s) that have no answers was ignored" in split.intake.notes
    assert split.intake.warnings == ("gold has 1 label(s) that no worker gave, added as classes: zebra",)


@pytest.mark.parametrize("given", [None, "truth"])
@pytest.mark.parametrize("known", ["cat", ""])
def test_gold_in_a_column(given: str | None, known: str, tmp_path: Path) -> None:
    header = "task,worker,label,truth" if given else "task,worker,label,gold"
    (tmp_path / "a.csv").write_text(csv([(*r, known if r[0] in ("t02", "t09") else "") for r in rows()], header))
    options = {"gold": given} if given else {}
    assert_same_answers(cw.read(tmp_path / "a.csv", **options), read_in_parts(tmp_path / "a.csv", 4, 50, **options))


def test_gold_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(csv(rows()))
    gold = gold_file(tmp_path, "t03,horse\n")
    assert refusal(tmp_path / "a.csv", gold=gold) == refusal_in_memory(tmp_path / "a.csv", gold=gold)
    answers = [(*r, "cat" if n % 2 else "dog") for n, r in enumerate(rows())]
    (tmp_path / "b.csv").write_text(csv(answers, "task,worker,label,gold"))
    assert "two different labels for task" in refusal(tmp_path / "b.csv")


# ------------------------------------------------------------------------------------------------ repeated answers

TIMES = {
    "none": lambda n: None,
    "numbers": lambda n: str((n * 37) % 101),
    "dates": lambda n: f"2024-01-{1 + (n * 37) % 28:02d} 10:00:00",
    "one is unreadable": lambda n: "soon" if n == 77 else str((n * 37) % 101),
    "two kinds": lambda n: f"2024-01-{1 + n % 28:02d} 10:00:00" if n > 50 else str(n),
    "one is missing, where the label is": lambda n: "" if n == 3 else str((n * 37) % 101),
}  # fmt: skip


@pytest.mark.parametrize("policy", ["last", "first", "each", None])
@pytest.mark.parametrize("times", TIMES)
def test_d8_d9_repeated_answers_are_resolved_as_in_memory(times: str, policy: str | None, tmp_path: Path) -> None:
    every = [(f"t{n % 13:02d}", f"w{n % 3}", "" if n == 3 else "abc"[n % 5 % 3], TIMES[times](n)) for n in range(100)]
    header = "task,worker,label,timestamp" if times != "none" else "task,worker,label"
    path = tmp_path / "a.csv"
    path.write_text(csv([tuple(cell for cell in each if cell is not None) for each in every], header))
    options = {"duplicates": policy} if policy else {}
    if policy is None and times in ("none", "one is unreadable", "two kinds"):
        memory, parts = refusal_in_memory(path), refusal(path)
        assert parts.startswith("at least")
        assert "for instance a.csv:" in parts
        assert parts.rpartition(". ")[2] == memory.rpartition(". ")[2]
        return
    assert_same_answers(cw.read(path, **options), read_in_parts(path, 3, 90, **options))


# ------------------------------------------------------------------------------------------------ refusals


def refusal(path: Path, size: int = 60, **options: Any) -> str:
    with pytest.raises(CrowdwiseError) as refused:
        read_in_parts(path, 3, size, **options)
    return str(refused.value)


def refusal_in_memory(path: Path, **options: Any) -> str:
    with pytest.raises(CrowdwiseError) as refused:
        cw.read(path, **options)
    return str(refused.value)


LATE = csv(rows(200)).rstrip("\n").split("\n")
BROKEN: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "ragged line": ("a.csv", "\n".join([*LATE[:150], "t1,w1,cat,dog", *LATE[150:]]).encode(), {}),
    "short line": ("a.csv", "\n".join([*LATE[:150], "t1,w1", *LATE[150:]]).encode(), {}),
    "stray quote": ("a.csv", "\n".join([*LATE[:150], 't1,w1,5" tape', *LATE[150:]]).encode(), {}),
    "two stray quotes": ("a.csv", "\n".join([*LATE[:150], 't1,w1,5" tape', *LATE[150:160], 't1,w2,6" tape', "x,y,z"])
                         .encode(), {}),
    "unclosed quote": ("a.csv", "\n".join([*LATE[:150], 't1,w1,"tape', *LATE[150:]]).encode(), {}),
    "not UTF-8": ("a.csv", "\n".join([*LATE[:150], "t1,w1,caf\u00e9", *LATE[150:]]).encode("latin-1"), {}),
    "not UTF-8 after a byte order mark": ("a.csv", b"\xef\xbb\xbf" + "\n".join([*LATE, "t1,w1,\u00e9"])
                                          .encode("latin-1"), {}),
    "not in the encoding given": ("a.csv", "\n".join([*LATE[:150], "t1,w1,caf\u00e9", *LATE]).encode("latin-1"),
                                  {"encoding": "utf-8-sig"}),
    "half a character of UTF-16": ("a.csv", "\n".join(LATE).encode("utf-16") + b"x", {}),
    "UTF-16 without a byte order mark": ("a.csv", "\n".join(LATE).encode("utf-16-le"), {}),
    "truncated gzip": ("a.csv.gz", gzip.compress(csv(rows(9000, 1)).encode())[:-80], {}),
    "no such column": ("a.csv", csv(rows(), "task,worker,lable").encode(), {}),
    "only one column": ("a.csv", b"task\nt1\n", {}),
    "a column twice": ("a.csv", csv(rows(), "task,task,label").encode(), {}),
    "no labels at all": ("a.csv", csv([(t, w, "") for t, w, _ in rows()]).encode(), {}),
    "invalid JSON": ("a.jsonl", b"\n".join([b'{"task": 1, "worker": 2, "label": 3}'] * 50 + [b"{"]), {}),
    "JSON lines of lists": ("a.jsonl", b"\n".join([b'{"task": 1, "worker": 2, "label": 3}'] * 50 + [b"[1, 2]"]), {}),
    "a list as a label": ("a.jsonl", b'{"task": 1, "worker": 2, "label": [3]}', {}),
    "JSON that is not UTF-8": ("a.jsonl", b'{"task": 1, "worker": 2, "label": 3}\n' * 9 + b'{"task": "\xe9"}', {}),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_f2_f3_f6_d5_what_is_refused_in_memory_is_refused_in_parts_with_the_same_words(
    name: str, tmp_path: Path
) -> None:
    file, data, options = BROKEN[name]
    (tmp_path / file).write_bytes(data)
    assert refusal(tmp_path / file, **options) == refusal_in_memory(tmp_path / file, **options)


def test_f3_an_open_quote_is_noticed_with_little_memory(tmp_path: Path) -> None:
    """The rest of the file is not read as one field."""
    with (tmp_path / "a.csv").open("w") as file:
        file.write(csv(rows()) + 't1,w1,"tape\n')
        for _ in range(100):
            file.write(csv(rows(1000)))
    with pytest.raises(FileError, match=r"a.csv:62: a quote is opened here and never closed"):
        list(Source((tmp_path / "a.csv",)).chunks(1000))
    (tmp_path / "b.csv").write_text("task,worker,label\n" + "x" * 100_000)
    with pytest.raises(FileError, match=r"b.csv:2: no line ends within 6\d\d\d\d bytes"):
        list(Source((tmp_path / "b.csv",)).chunks(1000))


def test_f5_damaged_parquet_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"task": TASKS, "worker": TASKS, "label": TASKS}).write_parquet(tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:40] + data[-8:])
    assert "a.parquet is not a complete Parquet file" in refusal(tmp_path / "a.parquet")


def test_d20_numbers_that_are_not_finite_are_refused_with_their_row(tmp_path: Path) -> None:
    labels = [float("nan") if n == 95 else float(n % 2) for n in range(120)]
    pl.DataFrame({"task": TASKS, "worker": TASKS, "label": labels}).write_parquet(tmp_path / "a.parquet")
    assert refusal(tmp_path / "a.parquet", 200) == refusal_in_memory(tmp_path / "a.parquet")
    assert "row 96" in refusal(tmp_path / "a.parquet", 200)


def test_a_single_json_document_cannot_be_read_in_parts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"task": 1, "worker": 2, "label": 3}]')
    assert "a.json is json, which can only be read as a whole. Write one record per line, or Parquet" in refusal(
        tmp_path / "a.json"
    )


def test_too_little_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.chunks.SMALL", 0)
    (tmp_path / "a.csv").write_text(csv(rows()))
    with pytest.raises(ParameterError, match="memory='200 MB' is too little; at least 400 MB are needed"):
        cw.read(tmp_path / "a.csv", memory="200MB")
    with pytest.raises(ParameterError, match="memory='much' is not a size; give one, for instance memory='2GB'"):
        cw.read(tmp_path / "a.csv", memory="much")
    assert cw.read(tmp_path / "a.csv", memory="400 MB").n_answers == 41

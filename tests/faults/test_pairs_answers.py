"""Same/different answers as they come in: columns, words, repeats, contradictions, jobs, and the items of features."""

from __future__ import annotations

import datetime as dt
import json
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise.answers import Intake
from crowdwise.answers.pair_rows import DIFFERENT, SAME
from crowdwise.answers.pairs import components, weights
from crowdwise.errors import ColumnError, DataError, DuplicateError, EmptyDataError, FeatureError, ParameterError

pytestmark = pytest.mark.filterwarnings("error")

SMALL = {"left": ["a", "a", "b"], "right": ["b", "c", "c"], "worker": ["ann", "ann", "bob"], "answer": [1, 0, 0]}
ARRAYS = ("left", "right", "worker", "same", "hit", "weight")


def dropped(pairs: cw.Pairs) -> dict[str, int]:
    return {each.reason: each.count for each in pairs.intake.dropped}


def rows(pairs: cw.Pairs) -> list[Any]:
    return pairs.frame().select("left", "right", "worker", "answer").rows()


def alike(one: cw.Pairs, two: cw.Pairs) -> bool:
    """The same answers, to the bit."""
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ARRAYS) and all(
        getattr(one, name).equals(getattr(two, name), check_dtypes=True) for name in ("items", "workers")
    )


# ---------------------------------------------------------------------------------------------------------------- order


@st.composite
def tables(draw: Any) -> pl.DataFrame:
    """1 to 25 answers of up to 3 workers about up to 5 items, two of which differ; many are repeated."""
    size = draw(st.integers(1, 25))
    column = lambda values: draw(st.lists(values, min_size=size, max_size=size))  # noqa: E731
    left, right = column(st.integers(0, 4)), column(st.integers(0, 4))
    frame = {
        "left": [0, *left], "right": [1, *right], "worker": [9, *column(st.integers(0, 2))],
        "answer": [1, *column(st.integers(0, 1))],
    }  # fmt: skip
    if draw(st.booleans()):
        frame["hit"] = [None, *column(st.sampled_from([None, "x", "y"]))]
    return pl.DataFrame(frame, schema_overrides={"hit": pl.String} if "hit" in frame else None)


def mixed_up(frame: pl.DataFrame, random: Any) -> pl.DataFrame:
    """Rows shuffled, and the two items of some of them swapped."""
    order = list(range(frame.height))
    random.shuffle(order)
    turn = pl.Series([random.random() < 0.5 for _ in order])
    return frame[order].with_columns(
        left=pl.when(turn).then("right").otherwise("left"), right=pl.when(turn).then("left").otherwise("right")
    )


@given(tables(), st.sampled_from(["drop", "each"]), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_d15_neither_the_order_of_rows_nor_of_the_two_items_matters(
    frame: pl.DataFrame, rule: Any, random: Any
) -> None:
    one, two = (cw.Pairs(f, contradictions=rule) for f in (frame, mixed_up(frame, random)))
    assert alike(one, two)
    assert dropped(one) == dropped(two)
    assert (one.left < one.right).all()
    assert one.n_answers + sum(dropped(one).values()) == frame.height == one.intake.rows_read


def test_answers_stand_by_left_right_and_worker() -> None:
    pairs = cw.Pairs(
        {"left": ["c", "b", "c"], "right": ["a", "a", "a"], "worker": ["v", "v", "u"], "answer": [1, 0, 1]}
    )
    assert rows(pairs) == [("a", "b", "v", 0), ("a", "c", "u", 1), ("a", "c", "v", 1)]
    left, right, edge = pairs.edges
    assert (left.tolist(), right.tolist(), edge.tolist()) == ([0, 0], [1, 2], [0, 1, 1])
    assert repr(pairs) == "Pairs(3 answers on 2 pairs of 3 items, 2 workers)"
    assert len(pairs) == pairs.n_answers == 3
    with pytest.raises(ValueError, match="read-only"):
        pairs.left[0] = 1


# ------------------------------------------------------------------------------------------------------ what is counted


def test_d29_an_item_with_itself_is_dropped_and_counted() -> None:
    pairs = cw.Pairs({"left": ["a", "b", "c"], "right": ["a", "a", "c"], "worker": ["w"] * 3, "answer": [0, 1, 1]})
    assert dropped(pairs) == {"both items are the same": 2}
    assert pairs.intake.dropped[0].examples[0] == "row 1: a, a, w, 0"
    assert pairs.items.to_list() == ["a", "b"]
    assert (pairs.intake.rows_read, pairs.intake.rows_used) == (3, 1)


def test_an_equal_answer_again_counts_once() -> None:
    pairs = cw.Pairs({
        "left": ["a", "b", "a", "a"], "right": ["b", "a", "b", "b"], "worker": ["w", "w", "w", "v"],
        "answer": [1, 1, "yes", 1],
    })  # fmt: skip
    assert dropped(pairs) == {"same answer again by the same worker (kept once)": 2}
    assert rows(pairs) == [("a", "b", "v", 1), ("a", "b", "w", 1)]  # another worker's is no repeat


CLASH = {"left": list("abac"), "right": list("bacd"), "worker": list("wwww"), "answer": [1, 0, 1, 0]}


def test_contradictions_go_by_the_rule() -> None:
    pairs = cw.Pairs(CLASH)
    assert dropped(pairs) == {"contradicts another answer of the same worker": 2}
    assert pairs.intake.dropped[0].examples == ("row 1: a, b, w, 1", "row 2: b, a, w, 0")
    assert rows(pairs) == [("a", "c", "w", 1), ("c", "d", "w", 0)]
    assert pairs.items.to_list() == ["a", "b", "c", "d"]
    each = cw.Pairs(CLASH, contradictions="each")
    assert rows(each) == [("a", "b", "w", 0), ("a", "b", "w", 1), ("a", "c", "w", 1), ("c", "d", "w", 0)]
    assert each.intake.options == {"contradictions": "each"}
    with pytest.raises(
        DuplicateError, match=r"2 answers in table contradict .*row 1: a, b, w, 1; row 2: b, a, w, 0\. Use"
    ):
        cw.Pairs(CLASH, contradictions="error")
    assert cw.Pairs(SMALL, contradictions="error").n_answers == 3


def test_repeats_of_a_contradiction_are_folded_first() -> None:
    clash = {"left": ["a"] * 4, "right": ["b", "b", "b", "c"], "worker": ["w"] * 4, "answer": [1, 1, 0, 0]}
    assert dropped(cw.Pairs(clash)) == {
        "same answer again by the same worker (kept once)": 1,
        "contradicts another answer of the same worker": 2,
    }
    assert cw.Pairs(clash, contradictions="each").n_answers == 3


@pytest.mark.parametrize(("data", "said"), [
    ({name: [] for name in SMALL}, "no answers in table: it has 4 column"),
    ({**SMALL, "right": SMALL["left"]}, r"no answers in table: 3 row\(s\), none about two items"),
    ({**SMALL, "answer": [None, "", " "]}, "none about two items"),
    ({"left": ["a", "b"], "right": ["b", "a"], "worker": [1, 1], "answer": [1, 0]}, "gave contradictory answers"),
])  # fmt: skip
def test_where_no_answer_is_left_it_is_said(data: Any, said: str) -> None:
    with pytest.raises(EmptyDataError, match=said):
        cw.Pairs(data)


def test_rows_that_say_nothing_are_dropped_and_counted() -> None:
    pairs = cw.Pairs({
        "left": ["a", None, "b", "", "c", "d"], "right": ["b", "c", "c", "c", "a", None],
        "worker": ["w", "w", "w", "w", "w", None], "answer": [1, 0, None, 1, " ", 1],
    })  # fmt: skip
    assert dropped(pairs) == {"no item": 3, "no answer": 2}
    assert rows(pairs) == [("a", "b", "w", 1)]


@pytest.mark.parametrize("nobody", [None, ""])
def test_an_answer_without_worker_is_refused(nobody: Any) -> None:
    with pytest.raises(ColumnError, match=r"1 answer\(s\) in table have no worker, the first at row 2\. Name"):
        cw.Pairs({**SMALL, "worker": ["ann", nobody, "bob"]})


# ---------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(("yes", "no"), [
    (1, 0), (1.0, 0.0), ("1", "0"), (True, False), ("true", "false"), ("TRUE", "False"), ("same", "different"),
    (" Same ", "DIFFERENT"), ("yes", "no"), ("y", "n"), ("match", "no match"), ("must-link", "cannot-link"),
    ("duplicate", "distinct"),
])  # fmt: skip
def test_answers_in_many_words(yes: Any, no: Any) -> None:
    assert cw.Pairs({**SMALL, "answer": [yes, no, no]}).same.tolist() == [True, False, False]


def test_all_words_are_known_and_none_means_both() -> None:
    assert not SAME & DIFFERENT
    for word, other in zip(sorted(SAME), sorted(DIFFERENT), strict=False):
        assert cw.Pairs({**SMALL, "answer": [word, other, word]}).same.tolist() == [True, False, True]


@pytest.mark.parametrize("answer", [[True, 0, "no"], ["1", 0.0, False]])
def test_words_and_numbers_may_be_mixed(answer: Any) -> None:
    assert cw.Pairs({**SMALL, "answer": answer}).same.tolist() == [True, False, False]


def test_categories_are_words_too() -> None:
    frame = pl.DataFrame({**SMALL, "answer": ["yes", "no", "no"]}, schema_overrides={"answer": pl.Categorical})
    assert cw.Pairs(frame).same.tolist() == [True, False, False]


@pytest.mark.parametrize("strange", ["maybe", "2", 0.5])
def test_a_word_that_is_neither_is_refused_by_its_row(strange: Any) -> None:
    said = rf"answer column 'answer' of table has {strange!r} at row 2, which means neither same nor different.*same="
    with pytest.raises(ColumnError, match=said):
        cw.Pairs({**SMALL, "answer": pl.Series([1, strange, 0], dtype=pl.Object) if strange == 0.5 else
                  ["1", strange, "0"]})  # fmt: skip


@pytest.mark.parametrize(("answer", "same", "wanted"), [
    (["ja", "nein", None], ["ja"], [True, False]),
    (["Ja ", "nein", "JA"], ["ja"], [True, False, True]),
    (["sure", "likely", "never"], ["sure", "likely"], [True, True, False]),
    ([5, 3, 5], [5], [True, False, True]),
    ([5, 3, 5], ["5"], [True, False, True]),
    ([0, 1, 1], [0], [True, False, False]),
    ([True, False, False], [True], [True, False, False]),
    ([True, False, False], [False], [False, True, True]),
    ([True, False, False], ["true"], [True, False, False]),
])  # fmt: skip
def test_same_names_the_values(answer: Any, same: Any, wanted: Any) -> None:
    assert cw.Pairs({**SMALL, "answer": answer}, same=same).same.tolist() == wanted


def test_same_that_nobody_said_is_refused() -> None:
    with pytest.raises(ColumnError, match="no answer in table is 'oui' or 'si'; answers are 'ja', 'nein'"):
        cw.Pairs({**SMALL, "answer": ["ja", "nein", "nein"]}, same=["oui", "si"])
    assert cw.Pairs({**SMALL, "answer": ["ja", "si", "no"]}, same=["ja", "si"]).intake.options == {"same": ["ja", "si"]}


@pytest.mark.parametrize("same", ["yes", [], 1])
def test_same_must_be_a_list(same: Any) -> None:
    with pytest.raises(ParameterError, match="give a list of the values that mean same"):
        cw.Pairs(SMALL, same=same)


def test_a_rule_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ParameterError, match="contradictions is 'last'; it can be 'drop', 'each' or 'error'"):
        cw.Pairs("no table either", contradictions="last")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------ names and types

IDS: dict[str, tuple[Any, Any]] = {
    "whole": ([7, 2**60, 3], pl.Int64),
    "text": (["b", "é", "10"], pl.String),
    "date": ([dt.date(2020, 5, 1), dt.date(2021, 5, 1), dt.date(1999, 1, 31)], pl.Date),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_any_type_come_back(kind: str) -> None:
    (a, b, c), dtype = IDS[kind]
    pairs = cw.Pairs({"left": [a, b], "right": [b, c], "worker": [c, a], "answer": [1, 0]})
    assert pairs.items.to_list() == sorted((a, b, c))
    result = cw.aggregate(pairs)
    for table, column in (("clusters", "item"), ("asked", "left"), ("asked", "right"), ("workers", "worker")):
        assert getattr(result, table)[column].dtype == dtype
    assert set(result.clusters["item"]) == {a, b, c}


def test_numbers_on_one_side_and_text_on_the_other_are_text() -> None:
    pairs = cw.Pairs({"left": [1, 2, 3], "right": ["2", "3", "x"], "worker": ["w"] * 3, "answer": [1, 0, 0]})
    assert pairs.items.to_list() == ["1", "2", "3", "x"]
    assert any("hold Int64 and String: items were converted to text" in text for text in pairs.intake.warnings)


def test_fractions_that_are_whole_are_whole_as_text() -> None:
    gap = pd.DataFrame({"left": [1.0, 2.0, None], "right": [2, 3, 4], "worker": ["w"] * 3, "answer": [1, 0, 0]})
    assert cw.Pairs(gap).items.to_list() == ["1", "2", "3"]


def test_whole_numbers_of_two_widths_stay_numbers() -> None:
    wide = {"left": np.array([1, 2], np.int32), "right": np.array([2, 3]), "worker": [1, 1], "answer": [1, 0]}
    pairs = cw.Pairs(wide)
    assert pairs.items.to_list() == [1, 2, 3]
    assert not pairs.intake.warnings


def test_names_that_look_alike_are_reported() -> None:
    pairs = cw.Pairs({"left": ["Cup", "x"], "right": ["x", "cup "], "worker": ["Ann", "ann"], "answer": [1, 0]})
    assert pairs.n_items == 3
    said = " ".join(pairs.intake.warnings)
    assert "1 item name(s) look alike but are kept as different names: 'Cup' and 'cup '" in said
    assert "1 worker name(s) look alike but are kept as different names: 'Ann' and 'ann'" in said
    assert not cw.Pairs(SMALL).intake.warnings


@pytest.mark.parametrize("make", [
    dict, pl.DataFrame, pd.DataFrame, lambda c: pl.DataFrame(c).lazy(), lambda c: pl.DataFrame(c).to_arrow(),
    lambda c: pl.DataFrame(c).to_dicts(), lambda c: {k: np.array(v) for k, v in c.items()},
    lambda c: pd.DataFrame(c).astype("category"),
], ids=["mapping", "polars", "pandas", "lazy", "arrow", "records", "arrays", "categories"])  # fmt: skip
def test_any_frame_will_do(make: Any) -> None:
    assert rows(cw.Pairs(make(SMALL))) == sorted(zip(*SMALL.values(), strict=True))


def test_columns_are_guessed_by_their_names() -> None:
    pairs = cw.Pairs({"Item 1": [1], "item_2": [2], "Annotator": ["u"], "is_match": ["yes"], "job": [3], "note": ["?"]})
    assert pairs.intake.columns == {
        "left": "Item 1", "right": "item_2", "worker": "Annotator", "answer": "is_match", "hit": "job",
    }  # fmt: skip
    assert pairs.intake.guessed
    assert pairs.intake.extras == ("note",)
    named = cw.Pairs({"p": [1], "q": [2], "who": ["u"], "said": [1]}, left="p", right="q", worker="who", answer="said")
    assert not named.intake.guessed
    assert named.intake.options == {"left": "p", "right": "q", "worker": "who", "answer": "said"}


@pytest.mark.parametrize("role", SMALL)
def test_a_column_that_is_not_there_is_named(role: str) -> None:
    with pytest.raises(ColumnError, match=f"no column '{role}' in table; columns are .* Use {role}="):
        cw.Pairs({name: values for name, values in SMALL.items() if name != role})
    with pytest.raises(ColumnError, match=r"no column 'lft' in table.*Did you mean 'left'"):
        cw.Pairs(SMALL, left="lft")


@pytest.mark.parametrize(("data", "error", "said"), [
    ({**SMALL, "left": ["a"]}, ColumnError, "columns differ in length"),
    ({**SMALL, "left": [["a"], ["b"], ["c"]]}, ColumnError, "one plain value"),
    ("pairs.csv", DataError, "is a file name, not a table"),
    (7, DataError, "cannot be made from int"),
])  # fmt: skip
def test_what_is_no_table_of_pairs_is_refused(data: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        cw.Pairs(data)


def test_a_file_is_read(table: Any) -> None:
    file = table("left;right;worker;answer\n001;002;ann;same\n002;003;bob;different\n", "pairs.csv")
    pairs = cw.read_pairs(file, delimiter=";")
    assert rows(pairs) == [("001", "002", "ann", 1), ("002", "003", "bob", 0)]
    assert (pairs.intake.source, pairs.intake.options) == ("pairs.csv", {"delimiter": ";"})
    lines = table('{"left": 1, "right": 2, "worker": "w", "answer": true}\n', "pairs.jsonl")
    assert rows(cw.read_pairs(lines)) == [("1", "2", "w", 1)] or rows(cw.read_pairs(lines)) == [(1, 2, "w", 1)]


def test_a_bad_cell_of_a_file_is_named_by_its_line(table: Any) -> None:
    file = table("left,right,worker,answer\na,b,ann,1\n\na,c,bob,perhaps\n", "pairs.csv")
    with pytest.raises(ColumnError, match=r"'answer' of pairs\.csv has 'perhaps' at pairs\.csv:4, which means neither"):
        cw.read_pairs(file)


# ----------------------------------------------------------------------------------------------------------------- jobs


def sorted_job(sizes: Any, worker: str = "w", hit: Any = 1, prefix: str = "") -> list[tuple[str, str, str, int, Any]]:
    """All pairs of a job in which items were laid on piles of these sizes."""
    items = [(pile, f"{prefix}{pile}.{k}") for pile, size in enumerate(sizes) for k in range(size)]
    return [(a, b, worker, int(p == q), hit) for (p, a), (q, b) in combinations(items, 2)]


def jobs(*rows: tuple[str, str, str, int, Any]) -> cw.Pairs:
    return cw.Pairs(pl.DataFrame(rows, ["left", "right", "worker", "answer", "hit"], orient="row"))


def by_hand(rows: list[Any]) -> list[float]:
    """1 / sqrt(n m): n answers of one end to the pile of the other, m of the other to the pile of the first."""
    out = []
    for left, right, worker, _, hit in rows:
        mine = [r for r in rows if (r[2], r[4]) == (worker, hit)]
        pile = {item: {item} for r in mine for item in r[:2]}
        for _ in mine:
            for a, b, _, answer, _ in mine:
                if answer:
                    pile[a] |= pile[b]
                    pile[b] |= pile[a]
        towards = lambda item, far, mine=mine, pile=pile: sum(  # noqa: E731
            (a == item and b in pile[far]) or (b == item and a in pile[far]) for a, b, *_ in mine
        )
        out.append(1 / np.sqrt(towards(left, right) * towards(right, left)))
    return out


def test_disjoint_pairs_of_a_job_count_in_full() -> None:
    pairs = jobs(("a", "b", "w", 1, 1), ("c", "d", "w", 0, 1), ("e", "f", "w", 1, 1))
    assert pairs.weight.tolist() == [1, 1, 1]
    assert not pairs.intake.notes


@pytest.mark.parametrize("sizes", [(2, 1), (3, 3), (4, 1, 1), (5, 3, 2), (6,), (1, 1, 1)])
def test_a_sorting_job_counts_by_its_piles(sizes: Any) -> None:
    rows = sorted_job(sizes)
    pairs = jobs(*rows)
    inside = sum(size / 2 for size in sizes if size > 1)
    between = sum(np.sqrt(s * t) for s, t in combinations(sizes, 2))
    assert pairs.weight.sum() == pytest.approx(inside + between)
    assert pairs.weight == pytest.approx(by_hand(sorted(rows)))
    if max(sizes) > 1 and sum(sizes) > 2:
        assert pairs.weight.sum() < pairs.n_answers
        assert pairs.intake.notes == (
            f"1 jobs by 'hit': the {pairs.n_answers} answers count as {pairs.weight.sum():.0f}, because answers of one "
            "job depend on each other",
        )


@given(tables())
def test_weights_of_any_jobs_are_those_by_hand(frame: pl.DataFrame) -> None:
    pairs = cw.Pairs(frame)
    table = pairs.frame().with_columns(hit=pl.Series(pairs.hit))
    given_ = [row for row in table.select("left", "right", "worker", "answer", "hit").rows() if row[4] >= 0]
    assert pairs.weight[pairs.hit >= 0] == pytest.approx(by_hand(given_))
    assert (pairs.weight[pairs.hit < 0] == 1).all()
    assert ((pairs.weight > 0) & (pairs.weight <= 1)).all()


def test_every_worker_and_every_job_counts_by_itself() -> None:
    one = sorted_job((3, 2))
    alone = jobs(*one).weight.sum()
    assert jobs(*one, *sorted_job((3, 2), worker="v")).weight.sum() == pytest.approx(2 * alone)
    assert jobs(*one, *sorted_job((3, 2), hit=2, prefix="x")).weight.sum() == pytest.approx(2 * alone)
    without = jobs(*((a, b, w, answer, None) for a, b, w, answer, _ in one))
    assert (without.weight == 1).all()
    assert (without.hit == -1).all()


def test_without_jobs_every_answer_counts_one() -> None:
    assert (cw.Pairs(SMALL).weight == 1).all()
    assert (cw.Pairs(SMALL).hit == -1).all()
    none = np.full(1, -1)
    assert weights(np.zeros(1, int), np.ones(1, int), np.zeros(1, int), np.ones(1, bool), none).tolist() == [1]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20))
def test_components_are_what_hangs_together(links: list[tuple[int, int]]) -> None:
    a, b = (np.array([link[end] for link in links], np.int64) for end in (0, 1))
    group = components(a, b, 12)
    reach = np.eye(12, dtype=bool)
    for x, y in links:
        reach[x, y] = reach[y, x] = True
    for k in range(12):
        reach |= reach[:, [k]] & reach[[k]]
    assert np.array_equal(group, reach.argmax(1))


def test_a_sorted_set_counts_for_less_than_its_answers(shared_data: Any) -> None:
    frame = pl.read_parquet(shared_data / "mnist_pairs" / "pairs.parquet")
    with_hits, without = cw.Pairs(frame), cw.Pairs(frame.drop("hit"))
    assert dropped(with_hits) == {"same answer again by the same worker (kept once)": 1}
    assert 10_000 < with_hits.weight.sum() < 20_000 < without.weight.sum() == with_hits.n_answers == 57_329
    assert with_hits.intake.notes[0].startswith("91 jobs by 'hit': the 57329 answers count as 14821")
    first = frame.filter(pl.col("hit") == 0)
    sizes = np.bincount(components(*(cw.Pairs(first).edges[end][cw.Pairs(first).same] for end in (0, 1)), 36))
    piles = sizes[sizes > 0]
    wanted = piles[piles > 1].sum() / 2 + sum(np.sqrt(s * t) for s, t in combinations(piles, 2))
    assert cw.Pairs(first).weight.sum() == pytest.approx(wanted)


# ------------------------------------------------------------------------------------------------ the items of features


def test_items_take_the_numbers_of_the_features() -> None:
    pairs = cw.Pairs(SMALL).on(["c", "z", "b", "a"])
    assert pairs.items.to_list() == ["c", "z", "b", "a"]
    assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 0, 2], [2, 3, 3])
    told = {frozenset(row[:2]): row[2:] for row in rows(pairs)}
    assert told == {frozenset("ab"): ("ann", 1), frozenset("ac"): ("ann", 0), frozenset("bc"): ("bob", 0)}
    assert pairs.intake == cw.Pairs(SMALL).intake


@given(tables(), st.permutations(range(7)))
def test_on_keeps_every_answer_with_its_worker_and_weight(frame: pl.DataFrame, ids: Any) -> None:
    pairs = cw.Pairs(frame, contradictions="each")
    moved = pairs.on(ids)
    key = lambda p: sorted(  # noqa: E731
        (*sorted((row[0], row[1])), row[2], row[3], int(h), float(w))
        for row, h, w in zip(rows(p), p.hit, p.weight, strict=True)
    )
    assert key(moved) == key(pairs)
    assert (moved.left < moved.right).all()
    number = moved.left.astype(int) * 7 + moved.right
    assert (np.diff(number) >= 0).all()


def test_unknown_items_are_an_error_or_dropped() -> None:
    pairs = cw.Pairs(SMALL)
    said = "1 of 3 items in pairs have no features, for instance 'c'; the features name items like 'b'.*'drop'"
    with pytest.raises(FeatureError, match=said):
        pairs.on(["b", "a"])
    left = pairs.on(["b", "a", "d"], "drop")
    assert rows(left) == [("b", "a", "ann", 1)]
    assert dropped(left) == {"item without features": 2}
    assert (left.intake.rows_read, left.intake.rows_used) == (3, 1)
    assert left.workers.to_list() == ["ann", "bob"]
    assert pairs.on(["x", "y"], "drop").n_answers == 0
    with pytest.raises(ParameterError, match="unknown is 'ignore'; it can be 'error' or 'drop'"):
        pairs.on(["a", "b", "c"], "ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(("own", "theirs"), [([1, 2, 3], ["3", "1", "2"]), (["1", "2", "3"], [3, 1, 2])])
def test_numbers_and_text_that_say_the_same_are_the_same_items(own: Any, theirs: Any) -> None:
    a, b, c = own
    pairs = cw.Pairs({"left": [a, b], "right": [b, c], "worker": ["w", "w"], "answer": [1, 0]}).on(theirs)
    assert pairs.items.to_list() == theirs
    assert (pairs.left.tolist(), pairs.right.tolist(), pairs.same.tolist()) == ([0, 1], [2, 2], [False, True])


@pytest.mark.parametrize(("ids", "said"), [
    (["a", "b", "c", "b"], "item 'b' has more than one row of features. Keep one row per item"),
    (["a", "b", "c", None], r"1 row\(s\) of the features have no item"),
    ([], "the features have no rows"),
    ([1, 2, 3], "3 of 3 items in pairs have no features, for instance 'a', 'b', 'c'; the features name items like 1"),
])  # fmt: skip
def test_ids_that_name_no_items_are_refused(ids: Any, said: str) -> None:
    with pytest.raises(FeatureError, match=said):
        cw.Pairs(SMALL).on(ids)


# ------------------------------------------------------------------------------------------------------- there and back


@given(tables(), st.sampled_from(["drop", "each"]))
def test_a_table_comes_back(frame: pl.DataFrame, rule: Any) -> None:
    pairs = cw.Pairs(frame, contradictions=rule)
    again = cw.Pairs(pairs.frame(), contradictions=rule)
    inside = pairs.on(
        sorted(set(pairs.frame()["left"]) | set(pairs.frame()["right"]))
    )  # a worker who contradicts their own answers is gone
    assert np.array_equal(again.weight, inside.weight)
    assert all(np.array_equal(getattr(again, name), getattr(inside, name)) for name in ("left", "right", "same"))
    assert again.frame().drop("hit", strict=False).equals(inside.frame().drop("hit", strict=False))
    assert np.array_equal(again.hit < 0, inside.hit < 0)


def test_no_answers_at_all() -> None:
    none = cw.Pairs.none(["x", "y", "z"])
    assert (none.n_answers, none.n_items, none.n_workers) == (0, 3, 0)
    assert none.items.to_list() == ["x", "y", "z"]
    assert repr(none) == "Pairs(0 answers on 0 pairs of 3 items, 0 workers)"
    assert none.frame().height == 0
    assert [len(part) for part in none.edges] == [0, 0, 0]
    assert none.on(["z", "y", "x", "w"]).items.to_list() == ["z", "y", "x", "w"]


def test_further_options_are_recorded() -> None:
    pairs = cw.Pairs(SMALL, left="left")
    assert pairs.intake.options == {"left": "left"}
    assert pairs.intake.guessed == ("right", "worker", "answer")
    assert Intake.from_dict(json.loads(json.dumps(pairs.intake.as_dict()))) == pairs.intake
    labels = cw.Labels([1, 1], ["a", "b"], ["x", "y"], options={"format": "csv"})
    assert labels.intake.options == {"format": "csv"}
    points = cw.Points({"image": [1], "worker": [1], "left": [1], "top": [2]}, axes=("left", "top"), duplicates="each")
    assert points.intake.options == {"axes": ["left", "top"], "duplicates": "each"}
    assert [each.kind for each in (labels, points, pairs)] == ["labels", "points", "pairs"]
    assert alike(pairs, cw.Pairs(SMALL))


# ------------------------------------------------------------------------------------------------------------ simulated


def test_simulated_pairs_are_as_described() -> None:
    alpha, beta = [0.95, 0.6, 0.1], [0.9, 0.7, 0.2]
    sim = cw.simulate.pinwheel(workers=3, each=3000, asked=120, alpha=alpha, beta=beta, seed=2)
    assert sim.workers.rows() == [(f"w0{k + 1}", alpha[k], beta[k]) for k in range(3)]
    assert (sim.pairs.n_answers, sim.pairs.n_items, sim.truth.height) == (9000, 120, 500)  # nobody meets a pair twice
    assert sim.features[1].shape == (500, 2)
    truth = dict(sim.truth.rows())
    told = sim.pairs.frame().with_columns(
        true=pl.Series([truth[a] == truth[b] for a, b in sim.pairs.frame().select("left", "right").rows()])
    )
    for (worker, true), part in told.group_by("worker", "true"):
        k = int(str(worker)[1:]) - 1
        chance = alpha[k] if true else beta[k]
        right = (part["answer"] == int(bool(true))).mean()
        assert right == pytest.approx(chance, abs=4 * np.sqrt(0.25 / part.height))
    again = cw.simulate.pinwheel(workers=3, each=3000, asked=120, alpha=alpha, beta=beta, seed=2)
    assert alike(again.pairs, sim.pairs)
    assert np.array_equal(again.features[1], sim.features[1])
    assert not np.array_equal(cw.simulate.pinwheel(seed=3).features[1], sim.features[1])


def test_the_arms_of_the_pinwheel_lie_around_its_middle() -> None:
    sim = cw.simulate.pinwheel(clusters=4, per_cluster=50, asked=20, workers=2, each=10, seed=1)
    truth, X = sim.truth["label"].to_numpy(), sim.features[1]
    middle = np.stack([X[truth == k].mean(0) for k in range(4)])
    assert np.bincount(truth).tolist() == [50] * 4
    assert np.linalg.norm(middle, axis=1) == pytest.approx(np.full(4, 10), abs=1.5)
    turn = np.diff(np.unwrap(np.arctan2(middle[:, 1], middle[:, 0])))
    assert np.abs(turn) == pytest.approx(np.full(3, np.pi / 2), abs=0.2)


@pytest.mark.parametrize("chosen", [
    {"alpha": 1.5}, {"alpha": -0.1}, {"alpha": [0.5] * 3}, {"beta": float("nan")}, {"asked": 1}, {"asked": 501},
    {"clusters": 0}, {"workers": 0}, {"each": 0}, {"asked": 5, "each": 11},
], ids=str)  # fmt: skip
def test_what_cannot_be_simulated_is_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        cw.simulate.pinwheel(**chosen)


def test_every_pair_of_few_items_can_be_asked() -> None:
    sim = cw.simulate.pinwheel(clusters=2, per_cluster=3, asked=6, workers=2, each=15, seed=0)
    assert sim.pairs.n_answers == 30
    assert {row[:2] for row in rows(sim.pairs)} == {
        (a, b) for a, b in product(sim.pairs.items, repeat=2) if a < b
    }  # fmt: skip

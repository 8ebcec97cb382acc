"""How requests of a router's log ended, and rows of one request."""

import numpy as np
from instances.logs import check, plain, requests
from instances.router_logs import DATA, cells, read, refused

from lbopt.instances.router_log import FINISHED, RUNNING

# -- endings ----------------------------------------------------------------------------------------------------------


def test_a_request_that_still_runs(tmp_path):
    log = read(
        tmp_path,
        plain(DATA, finish=cells(DATA["finish"], {3: "", 5: "NaN"}), output_tokens=cells(DATA["output"], {9: ""})),
    )
    running = log.ending == RUNNING
    assert running.sum() == 3
    assert np.isnan(log.finish[running]).all()
    assert sorted(log.output[running]) == sorted([DATA["output"][3], DATA["output"][5], 0])


def test_words_of_status(tmp_path):
    words = {
        "stop": "finished",
        "LENGTH": "finished",
        "200": "finished",
        "FinishReason.STOP": "finished",
        "client_disconnect": "cancelled",
        "499": "cancelled",
        "Abort": "cancelled",
        "timeout": "timed out",
        "504": "timed out",
        "evicted": "pre-empted",
        "retry": "retried",
        "503": "cancelled",
        "error": "cancelled",
        "{'type': 'abort', 'message': 'x'}": "cancelled",
    }
    status = [*words, *["ok"] * (40 - len(words))]
    log = read(tmp_path, plain(DATA, status=status))
    by_id = dict(zip(log.ids.tolist(), log.ending.tolist(), strict=True))
    assert [by_id[f"r{i}"] for i in range(len(words))] == list(words.values())
    assert any("2 attempts failed with an error" in note for note in log.notes)


def test_the_worse_of_two_status_columns_counts(tmp_path):
    log = read(tmp_path, plain(DATA, status=["200"] * 40, finish_reason=cells(["stop"] * 40, {7: "abort"})))
    assert (log.ending == "cancelled").sum() == 1


def test_an_unknown_word_is_refused_where_it_is_frequent(tmp_path):
    columns = plain(DATA, status=cells(["ok"] * 40, {7: "zonk"}))
    assert "line 9: status is 'zonk'" in refused(tmp_path, columns)
    check(read(tmp_path, columns, columns={"status": ""}), DATA)
    check(read(tmp_path, columns, columns={"status": "-"}), DATA)
    data = requests(300)
    log = read(tmp_path, plain(data, status=cells(["ok"] * 300, {7: "zonk"})))
    assert log.left_out == {"unknown status": 1}


def test_a_request_that_never_started_is_left_out(tmp_path):
    columns = plain(DATA, start=cells(DATA["start"], {7: ""}), finish=cells(DATA["finish"], {7: ""}))
    log = read(tmp_path, {**columns, "worker": cells(DATA["worker"], {7: ""})})
    assert log.left_out == {"never started to decode": 1}


def test_a_finished_request_without_a_start_is_counted(tmp_path):
    log = read(tmp_path, plain(DATA, start=cells(DATA["start"], {7: "", 9: ""})))
    assert log.left_out == {"no start of decoding": 2}
    assert any("workers held more than is seen" in note for note in log.notes)


def test_no_request_that_started_is_refused(tmp_path):
    assert "holds no request" in refused(
        tmp_path, plain(DATA, start=[*[""] * 39, "1.0"], finish=[""] * 39 + ["2.0"], output_tokens=["0"] * 40), unit="s"
    )


# -- ids --------------------------------------------------------------------------------------------------------------


def again(columns, place, **changes):
    """Columns with a copy of one row at the end, some of its cells changed."""
    return {name: [*column, changes.get(name, column[place])] for name, column in columns.items()}


def test_doubled_rows_are_counted(tmp_path):
    log = read(tmp_path, again(again(plain(DATA), 7), 8))
    check(log, DATA)
    assert log.left_out == {"doubled": 2}


def test_identical_rows_without_ids(tmp_path):
    columns = plain(DATA, request_id=None)
    log = read(tmp_path, columns)
    check(log, DATA)
    assert len(set(log.ids)) == 40
    assert "identical to an earlier one" in refused(tmp_path, again(columns, 7))
    log = read(tmp_path, again(plain(requests(300), request_id=None), 7))
    assert len(log) == 301
    assert any("1 rows are identical" in note for note in log.notes)


def test_attempts_before_the_last_are_retried(tmp_path):
    columns = plain(DATA, status=cells(["ok"] * 40, {7: "timeout", 8: "evicted"}))
    late = {"start": DATA["start"][7] + 50, "finish": DATA["finish"][7] + 50, "status": "ok"}
    log = read(
        tmp_path,
        again(
            again(columns, 7, **late), 8, **late | {"start": DATA["start"][8] + 50, "finish": DATA["finish"][8] + 50}
        ),
    )
    assert log.ending[log.ids == "r7"].tolist() == ["retried", FINISHED]
    assert log.ending[log.ids == "r8"].tolist() == ["pre-empted", FINISHED]


def test_finished_twice_at_once_is_refused(tmp_path):
    other = {"worker": (DATA["worker"][7] + 1) % 3, "start": DATA["start"][7] + 0.001}
    message = refused(tmp_path, again(plain(DATA), 7, **other))
    assert "line 9 and line 42 have one id" in message
    assert "--column id=NAME" in message
    log = read(tmp_path, again(plain(DATA), 7, start=DATA["start"][7] + 0.001))  # one worker: the first was in vain
    assert log.ending[log.ids == "r7"].tolist() == ["retried", FINISHED]


def test_finished_one_after_the_other_is_noted(tmp_path):
    log = read(tmp_path, again(plain(DATA), 7, start=DATA["start"][7] + 50, finish=DATA["finish"][7] + 50))
    assert (log.ending == FINISHED).all()
    assert any("1 ids name several finished requests" in note for note in log.notes)


def test_cached_tokens_are_remarked_on_and_models_are_labels(tmp_path):
    log = read(tmp_path, plain(DATA, cached_tokens=DATA["prompt"] // 2, model=["a", "b"] * 20))
    assert any("of the prompt tokens were cached" in note for note in log.notes)
    assert log.labels["model"].tolist().count("a") == 20
    log = read(tmp_path, plain(DATA, cached_tokens=DATA["prompt"] * 2))
    assert any("exceeds the prompt" in note for note in log.notes)

"""Retraining: what is promoted, declined and left alone, what a kill leaves, going back, and schedules that work."""

import ast
import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zoneinfo
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import dboost
import pipelines
from dboost.errors import UsageError
from lab.run_kills import RETRAIN as FILE
from lab.run_kills import RETRAIN_RUN
from pipelines.retraining import retrain as steps
from pipelines.retraining.gates import Figures, Gates, checked, verdicts
from pipelines.retraining.home import Home
from pipelines.retraining.judge import Comparison, Judged, by_chance, label_drift, term_drift
from pipelines.retraining.schedules import SCHEDULES, name_of
from pipelines.runs.lock import LOCK, hold_lock
from tests.pipelines.conftest import give, write_documents

RUN = RETRAIN_RUN.replace("documents.parquet", "d.parquet").replace("test.parquet", "t.parquet")


def write(folder):
    """The files of a retraining and its documents."""
    (folder / "run.toml").write_text(RUN)
    (folder / "nightly.toml").write_text(FILE)
    documents(folder / "d.parquet", 300, 0)
    documents(folder / "t.parquet", 200, 9)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder of a retraining after its first night."""
    folder = write(tmp_path_factory.mktemp("first"))
    retrain(folder)
    return folder


@pytest.fixture
def after_first(first, tmp_path):
    """A copy of that folder; its documents lie elsewhere, so that the next night finds them new."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    return tmp_path


def documents(path, rows, seed, change=None):
    write_documents(path, rows, seed)
    if change is not None:
        pq.write_table(change(pq.read_table(path)), path)


def shuffled(table):
    """Labels that have nothing to do with the documents."""
    labels = np.random.default_rng(0).permutation(table["label"].to_pylist())
    return table.set_column(1, "label", pa.array(labels))


def mostly_apples(table):
    apples = np.array(table["label"].to_pylist()) == "apple"
    keep = apples | (np.random.default_rng(0).random(len(apples)) < 0.15)
    return table.filter(pa.array(keep))


def retrain(folder):
    return pipelines.retrain(folder / "nightly.toml")


def test_first_better_unchanged_worse_and_back(folder, prints):
    first = retrain(folder)
    assert (first.outcome, first.version, first.champion) == ("promoted", "v0001", "v0001")
    again = retrain(folder)
    assert (again.outcome, again.version, again.champion) == ("nothing new", None, "v0001")

    documents(folder / "d.parquet", 600, 1)
    better = retrain(folder)
    assert (better.outcome, better.champion) == ("promoted", "v0002") and not better.reasons
    # it began with the champion, whose terms are at other places by now
    cold = pipelines.run(folder / "run.toml", out=folder / "cold").model
    warm = dboost.load_pipeline(Home(folder / "retraining").model())[-1]
    assert warm.history_[0]["objective"] < 0.9 * cold.history_[0]["objective"]

    documents(folder / "d.parquet", 600, 2, shuffled)
    shown = prints("retrain", folder / "nightly.toml")
    assert "declined: v0003; the champion is v0002" in shown and "loss: challenger less champion +" in shown
    page = (folder / "retraining" / "versions" / "v0003" / "decision.html").read_text()
    assert "declined" in page and "not passed" in page and "<script" not in page
    assert retrain(folder).outcome == "nothing new"

    assert "the champion is v0001 again, and no longer v0002" in prints("rollback", folder / "retraining")
    home = Home(folder / "retraining")
    assert home.champion == "v0001" and dboost.load_pipeline(home.model()).predict(["word_birch"]) == ["birch"]
    with pytest.raises(UsageError, match="no champion before"):
        pipelines.rollback(folder / "retraining")


def test_what_was_rolled_back_stays_away_until_something_new_passes(after_first, prints):
    folder = after_first
    documents(folder / "d.parquet", 600, 1)
    assert retrain(folder).champion == "v0002"
    home = Home(folder / "retraining")
    give("rollback", home.path, "--reason", "labels of <May>")
    page = (home.folder("v0002") / "decision.html").read_text()
    assert "Rolled back on" in page and "labels of &lt;May&gt;" in page
    # the next night, after a night of other data, with other gates, other held-out documents, under another name
    back = (folder / "d.parquet").read_bytes()
    said = prints("retrain", folder / "nightly.toml")
    assert "nothing new: the data and the settings of the model are those of v0002, which" in said
    documents(folder / "d.parquet", 600, 2, shuffled)
    assert retrain(folder).outcome == "declined" and home.champion == "v0001"
    (folder / "d.parquet").write_bytes(back)
    (folder / "nightly.toml").write_text(FILE + "loss = 1.0\n")
    documents(folder / "t.parquet", 220, 8)
    assert retrain(folder).outcome == "nothing new" and home.champion == "v0001"
    (folder / "d.parquet").unlink()
    (folder / "e.parquet").write_bytes(back)
    (folder / "run.toml").write_text(RUN.replace("d.parquet", "e.parquet"))
    found = retrain(folder)
    assert found.outcome == "declined" and home.champion == "v0001" and len(found.reasons) == 1
    said = "rolled_back: the same data and settings as v0002, which was rolled back on"
    assert found.reasons[0].startswith(said) and found.reasons[0].endswith("labels of <May>")
    assert "labels of &lt;May&gt;" in (home.folder(str(found.version)) / "decision.html").read_text()
    # the memory survives a pointer that is damaged
    (home.path / "champion.json").write_bytes(b"{")
    assert retrain(folder).outcome == "nothing new" and home.champion == "v0001"
    documents(folder / "e.parquet", 700, 3)
    assert retrain(folder).outcome == "promoted"


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_a_damaged_champion_gives_way_to_the_last_sound_one_or_to_a_fresh_fit(after_first, prints):
    folder = after_first
    home = Home(folder / "retraining")

    def night():
        said = prints("retrain", folder / "nightly.toml")
        assert home.champion is not None and not home.damage(home.champion)
        return said

    documents(folder / "d.parquet", 600, 1)
    night()
    weights = next((home.folder("v0002") / "model").glob("*.safetensors"))
    flipped(weights)
    said = night()
    assert "the champion v0002 is damaged (" in said and "v0001 takes its place" in said
    # the data are those of the version that is lost, and worth a version
    assert home.champion == "v0003" and "nothing new" in night()
    documents(folder / "d.parquet", 650, 4)
    for damage in (
        lambda at: (at / "model" / "model.json").unlink(),
        lambda at: shutil.rmtree(at / "prepared"),  # it is used no more
        lambda at: shutil.rmtree(at),
        lambda at: flipped(at / "decision.json"),
        lambda at: (at / "decision.json").write_bytes(b"[]"),
        lambda at: (home.path / "champion.json").write_text('{"version": "v0099"}'),
        lambda at: (home.path / "champion.json").unlink(),
    ):
        damage(home.folder(str(home.champion)))
        night()
        assert "nothing new" in night()
    for version in home.versions():
        shutil.rmtree(home.folder(version) / "model", ignore_errors=True)
    said = night()
    assert "there is none before it, and the next is made afresh" in said and "promoted" in said


@pytest.mark.full
def test_a_version_that_was_broken_off_and_damaged_begins_anew(folder, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(steps, "compare", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        retrain(folder)
    stages = folder / "retraining" / "versions" / "v0001" / "stages.json"
    stages.write_bytes(stages.read_bytes()[:50])
    assert retrain(folder).champion == "v0001"


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:alpha_best_=")
def test_a_run_that_chooses_its_strength_or_has_no_start_is_retrained_every_night(folder):
    cases = (
        ("alpha = 0.003\ntol = 1e-6", "cv = 2\nn_alphas = 3", "a path or cross-validation begins where no feature"),
        (
            'penalty = "l1/l2"\nalpha = 0.003\ntol = 1e-6',
            'estimator = "shareboost"\nmax_rounds = 3',
            "does not start",
        ),
    )
    for old, new, why in cases:
        shutil.rmtree(folder / "retraining", ignore_errors=True)
        (folder / "nightly.toml").write_text(FILE)
        (folder / "run.toml").write_text(RUN.replace(old, new))
        for seed in (0, 1):
            documents(folder / "d.parquet", 300 + 100 * seed, seed)
            assert retrain(folder).version == f"v000{seed + 1}"
        (folder / "nightly.toml").write_text(FILE.replace("[gates]", 'begin = "champion"\n[gates]'))
        with pytest.raises(UsageError, match=f"begin = 'champion' has no meaning: .*{why}"):
            retrain(folder)


def test_a_challenger_of_other_classes_begins_from_nothing(folder, prints):
    """Two classes and three are different tasks, of which neither begins at the other."""
    three = pq.read_table(folder / "d.parquet")
    two = three.filter(pa.array(np.isin(three["label"].to_pylist(), ["apple", "birch"])))
    pq.write_table(two, folder / "d.parquet", write_page_checksum=True)
    (folder / "nightly.toml").write_text(FILE + "label_drift = 100\nsize = 100\n")
    retrain(folder)
    pq.write_table(three, folder / "d.parquet", write_page_checksum=True)
    said = prints("retrain", folder / "nightly.toml")
    assert "the challenger begins from nothing: the classes differ" in said and "promoted: v0002" in said


@pytest.mark.full
def test_old_versions_are_deleted_where_that_is_asked_for(folder, prints):
    home = Home(folder / "retraining")
    (folder / "nightly.toml").write_text(FILE.replace("[gates]", "keep = 1\n[gates]"))
    for seed, change in ((0, None), (1, None), (2, shuffled), (3, shuffled), (4, shuffled)):
        documents(folder / "d.parquet", 300 + 200 * seed, seed, change)
        said = prints("retrain", folder / "nightly.toml")
    # The champion, the one before it, and the latest, which was declined.
    assert home.champion == "v0002" and home.versions() == ["v0001", "v0002", "v0005"]
    assert "keep = 1: deleted v0004" in said
    assert sorted(path.name for path in (home.path / "versions").iterdir()) == home.versions()
    assert pipelines.rollback(home.path) == ("v0002", "v0001")
    with pytest.raises(UsageError, match="no champion before"):
        pipelines.rollback(home.path)


def test_a_kill_while_versions_are_deleted_leaves_none_in_part(tmp_path, monkeypatch):
    home = Home(tmp_path)
    for version in ("v0001", "v0002", "v0003", "v0004"):
        (home.folder(version) / "model").mkdir(parents=True)
        home.promote(version)

    def interrupted(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr("pipelines.retraining.home.clear_abandoned", interrupted)
        home.prune(1)
    assert home.versions() == ["v0003", "v0004"] and home.champion == "v0004" and home.former == ["v0003"]
    home.prune(1)
    assert sorted(path.name for path in (tmp_path / "versions").iterdir()) == ["v0003", "v0004"]


def test_a_folder_without_a_champion_cannot_go_back(tmp_path, refused):
    assert "holds no champion" in refused("rollback", tmp_path / "nothing") and not (tmp_path / "nothing").exists()


def test_drifted_labels_are_declined_by_that_gate(after_first):
    documents(after_first / "d.parquet", 900, 3, mostly_apples)
    found = retrain(after_first)
    assert found.outcome == "declined" and any(reason.startswith("label_drift") for reason in found.reasons)


@pytest.mark.parametrize("step", ["execute", "compare", "html", "write_file", "promote"])
def test_a_kill_leaves_one_champion_and_the_next_call_goes_on(after_first, monkeypatch, step):
    folder = after_first
    documents(folder / "d.parquet", 600, 1)

    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Home if step == "promote" else steps, step, killed)
        with pytest.raises(Killed):
            retrain(folder)
    home = Home(folder / "retraining")
    assert home.champion == "v0001"
    dboost.load_pipeline(home.model())
    found = retrain(folder)
    assert home.champion == "v0002" and home.versions() == ["v0001", "v0002"]
    assert found.outcome in ("promoted", "nothing new")


def test_two_at_once_and_files_without_meaning(folder):
    retrain(folder)
    with hold_lock(folder / "retraining"), pytest.raises(UsageError, match=f"process {os.getpid()} on host"):
        retrain(folder)
    # the name of a host that is gone, as in every pod of a CronJob
    (folder / "retraining" / LOCK).write_text(json.dumps({"host": "another", "pid": 7, "since": "now"}))
    assert retrain(folder).outcome == "nothing new"
    for tables, said in (
        ({}, "retrain.run is missing"),
        ({"retrain": {"run": "r", "hom": "x"}}, "did you mean 'home'"),
        ({"retrain": {"run": "r"}, "gates": {"loss": -1}}, "gates.loss: found -1"),
        ({"gate": {}}, "did you mean 'gates'"),
        ({"retrain": {"run": "r", "home": "s3://bucket/home"}}, "retrain.home has the scheme 's3'"),
    ):
        with pytest.raises(UsageError, match=said):
            checked(tables, folder)
    (folder / "run.toml").write_text(RUN.replace('test = "t.parquet"\n', ""))
    with pytest.raises(UsageError, match="data.test to judge on"):
        retrain(folder)


# ---- gates and drift -------------------------------------------------------------------------------------------------


def judged(losses, wrong=None):
    bins = np.zeros((10, 3))
    bins[9] = len(losses), 0.95 * len(losses), 0.95 * len(losses)
    return Judged(np.asarray(losses, float), np.zeros(len(losses)) if wrong is None else wrong, bins)


def test_each_gate_closes_for_its_own_reason():
    rng = np.random.default_rng(0)
    labels, base = np.repeat(["a", "b"], 100), rng.random(200)
    same = Comparison(labels, judged(base), judged(base))
    good = Figures(same, (100, 100), (10, 10), 0.0, 0.0)

    def closed(**changes):
        return [one.gate for one in verdicts(replace(good, **changes), Gates()) if not one.passed]

    assert closed() == []
    assert closed(comparison=Comparison(labels, judged(base + 0.1 + 0.01 * rng.random(200)), judged(base))) == ["loss"]
    # a difference that chance explains closes nothing
    assert closed(comparison=Comparison(labels, judged(base + rng.normal(size=200)), judged(base))) == []
    wrong = (labels == "b").astype(float)
    assert closed(comparison=Comparison(labels, judged(base, wrong), judged(base))) == ["class_error"]
    off = judged(base)
    off.bins[9] = 200, 190, 100
    assert closed(comparison=Comparison(labels, off, judged(base))) == ["calibration"]
    # it is no worse than the champion is; a first version is worse than nothing
    assert closed(comparison=Comparison(labels, off, off)) == closed(comparison=Comparison(labels, off, None)) == []
    first = Figures(Comparison(labels, off, None), (100, 100), (10, 10), 0.0, 0.0)
    found = [one for one in verdicts(first, Gates(calibration=0.1)) if not one.passed]
    assert [one.gate for one in found] == ["calibration"]
    assert closed(rolled_back="v0002") == ["rolled_back"]
    assert closed(rows=(10, 100)) == ["rows"] and closed(features=(50, 10)) == ["size"]
    assert closed(label_drift=1.0) == ["label_drift"] and closed(feature_drift=1.0) == ["feature_drift"]


def test_calibration_and_drift_of_few_rows_alarm_as_seldom_as_of_many():
    """Probabilities that are right, and counts of one population, from 20 rows to 20,000: limits of zero are met."""
    rng, gates = np.random.default_rng(0), Gates(calibration=0.0, label_drift=0.0, feature_drift=0.0)
    for rows in (20, 200, 2000, 20_000):
        alarms = {"calibration": 0, "label_drift": 0, "feature_drift": 0}
        wrong = 0
        for _ in range(100):
            chances = rng.uniform(0.35, 1.0, rows)
            bins = np.minimum((chances * 10).astype(int), 9)
            for shift in (0.0, 0.25):
                right = rng.random(rows) < chances - shift
                one = Judged(np.zeros(0), np.zeros(0), np.zeros((10, 3)))
                for column, values in enumerate((np.ones(rows), chances, right)):
                    one.bins[:, column] = np.bincount(bins, values, minlength=10)
                counts = [dict(enumerate(rng.multinomial(rows, np.full(8, 0.125)).astype(float))) for _ in range(2)]
                comparison = Comparison(np.zeros(0), one, None)
                drift, chance = label_drift(*counts), by_chance(*counts, 8)
                figures = Figures(comparison, (1, 1), (1, 1), drift, drift, chance, chance)
                closed = [each.gate for each in verdicts(figures, gates) if not each.passed]
                if shift:
                    wrong += "calibration" in closed
                else:
                    for gate in set(closed) & set(alarms):
                        alarms[gate] += 1
        assert max(alarms.values()) <= 10, (rows, alarms)
        assert wrong >= (95 if rows >= 200 else 20), (rows, wrong)
    # and what has drifted is seen
    assert label_drift({"a": 600.0, "b": 400.0}, {"a": 270.0, "b": 730.0}) > 0.25
    assert label_drift({"a": 500.0}, {"b": 500.0}) > 5.0
    drift, moved = term_drift({"x": 50.0, "y": 10.0, "w": 40.0}, {"x": 50.0, "y": 90.0, "w": 40.0, "z": 3.0})
    assert drift > 0.25 and moved[0]["term"] == "y"


# ---- schedules -------------------------------------------------------------------------------------------------------


def test_the_cron_line_works_as_it_stands(folder, prints):
    line = SCHEDULES["cron"](str(folder / "nightly.toml"))
    assert line.startswith("17 4 * * * ")
    words = shlex.split(line.split(" ", 5)[5].replace(r"\%", "%"))
    assert words[:3] == [sys.executable, "-m", "dboost_pipelines"]
    assert json.loads(prints(*words[3:]).splitlines()[-1])["text"].startswith("promoted: v0001")


def test_the_other_schedules_are_read_by_what_reads_them(folder, prints):
    file = str(folder / "nightly.toml")
    for name in SCHEDULES:
        assert "nightly" in prints("retrain", file, "--emit", name)
    assert not (folder / "retraining").exists()
    assert "Persistent=true" in (units := SCHEDULES["systemd"](file)) and "--fail-declined\n" in units
    job = yaml.safe_load(SCHEDULES["cronjob"](file))
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    # a declined challenger is seen, and is no reason to try again
    spec = job["spec"]["jobTemplate"]["spec"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never" and spec["backoffLimit"] == 6
    assert spec["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [2, 3, 10]
    assert spec["template"]["spec"]["containers"][0]["args"][-1] == "--fail-declined"


HOSTILE = (
    "nightly_topics", "50%hot", "a b", "it's", 'say "x"', "$HOME", "$(date)", "back\\slash", "end\\", "Über alles",
    "北京", "x" * 90, "-a.b-", "UPPER", "semi;colon #1", "end ",
)  # fmt: skip


def words_of_systemd(line):
    """The words of an ExecStart, by the rules of systemd.service(5)."""
    words = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line):
        text = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        assert not re.search(r"(?<!%)(?:%%)*%(?!%)", text) and not re.search(r"(?<!\$)(?:\$\$)*\$(?!\$)", text)
        words.append(text.replace("%%", "%").replace("$$", "$"))
    return words


def test_schedules_of_any_path_are_what_each_scheduler_takes(tmp_path):
    names, verify = set(), shutil.which("systemd-analyze")
    for number, hostile in enumerate(HOSTILE):
        file = tmp_path / hostile / f"{hostile}.toml"
        # no folder is made: a schedule is text
        text = {name: emit(str(file)) for name, emit in SCHEDULES.items()}
        name = name_of(str(file))
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 52
        names.add(name)
        job = yaml.safe_load(text["cronjob"])
        assert job["metadata"]["name"] == name and job["spec"]["timeZone"] == "Etc/UTC"
        assert job["spec"]["startingDeadlineSeconds"] > 0
        (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        assert container["args"][2].replace("$$(", "$(") == f"/data/{hostile}.toml"
        # cron ends a command at a percent sign, unless there is a backslash before it, which it takes away
        command = text["cron"].split(" ", 5)[5]
        assert not re.search(r"(?<!\\)%", command) and "\n" not in command
        assert str(file) in shlex.split(command.replace(r"\%", "%"))
        service, timer = text["systemd"].split(f"# {name}.timer\n")
        lines = dict(line.split("=", 1) for line in service.splitlines() if "=" in line)
        assert str(file) in words_of_systemd(lines["ExecStart"])
        assert Path(lines["WorkingDirectory"].replace("%%", "%")) == file.parent
        assert not lines["WorkingDirectory"].endswith(("\\", " "))
        for each in ("prefect", "airflow"):
            found = [node.value for node in ast.walk(ast.parse(text[each])) if isinstance(node, ast.Constant)]
            assert str(file) in found and name in found
        if verify and number < 8:
            for kind, unit in (("service", service), ("timer", timer)):
                (tmp_path / f"{name}.{kind}").write_text(unit)
    assert len(names) == len(HOSTILE)
    if verify:
        units = sorted(map(str, tmp_path.glob("*.service")))
        done = subprocess.run(
            ["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60, check=False
        )
        told = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "retrain-" in line]
        assert not told, told
    with pytest.raises(UsageError, match="line break"):
        SCHEDULES["cron"](str(tmp_path / "a\nb.toml"))


def test_the_time_of_schedules_is_there_once_on_every_day_of_every_zone():
    """At four hours and 17 minutes no clock is changed, in any zone, where it is at 02:17."""
    minute, hour = map(int, SCHEDULES["cron"]("nightly.toml").split(" ")[:2])
    days = [datetime.datetime(2026, 1, 1, 12) + datetime.timedelta(day) for day in range(366)]
    odd = {hour: 0, 2: 0}
    for zone in map(zoneinfo.ZoneInfo, sorted(zoneinfo.available_timezones())):
        offsets = [zone.utcoffset(day) for day in days[::14]]
        for block in range(len(offsets) - 1):
            for day in days[14 * block + 1 : 14 * block + 15] if offsets[block] != offsets[block + 1] else ():
                for each in odd:
                    at = day.replace(hour=each, minute=minute, tzinfo=zone)
                    back = at.astimezone(datetime.UTC).astimezone(zone)
                    odd[each] += back.hour != each or at.utcoffset() != at.replace(fold=1).utcoffset()
    assert odd[hour] == 0 < odd[2]


def test_a_schedule_of_files_that_need_consent_holds_it(folder, prints, refused):
    file = str(folder / "nightly.toml")
    (folder / "run.toml").write_text(RUN.replace("workers = 0", 'to = "slurm"\nworkers = 2'))
    for command in (["--emit", "cron"], []):
        assert "the key cluster.to of a file starts programs" in refused("retrain", file, *command)
    for name in SCHEDULES:
        assert re.search("--trust|trust=True", prints("retrain", file, "--emit", name, "--trust"))
    (folder / "run.toml").write_text(RUN)
    (folder / "nightly.toml").write_text(FILE.replace("[gates]", 'home = "../elsewhere"\n[gates]'))
    assert "the key retrain.home of a file writes outside of" in refused("retrain", file)
    assert not (folder.parent / "elsewhere").exists()

# SPDX-License-Identifier: Apache-2.0
# Takes: wandb<0.22 mlflow-skinny prometheus_client tensorboard
"""What runs write for other programs is read by these programs: Prometheus' text by its client's parser, a file store by
MLflow's client, an offline run by W&B's datastore and messages, hyperparameters by TensorBoard's plugin.

Arguments: the build tree. Skips, with exit code 77, where the packages are not installed.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # newer clients ask for it
try:
    import prometheus_client.parser
    import wandb
    from mlflow.tracking import MlflowClient
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.plugins.hparams import plugin_data_pb2
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore
except ImportError as missing:
    print(f"skipped: {missing}; pip install 'wandb<0.22' mlflow-skinny prometheus_client tensorboard")
    sys.exit(77)

BUILD = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import exported  # noqa: E402

CONFIGURATION = {"lr": 0.05, "layers": 3, "note": exported.ARGUMENTS["note"], "deep": True}


def by_prometheus(root, place):
    count = 0
    for path, run, own in ((root / "all.prom", place, exported.OWN), (root / "all-critic.prom", place / "critic", exported.CRITIC)):
        found = {}
        for family in prometheus_client.parser.text_string_to_metric_families(path.read_text()):
            assert family.type == "gauge" and family.documentation, family
            for sample in family.samples:
                assert sample.labels["run"] == str(run), sample
                found[sample.name, sample.labels.get("name")] = sample.value
        for name, values in own.items():
            assert exported.same(found["orrery_metric", name], values[-1][1]), name
        assert (found["orrery_step", None], found["orrery_running", None]) == (5, 0)
        count += len(found)
    return f"Prometheus' parser read {count} samples"


def by_mlflow(root, fail):
    client = MlflowClient(tracking_uri=f"file://{root}/store")
    [experiment] = client.search_experiments()
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert runs.keys() == {"place", "critic"}, runs.keys()
    for name, own in (("place", exported.OWN), ("critic", exported.CRITIC)):
        run = runs[name]
        assert run.info.status == ("FAILED" if fail else "FINISHED"), run.info
        assert run.info.start_time <= run.info.end_time
        assert run.data.params == exported.ARGUMENTS | {"fail": str(fail).lower()}, run.data.params
        exported.check({tag: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, tag)]
                        for tag in run.data.metrics}, own)
    return f"MLflow's client read {sum(len(run.data.metrics) for run in runs.values())} metrics of 2 runs"


def offline_run(path):
    wandb._assert_is_internal_process = True
    store = DataStore()
    store.open_for_scan(str(path))
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        yield record.WhichOneof("record_type"), record


def by_wandb(place, fail):
    rows = 0
    for run, own in ((place, exported.OWN), (place / "critic", exported.CRITIC)):
        [path] = (run / "wandb").glob("offline-run-*/run-*.wandb")
        config, series, code = {}, collections.defaultdict(list), None
        for kind, record in offline_run(path):
            if kind == "run":
                assert (record.run.project, f"run-{record.run.run_id}") == ("made here", path.stem)
                assert record.run.start_time.seconds > 0
                config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            if kind == "config":
                config |= {item.key: json.loads(item.value_json) for item in record.config.update}
            if kind == "history":
                row = {item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
                assert row["_step"] == record.history.step.num
                for name, value in row.items():
                    series[name].append((row["_step"], value))
                rows += 1
            if kind == "exit":
                code = record.exit.exit_code
        assert config == CONFIGURATION | {"fail": fail}, config
        assert code == int(fail), code
        exported.check(series, own)
    return f"W&B's datastore read {rows} rows"


MEDIA = """
local orrery = require "orrery"
orrery.record("shown/grey", orrery.tensor { { 0.0, 1.0 }, { 0.5, 0.25 } }, { step = 6 })
orrery.record("spread", orrery.tensor { 0.0, 1.0, 1.0, 60.0 }, { step = 6, as = "histogram" })
orrery.record("said", "a text", { step = 6 })
"""


def media(root):
    """Images, histograms and texts."""
    script = root / "media.lua"
    script.write_text(MEDIA)
    subprocess.run([BUILD / "orrery", "run", *exported.words(root / "media", {"mlflow": root / "media store", "wandb": "media"}), script],
                   check=True, capture_output=True)
    client = MlflowClient(tracking_uri=f"file://{root}/media store")
    [run] = client.search_runs(["0"])
    assert run.data.tags["mlflow.loggedImages"] == "True", run.data.tags
    found = [each.path for folder in ("images", "histograms/spread", "texts/said") for each in client.list_artifacts(run.info.run_id, folder)]
    assert len(found) == 3 and found[0].startswith("images/shown~grey+step+6+timestamp+"), found
    [path] = (root / "media/wandb").glob("offline-run-*/run-*.wandb")
    records = list(offline_run(path))
    [uploaded] = [each.path for kind, record in records if kind == "files" for each in record.files.files]
    assert (path.parent / "files" / uploaded).is_file()
    rows = {item.nested_key[0]: json.loads(item.value_json) for kind, record in records if kind == "history" for item in record.history.item}
    assert rows["said"] == "a text" and rows["shown/grey"]["path"] == uploaded and rows["spread"]["_type"] == "histogram", rows
    return "an image, a histogram and a text in both"


def by_tensorboard(place, fail):
    read = EventMultiplexer().AddRunsFromDirectory(str(place)).Reload()
    contents = read.PluginRunToTagToContent("hparams")["."]
    start = plugin_data_pb2.HParamsPluginData.FromString(contents["_hparams_/session_start_info"]).session_start_info
    end = plugin_data_pb2.HParamsPluginData.FromString(contents["_hparams_/session_end_info"]).session_end_info
    found = {name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}
    assert found == CONFIGURATION | {"fail": fail}, found
    assert end.status == (2 if fail else 1) and start.start_time_secs <= end.end_time_secs
    return f"TensorBoard's plugin read {len(found)} hyperparameters"


with tempfile.TemporaryDirectory() as folder:
    for fail in (False, True):
        root = pathlib.Path(folder) / f"fail {fail}"
        place, script = root / "place", root / "train.lua"
        root.mkdir()
        script.write_text(exported.SCRIPT, encoding="utf-8")
        exports = {"prometheus": root / "all.prom", "mlflow": root / "store", "wandb": "made here"}
        done = subprocess.run([BUILD / "orrery", "run", "-n", "2", *exported.words(place, exports), script, *exported.given(fail)],
                              capture_output=True, text=True)
        assert done.returncode == int(fail), done.stderr
        print("; ".join((by_prometheus(root, place), by_mlflow(root, fail), by_wandb(place, fail), by_tensorboard(place, fail))))
    print(media(pathlib.Path(folder)))

# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/clusters.md, each on two hosts (network namespaces) with the files and the variables that its
platform sets: the digest of one process, and the next start after a blow goes on from the checkpoint.

Arguments: the build tree.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import BUILD, HERE, SETTINGS, SOURCE, orrery, session_members, wait_for
from two_hosts import NET, TAG, TwoHostsAlone, end_all, in_namespace

RECIPES = SOURCE / "examples/clusters"
INSTALLED = "/usr/share/orrery/examples/clusters"
TOKEN = "of this test, and of no other"
SMALL = ["training=TEXT", "steps=60", "every=10", "batch=16", "microbatches=4"]
# The host's own name and shared memory, the names of both, and a tree of files that only it has at some place.
ALONE = """hostname "$1" && mount -t tmpfs -o size=512m tmpfs /dev/shm && mount --bind "$2" /etc/hosts
if [ "$3" ]; then mount -t tmpfs tmpfs /opt && mkdir /opt/ml && mount --bind "$3" /opt/ml; fi
shift 3; exec "$@" """


def digest(text):
    found = re.findall(r"^digest ([0-9a-f]{32})$", text, re.MULTILINE)
    if len(found) != 1:
        raise AssertionError(f"{len(found)} digests:\n{text}")
    return found[0]


class Ended:
    def __init__(self, process):
        self.out, self.err = process.communicate(timeout=120)
        self.code = process.returncode


def saved(folder):
    """Whether there is a whole checkpoint: a manifest is written last. Any will do, since only the newest are kept."""
    return lambda: any(folder.glob("step-*/checkpoint.json"))


class Recipe(TwoHostsAlone):
    names = ("host-1", "host-2")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = pathlib.Path(cls.folder.name)
        (cls.place / "names").write_text("127.0.0.1 localhost\n" + "".join(
            f"{NET}.{n} {name}\n" for n, name in enumerate(cls.names, 1)))
        bin_of_test = cls.place / "bin"
        bin_of_test.mkdir()
        (bin_of_test / "orrery").symlink_to(BUILD / "orrery")
        (cls.place / "text").mkdir()
        (cls.place / "text/train.txt").write_text((SOURCE / "README.md").read_text())
        alone = orrery("run", RECIPES / "train.lua", *cls.small())
        cls.expected = digest(alone.out)

    @classmethod
    def small(cls):
        return [word.replace("TEXT", str(cls.place / "text")) for word in SMALL]

    def setUp(self):
        own = tempfile.TemporaryDirectory()
        self.addCleanup(own.cleanup)
        self.own = pathlib.Path(own.name)

    def start(self, n, command, ml="", **variables):
        """The command on host n, with no variable of a launcher but these."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORRERY_", "SLURM_", "OMPI_", "PMI"))}
        kept |= SETTINGS | {"PATH": f"{self.place}/bin:{os.environ['PATH']}"}
        kept |= {"ORRERY_THREADS": "1", "ORRERY_DEADLINE": "5"}
        process = subprocess.Popen(
            ["ip", "netns", "exec", f"{TAG}{n}", "unshare", "--uts", "--mount", "sh", "-c", ALONE, "host",
             self.names[n - 1], self.place / "names", ml, *map(str, command)],
            cwd=self.own, env=kept | variables, text=True, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(lambda: end_all(n))
        return process

    def strike(self, n, blow, *, once):
        """Signals a rank of host n once the condition holds: a checkpoint is there, for one that is to go on."""
        wait_for(once, 60)
        victims = [pid for pid in in_namespace(n)
                   if pathlib.Path(f"/proc/{pid}/exe").resolve() == (BUILD / "orrery").resolve()]
        os.kill(max(victims), blow)

    def check_goes_on(self, starts):
        """`starts` gives the jobs of both hosts. The second start takes up what the first one has saved."""
        first = starts()
        self.strike(2, signal.SIGKILL, once=saved(self.own / "checkpoints"))
        ended = [Ended(process) for process in first]
        self.assertEqual([e.code for e in ended], [75, 128 + signal.SIGKILL], [e.err for e in ended])
        again = [Ended(process) for process in starts()]
        self.assertEqual([e.code for e in again], [0, 0], [e.err for e in again])
        self.assertRegex(again[0].out, r"continuing after step \d+0\n")


def manifests(path):
    try:
        import yaml
    except ImportError as e:
        raise unittest.SkipTest("PyYAML is not installed") from e
    return list(yaml.safe_load_all(path.read_text()))


def pod_of(manifest, specs, kind):
    return manifest["spec"][specs][kind]["template"]["spec"]


class Kubernetes(Recipe, unittest.TestCase):
    names = ("orrery-master-0", "orrery-worker-0")

    def words(self, container, steps=60):
        """A container's command line, with the paths of this machine."""
        words = [*container["command"], *container["args"]]
        moved = [word.replace(INSTALLED, str(RECIPES)).replace("/data", str(self.own)) for word in words]
        return [*moved, *self.small(), f"steps={steps}"]

    def variables(self, container, pod, newer):
        """As the training operator sets them: of old RANK and WORLD_SIZE count pods, since 1.7 there are PET_*."""
        given = {v["name"]: v.get("value", TOKEN) for v in container["env"]}
        each = int(given["PET_NPROC_PER_NODE"])
        theirs = {"MASTER_ADDR": self.names[0], "MASTER_PORT": "23456", "RANK": str(pod),
                  "WORLD_SIZE": str(2 * each if newer else 2), "PYTHONUNBUFFERED": "1"}
        if newer:
            theirs |= {"PET_NNODES": "2", "PET_NODE_RANK": str(pod), "PET_MASTER_ADDR": self.names[0]}
        return theirs | given

    def test_pytorchjob(self):
        [manifest] = manifests(RECIPES / "kubernetes/pytorchjob.yaml")
        self.assertEqual((manifest["apiVersion"], manifest["kind"]), ("kubeflow.org/v1", "PyTorchJob"))
        kinds = manifest["spec"]["pytorchReplicaSpecs"]
        self.assertEqual([spec["replicas"] for spec in kinds.values()], [1, 1])
        containers = [pod_of(manifest, "pytorchReplicaSpecs", kind)["containers"][0] for kind in ("Master", "Worker")]
        self.assertEqual({c["name"] for c in containers}, {"pytorch"})

        def starts(newer, **more):
            return [self.start(pod + 1, self.words(container, **more), **self.variables(container, pod, newer))
                    for pod, container in enumerate(containers)]

        for newer in (False, True):
            with self.subTest(newer=newer):
                ended = [Ended(process) for process in starts(newer)]
                self.assertEqual([e.code for e in ended], [0, 0], [e.err for e in ended])
                self.assertEqual((digest(ended[0].out), ended[1].out), (self.expected, ""))
                self.assertTrue((self.own / "model.safetensors").exists())
                shutil.rmtree(self.own / "checkpoints")
        self.check_goes_on(lambda: starts(True, steps=1500))

    def test_mpijob(self):
        [manifest] = manifests(RECIPES / "kubernetes/mpijob.yaml")
        self.assertEqual((manifest["apiVersion"], manifest["kind"]), ("kubeflow.org/v2beta1", "MPIJob"))
        slots, workers = manifest["spec"]["slotsPerWorker"], manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
        (self.own / "hostfile").write_text("".join(f"{NET}.{n} slots={slots}\n" for n in range(1, workers + 1)))
        (self.own / "ssh").write_text(f"#!/bin/sh\nexec {sys.executable} {HERE}/namespace_shell.py {TAG} \"$@\"\n")
        (self.own / "ssh").chmod(0o755)
        container = pod_of(manifest, "mpiReplicaSpecs", "Launcher")["containers"][0]
        words = [word.replace("/etc/mpi", str(self.own)) for word in self.words(container)]
        found = {"PATH": f"{self.own}:{self.place}/bin:{os.environ['PATH']}"}
        ended = subprocess.run(words, cwd=self.own, capture_output=True, text=True, timeout=120,
                               env=os.environ | SETTINGS | found)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(digest(ended.stdout), self.expected)

    def test_what_is_missing_is_named(self):
        for missing, says in (("ORRERY_TOKEN", "ORRERY_TOKEN: a secret"), ("MASTER_PORT", "MASTER_PORT: where rank 0"),
                              ("RANK", "PET_NODE_RANK or RANK: which host")):
            given = {"MASTER_ADDR": self.names[0], "MASTER_PORT": "1", "RANK": "0", "WORLD_SIZE": "2",
                     "ORRERY_TOKEN": TOKEN}
            del given[missing]
            ended = Ended(self.start(1, [RECIPES / "ranks", "true"], **given))
            self.assertNotEqual(ended.code, 0)
            self.assertIn(says, ended.err)


@unittest.skipUnless(shutil.which("jq"), "jq is not installed")
class SageMaker(Recipe, unittest.TestCase):
    names = ("algo-1", "algo-2")

    def setUp(self):
        super().setUp()
        for host in self.names:
            for folder in ("input/config", "input/data/training", "input/data/checkpoints", "model", "output"):
                (self.own / host / folder).mkdir(parents=True)
            (self.own / host / "input/data/training/train.txt").write_text((self.place / "text/train.txt").read_text())
        # A channel of a file system is the same on all hosts.
        (self.own / "checkpoints").mkdir()

    def configure(self, hosts, hyperparameters):
        for host in hosts:
            config = self.own / host / "input/config"
            (config / "resourceconfig.json").write_text(json.dumps(
                {"current_host": host, "hosts": list(reversed(hosts)), "network_interface_name": "v0"}))
            (config / "hyperparameters.json").write_text(json.dumps(hyperparameters))

    def container(self, n, script=RECIPES / "train.lua", mounts=True, **variables):
        ml = self.own / self.names[n - 1]
        # The file system's channel, mounted where the container sees it.
        mount = f"mount --bind {self.own}/checkpoints /opt/ml/input/data/checkpoints && " if mounts else ""
        return self.start(n, ["sh", "-c", f"{mount}exec {RECIPES}/sagemaker/train train"], ml=ml,
                          PET_NPROC_PER_NODE="2", ORRERY_SCRIPT=str(script), TRAINING_JOB_NAME="orrery", **variables)

    def small_parameters(self, **more):
        given = dict(word.split("=") for word in SMALL if not word.startswith("training="))
        return given | {"sagemaker_program": '"train.lua"'} | more

    def failure(self, n):
        return (self.own / self.names[n - 1] / "output/failure").read_text()

    def test_two_hosts(self):
        self.configure(self.names, self.small_parameters())
        ended = [Ended(p) for p in [self.container(n, ORRERY_TOKEN=TOKEN) for n in (1, 2)]]
        self.assertEqual([e.code for e in ended], [0, 0], [e.err for e in ended])
        self.assertEqual(digest(ended[0].out), self.expected)
        self.assertTrue((self.own / "algo-1/model/model.safetensors").exists())
        self.assertFalse((self.own / "algo-1/output/failure").exists())

    def test_a_lost_host(self):
        self.configure(self.names, self.small_parameters(steps="1500"))
        self.check_goes_on(lambda: [self.container(n, ORRERY_TOKEN=TOKEN) for n in (1, 2)])
        self.assertRegex(self.failure(1), r"error: .*rank [23] .*\(exit code 75\)\n$")

    def test_one_host_has_a_folder_that_sagemaker_saves_and_is_stopped(self):
        for folder in ("algo-1/input/data/checkpoints", "algo-1/input/data/training/train.txt"):
            path = self.own / folder
            path.rmdir() if path.is_dir() else path.unlink()
        (self.own / "algo-1/input/data/training/it's a text.txt").write_text("no end " * 999)
        (self.own / "algo-1/checkpoints").mkdir()
        self.configure(self.names[:1], self.small_parameters(steps="1000000"))
        process = self.container(1, mounts=False)
        wait_for(saved(self.own / "algo-1/checkpoints"), 60)
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        ended = Ended(process)
        self.assertEqual(ended.code, 75, ended.err)
        self.assertLess(time.monotonic() - begun, 60)
        self.assertIn("(exit code 75)", self.failure(1))

    def test_errors_are_the_job_s_reason(self):
        for change, variables, says in (
                ({"lr": '"fast"'}, {"ORRERY_TOKEN": TOKEN}, "argument lr=fast: expected a number (exit code 2)"),
                ({"lrr": "1"}, {"ORRERY_TOKEN": TOKEN}, "argument 'lrr' is unknown (did you mean 'lr'?)"),
                ({"training": '"/nowhere; exit 9"'}, {"ORRERY_TOKEN": TOKEN}, "/nowhere; exit 9"),
                ({}, {}, "ORRERY_TOKEN is missing"),
                ({}, {"script": "/opt/none.lua"}, "there is no /opt/none.lua")):
            with self.subTest(says=says):
                self.configure(self.names, self.small_parameters(**change))
                ended = [Ended(p) for p in [self.container(n, **variables) for n in (1, 2)]]
                self.assertNotIn(0, [e.code for e in ended], [e.err for e in ended])
                self.assertIn(says, self.failure(1))
                self.assertLess(len(self.failure(1)), 1024)  # SageMaker shows no more


# A job that is queued again waits two minutes, unless it is asked for at once.
AGAIN = """for _ in {1..600}; do
              about=$(scontrol show job $job)
              [[ $about == *JobState=PENDING* && $about == *Restarts=1* ]] && break; sleep 0.1
            done
            scontrol update job=$job starttime=now"""


class Batch(unittest.TestCase):
    """Under a real Slurm of two hosts (slurm_box.sh)."""
    missing = [p for p in ("sbatch", "slurmctld", "slurmd", "munged", "unshare", "ip") if not shutil.which(p)]

    @classmethod
    def setUpClass(cls):
        if cls.missing:
            raise unittest.SkipTest(f"not installed: {', '.join(cls.missing)}")
        if os.geteuid() != 0:
            raise unittest.SkipTest("starting a Slurm needs root")
        up = cls.in_box("true")
        if up.returncode != 0:
            raise unittest.SkipTest(f"Slurm does not start here: {up.stderr[-300:]}")

    @staticmethod
    def in_box(script):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORRERY_", "SLURM_"))}
        kept |= {"SLURM_BOX_HOSTS": "2", "PATH": f"{BUILD}:{os.environ['PATH']}", "ORRERY_THREADS": "1"}
        process = subprocess.Popen(
            [HERE / "slurm_box.sh", "bash", "-c", script], text=True, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=kept | SETTINGS)
        try:
            out, err = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            for pid in session_members(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(script, process.returncode, out, err)

    def setUp(self):
        own = tempfile.TemporaryDirectory()
        self.addCleanup(own.cleanup)
        self.own = pathlib.Path(own.name)
        (self.own / "text").mkdir()
        (self.own / "text/train.txt").write_text((SOURCE / "README.md").read_text())
        small = " ".join(SMALL).replace("TEXT", f"{self.own}/text")
        self.words = f"{RECIPES}/train.lua {small} checkpoints={self.own}/checkpoints"
        self.expected = digest(orrery("run", *self.words.split()[:-1]).out)

    def batch(self, recipe, options, words, meanwhile):
        """What a batch job has printed; `meanwhile`: shell lines that know $job and `saved`: a checkpoint is there."""
        shutil.rmtree(self.own / "checkpoints", ignore_errors=True)
        (self.own / "out").unlink(missing_ok=True)
        done = self.in_box(f"""cd {self.own}
            job=$(sbatch --parsable {options} -o {self.own}/out {RECIPES}/slurm/{recipe} {self.words} {words})
            whole='checkpoints/step-*/checkpoint.json'
            saved() {{ for _ in {{1..600}}; do compgen -G "$whole" > /dev/null && return; sleep 0.05; done; }}
            {meanwhile}
            for _ in {{1..1200}}; do squeue -h -j $job -o %T | grep -q . || break; sleep 0.1; done
            scontrol show job $job""")
        return (self.own / "out").read_text(), done.stdout

    def test_each_has_the_digest_of_one_process(self):
        for recipe, options in (("one-host.sbatch", "-n 3"), ("many-hosts.sbatch", "")):
            with self.subTest(recipe=recipe):
                out, state = self.batch(recipe, options, "", "")
                self.assertIn("JobState=COMPLETED", state, out)
                self.assertEqual(digest(out), self.expected)
        self.assertRegex(state, r"NodeList=box\[1-2\]")

    # SIGUSR1 is what --signal sends before the time is over.
    def test_a_job_whose_time_is_over_is_queued_again_and_goes_on(self):
        for recipe, how in (("one-host.sbatch", "scancel --batch --signal=USR1 $job"),
                            ("many-hosts.sbatch", "scancel --signal=USR1 $job")):
            with self.subTest(recipe=recipe):
                out, state = self.batch(recipe, "", "steps=1500", f"saved; {how}; {AGAIN}")
                self.assertIn("JobState=COMPLETED", state, out)
                self.assertIn("Restarts=1", state)
                self.assertRegex(out, r"continuing after step \d+\n")
                self.assertEqual(len(re.findall("^digest", out, re.MULTILINE)), 1, out)

    def test_a_lost_rank(self):
        # The box has process ids of its own: no other job's rank is found.
        for recipe, again in (("one-host.sbatch", ""), ("many-hosts.sbatch", AGAIN)):
            with self.subTest(recipe=recipe):
                out, state = self.batch(recipe, "", "steps=1500", f"saved; kill -KILL $(pgrep -n -x orrery); {again}")
                self.assertIn("JobState=COMPLETED", state, out)
                self.assertIn(f"Restarts={1 if again else 0}", state)
                self.assertRegex(out, r"continuing after step \d+\n")

    def test_a_cancelled_job_is_not_queued_again(self):
        for recipe in ("one-host.sbatch", "many-hosts.sbatch"):
            with self.subTest(recipe=recipe):
                out, state = self.batch(recipe, "", "steps=1000000000", "saved; scancel $job")
                self.assertIn("JobState=CANCELLED", state, out)
                self.assertIn("Restarts=0", state)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

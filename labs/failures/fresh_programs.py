"""Programs of the fresh corpus: (name, how it runs, true reason or None, others that are as right, text).

Written after the classifier was frozen, and before its first verdict on any of them; see README.md, "Fresh corpora".
"""

from __future__ import annotations

PROGRAMS: list[tuple[str, str, str | None, tuple[str, ...], str]] = []


def add(name: str, kind: str, truth: str | None, text: str, *others: str) -> None:
    """Add a program."""
    PROGRAMS.append((name, kind, truth, others, text.strip("\n") + "\n"))


# Python and libraries that no recording had so far
add(
    "nx-path",
    "py",
    "incorrect_inputs",
    """
import networkx as nx
g = nx.Graph([(1, 2), (3, 4)])
print("nodes", len(g))
print(nx.shortest_path(g, 1, 4))
""",
    "program_error",
)
add(
    "nx-cycle",
    "py",
    "incorrect_inputs",
    """
import networkx as nx
d = nx.DiGraph([("prep", "train"), ("train", "eval"), ("eval", "prep")])
print("planning", d.number_of_nodes(), "stages")
print(list(nx.topological_sort(d)))
""",
    "program_error",
    "wrong_arguments",
)
add(
    "sympy-solve",
    "py",
    "numerical_error",
    """
from sympy import Matrix
a = Matrix([[1, 2], [2, 4]])
print("inverting")
print(a.inv())
""",
)
add(
    "sympy-parse",
    "py",
    "syntax_error",
    """
from sympy import sympify
for f in ["x**2", "x +* 2"]:
    print("force field", f)
    sympify(f)
""",
    "incorrect_inputs",
)
add(
    "statsmodels-singular",
    "py",
    "incorrect_inputs",
    """
import numpy as np
import statsmodels.api as sm
x = np.array([[1.0, np.nan], [2.0, 3.0], [1.0, 4.0]])
print("fitting")
print(sm.OLS([1, 2, 3], x, missing="raise").fit().params)
""",
    "numerical_error",
)
add(
    "marshmallow-load",
    "py",
    "wrong_arguments",
    """
from marshmallow import Schema, fields
class Run(Schema):
    lr = fields.Float(required=True)
    epochs = fields.Int(required=True)
print("reading settings")
print(Run().load({"lr": "fast"}))
""",
    "incorrect_inputs",
    "invalid_config",
)
add(
    "attrs-validator",
    "py",
    "wrong_arguments",
    """
import attrs
@attrs.define
class Cfg:
    layers: int = attrs.field(validator=attrs.validators.gt(0))
print(Cfg(layers=-2))
""",
)
add(
    "cattrs-structure",
    "py",
    "wrong_arguments",
    """
import attrs, cattrs
@attrs.define
class Cfg:
    steps: int
    name: str
print(cattrs.structure({"steps": "many", "name": "a"}, Cfg))
""",
    "incorrect_inputs",
)
add(
    "tenacity-giveup",
    "py",
    "network_error",
    """
import urllib.request
from tenacity import retry, stop_after_attempt
@retry(stop=stop_after_attempt(3))
def pull():
    print("trying mirror")
    urllib.request.urlopen("http://127.0.0.1:9/corpus.txt", timeout=2)
pull()
""",
)
add(
    "peewee-notable",
    "py",
    "incorrect_inputs",
    """
import peewee
db = peewee.SqliteDatabase("meta.db")
class Shot(peewee.Model):
    path = peewee.TextField()
    class Meta:
        database = db
print("listing shots")
print([s.path for s in Shot.select()])
""",
    "program_error",
)
add(
    "lxml-broken",
    "py",
    "incorrect_inputs",
    """
from lxml import etree
open("scene.xml", "w").write("<scene><object></scene>")
print(etree.parse("scene.xml"))
""",
    "syntax_error",
)
add(
    "shapely-wkt",
    "py",
    "incorrect_inputs",
    """
from shapely import wkt
for t in ["POINT (1 2)", "POLYGON ((0 0, 1 1)"]:
    print(wkt.loads(t).area)
""",
)
add(
    "msgspec-type",
    "py",
    "incorrect_inputs",
    """
import msgspec
class Row(msgspec.Struct):
    id: int
    score: float
for line in [b'{"id":1,"score":0.5}', b'{"id":"x","score":1}']:
    print(msgspec.json.decode(line, type=Row))
""",
    "wrong_arguments",
)
add(
    "xarray-dim",
    "py",
    "shape_error",
    """
import numpy as np, xarray as xr
a = xr.DataArray(np.zeros((3, 4)), dims=("t", "x"))
print("shape", a.shape)
b = xr.DataArray(np.zeros((3, 4)), dims=("t",))
""",
)
add(
    "xarray-open",
    "py",
    "incorrect_inputs",
    """
import xarray as xr
print("opening reanalysis")
ds = xr.open_dataset("era5_2020.nc")
""",
)
add(
    "einops-pattern",
    "py",
    "shape_error",
    """
import numpy as np
from einops import rearrange
x = np.zeros((8, 3, 30, 32))
print(rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=16, q=16).shape)
""",
)
add(
    "joblib-worker",
    "py",
    "program_error",
    """
from joblib import Parallel, delayed
def f(i):
    table = {0: "a", 1: "b"}
    return table[i]
print("fan out")
print(Parallel(n_jobs=2)(delayed(f)(i) for i in range(4)))
""",
)
add(
    "ruamel-tab",
    "py",
    "syntax_error",
    """
from ruamel.yaml import YAML
text = "model:\\n\\tdepth: 3\\n"
print("config", len(text), "bytes")
YAML().load(text)
""",
)
add(
    "simpy-negative",
    "py",
    "program_error",
    """
import simpy
env = simpy.Environment()
def feed(env):
    yield env.timeout(3 - 5)
env.process(feed(env))
env.run(10)
""",
    "wrong_arguments",
)
add(
    "astropy-units",
    "py",
    "program_error",
    """
from astropy import units as u
d = 3 * u.kpc
t = 2 * u.s
print("drift", d + t)
""",
    "shape_error",
    "incorrect_inputs",
)
add(
    "astropy-fits",
    "py",
    "incorrect_inputs",
    """
from astropy.io import fits
open("m31.fits", "wb").write(b"not a fits file" * 400)
print("reading plate")
fits.open("m31.fits")[0].data
""",
)
add(
    "biopython-format",
    "py",
    "incorrect_inputs",
    """
from Bio import SeqIO
open("reads.fastq", "w").write("@r1\\nACGT\\n+\\nII\\n")
print(sum(len(r) for r in SeqIO.parse("reads.fastq", "fastq")))
""",
)
add(
    "biopython-missing",
    "py",
    "incorrect_inputs",
    """
from Bio import SeqIO
for r in SeqIO.parse("genome.fa", "fasta"):
    print(r.id)
""",
)
add(
    "pyproj-crs",
    "py",
    "wrong_arguments",
    """
import pyproj
print("projecting")
pyproj.Transformer.from_crs("EPSG:4326", "EPSG:99999999")
""",
    "incorrect_inputs",
)
add(
    "trimesh-load",
    "py",
    "incorrect_inputs",
    """
import trimesh
print("loading part")
trimesh.load("part_0042.stl")
""",
)
add(
    "skimage-window",
    "py",
    "shape_error",
    """
import numpy as np
from skimage.metrics import structural_similarity
a = np.zeros((32, 32)); b = np.zeros((32, 30))
print("ssim", structural_similarity(a, b, data_range=1))
""",
)
add(
    "httpx-refused",
    "py",
    "network_error",
    """
import httpx
print("fetching labels")
httpx.get("http://127.0.0.1:9/labels.json")
""",
)
add(
    "loguru-catch",
    "py",
    "program_error",
    """
import sys
from loguru import logger
@logger.catch(reraise=True)
def step(n):
    logger.info("step {}", n)
    return [10, 20][n]
for n in range(4):
    step(n)
""",
)
add(
    "structlog-exit",
    "py",
    "permission_error",
    """
import sys, structlog
structlog.configure(processors=[structlog.processors.add_log_level, structlog.processors.format_exc_info,
                                structlog.processors.JSONRenderer()])
log = structlog.get_logger()
log.info("boot", ranks=1)
import os
os.setuid(65534)
try:
    open("/srv/token")
except OSError:
    log.exception("token unreadable")
    sys.exit(2)
""",
)
add(
    "jsonlogger-keyerror",
    "py",
    "program_error",
    """
import logging, sys
from pythonjsonlogger import jsonlogger
h = logging.StreamHandler()
h.setFormatter(jsonlogger.JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
log = logging.getLogger("trainer"); log.addHandler(h); log.setLevel("INFO")
log.info("epoch done", extra={"epoch": 1})
try:
    print({"loss": 1}["accuracy"])
except KeyError:
    log.critical("metrics broke", exc_info=True)
    sys.exit(1)
""",
)
add(
    "pyparsing-expr",
    "py",
    "syntax_error",
    """
from pyparsing import Word, nums, Literal, ParseException
rule = Word(nums) + Literal("->") + Word(nums)
for text in ["3 -> 4", "3 => 4"]:
    print(rule.parse_string(text, parse_all=True))
""",
    "incorrect_inputs",
)
add(
    "lark-grammar",
    "py",
    "syntax_error",
    """
from lark import Lark
g = Lark('start: "open" WORD\\n%import common.WORD\\n%ignore " "')
print(g.parse("open valve"))
print(g.parse("shut valve"))
""",
    "incorrect_inputs",
)
add(
    "rdflib-ttl",
    "py",
    "syntax_error",
    """
import rdflib
g = rdflib.Graph()
g.parse(data="@prefix a: <http://a/> . a:x a:y ;; a:z", format="turtle")
print(len(g))
""",
    "incorrect_inputs",
)
add(
    "deap-missing-attr",
    "py",
    "program_error",
    """
from deap import base, creator
creator.create("Fit", base.Fitness, weights=(1.0,))
box = base.Toolbox()
print("generation 0")
box.mate([1], [2])
""",
)
add(
    "jax-shape",
    "py",
    "shape_error",
    """
import jax.numpy as jnp
w = jnp.ones((16, 8)); x = jnp.ones((4, 12))
print("forward")
print((x @ w).sum())
""",
)
add(
    "jax-nan-debug",
    "py",
    "numerical_error",
    """
import jax, jax.numpy as jnp
jax.config.update("jax_debug_nans", True)
f = jax.jit(lambda x: jnp.log(x))
print(f(1.0))
print(f(-1.0))
""",
    "model_diverged",
)
add(
    "jax-leak",
    "py",
    "program_error",
    """
import jax, jax.numpy as jnp
kept = []
@jax.jit
def f(x):
    kept.append(x)
    return x * 2
f(3.0)
print(kept[0] + 1)
""",
)
add(
    "jax-static",
    "py",
    "program_error",
    """
import jax, jax.numpy as jnp
@jax.jit
def pad(x, n):
    return jnp.zeros(n).at[: x.shape[0]].set(x)
print(pad(jnp.ones(3), 5))
""",
    "shape_error",
)
add(
    "pandas-merge",
    "py",
    "incorrect_inputs",
    """
import pandas as pd
a = pd.DataFrame({"uid": [1]}); b = pd.DataFrame({"user": [1]})
print("joining", len(a), len(b))
print(a.merge(b, on="uid"))
""",
    "program_error",
)
add(
    "pandas-dates",
    "py",
    "incorrect_inputs",
    """
import pandas as pd
s = pd.Series(["2024-01-31", "2024-02-31"])
print(pd.to_datetime(s, format="%Y-%m-%d"))
""",
)
add(
    "scipy-ode",
    "py",
    "numerical_error",
    """
import numpy as np
from scipy.integrate import solve_ivp
sol = solve_ivp(lambda t, y: y ** 2, (0, 5), [1.0])
print(sol.message)
if not sol.success:
    raise ArithmeticError("integrator stalled at t=%.3f" % sol.t[-1])
""",
)
add(
    "scipy-mat",
    "py",
    "incorrect_inputs",
    """
from scipy.io import loadmat
open("eeg.mat", "wb").write(b"MATLAB?" * 30)
loadmat("eeg.mat")
""",
)
add(
    "own-shape-check",
    "py",
    "shape_error",
    """
class Batch:
    def __init__(self, rows): self.rows = rows
def collate(b, width):
    for r in b.rows:
        if len(r) != width:
            raise RuntimeError(f"row has {len(r)} features, the model takes {width}")
print("collating")
collate(Batch([[1, 2, 3], [1, 2]]), 3)
""",
    "incorrect_inputs",
    "program_error",
)
add(
    "own-watchdog",
    "py",
    "collective_timeout",
    """
import threading
b = threading.Barrier(2)
print("rank 0 waits for its peer at the sync point")
b.wait(timeout=0.5)
""",
    "peer_failed",
)
add(
    "own-budget",
    "py",
    "time_limit",
    """
import time, sys
start = time.monotonic()
for step in range(100):
    time.sleep(0.05)
    if time.monotonic() - start > 0.3:
        sys.exit(f"stopping at step {step}: the 0.3 s that this run was given are over")
""",
)
add(
    "own-exc-number",
    "py",
    "program_error",
    """
class E17(Exception):
    pass
def settle(t):
    if t > 2:
        raise E17(t)
    print("settled", t)
for t in range(5):
    settle(t)
""",
    "traceback",
)
add(
    "generator-stop",
    "py",
    "program_error",
    """
def shards():
    yield "s0"
    yield "s1"
it = shards()
for n in range(3):
    print("shard", next(it))
""",
)
add(
    "division-meter",
    "py",
    "program_error",
    """
hits, seen = 0, 0
print("scoring")
print("accuracy", hits / seen)
""",
    "numerical_error",
    "incorrect_inputs",
)
add(
    "unicode-file",
    "py",
    "incorrect_inputs",
    """
open("names.txt", "wb").write(b"Andr\\xe9\\n")
print("reading names")
print(open("names.txt", encoding="utf-8").read())
""",
)
add(
    "decompress",
    "py",
    "incorrect_inputs",
    """
import gzip
open("part.gz", "wb").write(gzip.compress(b"x" * 9000)[:40])
print(len(gzip.open("part.gz").read()))
""",
)
add(
    "argparse-choice",
    "py",
    "wrong_arguments",
    """
import argparse
p = argparse.ArgumentParser(prog="finetune")
p.add_argument("--optim", choices=["sgd", "lamb"])
p.parse_args(["--optim", "adan"])
""",
)
add(
    "env-missing",
    "py",
    "wrong_arguments",
    """
import os
print("starting worker")
root = os.environ["SHARD_ROOT"]
""",
    "program_error",
)
add(
    "import-moved",
    "py",
    "import_error",
    """
from collections import Mapping
print("never here")
""",
    "semantic_error",
)
add(
    "attr-removed",
    "py",
    "semantic_error",
    """
import numpy as np
print("numpy", np.__version__)
x = np.float(3)
""",
    "program_error",
)
add(
    "dlopen",
    "py",
    "cannot_load_libs",
    """
import ctypes
print("loading the solver")
ctypes.CDLL("libhypre_x.so.2")
""",
)
add(
    "segv",
    "py",
    "invalid_memory_access",
    """
import ctypes
print("mapping", flush=True)
ctypes.memset(16, 1, 8)
""",
)
add(
    "nofile",
    "py",
    "resource_limit",
    """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
held = []
for n in range(60):
    held.append(open("/dev/null"))
""",
)
add(
    "rlimit-as",
    "py",
    "cpu_out_of_memory",
    """
import resource
resource.setrlimit(resource.RLIMIT_AS, (400_000_000, 400_000_000))
print("building the index")
index = [bytes(50_000_000) for _ in range(20)]
""",
)
add(
    "full-device",
    "py",
    "disk_full",
    """
print("saving predictions")
with open("/dev/full", "w") as f:
    f.write("x" * 100_000)
""",
)
add(
    "port-taken",
    "py",
    "address_in_use",
    """
import socket
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket()
print("opening the metrics port")
b.bind(a.getsockname())
""",
)
add(
    "kill-self",
    "py",
    "process_killed",
    """
import os, signal
print("step 1", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""",
)
add(
    "term-self",
    "py",
    "cancelled",
    """
import os, signal
print("step 1", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
""",
)
add(
    "interrupt",
    "py",
    "cancelled",
    """
import os, signal, time
print("epoch 1", flush=True)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(1)
""",
)
add(
    "abort-self",
    "py",
    "core_dump",
    """
import os
print("allocating", flush=True)
os.abort()
""",
)
add(
    "nan-guard",
    "py",
    "model_diverged",
    """
import math
loss = 2.0
for step in range(9):
    loss = loss * 40
    if step == 5: loss = float("inf") - float("inf")
    print(f"iter {step} loss {loss}")
    if math.isnan(loss):
        raise SystemExit("aborting: loss went to nan at iter %d" % step)
""",
)
add(
    "ckpt-dir",
    "py",
    "checkpoint_error",
    """
import json
state = {"step": 100}
print("saving checkpoint at step 100")
def save_checkpoint(path):
    with open(path, "w") as f:
        json.dump(state, f)
save_checkpoint("runs/exp7/ckpt_100.json")
""",
    "incorrect_inputs",
)
add(
    "subproc-tool",
    "py",
    "command_not_found",
    """
import subprocess
print("transcoding")
subprocess.run(["ffmpeg_x", "-i", "a.mp4"], check=True)
""",
    "incorrect_inputs",
)
add(
    "pool-init",
    "py",
    "incorrect_inputs",
    """
import multiprocessing as mp
def init():
    open("vocab.bpe")
def f(x): return x
if __name__ == "__main__":
    import concurrent.futures as cf
    with cf.ProcessPoolExecutor(1, initializer=init) as ex:
        print(list(ex.map(f, [1])))
""",
)
add(
    "async-gather",
    "py",
    "network_error",
    """
import asyncio
async def ping(n):
    await asyncio.open_connection("127.0.0.1", 9)
async def main():
    print("pinging 3 replicas")
    await asyncio.gather(*(ping(n) for n in range(3)))
asyncio.run(main())
""",
)
add(
    "excgroup-mixed",
    "py",
    "program_error",
    """
import asyncio
async def decode(n):
    await asyncio.sleep(0.01 * n)
    return [1, 2][n]
async def main():
    async with asyncio.TaskGroup() as g:
        for n in range(4): g.create_task(decode(n))
asyncio.run(main())
""",
)
add(
    "rank-prefixed",
    "sh",
    "shape_error",
    r"""
for r in 0 1 2 3; do
  python3 - $r 2>&1 <<'EOF' | sed -u "s/^/[rank$r]: /" &
import sys, time
r = int(sys.argv[1])
for s in range(3): print("step", s, flush=True); time.sleep(0.05)
if r == 2:
    raise ValueError("gradient of layer 3 has shape (4, 4), peers have (4, 8)")
for s in range(3, 40): print("step", s, flush=True)
raise ConnectionError("peer went away during all-gather")
EOF
done
wait
exit 1
""",
)
add(
    "srun-labelled",
    "sh",
    "incorrect_inputs",
    r"""
for r in 0 1 2; do
  python3 - $r 2>&1 <<'EOF' | sed -u "s/^/$r: /" &
import sys, time
r = int(sys.argv[1])
print("reading slice", r, flush=True)
if r == 1:
    open("slices/1.npy")
for n in range(30): print("tile", n, flush=True)
EOF
done
wait
echo "srun: error: node07: task 1: Exited with exit code 1" >&2
exit 1
""",
)
add(
    "spawned-torchlike",
    "py",
    "program_error",
    """
import multiprocessing as mp, sys
def work(rank):
    print(f"[rank{rank}] ready", flush=True)
    if rank == 1:
        raise LookupError("expert 5 is not routed")
if __name__ == "__main__":
    ps = [mp.Process(target=work, args=(r,)) for r in range(2)]
    [p.start() for p in ps]; [p.join() for p in ps]
    bad = [p.exitcode for p in ps if p.exitcode]
    sys.exit(bad[0] if bad else 0)
""",
)
# torch, as of today
add(
    "torch-cat",
    "torch",
    "shape_error",
    """
import torch
print("torch", torch.__version__)
a = torch.zeros(2, 3); b = torch.zeros(2, 4)
print(torch.cat([a, b], dim=0).shape)
""",
)
add(
    "torch-embedding",
    "torch",
    "program_error",
    """
import torch
e = torch.nn.Embedding(10, 4)
print(e(torch.tensor([3, 11])))
""",
    "incorrect_inputs",
    "shape_error",
)
add(
    "torch-device",
    "torch",
    "cuda_init_failed",
    """
import torch
model = torch.nn.Linear(3, 3)
print("moving model")
model.to("cuda")
""",
    "semantic_error",
    "cuda_failure",
    "gpu_hardware_error",
    "cannot_load_libs",
)
add(
    "torch-backward",
    "torch",
    "program_error",
    """
import torch
w = torch.ones(3, requires_grad=True)
l = (w * 2)
l.backward()
""",
    "shape_error",
)
add(
    "torch-load",
    "torch",
    "incorrect_inputs",
    """
import torch
open("best.pt", "wb").write(b"PK\\x03\\x04 cut off")
torch.load("best.pt")
""",
)
add(
    "torch-state",
    "torch",
    "incorrect_inputs",
    """
import torch
a = torch.nn.Linear(4, 4)
b = torch.nn.Sequential(torch.nn.Linear(4, 4))
print("restoring")
b.load_state_dict(a.state_dict())
""",
    "shape_error",
    "checkpoint_error",
    "program_error",
)
add(
    "torch-gloo",
    "torch",
    "address_in_use",
    """
import socket, torch.distributed as dist
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
port = s.getsockname()[1]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
""",
    "network_error",
)
add(
    "torch-rendezvous",
    "torch",
    "collective_timeout",
    """
import datetime, torch.distributed as dist
print("joining as 0 of 2")
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29655", rank=0, world_size=2,
                        timeout=datetime.timedelta(seconds=2))
""",
    "peer_failed",
    "network_error",
)
add(
    "torch-optim",
    "torch",
    "wrong_arguments",
    """
import torch
m = torch.nn.Linear(2, 2)
torch.optim.AdamW(m.parameters(), lr=-0.1)
""",
)
add(
    "torch-emptyparams",
    "torch",
    "program_error",
    """
import torch
print("building optimizer")
torch.optim.SGD([], lr=0.1)
""",
    "wrong_arguments",
)
add(
    "torch-conv",
    "torch",
    "shape_error",
    """
import torch
net = torch.nn.Conv2d(3, 8, 3)
net(torch.zeros(1, 4, 16, 16))
""",
)
add(
    "torch-dtype",
    "torch",
    "shape_error",
    """
import torch
l = torch.nn.Linear(3, 3)
l(torch.zeros(2, 3, dtype=torch.float64))
""",
)
add(
    "gym-action",
    "torch",
    "program_error",
    """
import gymnasium as gym
env = gym.make("CartPole-v1")
env.reset()
print("acting")
env.step(7)
""",
    "incorrect_inputs",
    "wrong_arguments",
)
add(
    "gym-unknown",
    "torch",
    "wrong_arguments",
    """
import gymnasium as gym
print("building env")
gym.make("HalfCheetahPro-v9")
""",
    "import_error",
    "incorrect_inputs",
)
add(
    "sb3-space",
    "torch",
    "wrong_arguments",
    """
from stable_baselines3 import DDPG
DDPG("MlpPolicy", "CartPole-v1")
""",
    "program_error",
)
# shells and tools
add(
    "stage-chain",
    "sh",
    "incorrect_inputs",
    """
echo "[1/3] unpack"
unzip -q corpus.zip -d corpus
echo "[2/3] tokenise"
ls corpus/*.txt > files.lst
echo "[3/3] train"
test -s files.lst || exit 3
""",
)
add(
    "set-e-grep",
    "sh",
    "incorrect_inputs",
    """
set -e
echo "picking nodes"
grep -c gpu hosts.allow.list
echo unreachable
""",
)
add(
    "quota-words",
    "sh",
    "disk_quota",
    """
echo "writing step_4000.bin"
echo "cp: error writing '/home/u7/step_4000.bin': Disk quota exceeded" >&2
exit 1
""",
)
add(
    "noexec",
    "sh",
    "permission_error",
    """
printf '#!/bin/sh\\necho hi\\n' > launch.sh
echo "launching"
./launch.sh
""",
)
add(
    "typo-cmd",
    "sh",
    "command_not_found",
    """
module_x load cuda
nvidia-smy
""",
)
add(
    "bad-shebang",
    "sh",
    "command_not_found",
    """
printf '#!/usr/bin/pythonx3\\nprint(1)\\n' > go; chmod +x go
./go
""",
    "incorrect_inputs",
    "launch_failed",
)
add(
    "unclosed-if",
    "sh",
    "syntax_error",
    """
echo start
if [ -d data ]; then
  echo yes
""",
)
add(
    "sort-key",
    "sh",
    "wrong_arguments",
    """
echo b a | tr ' ' '\\n' > w
sort -k 0 w
""",
)
add(
    "rm-missing",
    "sh",
    "incorrect_inputs",
    """
set -e
rm old_run/lock
""",
)
add(
    "mkdir-file",
    "sh",
    "incorrect_inputs",
    """
set -e
touch out
mkdir -p out/ckpt
""",
    "program_error",
    "storage_error",
    "permission_error",
)
add(
    "curl-404",
    "sh",
    "network_error",
    """
set -e
echo "downloading weights"
curl -sSf -o w.bin http://127.0.0.1:9/w.bin
""",
)
add(
    "timeout-1",
    "sh",
    "time_limit",
    """
echo "searching"
timeout 0.3 sleep 5
""",
)
add(
    "ulimit-v",
    "sh",
    "cpu_out_of_memory",
    """
ulimit -v 300000
python3 -c "print('alloc'); x = bytearray(900_000_000)"
""",
)
add(
    "segv-bash",
    "sh",
    "invalid_memory_access",
    """
echo "render"
bash -c 'kill -SEGV $$'
""",
)
add(
    "patch-fails",
    "sh",
    "incorrect_inputs",
    """
printf 'a\\n' > f
printf -- '--- f\\n+++ f\\n@@ -1 +1 @@\\n-b\\n+c\\n' | patch -p0 f
""",
    "program_error",
)
add(
    "git-detached",
    "sh",
    "incorrect_inputs",
    """
git init -q r && cd r
git checkout release-4
""",
    "wrong_arguments",
)
add(
    "make-recipe",
    "sh",
    "incorrect_inputs",
    """
printf 'out.csv: raw.csv\\n\\tcp raw.csv out.csv\\n' > Makefile
make out.csv
""",
    "program_error",
)
add(
    "make-cc",
    "sh",
    "compiler_error",
    """
printf 'int main(void){ retrun 0; }\\n' > m.c
printf 'm: m.c\\n\\tcc -o m m.c\\n' > Makefile
make m
""",
)
add(
    "link-missing",
    "sh",
    "compiler_error",
    """
printf 'double solve(double); int main(void){ return (int)solve(2); }\\n' > m.c
cc -o m m.c
""",
)
add(
    "header-missing",
    "sh",
    "compiler_error",
    """
printf '#include <netcdf_par_x.h>\\nint main(void){return 0;}\\n' > m.c
cc -c m.c
""",
    "incorrect_inputs",
)
add(
    "pip-none",
    "sh",
    "incorrect_inputs",
    """
python3 -m pip install --no-index -q flash-attn-x
""",
    "import_error",
    "network_error",
    "semantic_error",
    "install_failed",
)
add(
    "slurm-oom-word",
    "sh",
    "cpu_out_of_memory",
    """
echo "batch 88"
echo "slurmstepd: error: Detected 1 oom_kill event in StepId=912.batch. Some of the step tasks have been OOM Killed." >&2
exit 137
""",
)
add(
    "slurm-limit-word",
    "sh",
    "time_limit",
    """
echo "iter 5000"
echo "slurmstepd: error: *** JOB 912 ON gpu3 CANCELLED AT 2026-11-25T03:00:00 DUE TO TIME LIMIT ***" >&2
exit 143
""",
)
add(
    "yarn-memory-word",
    "sh",
    "cpu_out_of_memory",
    """
echo "Container [pid=77,containerID=container_1_0001_01_000002] is running 5MB beyond the 'PHYSICAL' memory limit."
echo "Killing container." ; exit 143
""",
)
# C and C++
add(
    "c-perror",
    "c",
    "incorrect_inputs",
    """
#include <stdio.h>
int main(void){ FILE *f = fopen("forcing.grb", "rb"); if(!f){ perror("forcing.grb"); return 2; } return 0; }
""",
)
add(
    "c-assert",
    "c",
    "program_error",
    """
#include <assert.h>
int main(void){ int cells = 7; assert(cells % 2 == 0); return 0; }
""",
    "core_dump",
)
add(
    "c-null",
    "c",
    "invalid_memory_access",
    """
#include <stdio.h>
int main(void){ volatile int *p = 0; puts("sweep 1"); fflush(stdout); return *p; }
""",
)
add(
    "c-fpe",
    "c",
    "numerical_error",
    """
#include <stdio.h>
int main(int c, char **v){ volatile int z = c - 1; puts("norm"); fflush(stdout); return 4 / z; }
""",
    "program_error",
)
add(
    "c-own-exit",
    "c",
    "wrong_arguments",
    """
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v){ if(c < 3){ fprintf(stderr, "usage: lbm <grid> <steps>\\n"); exit(64); } return 0; }
""",
)
add(
    "c-smash",
    "c",
    "invalid_memory_access",
    """
#include <string.h>
#include <stdio.h>
void f(const char *s){ char b[8]; strcpy(b, s); puts(b); }
int main(int c, char **v){ char big[200]; memset(big, 'a', 199); big[199] = 0; f(big); return 0; }
""",
    "core_dump",
)
add(
    "cpp-map-at",
    "cpp",
    "program_error",
    """
#include <map>
#include <string>
#include <iostream>
int main(){ std::map<std::string,int> m{{"a",1}}; std::cout << "lookup" << std::endl; return m.at("b"); }
""",
    "core_dump",
)
add(
    "cpp-own-type",
    "cpp",
    "program_error",
    """
#include <iostream>
struct Desync { int at; };
int main(){ std::cout << "tick 4" << std::endl; throw Desync{4}; }
""",
    "core_dump",
    "traceback",
)
add(
    "cpp-stream",
    "cpp",
    "incorrect_inputs",
    """
#include <fstream>
#include <iostream>
int main(){ std::ifstream f; f.exceptions(std::ifstream::failbit); std::cout << "mesh" << std::endl; f.open("wing.msh"); }
""",
    "program_error",
    "core_dump",
)
add(
    "cpp-filesystem",
    "cpp",
    "incorrect_inputs",
    """
#include <filesystem>
#include <iostream>
int main(){ std::cout << "scan" << std::endl; for(auto &p : std::filesystem::directory_iterator("frames")) std::cout << p; }
""",
)
add(
    "cpp-thread",
    "cpp",
    "program_error",
    """
#include <thread>
int main(){ std::thread t([]{}); }
""",
    "core_dump",
)
add(
    "cpp-message",
    "cpp",
    "numerical_error",
    """
#include <stdexcept>
#include <iostream>
int main(){ std::cout << "newton" << std::endl; throw std::runtime_error("Newton iteration did not converge after 50 steps"); }
""",
)
add(
    "cpp-errno",
    "cpp",
    "permission_error",
    """
#include <system_error>
#include <iostream>
int main(){ std::cout << "open" << std::endl; throw std::system_error(13, std::generic_category(), "result store"); }
""",
)
add(
    "cpp-asan",
    "asan",
    "invalid_memory_access",
    """
#include <vector>
int main(){ int *p = new int[4]; delete[] p; return p[1]; }
""",
)
add(
    "cpp-template",
    "cpp",
    "compiler_error",
    """
#include <vector>
#include <algorithm>
struct P { int x; };
int main(){ std::vector<P> v(3); std::sort(v.begin(), v.end()); }
""",
)
# Rust, Go, Java, JavaScript
add(
    "rs-result",
    "rs",
    "incorrect_inputs",
    """
use std::fs;
fn main() -> Result<(), std::io::Error> { println!("atoms"); let t = fs::read_to_string("atoms.pdb")?; println!("{}", t.len()); Ok(()) }
""",
)
add(
    "rs-parse",
    "rs",
    "incorrect_inputs",
    """
fn main() { let v: Vec<f64> = "1.5,abc".split(',').map(|x| x.parse().unwrap()).collect(); println!("{:?}", v); }
""",
    "program_error",
)
add(
    "rs-expect-none",
    "rs",
    "program_error",
    """
fn main() { let m: std::collections::HashMap<&str, i32> = Default::default(); println!("go"); m.get("seed").expect("seed was never set"); }
""",
    "wrong_arguments",
)
add(
    "rs-overflow",
    "rs",
    "program_error",
    """
fn main() { let n: u8 = std::env::args().count() as u8; println!("{}", n); let v = [0u8; 2]; let i = (n + 4) as usize; println!("{}", v[i]); }
""",
)
add(
    "rs-unimplemented",
    "rs",
    "program_error",
    """
fn rotate(axis: u8) { match axis { 0 => println!("x"), _ => todo!("axis {}", axis) } } fn main() { rotate(0); rotate(1); }
""",
)
add(
    "rs-perm",
    "rs",
    "permission_error",
    """
fn main() { println!("lock"); unsafe { setuid(65534); } std::fs::File::create("/srv/lock").unwrap(); } extern "C" { fn setuid(u: u32) -> i32; }
""",
)
add(
    "rs-types",
    "rs",
    "compiler_error",
    """
fn main() { let x: Vec<i32> = vec![1]; let y: String = x; println!("{}", y); }
""",
)
add(
    "go-type-assert",
    "go",
    "program_error",
    """
package main
import "fmt"
func main() { var v any = 3; fmt.Println("cast"); fmt.Println(v.(string)) }
""",
)
add(
    "go-own",
    "go",
    "program_error",
    """
package main
import ("errors"; "fmt")
func main() { fmt.Println("phase 1"); panic(errors.New("epoch counter ran backwards")) }
""",
)
add(
    "go-closed",
    "go",
    "program_error",
    """
package main
func main() { c := make(chan int); close(c); c <- 1 }
""",
)
add(
    "go-exit-msg",
    "go",
    "incorrect_inputs",
    """
package main
import ("fmt"; "os")
func main() { if _, err := os.Stat("manifest.yaml"); err != nil { fmt.Fprintln(os.Stderr, "manifest:", err); os.Exit(4) } }
""",
)
add(
    "go-listen",
    "go",
    "address_in_use",
    """
package main
import ("log"; "net")
func main() { a, _ := net.Listen("tcp", "127.0.0.1:0"); log.Println("exporter"); _, err := net.Listen("tcp", a.Addr().String()); log.Fatal(err) }
""",
)
add(
    "go-unused",
    "go",
    "compiler_error",
    """
package main
import "os"
func main() { }
""",
)
add(
    "java-own",
    "java",
    "program_error",
    """
public class Main { static class Skew extends RuntimeException { Skew(String m){ super(m); } }
  public static void main(String[] a){ System.out.println("join"); throw new Skew("left side is 9 times the right"); } }
""",
    "traceback",
)
add(
    "java-bounds",
    "java",
    "program_error",
    """
public class Main { public static void main(String[] a){ int[] x = new int[3]; System.out.println("fill"); x[3] = 1; } }
""",
)
add(
    "java-cast",
    "java",
    "program_error",
    """
public class Main { public static void main(String[] a){ Object o = "7"; Integer n = (Integer) o; System.out.println(n); } }
""",
)
add(
    "java-missing",
    "java",
    "incorrect_inputs",
    """
import java.util.Scanner; import java.io.File;
public class Main { public static void main(String[] a) throws Exception { System.out.println("rows"); new Scanner(new File("rows.tsv")); } }
""",
)
add(
    "java-date",
    "java",
    "incorrect_inputs",
    """
import java.time.LocalDate;
public class Main { public static void main(String[] a){ System.out.println(LocalDate.parse("2024-02-30")); } }
""",
    "program_error",
)
add(
    "java-noclass",
    "java",
    "import_error",
    """
public class Main { public static void main(String[] a) throws Exception { System.out.println("driver"); Class.forName("org.postgresql.Driver"); } }
""",
)
add(
    "java-exit",
    "java",
    "wrong_arguments",
    """
public class Main { public static void main(String[] a){ if (a.length == 0){ System.err.println("Missing required option: --input"); System.exit(2); } } }
""",
)
add(
    "java-symbol",
    "java",
    "compiler_error",
    """
public class Main { public static void main(String[] a){ Sytem.out.println("x"); } }
""",
)
add(
    "js-undefined",
    "js",
    "program_error",
    """
const rows = [{id: 1}];
console.log("rows", rows.length);
rows.forEach(r => console.log(r.tags.join(",")));
""",
)
add(
    "js-own",
    "js",
    "program_error",
    """
class QuorumLost extends Error { constructor(n) { super(`only ${n} of 5 voters`); this.name = "QuorumLost"; } }
console.log("electing");
throw new QuorumLost(2);
""",
    "traceback",
    "peer_failed",
)
add(
    "js-reject-plain",
    "js",
    "program_error",
    """
console.log("start");
Promise.reject(new Error("ledger is not balanced"));
""",
    "traceback",
)
add(
    "js-module",
    "js",
    "import_error",
    """
const sharp = require("sharp-x");
""",
)
add(
    "js-parse",
    "js",
    "incorrect_inputs",
    """
const fs = require("fs");
fs.writeFileSync("c.json", "{\\"a\\": 1,}");
console.log(JSON.parse(fs.readFileSync("c.json")));
""",
    "syntax_error",
)
add(
    "js-eacces",
    "js",
    "permission_error",
    """
process.setuid(65534);
require("fs").writeFileSync("/srv/a", "x");
""",
)
add(
    "js-port",
    "js",
    "address_in_use",
    """
const net = require("net");
const a = net.createServer().listen(0, "127.0.0.1", () => {
  console.log("first up");
  net.createServer().listen(a.address().port, "127.0.0.1");
});
""",
)
add(
    "js-pino",
    "js",
    "network_error",
    """
const http = require("http");
http.get("http://127.0.0.1:9/", () => {}).on("error", e => {
  console.log(JSON.stringify({level: 60, time: 1, msg: "cannot reach scheduler", err: {type: "Error", message: e.message}}));
  process.exit(1);
});
""",
)
# Perl, Lua, Ruby, PHP, OCaml, R, awk
add(
    "pl-own",
    "pl",
    "program_error",
    """
print "merge\\n";
my ($a, $b) = (3, 4);
die "histograms differ in width: $a and $b\\n" if $a != $b;
""",
    "shape_error",
    "incorrect_inputs",
    "traceback",
)
add(
    "pl-undef-sub",
    "pl",
    "program_error",
    """
print "go\\n"; normalise(3);
""",
)
add(
    "pl-openfail",
    "pl",
    "incorrect_inputs",
    """
open(my $f, '<', 'spectra.dat') || die "Cannot open spectra.dat: $!";
""",
)
add(
    "pl-nomod",
    "pl",
    "import_error",
    """
use Statistics::Zigzag;
print 1;
""",
)
add(
    "lua-arith",
    "lua",
    "program_error",
    """
local cfg = {}
print("scale")
print(cfg.gain * 2)
""",
)
add(
    "lua-assert-open",
    "lua",
    "incorrect_inputs",
    """
print("load")
local f = assert(io.open("weights.lua.bin", "rb"))
""",
)
add(
    "lua-own",
    "lua",
    "program_error",
    """
print("relax")
error({code = 3})
""",
    "traceback",
    "no_signature",
)
add(
    "rb-keyerror",
    "rb",
    "program_error",
    """
puts "run"
h = {a: 1}
h.fetch(:b)
""",
)
add(
    "rb-own",
    "rb",
    "program_error",
    """
class Drift < RuntimeError; end
puts "tick"
raise Drift, "clock is 40 ms off"
""",
    "traceback",
)
add(
    "rb-require",
    "rb",
    "import_error",
    """
require "numo_x"
""",
)
add(
    "rb-json",
    "rb",
    "incorrect_inputs",
    """
require "json"
JSON.parse("[1, 2")
""",
    "syntax_error",
)
add(
    "php-method",
    "php",
    "program_error",
    """
<?php
$x = null;
echo "go\\n";
$x->run();
""",
)
add(
    "php-file",
    "php",
    "incorrect_inputs",
    """
<?php
$f = fopen("in.csv", "r");
if (!$f) { fwrite(STDERR, "in.csv is not there\\n"); exit(3); }
""",
)
add(
    "ml-invalid",
    "ml",
    "program_error",
    """
let () = print_endline "slice"; ignore (Array.sub [|1;2|] 1 5)
""",
)
add(
    "ml-int",
    "ml",
    "incorrect_inputs",
    """
let () = print_endline "parse"; Printf.printf "%d" (int_of_string "4 2")
""",
    "program_error",
)
add(
    "ml-own",
    "ml",
    "program_error",
    """
exception Torn of int
let () = print_endline "sew"; raise (Torn 3)
""",
    "traceback",
)
add(
    "ml-type",
    "ml",
    "compiler_error",
    """
let f x = x + 1
let () = print_int (f "3")
""",
)
add(
    "r-own",
    "R",
    "program_error",
    """
cat("calibrating\\n")
stop("knots must increase")
""",
    "traceback",
    "incorrect_inputs",
    "wrong_arguments",
)
add(
    "r-missingfile",
    "R",
    "incorrect_inputs",
    """
x <- readRDS("fit.rds")
""",
)
add(
    "r-subscript",
    "R",
    "program_error",
    """
x <- list(a = 1)
cat("pick\\n")
x[[3]]
""",
)
add(
    "r-matmul",
    "R",
    "shape_error",
    """
a <- matrix(1, 2, 3); b <- matrix(1, 2, 3)
print(a %*% b)
""",
)
add(
    "r-parse",
    "R",
    "syntax_error",
    """
x <- c(1, 2
y <- 3
""",
)
add(
    "awk-func",
    "awk",
    "program_error",
    """
BEGIN { print "x"; print smooth(3) }
""",
    "syntax_error",
)
add(
    "awk-syntax",
    "awk",
    "syntax_error",
    """
BEGIN { print "x" ; for (i=0 i<3; i++) print i }
""",
)
# what ends well, whatever it prints
add(
    "ok-handled",
    "py",
    None,
    """
import traceback
for shard in range(3):
    try:
        if shard == 1: raise OSError("shard 1 is damaged")
    except OSError:
        traceback.print_exc()
        print("skipping shard 1")
print("3 shards, 1 skipped")
""",
)
add(
    "ok-handled-last",
    "py",
    None,
    """
import traceback
print("all metrics written")
try:
    raise RuntimeError("could not post to the dashboard")
except RuntimeError:
    traceback.print_exc()
print("bye")
""",
)
add(
    "ok-atexit",
    "py",
    None,
    """
import atexit
@atexit.register
def bye():
    print("cleanup finished")
class T:
    def __del__(self): raise RuntimeError("handle already closed")
T()
print("accuracy 0.93")
""",
)
add(
    "ok-thread",
    "py",
    None,
    """
import threading
def beat(): raise ConnectionError("heartbeat refused")
t = threading.Thread(target=beat, name="heartbeat"); t.start(); t.join()
for e in range(6): print("epoch", e, "acc", 0.5 + e / 20)
print("model saved")
""",
)
add(
    "ok-retry",
    "py",
    None,
    """
for attempt in range(4):
    if attempt < 3:
        print(f"ERROR fetch failed: timeout (attempt {attempt + 1} of 5)")
    else:
        print("fetched 10 files")
""",
)
add(
    "ok-warnings",
    "py",
    None,
    """
import warnings
warnings.warn("overflow encountered in exp", RuntimeWarning)
warnings.warn("this will be an Error in 3.0", DeprecationWarning)
print("posterior mean 0.2")
""",
)
add(
    "ok-counts",
    "py",
    None,
    """
print("errors=0 failures=0 exceptions=0 timeouts=0")
print("0 failed, 18 passed")
print("word error rate 0.041")
""",
)
add(
    "ok-help",
    "py",
    None,
    """
print("Common causes of 'CUDA out of memory': batch too large, memory leak, other jobs on the GPU")
print("If you see 'Permission denied', check the mount.")
print("report written")
""",
)
add(
    "ok-logexception",
    "py",
    None,
    """
import logging
logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
try:
    {}["plot"]
except KeyError:
    logging.exception("no plot this time")
logging.warning("continuing without plots")
print("table 3 rows")
""",
)
add(
    "ok-json-error-level",
    "py",
    None,
    """
import json
print(json.dumps({"level": "error", "event": "replica 2 slow", "err": "deadline"}))
print(json.dumps({"level": "info", "event": "replica 2 back"}))
print(json.dumps({"level": "info", "event": "finished", "rows": 10}))
""",
)
add(
    "ok-asserts",
    "py",
    None,
    """
def test_raises_value_error(): pass
print("test_raises_value_error ... ok")
print("test_out_of_memory_is_reported ... ok")
print("Ran 2 tests in 0.001s")
print("OK")
""",
)
add(
    "ok-progress",
    "py",
    None,
    """
for i in range(50):
    print(f"it {i} loss {1 / (i + 1):.4f} nan_count 0 overflow skipped 0")
print("done")
""",
)
add(
    "ok-subproc",
    "py",
    None,
    """
import subprocess
r = subprocess.run(["python3", "-c", "import nothing_here"], capture_output=True, text=True)
print("probe:", r.stderr.splitlines()[-1])
print("probe failed as expected, using the fallback")
""",
)
add(
    "ok-async",
    "py",
    None,
    """
import asyncio
async def bad(): raise ValueError("lost one probe")
async def main():
    r = await asyncio.gather(bad(), asyncio.sleep(0), return_exceptions=True)
    print("results", r)
    print("2 probes, 1 bad")
asyncio.run(main())
""",
)
add(
    "ok-loguru",
    "py",
    None,
    """
from loguru import logger
@logger.catch
def f(): return 1 / 0
f()
logger.info("went on without f")
logger.success("run complete")
""",
)
add(
    "ok-tenacity",
    "py",
    None,
    """
from tenacity import retry, stop_after_attempt
n = 0
@retry(stop=stop_after_attempt(5))
def pull():
    global n; n += 1
    print("pull", n)
    if n < 3: raise ConnectionResetError("reset by peer")
pull()
print("pulled")
""",
)
add(
    "ok-pool",
    "py",
    None,
    """
from concurrent.futures import ThreadPoolExecutor
def f(i):
    if i == 2: raise IndexError("tile 2")
    return i
with ThreadPoolExecutor(2) as ex:
    for fut in [ex.submit(f, i) for i in range(4)]:
        try: print("tile", fut.result())
        except IndexError as e: print("Traceback (most recent call last): omitted;", "IndexError:", e)
print("mosaic with 3 tiles")
""",
)
add(
    "ok-stderr-mix",
    "py",
    None,
    """
import sys
print("E tensorflow-like: could not find cuda drivers on your machine, GPU will not be used.", file=sys.stderr)
print("W failed to load plugin; ignoring", file=sys.stderr)
print("trained on CPU")
""",
)
add(
    "ok-nx",
    "py",
    None,
    """
import networkx as nx
g = nx.path_graph(3)
try: nx.shortest_path(g, 0, 9)
except nx.NetworkXException as e: print("no path:", type(e).__name__, e)
print("components", nx.number_connected_components(g))
""",
)
add(
    "ok-xarray",
    "py",
    None,
    """
import xarray as xr, traceback
try: xr.open_dataset("none.nc")
except Exception: traceback.print_exc()
print("using climatology instead")
print("mean 3.1")
""",
)
add(
    "ok-jax",
    "py",
    None,
    """
import jax.numpy as jnp
try: jnp.ones((2, 3)) @ jnp.ones((2, 3))
except TypeError as e: print("as expected:", e)
print(jnp.ones(3).sum())
""",
)
add(
    "ok-torch-warn",
    "torch",
    None,
    """
import torch
x = torch.tensor([1.0, float("nan")])
print("nan in input, replaced", torch.nan_to_num(x).sum().item())
try: torch.zeros(2, 3) @ torch.zeros(2, 3)
except RuntimeError as e: print("caught:", e)
print("final loss 0.1")
""",
)
add(
    "ok-sb3-like",
    "torch",
    None,
    """
import gymnasium as gym
env = gym.make("CartPole-v1")
env.reset(seed=0)
try: env.step(9)
except Exception as e: print("bad action refused:", type(e).__name__)
print("episode reward 12")
""",
)
add(
    "ok-or-true",
    "sh",
    None,
    """
ls /nowhere || true
cat missing.cfg 2>&1 || echo "using defaults"
echo "finished"
""",
)
add(
    "ok-tar-warn",
    "sh",
    None,
    """
echo "tar: Removing leading '/' from member names"
echo "tar: file changed as we read it"
echo "archive complete"
""",
)
add(
    "ok-grep-none",
    "sh",
    None,
    """
printf 'a\\nb\\n' > log
if grep -q "Segmentation fault" log; then echo "crashed"; else echo "no crash found"; fi
""",
)
add(
    "ok-kill-helper",
    "sh",
    None,
    """
sleep 30 & h=$!
echo "helper $h"
kill -9 $h
wait $h 2>/dev/null
echo "helper stopped, results kept"
""",
)
add(
    "ok-timeout-probe",
    "sh",
    None,
    """
timeout 0.2 sleep 3 || echo "probe timed out, fine"
echo "42 hosts answered"
""",
)
add(
    "ok-set-x",
    "sh",
    None,
    """
set -x
false || :
test -e /nope || echo "not there, creating"
echo ok
""",
)
add(
    "ok-make-ignore",
    "sh",
    None,
    """
printf 'all:\\n\\t-rm none.o\\n\\techo built\\n' > Makefile
make all
""",
)
add(
    "ok-gcc-warn",
    "c",
    None,
    """
#include <stdio.h>
int f(int x){ int unused_error = 3; return x; }
int main(void){ printf("max error 1e-9 after 40 iterations\\n"); return 0; }
""",
)
add(
    "ok-cpp-caught",
    "cpp",
    None,
    """
#include <stdexcept>
#include <iostream>
int main(){ try { throw std::out_of_range("cell 9"); } catch(const std::exception &e){ std::cerr << "exception: " << e.what() << ", clamped\\n"; }
  std::cout << "residual 1e-8" << std::endl; }
""",
)
add(
    "ok-rs-catch",
    "rs",
    None,
    """
use std::panic;
fn main() { let r = panic::catch_unwind(|| { panic!("probe") }); println!("caught {}", r.is_err()); println!("12 rows"); for i in 0..3 { println!("row {}", i); } }
""",
)
add(
    "ok-rs-result",
    "rs",
    None,
    """
fn main() { match "x".parse::<i32>() { Ok(_) => {}, Err(e) => eprintln!("Error: {} (row skipped)", e) } println!("2 rows kept"); }
""",
)
add(
    "ok-go-recover",
    "go",
    None,
    """
package main
import ("fmt"; "log")
func safe() { defer func() { if r := recover(); r != nil { log.Println("recovered:", r) } }(); panic("bad tile") }
func main() { safe(); for i := 0; i < 3; i++ { fmt.Println("tile", i) } }
""",
)
add(
    "ok-go-err",
    "go",
    None,
    """
package main
import ("fmt"; "os")
func main() { if _, err := os.Open("cache"); err != nil { fmt.Println("no cache:", err) }; fmt.Println("built in 3 s") }
""",
)
add(
    "ok-java-caught",
    "java",
    None,
    """
public class Main { public static void main(String[] a){ try { Integer.parseInt("x"); } catch (Exception e) { e.printStackTrace(); }
  System.out.println("rows kept: 5"); System.out.println("finished"); } }
""",
)
add(
    "ok-java-log",
    "java",
    None,
    """
import java.util.logging.*;
public class Main { public static void main(String[] a){ Logger l = Logger.getLogger("x"); l.severe("node 3 lost, 2 left"); l.info("rebalanced");
  System.out.println("result 9"); } }
""",
)
add(
    "ok-js-caught",
    "js",
    None,
    """
try { JSON.parse("{"); } catch (e) { console.error(e.stack); }
console.log("used the default profile");
console.log("saved 4 files");
""",
)
add(
    "ok-js-listener",
    "js",
    None,
    """
process.on("uncaughtException", e => console.log("late error ignored:", e.message));
setTimeout(() => { throw new Error("socket hang up"); }, 5);
setTimeout(() => console.log("shut down cleanly"), 30);
""",
)
add(
    "ok-pl-eval",
    "pl",
    None,
    """
eval { die "no such plate" }; print "warn: $@"; print "4 plates done\\n";
""",
)
add(
    "ok-rb-rescue",
    "rb",
    None,
    """
begin; Integer("x"); rescue ArgumentError => e; warn "#{e.class}: #{e.message}"; end
puts "kept 3"
""",
)
add(
    "ok-lua-pcall",
    "lua",
    None,
    """
print(pcall(function() error("cable loose") end))
print("measured 5 points")
""",
)
add(
    "ok-php-try",
    "php",
    None,
    """
<?php
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo "skipped: ", $e->getMessage(), "\\n"; }
echo "total 3\\n";
""",
)
add(
    "ok-ml-try",
    "ml",
    None,
    """
let () = (try failwith "gap in series" with Failure m -> prerr_endline ("warning: " ^ m)); print_endline "mean 2.0"
""",
)
add(
    "ok-r-trycatch",
    "R",
    None,
    """
r <- tryCatch(stop("flat likelihood"), error = function(e) { message("Error caught: ", conditionMessage(e)); NA })
cat("result", r, "\\n")
""",
)
add(
    "ok-r-warning",
    "R",
    None,
    """
x <- as.numeric("a")
warning("2 rows dropped")
cat("fit ok\\n")
""",
)
add(
    "ok-awk",
    "awk",
    None,
    """
BEGIN { print "gawk errors: 0"; print "error rate", 0.1 }
""",
)
add(
    "ok-rank-noise",
    "sh",
    None,
    r"""
for r in 0 1; do echo "[rank$r]: W probe failed with errno 111, trying again"; done
for s in 1 2 3 4; do for r in 0 1; do echo "[rank$r]: step $s loss 0.$s"; done; done
echo "[rank0]: checkpoint written"
""",
)
add(
    "ok-killed-word",
    "sh",
    None,
    """
echo "note: jobs over 32 GB are Killed by the OOM killer here"
echo "used 3 GB"
""",
)

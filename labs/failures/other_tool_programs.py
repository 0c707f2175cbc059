"""More programs of the corpus `tools`: Pascal, COBOL, Scheme, Racket, Groovy, Lisp, shells, build tools, libraries.

As in `tool_programs.py`. What they print ends in lines of many forms, and the truth lies above or below the last line.
"""

from __future__ import annotations

PROGRAMS: list[tuple[str, str, str | None, tuple[str, ...], str]] = []


def add(name: str, kind: str, truth: str | None, text: str, *others: str) -> None:
    """Add a program."""
    PROGRAMS.append((name, kind, truth, others, text.strip("\n") + "\n"))


# languages: a head that a compiler, interpreter or run time prints
add(
    "pas-range",
    "pas",
    "program_error",
    """
{$mode objfpc}{$R+}
program run;
var a: array[1..3] of integer; i: integer;
begin
  writeln('filling');
  i := 2 + paramcount;
  while i < 9 do begin a[i] := i; inc(i); end;
end.
""",
    "semantic_error",
)
add(
    "pas-raise",
    "pas",
    "shape_error",
    """
{$mode objfpc}{$H+}
program run;
uses sysutils;
begin
  writeln('loading');
  raise Exception.Create('matrix of 3 columns times vector of 4 rows');
end.
""",
)
add(
    "pas-file",
    "pas",
    "incorrect_inputs",
    """
{$mode objfpc}
program run;
uses classes;
var s: TStringList;
begin
  s := TStringList.Create;
  s.LoadFromFile('weights.csv');
end.
""",
)
add(
    "pas-syntax",
    "pas",
    "compiler_error",
    """
program run;
begin
  writeln('fit')
  writeln('done');
end.
""",
    "syntax_error",
)
add(
    "cob-file",
    "cob",
    "incorrect_inputs",
    """
       IDENTIFICATION DIVISION.
       PROGRAM-ID. RUN.
       ENVIRONMENT DIVISION.
       INPUT-OUTPUT SECTION.
       FILE-CONTROL.
           SELECT ROWS ASSIGN TO "rows.dat"
           ORGANIZATION IS LINE SEQUENTIAL.
       DATA DIVISION.
       FILE SECTION.
       FD ROWS.
       01 R PIC X(80).
       PROCEDURE DIVISION.
           DISPLAY "READING".
           OPEN INPUT ROWS.
           STOP RUN.
""",
)
add(
    "cob-call",
    "cob",
    "import_error",
    """
       IDENTIFICATION DIVISION.
       PROGRAM-ID. RUN.
       PROCEDURE DIVISION.
           DISPLAY "CALLING".
           CALL "scaler".
           STOP RUN.
""",
    "cannot_load_libs",
    "program_error",
)
add(
    "cob-syntax",
    "cob",
    "compiler_error",
    """
       IDENTIFICATION DIVISION.
       PROGRAM-ID. RUN.
       PROCEDURE DIVISION.
           DISPLAY TOTAL.
           STOP RUN.
""",
    "syntax_error",
    "semantic_error",
)
add(
    "rkt-raise",
    "rkt",
    "incorrect_inputs",
    """
#lang racket/base
(displayln "reading")
(define rows (call-with-input-file "rows.txt" read-line))
""",
)
add(
    "rkt-index",
    "rkt",
    "program_error",
    """
#lang racket/base
(displayln "start")
(define v (vector 1 2 3))
(for ([i 9]) (vector-ref v i))
""",
    "semantic_error",
)
add(
    "rkt-unbound",
    "rkt",
    "semantic_error",
    """
#lang racket/base
(displayln "start")
(define (go) (scale 3))
(go)
""",
    "syntax_error",
    "compiler_error",
    "program_error",
)
add(
    "rkt-port",
    "rkt",
    "network_error",
    """
#lang racket/base
(require racket/tcp)
(displayln "joining")
(tcp-connect "127.0.0.1" 9)
""",
)
add(
    "rkt-user",
    "rkt",
    "shape_error",
    """
#lang racket/base
(displayln "start")
(error 'matmul "inner dimensions differ: 3 columns, 4 rows")
""",
)
add(
    "guile-file",
    "guile",
    "incorrect_inputs",
    """
(display "reading\\n")
(call-with-input-file "rows.scm" read)
""",
)
add(
    "guile-unbound",
    "guile",
    "semantic_error",
    """
(display "start\\n")
(define (go) (scale 3))
(go)
""",
    "program_error",
)
add(
    "guile-error",
    "guile",
    "wrong_arguments",
    """
(display "start\\n")
(error "unknown option:" "--epochz")
""",
)
add(
    "csi-error",
    "csi",
    "shape_error",
    """
(print "start")
(error "vector lengths do not match" 3 4)
""",
    "program_error",
)
add(
    "groovy-null",
    "groovy",
    "program_error",
    """
println 'start'
def row = null
println row.size()
""",
    "semantic_error",
)
add(
    "groovy-file",
    "groovy",
    "incorrect_inputs",
    """
println 'start'
new File('rows.csv').eachLine { println it }
""",
)
add(
    "groovy-prop",
    "groovy",
    "semantic_error",
    """
println 'start'
println learningRate * 2
""",
    "program_error",
)
add(
    "groovy-syntax",
    "groovy",
    "compiler_error",
    """
println 'start'
def f( { return 3
""",
    "syntax_error",
)
add(
    "clisp-error",
    "clisp",
    "incorrect_inputs",
    """
(format t "start~%")
(with-open-file (s "rows.txt") (read-line s))
""",
)
add(
    "m4-include",
    "sh",
    "incorrect_inputs",
    """
echo 'generating kernels'
echo 'include(`tiles.m4'"'"')' > kernels.m4
m4 -E -E kernels.m4
exit $?
""",
)
add(
    "bison-grammar",
    "sh",
    "compiler_error",
    """
printf '%%%%\\nexpr: expr PLUS\\n  | term;\\n' > g.y
echo building parser
bison g.y
""",
    "syntax_error",
    "semantic_error",
)
add(
    "jq-data",
    "sh",
    "incorrect_inputs",
    """
echo '{"a": [1, 2' > metrics.json
echo collecting metrics
set -e
jq .a metrics.json
""",
    "syntax_error",
)
add(
    "xml-data",
    "sh",
    "incorrect_inputs",
    """
echo '<jobs><job></jobs>' > jobs.xml
echo checking
set -e
xmllint --noout jobs.xml
""",
    "syntax_error",
)
add(
    "sqlite-table",
    "sh",
    "incorrect_inputs",
    """
echo 'counting rows'
sqlite3 runs.db 'select count(*) from runs;'
""",
    "program_error",
    "semantic_error",
)
add(
    "sqlite-lock",
    "py",
    "lock_conflict",
    """
import sqlite3
one = sqlite3.connect("runs.db", timeout=0.1, isolation_level=None)
two = sqlite3.connect("runs.db", timeout=0.1, isolation_level=None)
one.execute("create table runs(a)")
print("writing", flush=True)
one.execute("begin exclusive")
two.execute("insert into runs values (3)")
""",
)
add(
    "ninja-missing",
    "sh",
    "incorrect_inputs",
    """
printf 'rule cc\\n  command = cc -c $in -o $out\\nbuild k.o: cc k.c\\n' > build.ninja
ninja
""",
    "compiler_error",
    "step_failed",
)
add(
    "ninja-cc",
    "sh",
    "compiler_error",
    """
printf 'rule cc\\n  command = cc -c $in -o $out\\nbuild k.o: cc k.c\\n' > build.ninja
printf 'int main(void) { return tile }\\n' > k.c
ninja
""",
)
add(
    "scons-cc",
    "sh",
    "compiler_error",
    """
echo "Program('job', ['job.c'])" > SConstruct
printf 'int main(void) { return width; }\\n' > job.c
scons
""",
)
add(
    "scons-missing",
    "sh",
    "incorrect_inputs",
    """
echo "Program('job', ['job.c'])" > SConstruct
scons
""",
    "step_failed",
    "compiler_error",
)
add(
    "ant-target",
    "sh",
    "wrong_arguments",
    """
echo '<project default="pack"><target name="build"/></project>' > build.xml
ant
""",
    "invalid_config",
)
add(
    "ansible-task",
    "sh",
    "command_not_found",
    """
cat > play.yml <<'E'
- hosts: localhost
  gather_facts: false
  tasks:
    - name: stage data
      ansible.builtin.command: stage-data --to /scratch
E
ansible-playbook play.yml
""",
    "step_failed",
    "incorrect_inputs",
)
add(
    "ansible-syntax",
    "sh",
    "syntax_error",
    """
printf -- '- hosts: localhost\\n  tasks:\\n    - name: a\\n     command: true\\n' > play.yml
ansible-playbook play.yml
""",
    "invalid_config",
    "incorrect_inputs",
)
add(
    "bash-unset",
    "sh",
    "semantic_error",
    """
set -u
echo staging
cp data.bin "$SCRATCH_DIR/"
""",
    "invalid_config",
    "wrong_arguments",
    "program_error",
)
add(
    "bash-custom",
    "sh",
    "incorrect_inputs",
    """
die() { echo "$0: $*" >&2; exit 2; }
echo staging
[ -f shards.lst ] || die "shards.lst is missing, stage the data first"
""",
)
add(
    "bash-quota",
    "sh",
    "unsatisfiable_request",
    """
echo 'checking request'
echo '!! this partition has nodes of 4 GPUs, the job wants 6 per node' >&2
exit 1
""",
)
add(
    "bats-fail",
    "sh",
    "test_failed",
    """
cat > t.bats <<'E'
@test "scale" { [ "$(echo 2)" = 3 ]; }
E
bats t.bats
""",
)
# libraries: exceptions of their own, groups, callbacks, futures
add(
    "trio-group",
    "py",
    "network_error",
    """
import trio
async def join(port):
    await trio.open_tcp_stream("127.0.0.1", port)
async def main():
    print("joining", flush=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(join, 9)
        nursery.start_soon(join, 10)
trio.run(main)
""",
)
add(
    "twisted-refused",
    "py",
    "network_error",
    """
from twisted.internet import endpoints, protocol, reactor, task
async def main(reactor):
    print("joining", flush=True)
    point = endpoints.TCP4ClientEndpoint(reactor, "127.0.0.1", 9)
    await point.connect(protocol.Factory.forProtocol(protocol.Protocol))
task.react(lambda r: __import__("twisted.internet.defer").internet.defer.ensureDeferred(main(r)))
""",
)
add(
    "aiohttp-refused",
    "py",
    "network_error",
    """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session:
        print("fetching manifest", flush=True)
        await session.get("http://127.0.0.1:9/manifest")
asyncio.run(main())
""",
)
add(
    "celery-broker",
    "py",
    "network_error",
    """
from celery import Celery
app = Celery("jobs", broker="redis://127.0.0.1:9/0")
@app.task
def fit(): ...
app.conf.broker_transport_options = {"max_retries": 1}
print("queueing", flush=True)
fit.apply_async(retry=False)
""",
    "import_error",
)
add(
    "rq-redis",
    "py",
    "network_error",
    """
import redis, rq
print("queueing", flush=True)
rq.Queue(connection=redis.Redis(port=9)).enqueue(print, 3)
""",
)
add(
    "gensim-empty",
    "py",
    "incorrect_inputs",
    """
from gensim.models import Word2Vec
print("fitting", flush=True)
Word2Vec(sentences=[], vector_size=8)
""",
    "program_error",
)
add(
    "gensim-order",
    "py",
    "program_error",
    """
from gensim.models import Word2Vec
model = Word2Vec(vector_size=8)
model.build_vocab([["a", "b"]] * 9)
model.train([["a", "b"]])
""",
    "wrong_arguments",
    "semantic_error",
)
add(
    "spacy-model",
    "py",
    "incorrect_inputs",
    """
import spacy
print("loading model", flush=True)
spacy.load("en_core_web_xl")
""",
    "import_error",
    "install_failed",
)
add(
    "spacy-component",
    "py",
    "semantic_error",
    """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("lemma_fixer")
""",
    "import_error",
    "invalid_config",
    "program_error",
    "wrong_arguments",
)
add(
    "pydantic-config",
    "py",
    "invalid_config",
    """
import pydantic
class Config(pydantic.BaseModel):
    rate: float
    epochs: int
    model_config = {"extra": "forbid"}
print("reading settings", flush=True)
Config(rate="high", epoch=3)
""",
    "wrong_arguments",
    "incorrect_inputs",
)
add(
    "sqlalchemy-table",
    "py",
    "incorrect_inputs",
    """
import sqlalchemy as sa
engine = sa.create_engine("sqlite:///runs.db")
with engine.connect() as c:
    c.execute(sa.text("select loss from runs"))
""",
    "semantic_error",
    "program_error",
)
add(
    "xarray-dims",
    "py",
    "shape_error",
    """
import numpy as np, xarray as xr
print("merging", flush=True)
xr.DataArray(np.zeros((3, 4)), dims=("x", "y"), coords={"x": [1, 2]})
""",
)
add(
    "lightgbm-labels",
    "py",
    "shape_error",
    """
import lightgbm, numpy as np
lightgbm.train({"verbosity": -1}, lightgbm.Dataset(np.zeros((9, 2)), label=np.zeros(8)))
""",
    "incorrect_inputs",
)
add(
    "polars-column",
    "py",
    "incorrect_inputs",
    """
import polars as pl
pl.DataFrame({"a": [1]}).select(pl.col("loss"))
""",
    "semantic_error",
    "program_error",
)
add(
    "duckdb-memory",
    "py",
    "cpu_out_of_memory",
    """
import duckdb
c = duckdb.connect(config={"memory_limit": "20MB", "max_temp_directory_size": "0KB", "threads": "1"})
print("sorting", flush=True)
c.execute("create table t as select i, hash(i) h, repeat('x', 90) p from range(3000000) r(i)")
""",
)
add(
    "cvxpy-solver",
    "py",
    "import_error",
    """
import cvxpy as cp
x = cp.Variable()
cp.Problem(cp.Minimize(x ** 2)).solve(solver="MOSEK")
""",
    "install_failed",
    "incorrect_inputs",
    "semantic_error",
    "command_not_found",
)
add(
    "fastapi-port",
    "py",
    "address_in_use",
    """
import socket, uvicorn
held = socket.create_server(("127.0.0.1", 8123))
async def app(scope, receive, send): ...
uvicorn.run(app, port=8123)
""",
)
add(
    "gunicorn-app",
    "sh",
    "import_error",
    """
echo 'starting scorer'
gunicorn --bind 127.0.0.1:8124 scorer:app
""",
)
add(
    "invoke-task",
    "sh",
    "wrong_arguments",
    """
printf 'from invoke import task\\n@task\\ndef fit(c):\\n    pass\\n' > tasks.py
invoke fot
""",
    "semantic_error",
)
add(
    "typer-file",
    "py",
    "wrong_arguments",
    """
import sys
from pathlib import Path
import typer
def main(data: Path = typer.Option(..., exists=True)): ...
sys.argv = ["fit", "--data", "rows.csv"]
typer.run(main)
""",
    "incorrect_inputs",
)
add(
    "alembic-head",
    "sh",
    "invalid_config",
    """
alembic upgrade head
""",
    "incorrect_inputs",
    "wrong_arguments",
)
add(
    "uneven-world",
    "py",
    "unsatisfiable_request",
    """
import sys
print("plan: 3 stages on 8 workers")
sys.exit("8 workers cannot be split evenly over 3 stages")
""",
    "wrong_arguments",
    "invalid_config",
    "shape_error",
)
add(
    "token-gone",
    "py",
    "authentication_failed",
    """
class ApiError(Exception): pass
print("uploading run")
raise ApiError("403: the access token has expired, sign in again")
""",
    "permission_error",
)
add(
    "digest",
    "py",
    "integrity_mismatch",
    """
import logging, sys
logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("stage")
log.info("downloaded shard 7")
log.error("sha256 of shard 7 is 1f0c.., manifest says 77ab..")
sys.exit(4)
""",
)
add(
    "oom-bare",
    "py",
    "gpu_out_of_memory",
    """
import sys
print("batch 64 on gpu 0")
print("CUDA out of memory", file=sys.stderr)
sys.exit(1)
""",
)
add(
    "oom-bar",
    "py",
    "gpu_out_of_memory",
    """
import sys
for n in range(3):
    sys.stderr.write(f"\\r{n * 10:3d}%|#    | {n}/10 [00:0{n}<00:09,  1.00it/s]")
sys.stderr.write("\\nTraceback (most recent call last):\\n  File \\"fit.py\\", line 8, in <module>\\n    step()\\n"
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\\n"
    "\\r 40%|##   | 4/10 [00:04<00:06,  1.00it/s]")
sys.exit(1)
""",
)
# successes that look like failures
add(
    "ok-retry",
    "py",
    None,
    """
import time
for n in range(3):
    print(f"WARNING upload of shard 3 failed: connection reset by peer (attempt {n + 1} of 5)")
print("upload of shard 3 done after 4 attempts")
print("finished")
""",
)
add(
    "ok-logged",
    "py",
    None,
    """
import logging
logging.basicConfig(level=logging.INFO)
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("row 7 skipped")
logging.info("8 of 9 rows read")
logging.info("report written")
""",
)
add(
    "ok-errors-0",
    "sh",
    None,
    """
echo 'validating 3 shards'
echo 'shard 0: ok'; echo 'shard 1: ok'; echo 'shard 2: ok'
echo 'errors: 0, failures: 0, missing: 0'
""",
)
add(
    "ok-unset",
    "sh",
    None,
    """
ls /nonexistent/cache || echo 'no cache, building it'
echo 'cache built'
""",
)
add(
    "ok-grep",
    "sh",
    None,
    """
printf 'Error: cannot open device\\nfatal: no such host\\n' > old.log
echo 'errors of the last run:'
cat old.log
echo 'summary of the last run written to summary.txt'
""",
)
add(
    "ok-kill",
    "sh",
    None,
    """
sleep 60 & helper=$!
echo "monitor started"
sleep 0.2
kill $helper; wait $helper 2>/dev/null
echo "monitor stopped, exit code 143 as expected"
""",
)
add(
    "ok-oom-retry",
    "py",
    None,
    """
print("batch 512: CUDA out of memory, halving")
print("batch 256: CUDA out of memory, halving")
print("batch 128 fits")
""",
)
add(
    "ok-fallback",
    "py",
    None,
    """
try:
    import apex
except ImportError as error:
    print("ImportError:", error, "- using the plain optimizer")
print("step 1 loss 2.0")
print("step 2 loss 1.0")
print("saved model.bin")
""",
)
add(
    "ok-ansible-ignored",
    "sh",
    None,
    """
cat > play.yml <<'E'
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.command: "false"
      ignore_errors: true
    - ansible.builtin.command: "true"
E
ansible-playbook play.yml
""",
)
add(
    "ok-thread",
    "py",
    None,
    """
import threading, sys
def probe():
    raise RuntimeError("no metrics endpoint")
t = threading.Thread(target=probe, name="metrics"); t.start(); t.join()
print("trained without metrics")
print("model saved")
""",
)
add(
    "ok-trap",
    "sh",
    None,
    """
( trap 'echo "worker 1: caught signal, leaving"; exit 0' TERM; sleep 5 & wait ) & w=$!
sleep 0.3; kill -TERM $w; wait $w
echo 'all workers stopped'
""",
)
add(
    "ok-xfail",
    "py",
    None,
    """
import sys, unittest
class T(unittest.TestCase):
    @unittest.expectedFailure
    def test_half(self):
        self.assertEqual(1, 2)
unittest.main(argv=["t"])
""",
)
add(
    "ok-usage",
    "sh",
    None,
    """
python3 -c 'import argparse; argparse.ArgumentParser(prog="fit").parse_args(["--help"])'
""",
)
add(
    "ok-assert",
    "py",
    None,
    """
import traceback
try:
    assert 3 == 4, "shapes differ"
except AssertionError:
    traceback.print_exc()
print("self-test of the checker passed: it rejects unequal shapes")
""",
)
add(
    "ok-scons",
    "sh",
    None,
    """
echo "Command('out.txt', [], 'echo warning: failed to stat cache; echo done > out.txt')" > SConstruct
scons
""",
)

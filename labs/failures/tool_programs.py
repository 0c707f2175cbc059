"""Programs of the corpus `tools`, from which signatures and readers may be written: languages, runners, own words.

(name, how it runs, true reason or None, others that are as right, text), as in `fresh_programs.py`; `fresh.py --tools`
records them. Erlang, Elixir, Nim, Tcl, SBCL, Prolog, Fortran, Go, Node.js, Snakemake, Luigi, doit, make, pytest,
tyro, jsonargparse, Typer, Rich, and programs that describe a failure in words of their own.
"""

from __future__ import annotations

PROGRAMS: list[tuple[str, str, str | None, tuple[str, ...], str]] = []


def add(name: str, kind: str, truth: str | None, text: str, *others: str) -> None:
    """Add a program."""
    PROGRAMS.append((name, kind, truth, others, text.strip("\n") + "\n"))


# Erlang and Elixir
add(
    "erl-file",
    "erl",
    "incorrect_inputs",
    """
#!/usr/bin/env escript
main(_) ->
    io:format("reading weights~n"),
    {ok, Data} = file:read_file("weights.bin"),
    io:format("~p~n", [byte_size(Data)]).
""",
)
add(
    "erl-arith",
    "erl",
    "program_error",
    """
#!/usr/bin/env escript
main(_) ->
    [io:format("mean ~p~n", [10 / N]) || N <- [2, 1, 0]].
""",
    "numerical_error",
)
add(
    "erl-net",
    "erl",
    "network_error",
    """
#!/usr/bin/env escript
main(_) ->
    io:format("joining coordinator~n"),
    {ok, _} = gen_tcp:connect("127.0.0.1", 9, [binary]).
""",
)
add(
    "erl-undef",
    "erl",
    "program_error",
    """
#!/usr/bin/env escript
main(_) ->
    io:format("start~n"),
    queue_tools:push(1, []).
""",
    "import_error",
    "semantic_error",
)
add(
    "erl-syntax",
    "erl",
    "syntax_error",
    """
#!/usr/bin/env escript
main(_) ->
    io:format("start~n")
    io:format("end~n").
""",
)
add(
    "erl-clause",
    "erl",
    "program_error",
    """
#!/usr/bin/env escript
stage(prepare) -> 1;
stage(train) -> 2.
main(_) ->
    [io:format("stage ~p~n", [stage(S)]) || S <- [prepare, train, score]].
""",
)
add(
    "erl-init",
    "sh",
    "incorrect_inputs",
    """
echo "counting shards"
erl -noshell -eval '{ok, L} = file:list_dir("shards"), io:format("~p~n", [length(L)]), halt(0).'
""",
)
add(
    "erl-throw",
    "erl",
    "invalid_config",
    """
#!/usr/bin/env escript
main(_) ->
    io:format("reading settings~n"),
    Settings = [{batch, 8}],
    case proplists:get_value(learning_rate, Settings) of
        undefined -> throw({bad_config, "learning_rate is missing in settings"});
        V -> io:format("~p~n", [V])
    end.
""",
    "wrong_arguments",
    "program_error",
)
add(
    "ex-file",
    "exs",
    "incorrect_inputs",
    """
IO.puts("loading labels")
labels = File.read!("labels.csv")
IO.puts(byte_size(labels))
""",
)
add(
    "ex-key",
    "exs",
    "program_error",
    """
run = %{epochs: 3}
IO.puts("epochs #{run.epochs}")
IO.puts("lr #{run.learning_rate}")
""",
)
add(
    "ex-raise-shape",
    "exs",
    "shape_error",
    """
a = {3, 4}
b = {5, 2}
IO.puts("multiplying")
if elem(a, 1) != elem(b, 0), do: raise ArgumentError, "inner dimensions differ: #{inspect(a)} x #{inspect(b)}"
""",
)
add(
    "ex-undefined",
    "exs",
    "program_error",
    """
IO.puts("start")
Trainer.run(3)
""",
    "import_error",
)
add(
    "ex-syntax",
    "exs",
    "syntax_error",
    """
IO.puts("start")
if true do
  IO.puts("half")
""",
)
add(
    "ex-match",
    "exs",
    "network_error",
    """
IO.puts("opening socket")
{:ok, _} = :gen_tcp.connect(~c"127.0.0.1", 9, [])
""",
)
add(
    "ex-test",
    "sh",
    "test_failed",
    """
cat > sums_test.exs <<'END'
ExUnit.start()
defmodule SumsTest do
  use ExUnit.Case
  test "adds" do
    assert 1 + 1 == 2
  end
  test "scales" do
    assert 2 * 3 == 7
  end
end
END
elixir sums_test.exs
""",
)
# Nim
add(
    "nim-index",
    "nim",
    "program_error",
    """
let losses = @[0.5, 0.4]
for i in 0 .. 2:
  echo "loss ", losses[i]
""",
)
add(
    "nim-file",
    "nim",
    "incorrect_inputs",
    """
echo "reading"
let text = readFile("corpus.txt")
echo text.len
""",
)
add(
    "nim-raise",
    "nim",
    "integrity_mismatch",
    """
echo "checking shards"
raise newException(ValueError, "sha256 of shard-2 is 41aa, its index says 7b02")
""",
    "incorrect_inputs",
)
add(
    "nim-parse",
    "nim",
    "incorrect_inputs",
    """
import strutils
for word in ["3", "x7"]:
  echo parseInt(word)
""",
    "program_error",
)
add(
    "nim-type",
    "nim",
    "compiler_error",
    """
let n: int = "three"
echo n
""",
    "syntax_error",
    "program_error",
)
add(
    "nim-import",
    "nim",
    "import_error",
    """
import arraymancers
echo zeros(3)
""",
    "compiler_error",
)
add(
    "nim-div",
    "nim",
    "numerical_error",
    """
proc part(a, b: int): int = a div b
for n in [2, 1, 0]:
  echo part(10, n)
""",
    "program_error",
)
# Tcl
add(
    "tcl-open",
    "tcl",
    "incorrect_inputs",
    """
puts "reading mesh"
set f [open "mesh.dat" r]
puts [gets $f]
""",
)
add(
    "tcl-variable",
    "tcl",
    "program_error",
    """
proc step {n} { puts "step $n of $total" }
step 3
""",
)
add(
    "tcl-package",
    "tcl",
    "import_error",
    """
puts "start"
package require Meshing 3.0
""",
)
add(
    "tcl-error",
    "tcl",
    "unsatisfiable_request",
    """
puts "asking for nodes"
proc place {n} { if {$n > 4} { error "requested $n nodes, but the partition has only 4" } }
place 16
""",
)
add(
    "tcl-command",
    "tcl",
    "program_error",
    """
puts "start"
render_frame 3
""",
    "command_not_found",
)
add(
    "tcl-list",
    "tcl",
    "invalid_config",
    """
array set settings {batch 8}
puts "batch $settings(batch)"
if {![info exists settings(rate)]} { error "setting 'rate' is missing from run.cfg" }
""",
    "wrong_arguments",
)
# Common Lisp
add(
    "lisp-unbound",
    "lisp",
    "program_error",
    """
(format t "start~%")
(print (+ 1 learning-rate))
""",
)
add(
    "lisp-file",
    "lisp",
    "incorrect_inputs",
    """
(format t "reading~%")
(with-open-file (s "weights.txt") (print (read s)))
""",
)
add(
    "lisp-division",
    "lisp",
    "numerical_error",
    """
(format t "mean~%")
(defun mean (total n) (/ total n))
(print (mean 10 (- 3 3)))
""",
    "program_error",
)
add(
    "lisp-error",
    "lisp",
    "shape_error",
    """
(format t "layer 1~%")
(defun check-dims (a b) (unless (= a b) (error "matrix dimensions do not agree: ~a columns, ~a rows" a b)))
(check-dims 4 5)
""",
)
add(
    "lisp-undefined",
    "lisp",
    "program_error",
    """
(format t "start~%")
(train-network 3)
""",
)
add(
    "lisp-read",
    "lisp",
    "syntax_error",
    """
(format t "start~%")
(print (+ 1 2)
""",
    "incorrect_inputs",
)
# Prolog
add(
    "pl-unknown",
    "prolog",
    "program_error",
    """
main :- writeln(start), plan(3, X), writeln(X).
:- initialization(main, main).
""",
)
add(
    "pl-file",
    "prolog",
    "incorrect_inputs",
    """
main :- writeln(reading), open('facts.db', read, S), read(S, X), writeln(X).
:- initialization(main, main).
""",
)
add(
    "pl-type",
    "prolog",
    "program_error",
    """
main :- writeln(start), X is foo + 1, writeln(X).
:- initialization(main, main).
""",
)
add(
    "pl-stack",
    "prolog",
    "cpu_out_of_memory",
    """
:- set_prolog_flag(stack_limit, 2000000).
grow(N, [N|T]) :- M is N + 1, grow(M, T).
main :- writeln(start), grow(0, L), length(L, _).
:- initialization(main, main).
""",
    "resource_limit",
    "program_error",
)
add(
    "pl-zero",
    "prolog",
    "numerical_error",
    """
main :- writeln(start), X is 1 / 0, writeln(X).
:- initialization(main, main).
""",
    "program_error",
)
# Fortran
add(
    "f90-file",
    "f90",
    "incorrect_inputs",
    """
program run
  integer :: n
  print *, 'reading mesh'
  open(unit=10, file='mesh.dat', status='old')
  read(10, *) n
end program
""",
)
add(
    "f90-stop",
    "f90",
    "numerical_error",
    """
program run
  integer :: i
  do i = 1, 5
    print *, 'iteration', i
  end do
  error stop 'residual grew past 1e10, solver diverged'
end program
""",
    "model_diverged",
)
add(
    "f90-allocate",
    "f90",
    "program_error",
    """
program run
  real, allocatable :: a(:)
  allocate(a(10))
  print *, 'allocated'
  allocate(a(20))
end program
""",
)
add(
    "f90-read",
    "f90",
    "incorrect_inputs",
    """
program run
  integer :: n
  open(unit=10, file='n.txt')
  write(10, '(a)') 'seven'
  rewind(10)
  print *, 'reading'
  read(10, *) n
end program
""",
)
# Test runners
add(
    "test-go",
    "sh",
    "test_failed",
    """
cat > go.mod <<'END'
module sums
go 1.18
END
cat > sums_test.go <<'END'
package sums
import "testing"
func TestAdd(t *testing.T) { if 1+1 != 2 { t.Fatal("add") } }
func TestScale(t *testing.T) { if 2*3 != 7 { t.Errorf("scale gave %d", 6) } }
END
go test ./...
""",
)
add(
    "test-go-panic",
    "sh",
    "test_failed",
    """
cat > go.mod <<'END'
module sums
go 1.18
END
cat > sums_test.go <<'END'
package sums
import "testing"
func TestTable(t *testing.T) { var m map[string]int; m["a"] = 1 }
END
go test -v ./...
""",
    "program_error",
)
add(
    "test-node",
    "sh",
    "test_failed",
    """
cat > sums.test.mjs <<'END'
import test from 'node:test';
import assert from 'node:assert';
test('adds', () => { assert.equal(1 + 1, 2); });
test('scales', () => { assert.equal(2 * 3, 7); });
END
node --test
""",
)
add(
    "test-pytest",
    "sh",
    "test_failed",
    """
cat > test_sums.py <<'END'
def test_add():
    assert 1 + 1 == 2
def test_scale():
    assert [2 * 3, 4] == [7, 4]
END
python -m pytest -p no:cacheprovider
""",
)
add(
    "test-pytest-quiet",
    "sh",
    "test_failed",
    """
cat > test_sums.py <<'END'
import pytest
def test_one():
    raise ValueError("mask and weights differ")
@pytest.mark.xfail
def test_two():
    assert False
END
python -m pytest -q -p no:cacheprovider
""",
)
add(
    "test-pytest-import",
    "sh",
    "import_error",
    """
cat > test_sums.py <<'END'
import sums_of_rows
def test_one():
    assert sums_of_rows.total([1]) == 1
END
python -m pytest -p no:cacheprovider
""",
    "test_failed",
)
add(
    "test-unittest",
    "sh",
    "test_failed",
    """
cat > test_sums.py <<'END'
import unittest
class Sums(unittest.TestCase):
    def test_add(self):
        self.assertEqual(1 + 1, 2)
    def test_scale(self):
        self.assertEqual(2 * 3, 7)
unittest.main()
END
python test_sums.py
""",
)
add(
    "ok-test-xfail",
    "sh",
    None,
    """
cat > test_sums.py <<'END'
import pytest
@pytest.mark.xfail(reason="known failure")
def test_known():
    raise RuntimeError("failed on purpose")
def test_error_is_raised():
    with pytest.raises(ValueError):
        int("x")
END
python -m pytest -v -rxX -p no:cacheprovider
""",
)
add(
    "ok-test-node",
    "sh",
    None,
    """
cat > sums.test.mjs <<'END'
import test from 'node:test';
import assert from 'node:assert';
test('rejects bad input', () => { assert.throws(() => { throw new TypeError('bad input'); }); });
test('later', { todo: true }, () => { throw new Error('not done'); });
END
node --test
""",
)
add(
    "ok-test-unittest",
    "sh",
    None,
    """
cat > test_sums.py <<'END'
import unittest
class Sums(unittest.TestCase):
    @unittest.expectedFailure
    def test_known(self):
        raise RuntimeError("cannot work yet")
    def test_raises(self):
        with self.assertRaises(KeyError):
            {}["x"]
unittest.main(verbosity=2)
END
python test_sums.py
""",
)
# Workflows
add(
    "snake-input",
    "sh",
    "incorrect_inputs",
    """
cat > Snakefile <<'END'
rule all:
    input: "scores.csv"
rule score:
    input: "features.csv"
    output: "scores.csv"
    shell: "cp {input} {output}"
END
snakemake --cores 1
""",
)
add(
    "snake-step",
    "sh",
    "step_failed",
    """
cat > Snakefile <<'END'
rule score:
    output: "scores.csv"
    shell: "false > {output}"
END
snakemake --cores 1
""",
)
add(
    "snake-cause",
    "sh",
    "import_error",
    """
cat > Snakefile <<'END'
rule score:
    output: "scores.csv"
    shell: "python -c 'import scoring_tools' > {output}"
END
snakemake --cores 1
""",
    "step_failed",
)
add(
    "snake-syntax",
    "sh",
    "syntax_error",
    """
cat > Snakefile <<'END'
rule score:
    output "scores.csv"
    shell: "touch {output}"
END
snakemake --cores 1
""",
)
add(
    "snake-name",
    "sh",
    "program_error",
    """
cat > Snakefile <<'END'
SAMPLES = samples_of("a")
rule all:
    input: SAMPLES
END
snakemake --cores 1
""",
)
add(
    "snake-cycle",
    "sh",
    "invalid_config",
    """
cat > Snakefile <<'END'
rule a:
    input: "y.txt"
    output: "x.txt"
    shell: "cp {input} {output}"
rule b:
    input: "x.txt"
    output: "y.txt"
    shell: "cp {input} {output}"
END
snakemake --cores 1 x.txt
""",
    "program_error",
    "incorrect_inputs",
    "semantic_error",
)
add(
    "luigi-step",
    "py",
    "incorrect_inputs",
    """
import luigi
class Prepare(luigi.Task):
    def output(self):
        return luigi.LocalTarget("rows.txt")
    def run(self):
        with open("raw.csv") as rows, self.output().open("w") as out:
            out.write(rows.read())
class Train(luigi.Task):
    def requires(self):
        return Prepare()
    def output(self):
        return luigi.LocalTarget("model.txt")
import sys
if not luigi.build([Train()], local_scheduler=True):
    sys.exit(1)
""",
    "step_failed",
)
add(
    "luigi-silent",
    "py",
    "step_failed",
    """
import sys
import luigi
class Score(luigi.Task):
    def output(self):
        return luigi.LocalTarget("score.txt")
    def complete(self):
        return False
    def run(self):
        import subprocess
        subprocess.run(["false"], check=True)
if not luigi.build([Score()], local_scheduler=True):
    sys.exit(30)
""",
    "traceback",
)
add(
    "make-step",
    "sh",
    "step_failed",
    """
printf 'all: rows model\\nrows:\\n\\t@echo preparing\\nmodel:\\n\\t@echo fitting; exit 3\\n' > Makefile
make
""",
    "traceback",
)
add(
    "make-cause",
    "sh",
    "incorrect_inputs",
    """
printf 'rows:\\n\\tsort raw.csv > rows\\n' > Makefile
make
""",
)
add(
    "ok-make-ignored",
    "sh",
    None,
    """
printf 'all:\\n\\t-rm old.ckpt\\n\\t@echo trained\\n' > Makefile
make
""",
)
add(
    "doit-step",
    "sh",
    "step_failed",
    """
cat > dodo.py <<'END'
def task_fit():
    return {"actions": ["echo fitting", "exit 4"]}
END
python -m doit
""",
)
add(
    "npm-script",
    "sh",
    "step_failed",
    """
cat > package.json <<'END'
{"name": "run", "version": "1.0.0", "scripts": {"train": "node -e 'console.log(1); process.exit(3)'"}}
END
npm run train
""",
    "nothing_logged",
    "no_signature",
    "traceback",
)
# Usage errors
add(
    "tyro-required",
    "py",
    "wrong_arguments",
    """
import dataclasses, sys, tyro
@dataclasses.dataclass
class Args:
    rate: float
    epochs: int = 3
print("starting")
tyro.cli(Args, args=["--epochs", "4"])
""",
)
add(
    "tyro-type",
    "py",
    "wrong_arguments",
    """
import dataclasses, tyro
@dataclasses.dataclass
class Args:
    rate: float = 0.1
print("starting")
tyro.cli(Args, args=["--rate", "fast"])
""",
)
add(
    "tyro-unknown",
    "py",
    "wrong_arguments",
    """
import dataclasses, tyro
@dataclasses.dataclass
class Args:
    rate: float = 0.1
tyro.cli(Args, args=["--ratee", "0.3"])
""",
)
add(
    "jsonargparse-key",
    "sh",
    "invalid_config",
    """
cat > run.yaml <<'END'
rate: 0.1
epohcs: 3
END
cat > run.py <<'END'
from jsonargparse import ArgumentParser
parser = ArgumentParser()
parser.add_argument("--config", action="config")
parser.add_argument("--rate", type=float, default=0.2)
parser.add_argument("--epochs", type=int, default=1)
print(parser.parse_args())
END
python run.py --config run.yaml
""",
    "wrong_arguments",
)
add(
    "jsonargparse-type",
    "py",
    "wrong_arguments",
    """
from jsonargparse import auto_cli
def train(rate: float, epochs: int = 3):
    print(rate, epochs)
auto_cli(train, args=["--rate=slow"])
""",
)
add(
    "typer-missing",
    "py",
    "wrong_arguments",
    """
import sys
import typer
def main(data: str, rate: float = 0.1):
    print(data, rate)
sys.argv = ["train", "--rate", "0.3"]
typer.run(main)
""",
)
add(
    "rich-traceback",
    "py",
    "program_error",
    """
from rich.traceback import install
install(show_locals=True)
table = {"a": 1}
def look(key):
    return table[key]
print("looking")
look("b")
""",
)
add(
    "rich-traceback-file",
    "py",
    "incorrect_inputs",
    """
from rich.traceback import install
install()
import json
print("loading")
json.load(open("settings.json"))
""",
)
add(
    "cyclopts-type",
    "py",
    "wrong_arguments",
    """
import cyclopts
app = cyclopts.App()
@app.default
def main(rate: float):
    print(rate)
app(["fast"])
""",
)
# Go modules, the loader
add(
    "go-module",
    "sh",
    "install_failed",
    """
cat > go.mod <<'END'
module run
go 1.18
require example.com/jam v1.2.3
END
cat > main.go <<'END'
package main
import "example.com/jam"
func main() { jam.Run() }
END
GOFLAGS=-mod=mod GOPROXY=off go build ./...
""",
    "import_error",
)
add(
    "go-std",
    "sh",
    "import_error",
    """
cat > go.mod <<'END'
module run
go 1.18
END
cat > main.go <<'END'
package main
import "tensors/blas"
func main() { blas.Run() }
END
go build ./...
""",
    "compiler_error",
)
add(
    "loader-version",
    "sh",
    "semantic_error",
    """
cat > v1.map <<'END'
TENSOR_1.0 { global: add; };
END
cat > v2.map <<'END'
TENSOR_2.0 { global: add; };
END
echo 'int add(int a, int b) { return a + b; }' > t.c
gcc -shared -fPIC -Wl,--version-script=v2.map -o libtensor.so t.c
echo 'int add(int, int); int main() { return add(1, -1); }' > m.c
gcc -o job m.c -L. -ltensor -Wl,-rpath,.
gcc -shared -fPIC -Wl,--version-script=v1.map -o libtensor.so t.c
echo "starting"
./job
""",
    "cannot_load_libs",
)
# Watchdogs
add(
    "hang-faulthandler",
    "py",
    "hang",
    """
import faulthandler, threading
faulthandler.dump_traceback_later(2, exit=True)
print("waiting for the prefetcher", flush=True)
ready = threading.Event()
ready.wait()
""",
)
add(
    "hang-watchdog",
    "py",
    "hang",
    """
import os, sys, threading, time
beat = time.monotonic()
def watch():
    while True:
        time.sleep(0.2)
        if time.monotonic() - beat > 1:
            print("watchdog: no step finished within 1 s, the data loader seems stuck; aborting", flush=True)
            os._exit(70)
threading.Thread(target=watch, daemon=True).start()
for step in range(5):
    print("step", step, flush=True)
    beat = time.monotonic()
    time.sleep(0.1 if step < 4 else 60)
""",
)
add(
    "hang-heartbeat",
    "py",
    "hang",
    """
class WorkerStalled(RuntimeError):
    pass
print("4 workers started")
raise WorkerStalled("worker 2 sent no heartbeat for 90 s (last step 118)")
""",
    "peer_failed",
)
# Own words, log alone
OWN = (
    (
        "own-shape-assert",
        "shape_error",
        "assert x == (4, 8), f'encoder wants width 8, batch has width {x[1]}'",
        "x = (4, 7)",
    ),
    (
        "own-mask-assert",
        "shape_error",
        "assert len(m) == len(w), 'mask and weights differ in length'",
        "m, w = [1], [1, 2]",
    ),
    (
        "own-config-assert",
        "invalid_config",
        "assert c.get('heads'), 'model.heads must be set in config.yaml'",
        "c = {}",
    ),
    ("own-divide", "invalid_config", "raise ValueError('world size 6 is not divisible by tensor parallel size 4')", ""),
    (
        "own-divide-batch",
        "invalid_config",
        "raise RuntimeError('global batch 100 does not divide evenly over 3 replicas')",
        "",
    ),
    ("own-checksum", "integrity_mismatch", "raise RuntimeError('shard 7: stored crc 0x1f2e, computed 0x77aa')", ""),
    ("own-digest", "integrity_mismatch", "raise OSError('digest of model.bin does not agree with its manifest')", ""),
    ("own-abi", "semantic_error", "raise ImportError('plugin speaks ABI 3, host speaks ABI 5')", ""),
    (
        "own-format-version",
        "incorrect_inputs",
        "raise ValueError('index has format version 9, this reader knows up to 7')",
        "",
    ),
    (
        "own-token",
        "authentication_failed",
        "raise RuntimeError('the tracker refused our token (expired yesterday)')",
        "",
    ),
    ("own-login", "authentication_failed", "raise SystemExit('not logged in: run `acme login` first')", ""),
    (
        "own-quota",
        "rate_limit",
        "raise RuntimeError('the API allows 60 requests a minute and we used them up; gave up after 5 waits')",
        "",
    ),
    (
        "own-throttle",
        "rate_limit",
        "raise OSError('bucket service answered 429 Too Many Requests five times, giving up')",
        "",
    ),
    ("own-lock", "lock_conflict", "raise RuntimeError('run folder is in use by process 4711 (run.lock)')", ""),
    (
        "own-lock-wait",
        "lock_conflict",
        "raise TimeoutError('waited 30 s for the lock on cache.db, another job holds it')",
        "",
    ),
    (
        "own-gpus",
        "unsatisfiable_request",
        "raise RuntimeError('plan needs 16 accelerators, the pool has 8 in total')",
        "",
    ),
    ("own-partition", "unsatisfiable_request", "raise ValueError('no partition offers 4 TB of memory per node')", ""),
    ("own-licence", "licence_error", "raise RuntimeError('all 5 seats of the solver licence are taken')", ""),
    (
        "own-licence-date",
        "licence_error",
        "raise RuntimeError('licence file /opt/acme/key.lic ended on 2026-10-31')",
        "",
    ),
    (
        "own-install",
        "install_failed",
        "raise RuntimeError('setting up the environment failed: package apexx not found in any channel')",
        "",
    ),
    (
        "own-device-memory",
        "gpu_out_of_memory",
        "raise RuntimeError('accelerator memory is used up: 79 of 80 GiB held, 4 more wanted')",
        "",
    ),
    (
        "own-host-memory",
        "cpu_out_of_memory",
        "raise RuntimeError('pinned host buffers need 900 GiB, the node has 512')",
        "",
    ),
    ("own-rows", "incorrect_inputs", "raise ValueError('row 3 of prices.csv has 7 cells, its header has 9')", ""),
    ("own-vocabulary", "incorrect_inputs", "raise KeyError('sentence 4 uses words that the vocabulary lacks')", ""),
    ("own-flag", "wrong_arguments", "raise SystemExit('run.py: --resume and --fresh exclude each other')", ""),
    ("own-flag-value", "wrong_arguments", "raise SystemExit('--rate wants a number above zero, not -3')", ""),
    ("own-diverge", "model_diverged", "raise RuntimeError('loss left the finite numbers at step 4')", ""),
    ("own-solver", "numerical_error", "raise ArithmeticError('pivot 3 vanished while factorising')", ""),
    ("own-nodes", "network_error", "raise RuntimeError('nobody answers at tracker:4000')", ""),
    ("own-deadline", "time_limit", "raise RuntimeError('the allotted 2 h are over, leaving at step 900')", ""),
    ("own-save", "checkpoint_error", "raise RuntimeError('could not put step 900 into the checkpoint store')", ""),
    ("own-logic", "program_error", "raise RuntimeError('two batches carry the same id')", ""),
    ("own-state", "program_error", "raise RuntimeError('scheduler stepped before the optimizer')", ""),
    ("own-peer", "peer_failed", "raise RuntimeError('rank 3 left the group while we were reducing')", ""),
    ("own-read-only", "permission_error", "raise OSError('we may read but not write /results')", ""),
    ("own-mount", "storage_error", "raise OSError('the scratch volume went away')", ""),
)
for _name, _truth, _last, _first in OWN:
    add(
        _name,
        "py",
        _truth,
        f"print('starting')\n{_first}\ndef main():\n    {_last}\nprint('one of two done')\nmain()\n",
        *{
            "own-divide": ("wrong_arguments",),
            "own-divide-batch": ("wrong_arguments", "shape_error"),
            "own-config-assert": ("wrong_arguments",),
            "own-checksum": ("incorrect_inputs",),
            "own-digest": ("incorrect_inputs",),
            "own-abi": ("cannot_load_libs", "import_error"),
            "own-format-version": ("semantic_error",),
            "own-host-memory": ("unsatisfiable_request",),
            "own-vocabulary": ("program_error",),
            "own-token": ("permission_error",),
            "own-diverge": ("numerical_error",),
            "own-mask-assert": ("incorrect_inputs",),
            "own-install": ("import_error",),
            "own-partition": ("invalid_config",),
            "own-peer": ("collective_timeout",),
            "own-quota": ("network_error",),
            "own-throttle": ("network_error", "storage_error"),
            "own-lock-wait": ("storage_error",),
        }.get(_name, ()),
    )
# Messages over several lines
add(
    "long-message",
    "py",
    "shape_error",
    """
print("restoring")
missing = [f"layer{n}.weight" for n in range(12)]
lines = "\\n".join(f"  {name}: saved (64, 32), expected (64, 48)" for name in missing)
raise RuntimeError("cannot restore the model, these arrays have other shapes:\\n" + lines)
""",
    "incorrect_inputs",
)
add(
    "long-message-plain",
    "py",
    "invalid_config",
    """
print("reading run.toml")
problems = ["optimizer: unknown name 'adamm'", "rate: must be above 0", "epochs: missing", "model.depth: not a number",
            "model.width: missing", "data.path: missing", "data.split: unknown", "seed: not a number",
            "device: unknown", "log.every: must be above 0"]
raise ValueError("run.toml has 10 errors:\\n" + "\\n".join(problems))
""",
    "wrong_arguments",
)
add(
    "restart-worked",
    "sh",
    None,
    """
cat > work.py <<'END'
import os, sys
done = int(open("done").read()) if os.path.exists("done") else 0
for step in range(done, 6):
    print(f"step {step} loss {1 / (step + 1):.3f}", flush=True)
    open("done", "w").write(str(step + 1))
    if step == 2 and done == 0:
        raise ConnectionResetError("lost the feeder")
print("all steps done")
END
for try in 1 2 3; do
    python work.py && break
    echo "worker failed with exit code $?, restarting it"
done
""",
)
add(
    "ok-expected-kill",
    "sh",
    None,
    """
sleep 60 & helper=$!
for step in 1 2 3 4; do echo "step $step loss 0.$step"; done
kill -9 $helper
wait $helper 2>/dev/null
echo "helper was killed as planned"
echo "training finished"
""",
)
add(
    "silent-exit",
    "py",
    "nothing_logged",
    """
import sys
for step in range(4):
    print("step", step, "of 4")
sys.exit(3)
""",
    "no_signature",
    "program_error",
    "traceback",
)
add("silent-empty", "sh", "nothing_logged", "exit 3", "no_signature", "program_error", "traceback")

"""What tools' messages mean: the kinds of mistakes that a corpus of another author's tools showed."""

from __future__ import annotations

import io

import pytest

from gpuctl.joblogs.classify import classify
from gpuctl.joblogs.evidence import Facts, Verdict
from gpuctl.joblogs.table import load
from tests.signatures import scanner, table

FAILED = Facts(exit_code=1)
HEAD = 'Traceback (most recent call last):\n  File "/jobs/run.py", line 3, in <module>\n    go()\n'
JVM = 'Exception in thread "main" java.lang.RuntimeException: stage 3 aborted\n\tat Main.main(Main.java:6)\n'
WRAPPED = "Caused by: java.lang.IllegalStateException: no store\n\tat Main.load(Main.java:3)\n\t... 1 more\n"
START = '  File "/usr/lib/python3.12/subprocess.py", line 1955, in _execute_child\n    raise child_exception_type(\n'


def verdict(text: str, facts: Facts | None = FAILED) -> Verdict:
    scan = scanner().scan(io.BytesIO(text.encode()))
    return classify([*scan.matches, *scan.telling], table(), facts)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # a checkpoint that cannot be loaded; weights of another shape are a mismatch of shapes
        (HEAD + "RuntimeError: PytorchStreamReader failed locating file data.pkl\n", "checkpoint_error"),
        (
            HEAD + "RuntimeError: Error(s) in loading state_dict for Net:\n"
            '\tMissing key(s) in state_dict: "head.bias".\n',
            "checkpoint_error",
        ),
        (
            HEAD + "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for head.bias: "
            "copying a param with shape torch.Size([3]) from checkpoint, the shape in current model is x.\n",
            "shape_error",
        ),
        # what was read as configuration, and what was not
        (HEAD + "pydantic_core._pydantic_core.ValidationError: 3 validation errors for RunConfig\n", "invalid_config"),
        (HEAD + "pydantic_core._pydantic_core.ValidationError: 3 validation errors for Sample\n", "wrong_arguments"),
        (HEAD + "ValueError: The config file at run.yaml had unknown keys (['gpu'])\n", "invalid_config"),
        ("jsconfig.json(3,5): error TS5023: Unknown compiler option 'jam'.\n", "invalid_config"),
        ("2026/11/30 10:00:00 [emerg] 7#7: duplicate directive \"listen\" in /etc/jam.conf:3\n", "invalid_config"),
        # build tools that do not find a dependency
        ("-- Found GNU\nCMake Error at cmake/Jam.cmake:9 (find_package):\n  No luck\n", "install_failed"),
        ('src/meson.build:3:0: ERROR: Dependency "jam" not found, tried pkgconfig\n', "install_failed"),
        ("src/meson.build:3:0: ERROR: Unknown variable jam.\n", "compiler_error"),
        ("error: no matching package named `jam` found\n", "install_failed"),
        ("FAILED: index.bin\nsh mk.sh\nninja: build stopped: subcommand failed.\n", "step_failed"),
        ("FAILED: a.o\na.cpp:3:1: error: expected ';'\nninja: build stopped: subcommand failed.\n", "compiler_error"),
        # locks, limits, logins
        ("ERROR:  canceling statement due to lock timeout\nLINE 1: update jobs\n", "lock_conflict"),
        ("restic: unable to create lock in backend: repository is already locked\n", "lock_conflict"),
        (HEAD + "psycopg2.OperationalError: FATAL:  sorry, too many clients already\n", "resource_limit"),
        (HEAD + START + "BlockingIOError: [Errno 11] Resource temporarily unavailable\n", "resource_limit"),
        (HEAD + START + "FileNotFoundError: [Errno 2] No such file or directory: 'sox'\n", "command_not_found"),
        (HEAD + "ftplib.error_perm: 530 Not logged in.\n", "authentication_failed"),
        ("ERROR! Attempting to decrypt but no vault secrets found\n", "authentication_failed"),
        ("ERROR: cannot schedule task fold: requested memory 4 TB exceeds the capacity of any node\n",
         "unsatisfiable_request"),
        # how native programs end
        ("./start.sh: line 4: ./serve: cannot execute binary file: Exec format error\n", "launch_failed"),
        ("pure virtual method called\nterminate called without an active exception\n", "core_dump"),
        ("Error: /jobs/jam.so.2: file too short\n", "cannot_load_libs"),
        # runners: of tests, of steps, of actors
        ("1..2\nok 1 splits\nnot ok 2 rejects an empty shard\n# in jam.bats, line 3\n", "test_failed"),
        ("test_a (t.T) ... expected failure\n" + HEAD + "AssertionError: 2 != 3\n\nFAILED (failures=1, "
         "expected failures=1)\n", "test_failed"),
        ("E   ModuleNotFoundError: No module named 'jam'\n!!! Interrupted: 2 errors during collection !!!\n",
         "test_failed"),
        ("[2/9] resize failed, see logs/resize.log\n", "step_failed"),
        ("A worker died. Some possible causes are: (1) SIGSEGV, (2) the OOM killer\n" + HEAD +
         "ray.exceptions.ActorDiedError: The actor died\n", "peer_failed"),
        ('level=fatal msg="initializing source oci-archive:a.tar: file does not exist"\n', "container_image_error"),
        # the innermost cause
        (JVM + WRAPPED + "Caused by: java.net.ConnectException: Connection refused\n\t... 2 more\n", "network_error"),
        ("error: error validating data: failed to download openapi: dial tcp: connection refused\n", "network_error"),
        ("error: error validating data: unknown object type\n", "invalid_config"),
    ],
)  # fmt: skip
def test_a_tool_s_message_has_its_meaning(text: str, reason: str) -> None:
    found = verdict(text)
    assert (found.failed, found.reason) == (True, reason), found


def test_a_table_may_state_the_confidence_of_a_signature() -> None:
    text = HEAD + "RuntimeError: PytorchStreamReader failed reading zip archive\n"
    assert verdict(text).confidence == load().signatures["torch-reader-failed"].confidence == 0.8

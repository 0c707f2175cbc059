"""Samples of /proc/net/dev and mountstats, and the output of nfsiostat."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats import traffic_mountstats, traffic_netdev, traffic_nfsiostat
from gpuctl.ingest.formats.traffic_nfsiostat import interval_of
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.ingest.traffic.procfs import interfaces, nfs_mounts
from gpuctl.ingest.traffic.timestamps import reader
from gpuctl.store.database import Store
from tests.traffic_loading import FIXTURES, Loaded

NETDEV, MOUNTSTATS, NFSIOSTAT = traffic_netdev.FORMAT, traffic_mountstats.FORMAT, traffic_nfsiostat.FORMAT
HEADING = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
)


def interface(name: str, received: int) -> str:
    return f"{name:>6}: {received} 1 0 0 0 0 0 0 99999 1 0 0 0 0 0 0\n"


def sample(time: str, **received: int) -> str:
    return f"{time}\n{HEADING}{''.join(interface(name, count) for name, count in received.items())}"


def test_a_real_recording_of_two_downloads(store: Store) -> None:
    found = Loaded(NETDEV, (FIXTURES / "netdev.txt").read_bytes(), store, "train-7.txt")
    assert found.counts == (8, 8, 0)
    (series,) = found.series().values()
    assert list(found.series()) == ["train-7"]
    big = [size for _, size, _ in series if size > 1e6]
    # 20 000 000 bytes each, and 0.1 % of headers
    assert [0 < size / 20e6 - 1 < 0.002 for size in big] == [True, True]
    assert series[0][1:] == (0, None)
    assert series[0][0] == pytest.approx(1795251289.818288, abs=1e-6)


def test_each_interface_is_a_series_but_the_loopback_and_idle_ones(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    text = sample("100000000.5", lo=5, eth0=100, ib0=7, docker0=3) + sample(
        "100000001.5", lo=9, eth0=150, ib0=8, docker0=3
    )
    found = Loaded(NETDEV, text, store)
    assert found.counts == (6, 6, 0)
    assert found.series() == {
        "job/eth0": [(100000000.5, 0, None), (100000001.5, 50, 1)],
        "job/ib0": [(100000000.5, 0, None), (100000001.5, 1, 1)],
    }
    assert "interfaces that received nothing are left out: docker0" in caplog.text


def test_idle_interfaces_stay_where_there_are_no_others(store: Store) -> None:
    found = Loaded(NETDEV, sample("100000000", eth0=1, ib0=2) + sample("100000001", eth0=1, ib0=2), store)
    assert sorted(found.series()) == ["job/eth0", "job/ib0"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1795251289.818288651", 1795251289.818288),
        ("1795251289", 1795251289),
        ("1795251289818", 1795251289.818),
        ("1795251289818288651", 1795251289.818288),
        ("2026-11-21T08:54:49+00:00", 1795251289),
        ("2026-11-21T09:54:49,5+0100", 1795251289.5),
        ("2026-11-21 08:54:49Z", 1795251289),
        ("2026-11-21T09:54:49", 1795251289),
        ("2026-11-21 09:54:49.25", 1795251289.25),
    ],
)
def test_times_between_samples(text: str, seconds: float) -> None:
    assert reader("Europe/Berlin")(f"  {text} \r") == round(seconds * 1e6)


@pytest.mark.parametrize(
    "text", ["", "eth0: 1", "123", "2026-13-21T08:54:49", "Sat Nov 21 10:00:00 UTC 2026", "12345678901"]
)
def test_other_lines_are_no_times(text: str) -> None:
    assert reader("UTC")(text) is None


def test_lines_that_are_no_part_of_a_sample_are_rejected(store: Store) -> None:
    text = (
        HEADING
        + interface("eth0", 5)
        + sample("100000000", eth0=10)
        + "cat: /proc/net/dev: No such file or directory\n  eth0: 17 1 0\n\xff\n"
        + sample("100000002", eth0=30)
        + sample("100000001", eth0=40)
    )
    found = Loaded(NETDEV, text.encode("latin-1"), store)
    assert found.counts == (7, 2, 5)
    assert found.reasons == {
        traffic_netdev.NO_TIME: 1,
        "neither a time nor a line of /proc/net/dev": 2,
        "not valid UTF-8": 1,
        "time is not after that of the sample before it of the same job": 1,
    }
    assert found.series() == {"job": [(100000000, 0, None), (100000002, 20, 2)]}


def test_mountstats_count_what_came_from_the_server(store: Store) -> None:
    text = (FIXTURES / "mountstats.txt").read_text()
    found = Loaded(MOUNTSTATS, text, store)
    read = [int(line.split()[5]) for line in text.splitlines() if line.startswith("\tbytes:")]
    times = [float(time) for time in re.findall(r"^\d+\.\d+$", text, re.MULTILINE)]
    assert found.counts == (12, 12, 0)
    expected = [(times[0], 0, None)]
    expected += [(t, b - a, t - s) for s, t, a, b in zip(times, times[1:], read, read[1:], strict=False)]
    assert found.series() == {"job": expected}
    assert [fmt.name for fmt in all_formats() if fmt.sniff("x", text.encode())] == ["traffic-mountstats"]


def test_a_mount_without_byte_counts_is_read_from_its_replies(store: Store) -> None:
    text = (FIXTURES / "mountstats.txt").read_text()
    replies = [int(line.split()[5]) for line in text.splitlines() if line.startswith("\t        READ:")]
    found = Loaded(MOUNTSTATS, re.sub(r"^\tbytes:.*\n", "", text, flags=re.MULTILINE), store)
    assert [size for _, size, _ in found.series()["job"]] == [
        0,
        *(b - a for a, b in pairwise(replies)),
    ]


def test_two_mounts_are_two_series_and_torn_samples_are_rejected(store: Store) -> None:
    def mount(path: str, read: str, replies: int = 7) -> str:
        bytes_line = f"\tbytes:\t9 0 0 0 {read} 0 0 0\n" if read else ""
        head = f"device nas:/x mounted on {path} with fstype nfs statvers=1.1\n"
        return f"{head}{bytes_line}\tper-op statistics\n\t        READ: 1 1 0 100 {replies} 0 0 0\n"

    text = (
        mount("/early", "1")
        + "100000000\ndevice x mounted on / with fstype ext4\n"
        + mount("/a\\040b", "10") + mount("/c", "5")
        + "100000001\nno device mounted on /mnt with fstype nfs4\n"
        + mount("/a\\040b", "30") + mount("/c", "", 900)
        + "100000002\n"
        + mount("/a\\040b", "31") + mount("/c", "6") + mount("/d", "", 0).replace("READ", "WRITE")
        + "garbage\n"
    )  # fmt: skip
    found = Loaded(MOUNTSTATS, text, store)
    assert found.series() == {
        "job/a b": [(100000000, 0, None), (100000001, 20, 1), (100000002, 1, 1)],
        "job/c": [(100000000, 0, None), (100000002, 1, 2)],
    }
    assert found.counts == (9, 5, 4)
    assert found.reasons == {
        traffic_mountstats.NO_TIME: 1,
        "no line bytes: that can be read, which this mount's first sample had": 1,
        "neither a line bytes: nor a line READ: that can be read in this mount's statistics": 1,
        "neither a time nor a line of mountstats": 1,
    }


def test_counters_of_the_kernel_for_a_recording() -> None:
    assert interfaces(sample("1", lo=4, eth0=5)) == {"eth0": 5}
    assert interfaces(sample("1", lo=4), loopback=True) == {"lo": 4}
    head = "device nas:/x mounted on {} with fstype nfs4 statvers=1.1\n\tbytes:\t1 0 0 0 {} 0 0 0\n"
    # two folders of one export share one set of counters; at 0 that cannot be told and does no harm
    shared = head.format("/a", 10) + head.format("/b", 10) + head.format("/c", 0) + head.format("/d", 0)
    assert nfs_mounts(shared) == {"/a": 10, "/c": 0, "/d": 0}
    assert nfs_mounts("device x mounted on / with fstype ext4\n\tbytes:\t1 0 0 0 5 0 0 0\n") == {}


def test_nfsiostat_finds_its_interval_and_leaves_the_first_report_out(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    text = (FIXTURES / "nfsiostat.txt").read_text()
    rates = [float(line.split()[1]) for line in re.findall(r"^read:.*\n(.*)", text, re.MULTILINE)]
    found = Loaded(NFSIOSTAT, text, store)
    assert found.counts == (26, 26, 0)
    assert found.series() == {
        "job": [(0, 0, None), *((5 * k, pytest.approx(rates[k] * 1024 * 5), 5) for k in range(1, 26))]
    }
    assert "reports every 5 s, as their rates have it (their times are counted from 1970)" in caplog.text
    assert [fmt.name for fmt in all_formats() if fmt.sniff("x", text.encode())] == ["traffic-nfsiostat"]


def test_nfsiostat_with_times_and_one_number_a_line(store: Store) -> None:
    def report(time: int, rate: str) -> str:
        return (
            f"{time}\n\nnas:/x mounted on /x:\n\n   op/s         rpc bklog\n 262.16\n   0.00\n"
            "read:   ops/s   kB/s   kB/op   retrans   avg RTT (ms)   avg exe (ms)\n"
            f"   11.557\n   {rate}\n  30.812\n  0 (0.0%)\n"
        )

    text = report(100000000, "5.0") + report(100000010, "10.0") + report(100000020, "20.0")
    found = Loaded(
        NFSIOSTAT, text + "oops\n" + text[: text.index("   11.557")].replace("100000000", "100000030"), store
    )
    assert found.series() == {
        "job": [(100000000, 0, None), (100000010, 102400, 10), (100000020, 204800, 10)],
    }
    assert found.counts == (5, 3, 2)
    assert found.reasons == {"neither a time nor a line of nfsiostat": 1, "the numbers of this part are missing": 1}


def test_nfsiostat_too_short_to_show_its_interval_is_refused(store: Store) -> None:
    text = (FIXTURES / "nfsiostat.txt").read_text()
    with pytest.raises(InputError, match=r"the interval of nfsiostat is unclear: \d+ different rates"):
        Loaded(NFSIOSTAT, "".join(text.splitlines(keepends=True)[:50]), store)


@pytest.mark.parametrize("seconds", [1, 2, 5, 7, 10, 30, 60, 300])
def test_the_interval_follows_from_the_rates(seconds: int) -> None:
    counts = [17 + 31 * k % 997 for k in range(60)]
    assert interval_of([round(count / seconds, 3) for count in counts]) == seconds


def test_rates_that_fit_no_interval_give_none() -> None:
    assert interval_of([0.0] * 100) is None
    assert interval_of([k / 5 for k in range(19)]) is None
    assert interval_of([round(k * 2**0.5, 3) for k in range(1, 200)]) is None

"""A file server and a compute node, each in a network namespace, and one rate-limited cable between them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    pass

SERVER: Final = "10.77.0.1"
CLIENT: Final = "10.77.0.2"
PORT: Final = 8080
IFACE: Final = "data0"
PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
PROGRAMS: Final = ("ip", "tc", "nginx")

NGINX: Final = """daemon off;
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 300s;
  keepalive_requests 1000000;
  client_max_body_size 0;
  client_body_temp_path {folder}/tmp;
  server {{
    listen {address}:{port};
    location /data/ {{ alias {data}/; }}
    location /checkpoints/ {{ alias {folder}/checkpoints/; dav_methods PUT; }}
  }}
}}
"""


def missing() -> str | None:
    """Why no file server can be run here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if absent:
        return f"no {', '.join(absent)} on this machine (apt-get install nginx-light iproute2)"
    if os.geteuid():
        return "network namespaces need root"
    name = f"gpuctl-{os.getpid()}-probe"
    done = subprocess.run(["ip", "netns", "add", name], env=_env(), capture_output=True, text=True, check=False)
    if done.returncode:
        return f"no network namespaces here: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], env=_env(), check=False)
    return None


class Net:
    """The two namespaces with nginx in one of them; a context manager.

    Args:
        data: folder that the server hands out as ``/data/``.
        folder: empty; the server's checkpoints and logs.
        mbit: rate of the cable in both directions, Mbit/s.
    """

    def __init__(self, data: Path, folder: Path, mbit: int) -> None:
        self.data, self.folder, self.mbit = data, folder, mbit
        self.store, self.node = (f"gpuctl-{os.getpid()}-{end}" for end in ("store", "node"))
        self._nginx: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Net:
        try:
            self._cable()
            self._serve()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def inside(self, *command: str | Path) -> list[str]:
        """The command line that runs a command on the compute node; it keeps its process id."""
        return ["ip", "netns", "exec", self.node, *map(str, command)]

    def stop(self) -> None:
        """End the server and take the namespaces away; also after a start that failed half-way."""
        if self._nginx is not None:
            self._nginx.terminate()
            self._nginx.wait(timeout=10)
        for name in (self.store, self.node):
            subprocess.run(["ip", "netns", "del", name], env=_env(), stderr=subprocess.DEVNULL, check=False)

    def _cable(self) -> None:
        ends = ((self.store, SERVER, "store0"), (self.node, CLIENT, IFACE))
        for name, _, _ in ends:
            _run("ip", "netns", "add", name)
            # no router solicitations among the counted bytes
            _run("ip", "netns", "exec", name, "sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1")
        _run(
            "ip", "link", "add", "store0", "netns", self.store, "type", "veth",
            "peer", "name", IFACE, "netns", self.node,
        )  # fmt: skip
        for name, address, iface in ends:
            _run("ip", "-n", name, "addr", "add", f"{address}/30", "dev", iface)
            _run("ip", "-n", name, "link", "set", iface, "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            shape = ("rate", f"{self.mbit}mbit", "burst", "256kb", "latency", "50ms")
            _run("tc", "-n", name, "qdisc", "add", "dev", iface, "root", "tbf", *shape)

    def _serve(self) -> None:
        for name in ("checkpoints", "tmp"):
            (self.folder / name).mkdir()
        conf = self.folder / "nginx.conf"
        conf.write_text(NGINX.format(folder=self.folder, data=self.data, address=SERVER, port=PORT), "utf-8")
        command = ["ip", "netns", "exec", self.store, "nginx", "-p", str(self.folder), "-c", str(conf)]
        self._nginx = subprocess.Popen([*command, "-e", str(self.folder / "error.log")], env=_env())
        probe = ["ip", "netns", "exec", self.store, "sh", "-c", f"cat /proc/net/tcp | grep -q ':{PORT:04X} '"]
        deadline = time.monotonic() + 10
        while subprocess.run(probe, env=_env(), check=False).returncode:
            if self._nginx.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "error.log").read_text("utf-8", "replace")
                raise RuntimeError(f"nginx does not listen: {log}")
            time.sleep(0.05)


def _env() -> dict[str, str]:
    return {**os.environ, "PATH": PATH}


def _run(*command: str) -> None:
    done = subprocess.run(command, env=_env(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")

"""Records of batch systems, made up for tests: LSF's JOB_FINISH, Grid Engine's accounting lines, HTCondor's ads."""

from __future__ import annotations

from typing import Any

T0 = 1_800_000_000
"""2027-01-15 08:00:00 UTC: times below count from here."""


def quoted(text: str) -> str:
    """A text as LSF writes it."""
    return '"' + text.replace('"', '""') + '"'


def lsf(
    job: int, submit: int, start: int, end: int, *, version: str = "10.1", status: int = 64, exit_status: int = 0,
    exit_info: int = 0, hosts: tuple[str, ...] = ("n1",), slots: int | None = None, index: int = 0, begin: int = 0,
    user: str = "eve", queue: str = "gpu", project: str = "vision", name: str = "fit", gpu_request: str = "",
    request: str = "select[type == local] order[r15s:pg] ", limit: int = -1, alloc: str = "", waited: int = -1,
    cpu: tuple[float, float] = (12.5, 1.25), usage: int = 0, command: str = 'python "a b.py"',
) -> str:  # fmt: skip
    """One line of lsb.acct; start 0: it never started. `usage`: fields of each host's usage, as LSF 9 has them."""
    at = [T0 + submit, T0 + begin if begin else 0, 0, T0 + start if start else 0]
    cells = [
        quoted("JOB_FINISH"), quoted(version), str(T0 + end), str(job), "1001", "33816578", str(slots or len(hosts)),
        *map(str, at), *map(quoted, (user, queue, "", "", "", "login1", "/home/eve", "", "%J.out", "", f"{T0}.{job}")),
        "0", str(len(hosts)), *map(quoted, hosts), str(status), "60.0", quoted(name), quoted(command),
        f"{cpu[0]:.6f}", f"{cpu[1]:.6f}", *["0"] * 17, quoted(""), quoted(project), str(exit_status), "1",
        quoted(""), quoted(""), str(index), "2048", "0", quoted(""), quoted(""), quoted(""),
    ]  # fmt: skip
    if version == "5.1":
        return " ".join(cells)
    cells += [quoted(""), "0", quoted(""), str(exit_info), quoted(""), "-1", quoted("/" + user), quoted(""), quoted("")]
    cells += [quoted(""), "-1", quoted(""), quoted(""), "6160", quoted(""), str(at[3]), quoted(""), quoted("")]
    pairs = ["1036", "1", "1042", quoted(gpu_request)] if gpu_request else []
    cells += [str(len(pairs) // 2), *pairs]
    if version == "7.06":
        return " ".join(cells)
    each = {0: [], 5: ["10", "0", "5", "1"], 6: ["10", "0", "5", "1", "0"]}[usage]
    cells += [str(len(hosts) if usage else 0), *(cell for host in hosts if usage for cell in [host, *each])]
    cells += [str(limit), "0", "1024", quoted(request), '""', "-1", '""', "-1", "0", '""', "0", "0", '""', "77"]
    cells += ['""', "0"]
    if version == "9.11":
        return " ".join(cells)
    cells += ['""', "0.000000", "0.00", "0.00", "0.00", "0.00", str(len(hosts)), *map(quoted, hosts)]
    cells += [str(waited), "0", "0"]
    cells += ["1", quoted(hosts[0] if hosts else ""), "1", quoted("1"), quoted(alloc)] if alloc else ["0"]
    return " ".join([*cells, "0", "1", quoted("schedulingOverhead"), quoted("0.00")])


def gpu_alloc(**gpus: int) -> str:
    """What LSF 10.1 notes of the GPUs of each host."""
    parts = "".join(
        host + "{" + f"{k}" + "".join(f"[{n}:{n // 2}]" for n in range(n_gpus)) + "}"
        for k, (host, n_gpus) in enumerate(gpus.items())
    )
    return f'GPU_ALLOC="{parts}"GPU_MODELS="NVIDIAA100-81920{{0[0]}}"GPU_SOCKETS="0{{0[0]}}"'


def sge(
    job: int, submit: int, start: int, end: int, *, task: int = 0, failed: int = 0, status: int = 0, host: str = "n1",
    pe: str = "NONE", slots: int = 1, category: str = "-l gpu=2,h_rt=3600", owner: str = "eve", project: str = "vision",
    pe_task: str = "NONE", version: int = 6, cpu: str = "13.750000", max_vmem: str = "189153280.000000",
    deleted_by: str = "NONE", queue: str = "gpu.q",
) -> str:  # fmt: skip
    """One accounting line; start 0: it never started. `version` 0: SGE 6.0; 6: 6.2; 8: UGE with milliseconds."""
    scale = 1000 if version == 8 else 1
    times = [(T0 + at) * scale if at else 0 for at in (submit, start, end)]
    cells = [
        queue, host, "staff", owner, "fit.sh", str(job), "sge", "0", *map(str, times), str(failed), str(status),
        str(end - start if start else 0), "13.5", "0.25", "104188.0", *["0"] * 14, project, "defaultdepartment",
        pe, str(slots), str(task), cpu, "7.3", "0.0", category, "0.000000", pe_task, max_vmem,
    ]  # fmt: skip
    if version >= 6:
        cells += ["0", "0"]
    if version == 8:
        cells += ["NONE", deleted_by, "668106752", "638583808", "login1", "/home/eve", "qsub fit.sh", "60.5", "7"]
    return ":".join(cells)


def condor(job: int, submit: int, **attributes: Any) -> dict[str, Any]:
    """One ClassAd of a job."""
    own = {"ClusterId": job, "ProcId": 0, "Owner": "eve", "QDate": T0 + submit, "JobUniverse": 5, "MyType": "Job"}
    asked = {"RequestCpus": 4, "RequestMemory": 2048, "AcctGroup": "vision", "Cmd": "/home/eve/fit.sh"}
    return {**own, **asked, **attributes}


def long_ad(ad: dict[str, Any]) -> str:
    """An ad as ``condor_history -long`` writes it, without the blank line behind it."""
    return "".join(f"{name} = {_long(value)}\n" for name, value in ad.items())


def _long(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'
    return str(value)


def xml_ads(ads: list[dict[str, Any]]) -> str:
    """Ads as ``condor_history -xml`` writes them."""
    each = ("".join(f'    <a n="{name}">{_xml(value)}</a>\n' for name, value in ad.items()) for ad in ads)
    body = "".join(f"<c>\n{attributes}</c>\n" for attributes in each)
    return f'<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n{body}</classads>\n'


def _xml(value: object) -> str:
    if isinstance(value, bool):
        return f'<b v="{"t" if value else "f"}"/>'
    if isinstance(value, str):
        return "<s>" + value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + "</s>"
    return f"<i>{value}</i>" if isinstance(value, int) else f"<r>{value}</r>"

"""Record what a real sreport totals of GPU jobs that were suspended, requeued and failed: sreport.txt and sacct.txt.

    TZ=UTC python -m labs.slurm.sreport DIR

slurmdbd rolls up whole hours that are over. So all times of the jobs that ran here, within a minute, are stretched by
`STRETCH` and moved back by days in its database; then it is started anew, and rolls up and reports them itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from labs.slurm.lab import Lab, missing

STRETCH = 300
DAY_S = 86_400
FIELDS = (
    "JobIDRaw,JobID,JobName,User,Account,Partition,QOS,Cluster,State,ExitCode,Submit,Eligible,Start,End,ElapsedRaw,"
    "Suspended,Timelimit,NNodes,NCPUS,NTasks,ReqTRES,AllocTRES,NodeList,TotalCPU,MaxRSS,TRESUsageInTot,SubmitLine"
)
USERS = {"news": "nlp", "uucp": "nlp", "games": "vision", "mail": "vision"}
AGAIN = "[ ${SLURM_RESTART_COUNT:-0} -gt 0 ] && exec sleep 8; sleep 6; exit 99"


def _sql(lab: Lab, *statements: str) -> str:
    command = ["mariadb", "--no-defaults", f"--socket={lab.folder}/run/mysql.sock", "--user=root", "slurm_acct_db"]
    return lab.run(*command, "--skip-column-names", f"--execute={'; '.join(statements)}")


def _jobs(lab: Lab) -> None:
    """Run them; the first one is suspended for a while."""

    def submit(user: str, *what: str) -> str:
        command = ["sbatch", "--parsable", "--output=/dev/null", f"--account={USERS[user]}", "--mem=500"]
        return lab.run(*command, *what, user=user).strip()

    first = submit("news", "--gres=gpu:1", "--wrap=sleep 25")
    for number, user in enumerate(USERS):
        submit(user, f"--gres=gpu:{number % 3 + 1}", "--wrap=sleep 25")
        submit(user, "--gres=gpu:v100:2", "--wrap=sleep 12; exit 3")
    submit("news", "--gres=gpu:2", "--requeue", f"--wrap={AGAIN}")
    time.sleep(8)
    lab.run("scontrol", "suspend", first)
    time.sleep(6)
    lab.run("scontrol", "resume", first)
    while lab.run("squeue", "--noheader").strip():
        time.sleep(1)
    time.sleep(4)


def _moved(lab: Lab) -> int:
    """Stretch and move all times; return the first one."""
    first = int(_sql(lab, "SELECT min(time_submit) FROM lab_job_table"))
    begin = (int(time.time()) // DAY_S - 3) * DAY_S + 35_400
    for table, columns in (
        ("job", ("time_submit", "time_eligible", "time_start", "time_end")),
        ("step", ("time_start", "time_end")),
        ("suspend", ("time_start", "time_end")),
    ):
        for column in columns:
            moved = f"{begin} + ({column} - {first}) * {STRETCH}"
            _sql(lab, f"UPDATE lab_{table}_table SET {column} = {moved} WHERE {column} > 0")
    before = begin - 7200
    _sql(
        lab,
        *(f"UPDATE lab_{t}_table SET time_suspended = time_suspended * {STRETCH}" for t in ("job", "step")),
        f"UPDATE lab_event_table SET time_start = {before}",
        f"UPDATE lab_last_ran_table SET hourly_rollup = {before}, daily_rollup = {before}, monthly_rollup = {before}",
        *(f"DELETE FROM lab_{t}usage_{s}_table" for t in ("", "assoc_") for s in ("hour", "day")),
        *(f"UPDATE {t}_table SET creation_time = {before}" for t in ("lab_assoc", "tres", "cluster")),
    )
    return begin


def main(folder: Path) -> None:
    """Record them."""
    if missing():
        sys.exit(missing())
    folder.mkdir(parents=True, exist_ok=True)
    with Lab() as lab:
        _jobs(lab)
        begin = _moved(lab)
        os.kill(int((lab.folder / "run" / "slurmdbd.pid").read_text()), signal.SIGTERM)
        time.sleep(3)
        subprocess.run(["/usr/sbin/slurmdbd"], env=lab.env, check=True)
        time.sleep(25)
        start, end = (time.strftime("%Y-%m-%dT00:00:00", time.gmtime(begin + days * DAY_S)) for days in (0, 2))
        report = ("sreport", "-P", "-t", "seconds", "-T", "gres/gpu", "cluster", "AccountUtilizationByUser")
        (folder / "sreport.txt").write_text(lab.run(*report, f"Start={start}", f"End={end}"))
        sacct = ("sacct", "--allusers", "--duplicates", "--parsable2", f"--starttime={start}", f"--endtime={end}")
        (folder / "sacct.txt").write_text(lab.run(*sacct, f"--format={FIELDS}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

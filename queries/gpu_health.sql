-- title: Faults of GPUs
-- section: failures
-- order: 115
-- question: Which GPUs had faults, and which users did they affect?
-- population: {gpu_faults} event{gpu_faults||s} of GPUs from logs of kernels and from exporters: lines of one GPU, XID and process within 60 s are one event; the gauge of the last XID, and counters, add what the logs lack. A counter's rises in consecutive samples are one event. Lost: a GPU has no samples for 10 minutes or more while all other GPUs of its node have them. An event belongs to the job that held the GPU then, else to the one that ended up to 10 minutes before or starts within 60 s.
-- needs: gpu_faults
-- key_columns: machine, gpu, signal, code, events, jobs, cause, action
-- column: machine | - | name of the node
-- column: gpu | - | NVML index of the GPU; empty: no source maps its PCI address
-- column: signal | - | xid (recorded by NVIDIA's driver), ecc_dbe (double-bit errors), remap (remapped rows), throttle (hardware slowdown, heat, power brake; not the power cap), nvlink, pcie (replays), lost
-- column: code | - | number of the XID
-- column: first_ts | UTC | first event
-- column: last_ts | UTC | last event
-- column: events | events | how many
-- column: jobs | - | ids of the jobs that held the GPU, separated by commas; of a node where it is not known which GPUs jobs held, all of them
-- column: users | users | distinct users of these jobs
-- column: what | - | what the code stands for
-- column: cause | - | user (a bug of the program), hardware (hardware or driver), unclear
-- column: action | - | what to do with the node
WITH signals(signal, what, action) AS (
    VALUES ('ecc_dbe', 'double-bit ECC errors', 'reset'), ('remap', 'rows remapped, or remapping failed', 'reset when idle; replace if remapping failed'),
           ('throttle', 'clocks lowered by the hardware', 'check cooling and power'), ('nvlink', 'NVLink errors', 'reset; replace if it is repeated'),
           ('pcie', 'PCIe replays', 'check the slot and the link'), ('lost', 'no samples while other GPUs of the node had them', 'reboot; often replace')
),
hit AS (
    SELECT f.machine, f.gpu, f.signal, f.code, f.ts, unnest(CASE WHEN len(f.jobs) = 0 THEN [NULL] ELSE f.jobs END) AS job, f.rowid AS event
    FROM gpu_faults AS f WHERE f.cluster = $cluster
)
SELECT * FROM (
SELECT h.machine, h.gpu, h.signal, h.code, min(h.ts) AS first_ts, max(h.ts) AS last_ts, count(DISTINCT event) AS events,
       string_agg(DISTINCT h.job, ',' ORDER BY h.job) AS jobs, count(DISTINCT j."user") AS users,
       coalesce(min(x.what), min(s.what)) AS what, coalesce(min(x.cause), CASE WHEN h.signal = 'xid' THEN 'unclear' ELSE 'hardware' END) AS cause,
       coalesce(min(x.action), min(s.action), 'check') AS action
FROM hit AS h
LEFT JOIN base_jobs AS j ON j.job = h.job
LEFT JOIN base_xid_meanings AS x ON h.signal = 'xid' AND x.code = h.code
LEFT JOIN signals AS s ON s.signal = h.signal
GROUP BY h.machine, h.gpu, h.signal, h.code
)
ORDER BY cause <> 'hardware', events DESC, machine, gpu, signal, code

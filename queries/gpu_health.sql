-- title: Faults of GPUs
-- section: failures
-- order: 115
-- question: Which GPUs had faults, and whose were they?
-- population: {gpu_faults} event{gpu_faults||s} of GPUs from logs of kernels and counters of exporters: lines of one GPU, XID and process within 60 s are one event; the gauge of the last XID adds what the logs lack. An event is of the job that held the GPU then, else of the one that ended up to 10 minutes before or starts within 60 s.
-- needs: gpu_faults
-- key_columns: machine, gpu, signal, code, events, jobs, cause, action
-- column: machine | - | name of the node
-- column: gpu | - | NVML index of the GPU; empty: no source maps its PCI address
-- column: signal | - | xid (recorded by NVIDIA's driver), ecc_dbe, remap, throttle, nvlink, pcie, lost
-- column: code | - | number of the XID
-- column: first_ts | UTC | first event
-- column: last_ts | UTC | last event
-- column: events | events | how many
-- column: jobs | - | ids of the jobs that held the GPU, separated by commas; of a node where it is not known which GPUs jobs held, all of them
-- column: users | users | distinct users of these jobs
-- column: what | - | what the code stands for
-- column: cause | - | user (a bug of the program), hardware (hardware or driver), unclear
-- column: action | - | what to do with the node
WITH xids(code, what, cause, action) AS (
    VALUES (13, 'engine exception', 'user', 'none'), (31, 'memory page fault', 'user', 'none'), (43, 'program stopped after a fault', 'user', 'none'),
           (45, 'clean-up after another fault or a kill', 'unclear', 'none'), (32, 'corrupted push buffer', 'unclear', 'check if it is repeated'),
           (38, 'driver fault', 'hardware', 'reset'), (61, 'microcontroller fault', 'hardware', 'reset'), (62, 'microcontroller halt', 'hardware', 'reset'),
           (48, 'double-bit ECC error', 'hardware', 'reset'), (63, 'page or row retired', 'hardware', 'reset when idle'),
           (64, 'retirement failed', 'hardware', 'drain and replace'), (74, 'NVLink error', 'hardware', 'reset; replace if it is repeated'),
           (79, 'fell off the bus', 'hardware', 'reboot; often replace'), (92, 'many single-bit ECC errors', 'hardware', 'watch'),
           (94, 'contained ECC error', 'hardware', 'reset when idle'), (95, 'uncontained ECC error', 'hardware', 'reset'),
           (109, 'context switch time-out', 'unclear', 'reset if it is repeated'), (119, 'GSP time-out', 'hardware', 'reset; update the driver'),
           (120, 'GSP error', 'hardware', 'reset; update the driver'), (121, 'C2C link error', 'hardware', 'check'),
           (137, 'NVLink access error', 'hardware', 'check'), (140, 'unrecovered ECC error', 'hardware', 'reset'),
           (143, 'initialization failed', 'hardware', 'drain'), (149, 'NVLink fault', 'hardware', 'drain'), (150, 'NVLink fault', 'hardware', 'drain'),
           (154, 'recovery action changed', 'hardware', 'as the line names it')
),
hit AS (
    SELECT f.machine, f.gpu, f.signal, f.code, f.ts, unnest(CASE WHEN len(f.jobs) = 0 THEN [NULL] ELSE f.jobs END) AS job, f.rowid AS event
    FROM gpu_faults AS f WHERE f.cluster = $cluster
)
SELECT * FROM (
SELECT h.machine, h.gpu, h.signal, h.code, min(h.ts) AS first_ts, max(h.ts) AS last_ts, count(DISTINCT event) AS events,
       string_agg(DISTINCT h.job, ',' ORDER BY h.job) AS jobs, count(DISTINCT j."user") AS users,
       min(x.what) AS what, coalesce(min(x.cause), CASE WHEN h.signal = 'xid' THEN 'unclear' ELSE 'hardware' END) AS cause,
       coalesce(min(x.action), 'check') AS action
FROM hit AS h
LEFT JOIN base_jobs AS j ON j.job = h.job
LEFT JOIN xids AS x ON h.signal = 'xid' AND x.code = h.code
GROUP BY h.machine, h.gpu, h.signal, h.code
)
ORDER BY cause <> 'hardware', events DESC, machine, gpu, signal, code

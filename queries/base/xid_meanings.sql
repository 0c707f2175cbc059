-- What XIDs of NVIDIA's driver stand for, whose they are, and what to do with the node; NVIDIA's catalogue, docs.nvidia.com/deploy/xid-errors.
SELECT * FROM (
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
) AS known(code, what, cause, action)

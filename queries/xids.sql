-- title: XIDs of NVIDIA's driver
-- section: reliability
-- order: 90
-- question: Which XIDs occurred, and what did they end?
-- population: Lines of kernel logs, and XIDs that only telemetry shows; repeats of one node, device and code within 5 s are one event. Classes follow the action that NVIDIA's catalogue names.
-- needs: xids
-- column: xid | - | the code
-- column: meaning | - | in NVIDIA's catalogue
-- column: class | - | hardware, application, watch (counted, no evidence) or other
-- column: events | events | repeats counted once
-- column: lines | lines | of the log, or changes of the gauge
-- column: machines | nodes | with it
-- column: attempts_ended | attempts | that infrastructure ended with this XID near the end
-- column: per_1000_node_days | 1/1000 node-days | events
SELECT xid, meaning, class, events, lines, machines, attempts_ended, per_1000_node_days
FROM base_reliability_xids
ORDER BY position

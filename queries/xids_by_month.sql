-- title: XIDs by month and GPU type
-- section: reliability
-- order: 92
-- question: Which XIDs became more frequent, on which GPUs?
-- population: As in xids, by calendar month (UTC) and GPU type of the node; node-days in which attempts held GPUs of these nodes in that month.
-- needs: xids
-- detail: yes
-- column: month | - | calendar month (UTC)
-- column: gpu_type | - | GPUs of the node; empty: not known
-- column: xid | - | the code
-- column: class | - | hardware, application, watch or other
-- column: events | events | repeats counted once
-- column: machines | nodes | with it
-- column: node_days | node-days | in which attempts held GPUs of nodes of the type
-- column: per_1000_node_days | 1/1000 node-days | events
SELECT month, gpu_type, xid, class, events, machines, node_days, per_1000_node_days
FROM base_reliability_xids_by_month
ORDER BY position

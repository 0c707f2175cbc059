-- title: Free GPUs and fragmentation
-- section: overview
-- order: 58
-- question: Were GPUs free that no waiting job could use?
-- population: {waiting_gangs} wait{waiting_gangs||s} of eligible attempts that requested GPUs, including attempts that never started. Time-weighted means by period (--by: hour, day, week, month, quarter), UTC. A gang fits if it can have the fewest nodes that hold it, all in one rack, among the nodes of its queue; racks: {rack_note}. GPUs of down nodes are not free. Quotas, CPUs and memory are ignored.
-- needs: placements
-- detail: yes
-- column: ts | UTC | start of the period
-- column: free_gpus | GPUs | free GPUs of all nodes
-- column: largest_gang | GPUs | the largest gang that would fit
-- column: stranded_gpus | GPUs | free GPUs that no waiting job can use; 0 while no job waits
-- column: waiting_gpus | GPUs | requested by waiting jobs
-- chart: time x=ts y=free_gpus,stranded_gpus,largest_gang y_title=GPUs
--   page.title="Free GPUs, free GPUs that no waiting job could use, and the largest gang that would fit"
--   terminal.title="Free GPUs and the largest gang that would fit, over time"
--   terminal.y="free_gpus:free,largest_gang:largest gang,stranded_gpus:unusable by waiting jobs"
SELECT to_timestamp(start_s) AS ts, free AS free_gpus, largest AS largest_gang, stranded AS stranded_gpus, waiting AS waiting_gpus
FROM base_fragmentation
ORDER BY ts

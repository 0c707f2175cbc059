-- title: Efficiency of requests, by job
-- section: utilization
-- order: 60
-- question: How much did each job use of the CPUs, memory, time and GPUs that it requested?
-- population: jobs that started, each with its last attempt that started. CPU time and memory come from Slurm's accounting with its steps (sacct without -X), and are unknown for running jobs. GPU figures are those of job_gpu_usage.
-- detail: yes
-- needs: attempts
-- column: job | - | the source's job id
-- column: user | - | who submitted it
-- column: account | - | the account to which it is charged
-- column: state | - | final state
-- column: started_as | - | batch; interactive: salloc, srun --pty, jupyter (by name or command line); srun: without a terminal; salloc or srun: it has no batch step, and no source has its command line; empty: not known
-- column: gpus | GPUs | GPUs of the job
-- column: elapsed_h | h | time that it ran, without suspensions
-- column: cpus | CPUs | logical CPUs allocated: with two threads per core and one used, 50 % is full use
-- column: cpu_eff_pct | % | CPU time over CPUs times run time
-- column: mem_given_gb | GiB | memory allocated, all nodes together
-- column: mem_used_gb | GiB | most memory used, see mem_source; with cgroups it includes the page cache
-- column: mem_eff_pct | % | mem_used_gb over mem_given_gb; nothing is cut off at 100 %
-- column: mem_node_pct | % | on the fullest node, which runs out of memory first; jobstats only
-- column: mem_source | - | jobstats: sum of the nodes' peaks; TRESUsageInTot: the step with the most, an upper estimate: peaks of its tasks at different times are added; MaxRSS: the same from the largest task times the number of tasks
-- column: time_limit_h | h | time limit; empty: none, or not known
-- column: time_limit_pct | % | elapsed_h over time_limit_h
-- column: gpu_util_mean | % | mean utilization of its GPUs by telemetry: the share of time in which a kernel ran
-- column: gpu_util_coverage | - | share of its GPU-time with telemetry, 0 to 1
-- column: gpus_unused | GPUs | GPUs that were never used
-- column: idle_gpu_h | GPU-h | GPU-hours at exactly 0 %, including those of gpus_unused
SELECT job, "user", account, state, started_as, gpus, elapsed_s / 3600 AS elapsed_h, cpus, cpu_eff_pct, mem_given_mb / 1024 AS mem_given_gb, mem_used_mb / 1024 AS mem_used_gb,
       mem_eff_pct, mem_node_pct, mem_source, time_limit_s / 3600 AS time_limit_h, time_limit_pct, gpu_util_mean, gpu_util_coverage, gpus_unused, idle_gpu_h
FROM base_request_use
ORDER BY start_ts, job

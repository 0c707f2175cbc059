-- title: Efficiency of requests, by account
-- section: utilization
-- order: 62
-- question: How much did the jobs of each account use of the CPUs, memory, time and GPUs that they requested?
-- population: jobs as in efficiency. Percentages are weighted by allocation, and each covers the jobs for which both the request and its use are known; hours are those of the last attempts that started.
-- detail: yes
-- needs: attempts
-- column: account | - | the account; empty if the source names none
-- column: jobs | jobs | jobs that started
-- column: cpu_hours | h | logical CPUs times the time that jobs ran, of jobs whose CPU time is known
-- column: cpu_eff_pct | % | their CPU time over cpu_hours
-- column: mem_gb_hours | GiB-h | memory allocated times the time that jobs ran, of jobs whose memory is known
-- column: mem_eff_pct | % | their peak memory times the time that they ran, over mem_gb_hours
-- column: time_limit_hours | h | time limits of jobs that have one
-- column: time_limit_pct | % | the time that they ran over time_limit_hours
-- column: gpu_hours | GPU-h | GPUs times the time that jobs ran
-- column: measured_jobs | jobs | jobs with a mean GPU utilization; the following columns are empty without one
-- column: gpu_util_mean | % | their mean GPU utilization, weighted by their GPU-hours
-- column: gpus_unused | GPUs | GPUs that were never used, of all jobs together
-- column: idle_gpu_h | GPU-h | GPU-hours at exactly 0 %
SELECT name AS account, * EXCLUDE (name)
FROM base_account_requests
ORDER BY idle_gpu_h DESC NULLS LAST, gpu_hours DESC NULLS LAST, jobs DESC, name

-- title: Every job's times
-- section: runtime
-- order: 30
-- question: When was each job submitted, how long did it wait and run?
-- population: {jobs} job{jobs||s}.
-- detail: yes
-- column: job | - | the source's job id
-- column: queue | - | queue or virtual cluster
-- column: user | - | who submitted it
-- column: state | - | final state
-- column: num_gpus | GPUs | GPUs of the first attempt; empty if there is none
-- column: attempts | attempts | how many
-- column: submit_ts | UTC | submission
-- column: start_ts | UTC | first attempt's start
-- column: end_ts | UTC | last attempt's end
-- column: queueing_delay_min | min | first attempt's start - submission
-- column: run_time_min | min | under the chosen duration (--duration); with --definition notebook last end - first start
-- column: quirks | - | contradictions and gaps in the job's records
SELECT job, queue, "user", state, gpus AS num_gpus, attempts, submit_ts, start_ts, end_ts,
       wait_s / 60 AS queueing_delay_min, run_s / 60 AS run_time_min, array_to_string(quirks, ' ') AS quirks
FROM base_jobs
ORDER BY submit_ts, job

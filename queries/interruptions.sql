-- title: What interrupted attempts
-- section: reliability
-- order: 10
-- question: What ended attempts early, and who or what caused it?
-- population: Attempts that held GPUs and are over. Evidence, in this order: the scheduler's state, a log that only a user can cause, the earliest unplanned node event, hardware XID, double-bit ECC error or lost GPU from 15 minutes before the end to 5 after, a log's reason that names hardware or software, other jobs that ended at the same time. Without evidence the cause is unknown; the high end of a cause adds the unknown ones that it may have been. One fault that ends several attempts is one incident.
-- needs: placements
-- first_columns: 7
-- column: cause | - | what ended the attempts; all: interruptions, so neither completed nor cancelled
-- column: attempts | attempts | ended by it
-- column: jobs | jobs | of these attempts
-- column: incidents | incidents | faults of infrastructure, each counted once however many attempts it ended; empty for other causes
-- column: attempts_low | attempts | those that evidence shows
-- column: attempts_high | attempts | with the unknown ones that it may have been
-- column: gpu_hours | GPU-h | held by these attempts
-- column: gpu_hours_low | GPU-h | of those that evidence shows
-- column: gpu_hours_high | GPU-h | with the unknown ones
-- column: median_run_h | h | median run time of these attempts
-- column: narrowed_by | - | of unknown: what is not loaded and would show more, the most useful first
-- chart: bars x=cause y=gpu_hours title="GPU-hours of attempts, by cause of interruption"
SELECT cause, attempts, jobs, incidents, attempts_low, attempts_high, gpu_hours, gpu_hours_low, gpu_hours_high,
       median_run_h, narrowed_by
FROM base_reliability_interruptions
ORDER BY position

-- title: Gaps and errors in the log
-- section: quality
-- order: 10
-- question: Which rows are incomplete or contradictory, and how are they treated?
-- population: {jobs} job{jobs||s}, {attempts} attempt{attempts||s}; rejected rows are counted in the table sources.
-- column: finding | - | what was found
-- column: rows | rows | how many
-- column: treatment | - | how gpuctl treats them
WITH known(rank, level, quirk, finding, treatment) AS (
    VALUES
        (1, 'job', 'no_attempts', 'jobs without an attempt', 'counted as jobs; no size, wait or run time'),
        (2, 'job', 'gpus_changed', 'jobs whose attempts differ in GPUs', 'size of the first attempt; each attempt''s own in delays'),
        (2, 'job', 'missing_time', 'jobs for which the log lacks the submission, or the start or end of an attempt', 'left out of waits and run times that need it'),
        (3, 'attempt', 'no_start', 'ended attempts without a start in the log', 'no wait; GPU-hours from their run time, if the log states one'),
        (4, 'attempt', 'no_end', 'attempts without an end', 'the last of a job: still running; else held until the job''s next known time'),
        (4, 'attempt', 'end_unknown', 'ended attempts without an end in the log', 'no run time; hold no GPUs'),
        (5, 'attempt', 'overlap', 'attempts that overlap the job''s next attempt', 'hold GPUs until the next one starts'),
        (6, 'attempt', 'end_before_start', 'attempts that end before they start', 'no run time; hold no GPUs'),
        (7, 'job', 'start_before_submit', 'jobs that start before they are submitted', 'no wait'),
        (8, 'attempt', 'ambiguous_hour', 'attempts with a time in the hour that the clock change repeats', 'the earlier reading'),
        (9, 'job', 'ambiguous_hour', 'jobs with a time in the hour that the clock change repeats', 'the earlier reading'),
        (10, 'job', 'duration_includes_wait', 'jobs whose duration in the source includes the wait', 'run time from start to end'),
        (30, 'job', 'attempts_missing', 'jobs that were requeued more often, according to Slurm, than the log shows', 'export with sacct -D; until then the GPU-hours and waits of their earlier attempts are missing'),
        (31, 'job', 'job_row_lost', 'jobs with only an earlier attempt''s record', 'that attempt represents the job'),
        (32, 'job', 'mended', 'jobs with a record shifted by a stray delimiter or broken by a line end', 'repaired, if only one reading fits'),
        (33, 'job', 'not_utf8', 'jobs with bytes that are not UTF-8 in their record', 'these bytes are replaced'),
        (34, 'job', 'exit_code_may_be_folded', 'jobs whose true exit code may be 128 greater', 'as printed; sacct before 26.05 prints codes from 128 less 128 (JSON and database dumps do not)'),
        (35, 'job', 'exit_code_not_told', 'jobs that failed and have the exit code 0 in this release''s JSON', 'the code is unknown; the state counts'),
        (36, 'job', 'unknown_state', 'jobs in a state that the source does not document', 'counted as jobs, neither as passed nor as failed'),
        (37, 'job', 'array_rest', 'records that represent all tasks of an array that have not started', 'one job'),
        (38, 'job', 'shared_gpus', 'jobs with MIG instances, shards or MPS', 'a MIG instance counts as one GPU, as on its node, in sacct and in sreport; of shards or MPS alone the GPUs are unknown'),
        (39, 'job', 'gpus_requested', 'jobs whose allocated GPUs are not in the log', 'those that were requested'),
        (40, 'attempt', 'eligible_clamped', 'attempts whose eligible time lies outside submission to start', 'moved to the nearer of the two'),
        (41, 'attempt', 'suspended', 'attempts that were suspended for a time', 'held their GPUs meanwhile'),
        (42, 'attempt', 'nodes_unknown', 'attempts whose node list cannot be read', 'no placement; in GPU-hours, not in locality'),
        (44, 'attempt', 'gpus_not_tracked', 'attempts whose accounting record cannot state GPUs: no record of this cluster has gres/gpu, though it has GPUs', 'unknown, unless the controller states them: set AccountingStorageTRES=gres/gpu, load scontrol show job -d or squeue --json'),
        (45, 'attempt', 'gpus_from_controller', 'attempts whose GPUs accounting does not state and the controller does', 'those of the controller (scontrol show job, squeue --json)'),
        (50, 'job', 'zone_assumed', 'jobs with times of a log that names no time zone', 'read as {zone}; --timezone decides'),
        (51, 'job', 'zone_derived', 'jobs with times of a log that names no time zone', 'the zone follows from times since 1970 in the same logs'),
        (52, 'attempt', 'start_is_am', 'attempts of which only the application master''s launch is known', 'taken as the start: the gang stood later'),
        (53, 'attempt', 'gpus_estimated', 'attempts whose GPUs follow from GPU-seconds over run time', 'the nearest whole number: a mean from the master''s launch to the end, rather low'),
        (54, 'attempt', 'gpus_partial', 'attempts whose GPUs are the most that any dump saw them hold', 'a lower bound'),
        (55, 'attempt', 'container_end_inferred', 'attempts of which the end of a container is not in the log', 'it ended with its attempt, or at the restart of the ResourceManager'),
        (56, 'attempt', 'containers_preempted', 'attempts that lost containers to preemption and went on', 'those containers held their GPUs until then'),
        (60, 'job', 'no_wait', 'jobs without a wait (SWF)', 'start unknown; in no wait and no occupancy; GPU-hours from their run time'),
        (61, 'job', 'no_run_time', 'jobs without a run time', 'in no GPU-hours; not replayed'),
        (62, 'job', 'no_times', 'jobs of a source that has no times', 'counted as jobs; no wait or run time'),
        (63, 'job', 'size_not_as_asked', 'jobs that got another number of processors than they requested (SWF)', 'size: what they got'),
        (64, 'job', 'above_max_procs', 'jobs larger than the whole machine of the header (SWF MaxProcs)', 'size as logged, so that more may be in use than the machine has'),
        (65, 'job', 'ran_past_limit', 'jobs that ran longer than their time limit', 'run time as logged'),
        (66, 'job', 'cpu_time_over_run', 'jobs with more CPU time a processor than run time (SWF)', 'run time as logged'),
        (67, 'job', 'partial_record', 'records of a part of a job (SWF status 2, 3 and 4)', 'the part stands for the job; how it ended is unknown'),
        (68, 'job', 'preceding_unusable', 'jobs that follow themselves, or of a log in which every job follows another (SWF fields 17 and 18)', 'start as if they followed none'),
        (69, 'job', 'killed_at_limit', 'jobs whose work takes longer than their time limit', 'run time: the limit'),
        (70, 'job', 'work_in_steps', 'jobs whose work is a number of steps, of no known length', 'no run time; load the file of speeds with them'),
        (71, 'job', 'run_time_of_steps', 'jobs whose work is a number of steps', 'run time: steps over the speed of their type on its GPUs'),
        (72, 'job', 'created_before_trace', 'jobs that were there before the trace begins', 'no submission and no wait'),
        (73, 'job', 'seen_running', 'jobs that were running when the source was written', 'how they ended is unknown'),
        (74, 'job', 'gpus_of_its_nodes', 'jobs whose GPUs the source does not state', 'all GPUs of their nodes'),
        (74, 'job', 'gpus_given', 'jobs whose GPUs no source states and the user gave (--gpus-per-node)', 'all GPUs of their nodes'),
        (75, 'job', 'not_in_job_table', 'jobs that the table of jobs lacks', 'made of the tables of tasks and instances'),
        (76, 'job', 'not_in_task_table', 'jobs that the table of tasks lacks', 'size unknown'),
        (77, 'job', 'start_is_admission', 'jobs of which only the admission is known, not when their pods were ready', 'the admission is their start'),
        (78, 'job', 'earlier_attempts_lost', 'jobs that ran before, of which the source keeps not all times', 'earlier attempts are missing: record kubectl get -w --output-watch-events (Kueue), load condor_history -epochs, too (HTCondor)'),
        (78, 'job', 'id_reused', 'jobs with the number of an earlier job: the scheduler began to count anew', 'the time of submission is part of their names'),
        (80, 'job', 'soft_deadline', 'jobs with several deadlines, which are worth less and less', 'the first one counts'),
        (79, 'job', 'mig_not_counted', 'jobs that request slices of GPUs (MIG)', 'their slices are in no number of GPUs')
),
seen AS (
    SELECT 'job' AS level, unnest(quirks) AS quirk FROM base_jobs
    UNION ALL
    SELECT 'attempt', unnest(quirks) FROM base_attempts
),
counted AS (SELECT level, quirk, count(*) AS rows FROM seen GROUP BY ALL),
sizes AS (
    SELECT count(*) FILTER (gpus_observed > gpus_labelled) AS wrong, count(*) FILTER (gpus_labelled IS NULL) AS unlisted FROM base_machines
),
blanks AS (
    SELECT count(*) FILTER (gpus IS NULL) AS sizeless FROM base_attempts
),
split AS (SELECT count(DISTINCT (job, attempt)) AS attempts FROM base_placements WHERE estimated AND gpus > 0),
-- what sacct leaves out unless it is asked for
slurm AS (
    SELECT (SELECT count(*) FROM base_attempts WHERE attempt > 0) AS requeues,
           (SELECT count(*) FROM base_jobs) AS jobs
    WHERE (SELECT count(*) FROM clusters WHERE cluster = $cluster AND source_format LIKE 'slurm%') > 0
)
SELECT finding, rows, treatment
FROM (
    SELECT rank, finding, rows, replace(treatment, '{zone}', (SELECT any_value(timezone) FROM clusters WHERE cluster = $cluster)) AS treatment FROM counted JOIN known USING (level, quirk)
    UNION ALL
    SELECT 20, 'nodes labelled with fewer GPUs than a job used', wrong, 'GPUs: the highest index in use + 1' FROM sizes WHERE wrong > 0
    UNION ALL
    SELECT 21, 'nodes in use that are missing from the node list', unlisted, 'GPUs: the highest index in use + 1, else the most in use at once' FROM sizes WHERE unlisted > 0
    UNION ALL
    SELECT 22, 'minutes without any GPU telemetry, between the first and the last row', missing, 'left out' FROM base_telemetry WHERE missing > 0
    UNION ALL
    SELECT 23, 'GPU telemetry values that are NA', na, 'left out' FROM base_telemetry WHERE na > 0
    UNION ALL
    SELECT 23, 'GPU telemetry rows that repeat another one: same node, time and values, within a file or across files', repeated,
           'counted once; in the store and in the view gpu_util each is a row' FROM base_telemetry WHERE repeated > 0
    UNION ALL
    SELECT 23, 'GPU telemetry rows that contradict another row of the same node and time', contradicting,
           'all counted: gpu_minutes are too high, and means count these minutes more than once' FROM base_telemetry WHERE contradicting > 0
    UNION ALL
    SELECT 23, 'CPU and memory telemetry rows that repeat another one: same node, time and values, within a file or across files', host_repeated,
           'counted once' FROM base_telemetry WHERE host_repeated > 0
    UNION ALL
    SELECT 24, 'attempts with an unknown number of GPUs', sizeless, 'left out of GPU-hours and delays; size unknown' FROM blanks WHERE sizeless > 0
    UNION ALL
    SELECT 25, 'attempts on several nodes with unknown GPUs per node', attempts, 'an equal share each: an estimate (load scontrol show job -d)' FROM split WHERE attempts > 0
    UNION ALL
    SELECT 26, 'attempts, and jobs without an attempt, that never started', never, 'hold no GPUs; counted in never_started and in the columns not_started and km' FROM (SELECT count(*) AS never FROM base_never_started) WHERE never > 0
    UNION ALL
    SELECT 43, 'requeued attempts in all of Slurm''s accounting', requeues, 'none was requeued, or it was exported without -D (--duplicates), which omits all attempts except the last' FROM slurm WHERE requeues = 0 AND jobs >= 1000
    UNION ALL
    SELECT 28, 'GPUs held at once in excess of the known nodes', ceil(held - gpus - 1e-6)::BIGINT,
           printf('%g of %g GPUs at %s UTC: nodes are missing from the list, or sizes or times are wrong; shares above 100 %% are left out', held, gpus, strftime(ts, '%Y-%m-%d %H:%M:%S'))
    FROM base_most_held WHERE machine IS NULL AND held > gpus + 1e-6
    UNION ALL
    SELECT 29, 'nodes on which more GPUs were held at once than they have', count(*),
           any_value(printf('most: %g of %g GPUs at %s UTC', held, gpus, strftime(ts, '%Y-%m-%d %H:%M:%S')) ORDER BY gpus - held, machine)
    FROM base_most_held WHERE machine IS NOT NULL HAVING count(*) > 0
    UNION ALL
    SELECT 27, 'attempts or applications whose GPU-hours differ from the total that their source states', differing,
           printf('computed here: %.2f GPU-h, the source''s total: %.2f GPU-h (%s); source_totals has more', gpu_hours, stated_gpu_hours, total)
    FROM result_source_totals WHERE differing > 0
    UNION ALL
    SELECT 27, 'reports of sreport whose period the log covers by less than 95 %', count(*),
           'not compared: load the accounting of the whole period' FROM result_source_totals WHERE covered_pct < 95 HAVING count(*) > 0
    UNION ALL
    SELECT rank, finding, rows, 'nothing is known of what this means: ' || quirk
    FROM (SELECT 99 AS rank, 'rows marked in a way that this table has no words for' AS finding, rows, quirk FROM counted ANTI JOIN known USING (quirk))
)
ORDER BY rank, finding, treatment

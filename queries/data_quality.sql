-- title: What the log leaves out or gets wrong
-- section: quality
-- question: Which rows need care, and what is done with them?
-- population: {jobs} jobs, {attempts} attempts; rejected rows are in the sources table.
-- column: finding | - | what was found
-- column: rows | rows | how many
-- column: treatment | - | what is done with them
WITH known(rank, level, quirk, finding, treatment) AS (
    VALUES
        (1, 'job', 'no_attempts', 'jobs without an attempt', 'counted as jobs; no size, wait or run time'),
        (2, 'job', 'gpus_changed', 'jobs whose attempts differ in GPUs', 'size of the first attempt; each attempt''s own in delays'),
        (3, 'attempt', 'no_start', 'attempts without a start', 'hold no GPUs; no wait'),
        (4, 'attempt', 'no_end', 'attempts without an end', 'the last of a job: still running; else held until the job''s next known time'),
        (5, 'attempt', 'overlap', 'attempts that another one of the job began before they ended', 'hold GPUs until that other one starts'),
        (6, 'attempt', 'end_before_start', 'attempts that end before they start', 'no run time; hold no GPUs'),
        (7, 'job', 'start_before_submit', 'jobs that start before they are submitted', 'no wait'),
        (8, 'attempt', 'ambiguous_hour', 'attempts with a time in the hour that the clock change repeats', 'the earlier reading'),
        (9, 'job', 'ambiguous_hour', 'jobs with a time in the hour that the clock change repeats', 'the earlier reading')
),
seen AS (
    SELECT 'job' AS level, unnest(quirks) AS quirk FROM base_jobs
    UNION ALL
    SELECT 'attempt', unnest(quirks) FROM base_attempts
),
counted AS (SELECT level, quirk, count(*) AS rows FROM seen GROUP BY ALL),
sizes AS (
    SELECT count(*) FILTER (gpus_observed > gpus_labelled) AS wrong, count(*) FILTER (gpus_labelled IS NULL) AS unlisted FROM base_machines
)
SELECT finding, rows, treatment
FROM (
    SELECT rank, finding, rows, treatment FROM counted JOIN known USING (level, quirk)
    UNION ALL
    SELECT 20, 'machines labelled with fewer GPUs than a job used', wrong, 'GPUs: the highest index in use + 1' FROM sizes WHERE wrong > 0
    UNION ALL
    SELECT 21, 'machines in use that the machine list does not have', unlisted, 'GPUs: the highest index in use + 1' FROM sizes WHERE unlisted > 0
    UNION ALL
    SELECT 22, 'minutes without any GPU telemetry, between the first and the last row', missing, 'left out' FROM base_telemetry WHERE missing > 0
    UNION ALL
    SELECT 23, 'GPU telemetry values that are NA', na, 'left out' FROM base_telemetry WHERE na > 0
)
ORDER BY rank

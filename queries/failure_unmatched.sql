-- title: Failures that no signature explains
-- section: failures
-- order: 120
-- question: Which signature should be added?
-- population: {failures_unmatched} failed attempt{failures_unmatched||s} with a log, for which neither the log nor the scheduler gives a reason, by their most informative line; lines that differ only in numbers, paths and names share a template. To add a signature, see docs/how-to/failures.md.
-- needs: job_logs
-- key_columns: template, trials, jobs, users, gpu_hours, example_job
-- column: template | - | what the lines have in common, <*> for what varies; empty if no line is informative
-- column: trials | attempts | failed attempts
-- column: jobs | jobs | their jobs
-- column: users | users | users of those jobs
-- column: gpu_hours | GPU-h | held by these attempts
-- column: example_job | - | one of the jobs
-- column: example_attempt | - | its attempt, from 0
-- column: stream | - | the log with the line
-- column: line_no | - | line number
-- column: example | - | the line
SELECT template, count(*) AS trials, count(DISTINCT job) AS jobs, count(DISTINCT "user") AS users, sum(gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours,
       arg_min(job, (job, attempt)) AS example_job, arg_min(attempt, (job, attempt)) AS example_attempt,
       arg_min_null(stream, (job, attempt)) AS stream, arg_min_null(line_no, (job, attempt)) AS line_no, arg_min_null(evidence, (job, attempt)) AS example
FROM base_failures
WHERE reason = 'no_signature' AND has_log
GROUP BY template
ORDER BY trials DESC, gpu_hours DESC, template

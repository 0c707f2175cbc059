-- title: Savings by the lessons of the Philly study
-- section: failures
-- order: 100
-- question: How many GPU-hours went into failures that retries could not cure, that a small trial run would have shown, or that a check before the start would have caught?
-- population: {failures} failed attempt{failures||s}, as in failure_reasons. Each row is an estimate and an upper bound under its stated assumption; a GPU-hour may be in several rows, so rows do not add up. Never cured: 10 or more jobs were retried after this reason and none passed later, except preemptions, node failures and time limits (of n jobs, up to about 3/n may still pass, with 95 % confidence). Small first: first attempts of gangs whose failure may be due to the user or the AI engine. Checked before the start: syntax, imports, libraries, installations, arguments, configurations, permissions, credentials, licences, requests, inputs, quota. Attempts whose end the log lacks are left out.
-- needs: attempts
-- column: lesson | - | the rule
-- column: reasons | - | the reasons to which the rule applies here
-- column: trials | attempts | attempts that would not have run, or would have been smaller or shorter
-- column: rests_on | jobs | jobs on which the estimate rests
-- column: gpu_hours | GPU-h | upper bound of the saving
-- column: gpu_hours_pct | % | share of the GPU-hours that all attempts held
-- column: assumption | - | the assumption, and what exactly is counted
WITH held AS (SELECT sum(gpu_s)::DOUBLE / 3600 AS gpu_hours FROM unfiltered_held SEMI JOIN base_jobs USING (job)),
tries AS (
    SELECT a.job, a.attempt, a.job_state, a.is_last, f.reason, f.title, f.category, f.gpus, f.rtf_s,
           CASE WHEN a.released_ts IS NOT NULL OR a.start_ts IS NULL THEN a.gpu_s / 3600 END AS gpu_hours
    FROM base_attempts AS a LEFT JOIN base_failures AS f USING (job, attempt)
),
-- reasons that were tried again, and in how many jobs; never: none of these jobs passed later
retried AS (
    SELECT reason, count(DISTINCT job) AS jobs, NOT bool_or(job_state = 'completed') AS never
    FROM tries
    WHERE reason IS NOT NULL AND NOT is_last
    GROUP BY reason
),
-- the first failure of a job that no retry is expected to cure
given_up AS (
    SELECT t.job, min(t.attempt) FILTER (r.never AND r.jobs >= 10 AND t.reason NOT IN ('no_signature', 'job_preempted', 'node_failure', 'time_limit', 'cancelled')) AS never_at,
           min(t.attempt) FILTER (t.job_state <> 'completed' AND t.reason IN (
               'syntax_error', 'import_error', 'command_not_found', 'wrong_arguments', 'shape_error', 'program_error', 'permission_error',
               'cannot_load_libs', 'cuda_version_mismatch', 'semantic_error', 'invalid_config', 'install_failed', 'test_failed', 'authentication_failed', 'unsatisfiable_request')) AS certain_at
    FROM tries AS t JOIN retried AS r USING (reason)
    WHERE NOT t.is_last
    GROUP BY t.job
),
lessons AS (
    SELECT 1 AS rank, 'no retry after a reason that no retry cured' AS lesson,
           'what never passed in this log never will: all later attempts of these jobs' AS assumption,
           (SELECT string_agg(DISTINCT f.title, ', ' ORDER BY f.title) FROM base_failures AS f JOIN retried AS r USING (reason) WHERE r.never AND r.jobs >= 10 AND f.reason NOT IN ('no_signature', 'job_preempted', 'node_failure', 'time_limit', 'cancelled')) AS reasons,
           count(*) AS trials, count(DISTINCT job) AS rests_on, sum(gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours
    FROM tries JOIN given_up USING (job)
    WHERE attempt > never_at
    UNION ALL
    SELECT 2, 'no retry after a mistake in the program or its set-up',
           'the same program fails again: all later attempts of jobs that did not pass in the end',
           (SELECT string_agg(DISTINCT title, ', ' ORDER BY title) FROM tries WHERE NOT is_last AND job_state <> 'completed' AND reason IN (
               'syntax_error', 'import_error', 'command_not_found', 'wrong_arguments', 'shape_error', 'program_error', 'permission_error',
               'cannot_load_libs', 'cuda_version_mismatch', 'semantic_error', 'invalid_config', 'install_failed', 'test_failed', 'authentication_failed', 'unsatisfiable_request')),
           count(*), count(DISTINCT job), sum(gpu_hours::DECIMAL(28, 9))::DOUBLE
    FROM tries JOIN given_up USING (job)
    WHERE attempt > certain_at
    UNION ALL
    SELECT 3, 'gangs of more than 4 GPUs try on 1 GPU first',
           'what failed within 30 minutes fails on 1 GPU as soon: the other GPUs of first attempts',
           string_agg(DISTINCT title, ', ' ORDER BY title), count(*), count(DISTINCT job), sum(((gpus - 1) * rtf_s)::DECIMAL(28, 9))::DOUBLE / 3600
    FROM tries
    WHERE attempt = 0 AND gpus > 4 AND rtf_s <= 1800 AND (contains(category, 'user') OR contains(category, 'ai_engine'))
          AND reason NOT IN ('time_limit', 'cancelled', 'job_preempted')
    UNION ALL
    SELECT 4, 'check before the start',
           'a check of 5 minutes finds it: the run time to failure beyond that',
           string_agg(DISTINCT title, ', ' ORDER BY title), count(*), count(DISTINCT job), sum((gpus * (rtf_s - 300))::DECIMAL(28, 9))::DOUBLE / 3600
    FROM tries
    WHERE rtf_s > 300 AND reason IN ('syntax_error', 'import_error', 'command_not_found', 'wrong_arguments', 'permission_error', 'cannot_load_libs',
                                     'cuda_version_mismatch', 'semantic_error', 'incorrect_inputs', 'container_image_error', 'disk_quota',
                                     'invalid_config', 'install_failed', 'integrity_mismatch', 'authentication_failed', 'unsatisfiable_request',
                                     'licence_error')
)
SELECT lesson, coalesce(reasons, 'none') AS reasons, trials, rests_on, coalesce(l.gpu_hours, 0) AS gpu_hours,
       100 * coalesce(l.gpu_hours, 0) / nullif(h.gpu_hours, 0) AS gpu_hours_pct, assumption
FROM lessons AS l CROSS JOIN held AS h
WHERE (SELECT count(*) FROM base_attempts) > 0
ORDER BY rank

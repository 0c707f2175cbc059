-- title: Machines on which more fails than chance would have it
-- section: failures
-- order: 110
-- question: Is there a machine that makes attempts fail?
-- population: {machine_trials} attempts on {machines_tested} machines that passed, or failed for a reason that a machine may have a part in: not those that only users bring about, nor preemptions and time limits. Those that may fail for one cause count once: of a job one failure a reason, of a user the first attempt on the same machines on a day, so that {machine_units} count. Each is compared with those of the same user (queue, where no user is named), week and size, first attempts with first ones and retries with retries: had these met the machines by lot, p is the exact chance of so many failures or more (one-sided, the hypergeometric distributions of all these groups convolved). p and early p of all machines are adjusted together (Benjamini-Hochberg): of the machines called bad, 5 % are expected to be so by chance.
-- needs: placements
-- first_columns: 7
-- key_columns: machine, bad, attempts, failures, failed_pct, expected, adjusted_p, top_reason
-- column: machine | - | name of the machine
-- column: bad | - | yes: its adjusted p is at most 0.05; 'beside NAME': no longer so without the gangs that it shared with that machine; no
-- column: attempts | attempts | attempts on it that count
-- column: failures | attempts | of these, failed
-- column: failed_pct | % | share that failed
-- column: expected | attempts | failures to be expected by lot
-- column: p | - | chance of so many failures or more by lot
-- column: early_failures | attempts | failures within 10 minutes of the start
-- column: early_expected | attempts | early failures to be expected by lot
-- column: early_p | - | chance of so many early failures or more by lot
-- column: adjusted_p | - | the smaller of p and early p, adjusted for the number of machines
-- column: all_trials | attempts | all failed attempts on it, whatever the reason and however often
-- column: gpu_hours | GPU-h | held by the failed attempts on it that a machine may have a part in, whole gangs
-- column: top_reason | - | the most frequent reason of these
WITH met AS (SELECT unnest(machines) AS machine, title, gpu_hours, suspect FROM unfiltered_machine_failures),
lost AS (
    SELECT machine, count(*) AS all_trials, coalesce(sum(gpu_hours::DECIMAL(28, 9)) FILTER (suspect)::DOUBLE, 0) AS gpu_hours,
           mode(title ORDER BY title) FILTER (suspect) AS top_reason
    FROM met
    GROUP BY machine
)
SELECT m.machine, m.bad, m.attempts, m.failures, 100.0 * m.failures / nullif(m.attempts, 0) AS failed_pct, m.expected, m.p,
       m.early_failures, m.early_expected, m.early_p, m.adjusted_p,
       coalesce(l.all_trials, 0) AS all_trials, coalesce(l.gpu_hours, 0) AS gpu_hours, l.top_reason
FROM base_bad_machines AS m LEFT JOIN lost AS l USING (machine)
ORDER BY m.bad <> 'yes', m.bad = 'no', least(m.p, m.early_p), m.machine

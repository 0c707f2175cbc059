-- title: Nodes with more failures than chance explains
-- section: failures
-- order: 110
-- question: Do some nodes make attempts fail?
-- population: {machine_trials} attempt{machine_trials||s} on {machines_tested} node{machines_tested||s} that passed, or failed for a reason that may involve a node (not user errors, preemptions or time limits). Attempts that may share one cause count once: one failure per job and reason, and per user the first attempt on the same nodes in a day; {machine_units} count. Each is compared with attempts of the same user (queue, if no user is named), week and size, first attempts with first attempts and retries with retries: p is the exact probability of at least this many failures if attempts were assigned to nodes at random within these groups (one-sided; convolution of the groups' hypergeometric distributions). p and early p of all nodes are adjusted together (Benjamini-Hochberg): of the nodes flagged, 5 % are expected to be false positives.
-- needs: placements
-- first_columns: 7
-- key_columns: machine, bad, attempts, failures, failed_pct, expected, adjusted_p, top_reason
-- column: machine | - | name of the node
-- column: bad | - | yes: adjusted p is at most 0.05; 'beside NAME': not flagged without the gangs it shared with that node; no
-- column: attempts | attempts | attempts on the node that count
-- column: failures | attempts | attempts among these that failed
-- column: failed_pct | % | share that failed
-- column: expected | attempts | failures expected by chance
-- column: p | - | probability of at least this many failures by chance
-- column: early_failures | attempts | failures within 10 minutes of the start
-- column: early_expected | attempts | early failures expected by chance
-- column: early_p | - | probability of at least this many early failures by chance
-- column: adjusted_p | - | the smaller of p and early p, adjusted for the number of nodes
-- column: detectable | times | how many times as often as other nodes it would have to fail to be flagged in 8 of 10 cases; empty: too few attempts to detect any excess
-- column: all_trials | attempts | all failed attempts on the node, for any reason, repeats included
-- column: gpu_hours | GPU-h | held by failed attempts on the node whose reason may involve a node; whole gangs
-- column: top_reason | - | the most frequent reason among these
-- column: gpu_faults | events | faults of its GPUs by hardware (gpu_health), whatever attempts came of it; this and the following columns are empty without such events in any source
-- column: gpu_fault_users | users | distinct users whose jobs they hit
-- column: gpu_faults_p | - | probability of at least as many at the rate of all nodes per GPU-hour held (Poisson)
-- column: gpu_suspect | - | yes: gpu_faults_p is below 0.01, and at least 3 users were hit: one user's program explains no such excess; no
WITH faults AS (
    SELECT f.machine, count(DISTINCT f.rowid) AS events, count(DISTINCT j."user") AS users
    FROM (SELECT rowid, machine, gpu, signal, code, unnest(CASE WHEN len(jobs) = 0 THEN [NULL] ELSE jobs END) AS job FROM gpu_faults WHERE cluster = $cluster) AS f
    LEFT JOIN unfiltered_jobs AS j USING (job) LEFT JOIN base_xid_meanings AS x ON x.code = f.code
    -- a GPU off the bus has no samples
    WHERE (f.signal <> 'xid' OR x.cause = 'hardware') AND NOT (f.signal = 'lost' AND (f.machine, f.gpu) IN (SELECT (machine, gpu) FROM gpu_faults WHERE cluster = $cluster AND code = 79))
    GROUP BY f.machine
),
exposed AS (
    SELECT machine, sum((gpus * (held_until_c - start_c))::DECIMAL(28, 6))::DOUBLE / 3600 AS hours FROM unfiltered_placements WHERE gpus > 0 GROUP BY machine
),
expected AS (
    SELECT e.machine, coalesce(f.events, 0) AS events, coalesce(f.users, 0) AS users, e.hours * (SELECT sum(events) FROM faults) / nullif(sum(e.hours) OVER (), 0) AS mean
    FROM exposed AS e LEFT JOIN faults AS f USING (machine)
    WHERE EXISTS (FROM gpu_faults WHERE cluster = $cluster)
),
tails AS (
    -- the exact tail of the Poisson distribution: 1 less the probabilities of fewer
    SELECT machine, events, users, CASE WHEN events = 0 THEN 1 WHEN mean > 0 THEN greatest(0, 1 - list_sum(list_transform(range(events), lambda k: exp(k * ln(mean) - mean - lgamma(k + 1))))) END AS p
    FROM expected
),
met AS (SELECT unnest(machines) AS machine, title, gpu_hours, suspect FROM unfiltered_machine_failures),
lost AS (
    SELECT machine, count(*) AS all_trials, coalesce(sum(gpu_hours::DECIMAL(28, 9)) FILTER (suspect)::DOUBLE, 0) AS gpu_hours,
           mode(title ORDER BY title) FILTER (suspect) AS top_reason
    FROM met
    GROUP BY machine
)
SELECT m.machine, m.bad, m.attempts, m.failures, 100.0 * m.failures / nullif(m.attempts, 0) AS failed_pct, m.expected, m.p,
       m.early_failures, m.early_expected, m.early_p, m.adjusted_p, m.detectable,
       coalesce(l.all_trials, 0) AS all_trials, coalesce(l.gpu_hours, 0) AS gpu_hours, l.top_reason,
       t.events AS gpu_faults, t.users AS gpu_fault_users, t.p AS gpu_faults_p, CASE WHEN t.p < 0.01 AND t.users >= 3 THEN 'yes' WHEN t.p IS NOT NULL THEN 'no' END AS gpu_suspect
FROM base_bad_machines AS m LEFT JOIN lost AS l USING (machine) LEFT JOIN tails AS t USING (machine)
ORDER BY m.bad <> 'yes', m.bad = 'no', least(m.p, m.early_p), m.machine

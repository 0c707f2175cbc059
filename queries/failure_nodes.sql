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
WITH met AS (SELECT unnest(machines) AS machine, title, gpu_hours, suspect FROM unfiltered_machine_failures),
lost AS (
    SELECT machine, count(*) AS all_trials, coalesce(sum(gpu_hours::DECIMAL(28, 9)) FILTER (suspect)::DOUBLE, 0) AS gpu_hours,
           mode(title ORDER BY title) FILTER (suspect) AS top_reason
    FROM met
    GROUP BY machine
)
SELECT m.machine, m.bad, m.attempts, m.failures, 100.0 * m.failures / nullif(m.attempts, 0) AS failed_pct, m.expected, m.p,
       m.early_failures, m.early_expected, m.early_p, m.adjusted_p, m.detectable,
       coalesce(l.all_trials, 0) AS all_trials, coalesce(l.gpu_hours, 0) AS gpu_hours, l.top_reason
FROM base_bad_machines AS m LEFT JOIN lost AS l USING (machine)
ORDER BY m.bad <> 'yes', m.bad = 'no', least(m.p, m.early_p), m.machine

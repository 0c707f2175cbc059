-- title: Fair share or fragmentation, counted as in the paper
-- section: delays
-- order: 40
-- question: How often do gangs wait for their queue's quota, and how often for anything else?
-- population: waits longer than 0 s of gangs of 2 and more GPUs that then ran for a minute or longer: {paper_waits} wait{paper_waits||s}. Fragmentation here is every cause other than fair share (ATC'19, 3.1). Each wait is counted once: in the first pair of columns under its cause at arrival, in the second under the cause with the most seconds.
-- needs: placements
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every size
-- column: waits | waits | how many
-- column: fair_share_pct | % | share of them that arrived over quota
-- column: fragmentation_pct | % | the rest
-- column: mostly_fair_share_pct | % | share of them with more seconds over quota than not
-- column: mostly_fragmentation_pct | % | the rest
-- column: fragmentation_time_pct | % | share of the waiting time that is not fair share
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS waits,
       100.0 * count(*) FILTER (cause_at_arrival = 'fair_share') / count(*) AS fair_share_pct,
       100.0 * count(*) FILTER (cause_at_arrival <> 'fair_share') / count(*) AS fragmentation_pct,
       100.0 * count(*) FILTER (2 * fair_share_s > wait_s) / count(*) AS mostly_fair_share_pct,
       100.0 * count(*) FILTER (2 * fair_share_s <= wait_s) / count(*) AS mostly_fragmentation_pct,
       100 * sum(wait_s - fair_share_s) / sum(wait_s) AS fragmentation_time_pct
FROM base_delays JOIN (SELECT job, attempt, run_s FROM base_attempts) USING (job, attempt)
WHERE wait_s > 0 AND gpus >= 2 AND run_s >= 60
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['2-4', '5-8', '>8'], size_bucket)

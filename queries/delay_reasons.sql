-- title: The scheduler's reason and the cause found by replay
-- section: delays
-- order: 80
-- question: Does the scheduler's reason agree with the cluster's state?
-- population: {delays_eligible_waited} attempt{delays_eligible_waited||s} that waited longer than 0 s while eligible, in a source that gives reasons. The scheduler records one reason, the last other than priority or resources: compared with reasons sampled every second on a real Slurm, it was the longest such reason for 81 % of the jobs and missing for 13 %. The columns need not agree: GPUs may be free for a job that priority, a reservation or a limit holds back.
-- needs: reasons
-- column: category | - | kind of the scheduler's reason; 'none given' if it recorded none
-- column: cause | - | the cause with the most seconds while eligible, by replay
-- column: attempts | attempts | how many
-- column: hours | h | hours from eligibility to start
SELECT coalesce(r.category, CASE WHEN source_reason IS NULL THEN 'none given' ELSE 'unknown' END) AS category,
       ['fair_share', 'capacity', 'fragmentation', 'scheduler'][
           list_position([fair_share_s, capacity_s, fragmentation_s, scheduler_s],
                         greatest(fair_share_s, capacity_s, fragmentation_s, scheduler_s))] AS cause,
       count(*) AS attempts, sum(wait_s - ineligible_s) / 3600 AS hours
FROM base_delays LEFT JOIN base_reasons AS r ON r.reason = split_part(source_reason, ',', 1)
WHERE wait_s > ineligible_s AND (SELECT count(source_reason) FROM base_delays) > 0
GROUP BY ALL
ORDER BY hours DESC, category, cause

-- title: Before a job asks for GPUs
-- section: delays
-- question: What kept attempts from being eligible at all?
-- population: {delays} attempts with a known wait, of which {delays_ineligible} were not eligible at once. The time is exact (submission to eligibility); its name is the last reason that the scheduler gave for the attempt other than priority or resources, which may belong to a later part of the wait.
-- needs: attempts
-- column: category | - | kind of the reason; 'none given' where the scheduler left none
-- column: source_reason | - | the scheduler's own word
-- column: attempts | attempts | how many
-- column: hours | h | from submission to eligibility
-- column: p50_min | min | median of it
-- column: p95_min | min | 95th percentile
SELECT coalesce(r.category, CASE WHEN source_reason IS NULL THEN 'none given' ELSE 'unknown' END) AS category,
       source_reason, count(*) AS attempts, sum(ineligible_s) / 3600 AS hours,
       quantile_cont(ineligible_s, 0.5) / 60 AS p50_min, quantile_cont(ineligible_s, 0.95) / 60 AS p95_min
FROM base_delays LEFT JOIN base_reasons AS r ON r.reason = split_part(source_reason, ',', 1)
WHERE ineligible_s > 0
GROUP BY ALL
ORDER BY hours DESC, source_reason

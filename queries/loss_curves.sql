-- title: Loss curves
-- section: training
-- order: 30
-- question: What was the loss at each point, and how much GPU time had passed by then?
-- population: the points of the {training_usable} job{training_usable||s} with a usable loss curve; definitions as in training_convergence. For jobs whose points are spread evenly over their GPU time, the time of a point is inferred.
-- needs: training progress
-- detail: yes
-- column: job | - | job
-- column: point | - | number of the point, from 1
-- column: point_unit | - | what a point is: epochs, parts of an epoch, steps or lines
-- column: loss | - | the loss at this point; NaN or infinite as printed
-- column: gpu_hours | GPU-h | held by the job up to this point; empty where not known
-- column: placed | - | how the time of the point was found: timestamps of the lines, elapsed time in progress bars, or even (inferred)
WITH held AS (
    SELECT job, attempt, start_ts, held_until_c - start_c AS held_s, gpu_s / nullif(held_until_c - held_from_c, 0) AS gpus,
           coalesce(sum(gpu_s::DECIMAL(28, 9)) OVER (PARTITION BY job ORDER BY attempt ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::DOUBLE
           + coalesce(gpu_s * (start_c - held_from_c) / nullif(held_until_c - held_from_c, 0), 0) AS before_gpu_s
    FROM base_attempts SEMI JOIN base_training USING (job) WHERE start_c IS NOT NULL
),
shown AS (SELECT job, attempt, max(elapsed_s) AS elapsed_s FROM base_progress GROUP BY ALL)
SELECT p.job, p.point, p.unit AS point_unit, p.value AS loss,
       CASE t.placed WHEN 'stamps' THEN h.before_gpu_s + least(greatest(epoch(p.ts) - epoch(h.start_ts), 0), h.held_s) * h.gpus
                     WHEN 'elapsed' THEN h.before_gpu_s + h.held_s * p.elapsed_s / s.elapsed_s * h.gpus
                     WHEN 'even' THEN t.gpu_s * p.point / t.points END / 3600 AS gpu_hours,
       t.placed
FROM base_progress AS p JOIN base_training AS t USING (job)
LEFT JOIN held AS h ON h.job = p.job AND h.attempt = p.attempt
LEFT JOIN shown AS s ON s.job = p.job AND s.attempt = p.attempt
WHERE t.usable
ORDER BY p.job, p.point

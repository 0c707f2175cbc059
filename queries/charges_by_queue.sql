-- title: Charges by queue
-- section: overview
-- order: 58
-- question: How many GPU-hours did each queue hold in each month, of which type, and what do they cost?
-- population: attempts that held GPUs or have billing units, including failed and requeued ones, from allocation to release including suspended time, as sreport counts them; running ones count up to the end of their log. Cut at {charge_by} borders in {period_zone}. Left out: {attempts_not_placed} attempt{attempts_not_placed||s} that ran at no known time. Without GPU-hours, because no source states the GPUs: {ran_without_gpus} attempt{ran_without_gpus||s}.
-- detail: yes
-- needs: attempts
-- column: month | - | the month in which the period begins
-- column: period | - | the period (--by): 2026-10, 2026-W44 (ISO weeks), 2026-Q4, a day or an hour
-- column: queue | - | the queue or partition
-- column: gpu_type | - | type of GPU; a MIG instance is one of its own type; unknown: no source states it; empty: no GPU
-- column: gpu_hours | GPU-h | GPU-hours held, without those of forgiven_gpu_hours
-- column: forgiven_gpu_hours | GPU-h | held by attempts that ended in a state listed in --forgive
-- column: billing_hours | h | billing units (TRESBillingWeights), as recorded by Slurm, times hours; empty: none recorded
-- column: jobs | jobs | jobs that held them
-- column: cost | - | gpu_hours times their prices (--prices), rounded half up at the end; empty: no price
-- column: unpriced_gpu_hours | GPU-h | part of gpu_hours without a price; empty: no price list
SELECT strftime(c.period, '%Y-%m') AS month,
       CASE $charge_by WHEN 'month' THEN month WHEN 'week' THEN strftime(c.period, '%G-W%V') WHEN 'quarter' THEN printf('%d-Q%d', year(c.period), quarter(c.period))
            WHEN 'day' THEN strftime(c.period, '%Y-%m-%d') ELSE strftime(c.period, '%Y-%m-%d %H:00') END AS period,
       queue, gpu_type, sum(gpu_s)::DOUBLE / 3600 AS gpu_hours, sum(forgiven_gpu_s)::DOUBLE / 3600 AS forgiven_gpu_hours, sum(billing_s)::DOUBLE / 3600 AS billing_hours,
       count(*) AS jobs, round((sum(cost_s)::DOUBLE / 3600)::DECIMAL(28, 9), 2)::DOUBLE AS cost,
       CASE WHEN EXISTS (FROM base_prices) THEN sum(unpriced_gpu_s)::DOUBLE / 3600 END AS unpriced_gpu_hours
FROM base_charge_sums AS c
GROUP BY c.period, queue, gpu_type
ORDER BY c.period, queue, gpu_type

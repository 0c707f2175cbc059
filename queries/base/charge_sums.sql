-- Charges by period, account, user, queue and type of GPU, with what they cost by the price list.
-- Of several prices of a type that hold, that of the account comes before that of all.
WITH priced AS (
    SELECT k.cut, k.gpu_type, k.account, arg_min(p.price, (p.account IS NULL)::INTEGER) AS price
    FROM (SELECT DISTINCT cut, gpu_type, account FROM base_charge_pieces WHERE gpu_type IS NOT NULL) AS k JOIN base_charge_cuts AS c USING (cut)
    JOIN base_prices AS p ON p.gpu_type = k.gpu_type AND (p.account IS NULL OR p.account = k.account)
        AND (p.from_date IS NULL OR c.local >= p.from_date) AND (p.to_date IS NULL OR c.local < p.to_date)
    GROUP BY ALL
)
SELECT b.period, b.account, b."user", b.queue, b.gpu_type, b.job,
       sum(b.gpu_s) AS held_gpu_s, sum(CASE WHEN b.forgiven THEN b.gpu_s ELSE 0 END) AS forgiven_gpu_s,
       sum(CASE WHEN NOT b.forgiven THEN b.gpu_s ELSE 0 END) AS gpu_s,
       sum(CASE WHEN NOT b.forgiven AND b.is_billed THEN b.billing_s END) AS billing_s,
       sum(CASE WHEN NOT b.forgiven THEN b.gpu_s * p.price END) AS cost_s, sum(CASE WHEN p.price IS NULL AND NOT b.forgiven THEN b.gpu_s ELSE 0 END) AS unpriced_gpu_s
FROM base_charge_pieces AS b LEFT JOIN priced AS p ON p.cut = b.cut AND p.gpu_type = b.gpu_type AND p.account IS NOT DISTINCT FROM b.account
GROUP BY ALL

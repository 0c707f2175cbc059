-- title: What would reduce the loss
-- section: reliability
-- order: 110
-- question: How many GPU-hours would another setup have saved?
-- population: The failures that were recorded. Estimates overlap: do not add them. Under 5 incidents there is a range only. The worst nodes of a month are chosen by the other months, by rates drawn to the mean (gamma prior), so that luck does not choose them.
-- needs: placements
-- column: what | - | the change
-- column: setting | - | its size
-- column: saved_gpu_hours | GPU-h | saved, less what the change costs; empty of spare nodes
-- column: low | GPU-h | lower end
-- column: high | GPU-h | upper end
-- column: assumption | - | what it rests on
SELECT what, setting, saved_gpu_hours, low, high, assumption
FROM base_reliability_reliability_whatif
ORDER BY position

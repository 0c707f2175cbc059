-- title: Best checkpoint intervals
-- section: reliability
-- order: 100
-- question: How often should this run write a checkpoint?
-- population: Runs whose logs show the interval between checkpoints and the seconds for which a write blocks, on nodes of a type with incidents. Expected shares are those of Daly's formula for exponential failures at the type's rate; savings are for the run's productive GPU-hours, low and high at both ends of the rate's 95 % interval. The optimum is flat: half or twice the best interval costs little.
-- needs: training_progress
-- first_columns: 10
-- column: run | - | the job's name
-- column: user | - | its user
-- column: gpus | GPUs | its size
-- column: mttf_h | h | between failures of its nodes
-- column: write_s | s | for which a checkpoint blocks
-- column: current_s | s | work between checkpoints now
-- column: young_s | s | by Young's formula
-- column: daly_s | s | by Daly's
-- column: best_s | s | with the largest expected share of productive time
-- column: flat_from_s | s | intervals from here cost at most 0.01 of productive time
-- column: flat_to_s | s | up to here
-- column: waste_now_pct | % | of running time that is not productive, expected now
-- column: waste_best_pct | % | expected with the best interval
-- column: saved_gpu_hours | GPU-h | with the best interval
-- column: low | GPU-h | lower end
-- column: high | GPU-h | upper end
-- column: basis | - | measured: interval and write are from logs
SELECT run, "user", gpus, mttf_h, write_s, current_s, young_s, daly_s, best_s, flat_from_s, flat_to_s,
       waste_now_pct, waste_best_pct, saved_gpu_hours, low, high, basis
FROM base_reliability_checkpoint_advice
ORDER BY position

-- title: Mean time to failure by size
-- section: reliability
-- order: 40
-- question: How long does a job of n GPUs run before infrastructure ends it?
-- population: All attempts of a size, including running ones: total hours of run time divided by the number of attempts that infrastructure ended, with the exact 95 % interval. Ends by users, limits and preemption are censored. Modelled: 24 h divided by nodes times incidents per busy node-day of single nodes. Extrapolated sizes were not observed; they assume no common causes except those in with_common_h. Small sizes also have other causes, so that a small fit_p is usual there.
-- needs: placements
-- first_columns: 8
-- column: gpus | GPUs | size
-- column: nodes | nodes | whole nodes of that many GPUs
-- column: attempts | attempts | of the size
-- column: run_h | h | run by these, all together
-- column: interruptions | attempts | ended by infrastructure
-- column: interruptions_high | attempts | with those of unknown cause
-- column: mttf_h | h | run_h over interruptions; empty without any
-- column: mttf_low_h | h | lower end of the 95 % interval
-- column: mttf_high_h | h | upper end
-- column: km_median_h | h | median of the Kaplan-Meier curve; empty where it stays above one half
-- column: km_gap | - | largest distance of that curve from a constant rate, at quartiles of 20 or more failures
-- column: early_p | - | two-sided probability of the failures in the first half hour at the later rate
-- column: model_mttf_h | h | by the rate of nodes
-- column: model_low_h | h | lower end, of the rate's interval
-- column: model_high_h | h | upper end
-- column: with_common_h | h | modelled with incidents of racks and file systems, which hit a share of all jobs
-- column: expected | attempts | interruptions expected by the rates of its nodes' types
-- column: fit_p | - | two-sided probability of the interruptions given those expected
-- column: partial_node | - | whether it has a part of a node: the model is a lower bound there
-- column: kind | - | measured, modelled (no interruption seen) or extrapolated (size not seen)
-- chart: ranges on=page x=gpus y=mttf_h,mttf_low_h,mttf_high_h where=kind:measured title="Mean time to failure by GPUs of the job, with 95 % intervals"
SELECT gpus, nodes, attempts, run_h, interruptions, interruptions_high, mttf_h, mttf_low_h, mttf_high_h, km_median_h,
       km_gap, early_p, model_mttf_h, model_low_h, model_high_h, with_common_h, expected, fit_p, partial_node, kind
FROM base_reliability_mttf_by_size
ORDER BY position

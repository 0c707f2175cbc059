"""The compiled loop over submissions and ends that gathers what was known of earlier jobs at each submission."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled


@compiled
def sweep(submit, ends, ended, run, keys, count, log_sum, run_sum, last_end, recent, matrix, first, means):  # type: ignore[no-untyped-def]
    """Process submissions and ends in order of time; an end is known to later submissions, not to simultaneous ones.

    Args:
        submit: seconds, in ascending order, one per job; NaN (unknown) is last and after every end.
        ends: seconds, in ascending order, one per job whose run time becomes known.
        ended: job of each end.
        run: seconds that each job ran.
        keys: rows of the state that a job belongs to, shape (jobs, groups).
        count: state, changed: number of ended jobs per row.
        log_sum: state, changed: sum of the logarithms of their run times.
        run_sum: state, changed: sum of their run times, s.
        last_end: state, changed: seconds.
        recent: state, changed: logarithms of the last run times; the k-th job is in column k modulo their number.
        matrix: written, float32, shape (jobs, first + 6 x groups): logarithm of the last run time, of the one before,
            mean and median (of the recent ones) logarithm, log(1 + number of the recent ones), log(1 + seconds since
            the last end); unknown values are left unchanged.
        first: column of `matrix` that the first group begins at.
        means: written, shape (jobs, groups): mean run time, s.
    """
    window = recent.shape[1]
    some = np.empty(window)
    at = 0
    for job in range(submit.size):
        # not <=: the two may stem from one clock tick in either order
        while at < ends.size and not ends[at] >= submit[job]:
            known = ended[at]
            value = np.log(max(run[known], 1.0))
            for group in range(keys.shape[1]):
                row = keys[known, group]
                recent[row, count[row] % window] = value
                count[row] += 1
                log_sum[row] += value
                run_sum[row] += run[known]
                last_end[row] = ends[at]
            at += 1
        for group in range(keys.shape[1]):
            row = keys[job, group]
            number = count[row]
            column = first + 6 * group
            size = min(number, window)
            matrix[job, column + 4] = np.log(1.0 + size)
            if number == 0:
                continue
            matrix[job, column] = recent[row, (number - 1) % window]
            if number > 1:
                matrix[job, column + 1] = recent[row, (number - 2) % window]
            matrix[job, column + 2] = log_sum[row] / number
            means[job, group] = run_sum[row] / number
            for k in range(size):
                # insertion sort: there are few
                place = k
                while place > 0 and some[place - 1] > recent[row, k]:
                    some[place] = some[place - 1]
                    place -= 1
                some[place] = recent[row, k]
            matrix[job, column + 3] = (some[(size - 1) // 2] + some[size // 2]) / 2
            if not np.isnan(submit[job]):
                matrix[job, column + 5] = np.log(1.0 + max(submit[job] - last_end[row], 0.0))

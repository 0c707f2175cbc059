"""The length of a training job's epochs, from the bytes that it reads: three estimators, and reasons for no answer.

Reconstructed from the published abstract (PickyMan, IPCCC 2022): that the traffic between storage and computing
predicts run times comes from the paper; these estimators do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpuctl.core.notes import NONE, literal, note, together
from gpuctl.core.numbers import lasting, number
from gpuctl.predictors.series import COARSEST_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.predictors.series import Series

    Floats = NDArray[np.float64]

Method = Literal["volume", "periodicity", "change-points", "none"]

OVERHEAD = 0.01
"""Share of bytes beyond the data set's size until whole epochs tell better: headers are 0.1 % where the kernel counts
merged packets (measured in labs/pickyman: 0.2 %), 0.7 % with jumbo frames, 4 % with frames of 1500 bytes."""
MOST_OVERHEAD = 0.35
SMOOTH_S = 5.0
LEAST_PEAK = 0.3
NEAR_BEST = 0.9
NEAR_FRACTION = 0.6
"""A whole fraction of a lag with so much of its autocorrelation is the period."""
HALF_AS_GOOD = 0.4
"""Half of a lag with so much of its autocorrelation, too little to be a period by itself, puts the period in doubt."""
EPOCHS_NEEDED = 2.4
"""An epoch found by its period must fit so often into the profile: 2.5 times, less what longer first epochs take."""
DROPPED = 0.85
"""Less than this share of the rate before, for long: part of the data comes from a cache."""
STOPPED = 0.1
"""Less than this share of it: hardly any reading goes on."""
LASTING, SILENT = 0.5, 0.25
"""A drop must last so many times as long as what was before it; the second where the reading stops."""
SURE = 3.0
"""Standard errors by which busy steps must read less: with few steps an epoch, noise alone makes them differ."""
BURST_AT, TOLD = 3.0, 0.06
"""Steps by which noise may shift a burst's beginning; share of an epoch to which bursts must tell it, or do not."""
SILENCE, SILENT_STEPS, ALL_READ, NOTHING_LEFT = 0.3, 3, 0.98, 0.999
"""Reading has stopped where so large a share of the bytes came before a silence that lasts so many steps, and so many
times as long as the reading: a pause between epochs is shorter. Also noticed with few steps an epoch."""
MAY_BE_CACHED = 1 / 3
"""While only one epoch is seen, others may be so much shorter: they may be read from memory."""
AT_ITS_END = 0.2
"""Where an epoch's bytes are known, a drop for a cache lies within this share of their end."""
_CHANCE, _CHANCE_ALIKE = 3.2, 2.5
"""Standard errors of the autocorrelation of pure noise that a period must stand out by: of noise without memory, and of
noise that is alike for as long as this traffic is."""
FEWEST_STEPS = 2
"""With fewer samples an epoch even the volume does not place its end."""
_STEPS_AN_EPOCH = 6
"""With fewer samples an epoch its shape cannot be seen."""


@dataclass(frozen=True)
class Epochs:
    """The epochs found in a job's profile.

    Attributes:
        method: the estimator that answered; ``none``: no answer, see ``reason``.
        epoch_s: seconds of an epoch, except the first one; NaN unknown.
        spread_s: one standard error of it.
        first_s: seconds from the profile's start to the end of the first epoch; NaN unknown.
        phase_s: seconds since the last epoch began, at the end of the profile; NaN unknown.
        seen: whole epochs in the profile.
        shortest_s: least length of a later epoch if only the first one is visible; NaN: others are visible.
        cached: whether later epochs are not read from the storage.
        epoch_bytes: bytes of an epoch; NaN unknown.
        reason: reason for no answer, or for less confidence in this one.
    """

    method: Method
    epoch_s: float = np.nan
    spread_s: float = np.nan
    first_s: float = np.nan
    phase_s: float = np.nan
    seen: float = np.nan
    cached: bool = False
    epoch_bytes: float = np.nan
    reason: Note = NONE
    shortest_s: float = np.nan


def find_epochs(profile: Series, dataset_bytes: float = np.nan) -> Epochs:
    """Estimate the length of an epoch by the first estimator that applies: volume, periodicity, change points.

    Args:
        profile: bytes received from the storage, from the job's start on.
        dataset_bytes: bytes that one epoch reads; NaN unknown.
    """
    if not profile.bytes.any():
        return Epochs("none", reason=note("no bytes were read: the data are local, or this is not the job's counter"))
    blind = _too_coarse(profile, dataset_bytes)
    if blind:
        return Epochs("none", reason=note("cannot know: {blind}", blind=blind))
    stopped = _stopped(profile)
    if stopped is not None:
        reason = note(
            "nothing has been read for {silence}, longer than a pause between epochs: later epochs come from a cache, "
            "or the job reads ahead; how long they last does not show",
            silence=literal(lasting(profile.seconds - profile.step * stopped)),
        )
        return _cached(profile, stopped, dataset_bytes, reason)
    drop = _drop(profile, dataset_bytes)
    if drop is not None:
        reason = note(
            "less is read from some point on: later epochs come from a cache, all or in part, or the job has become "
            "slower; only the first epoch's length is seen, and others may be shorter"
        )
        return _cached(profile, drop, dataset_bytes, reason)
    reasons = []
    if not np.isnan(dataset_bytes):
        found = by_volume(profile, dataset_bytes)
        if found.method != "none":
            return found
        reasons.append(found.reason)
    for estimate in (by_period, by_change_points):
        found = estimate(profile)
        if found.method != "none":
            return found
        reasons.append(found.reason)
    return Epochs("none", reason=together("; ", reasons))


def _too_coarse(profile: Series, dataset_bytes: float) -> Note:
    """Return why the samples are too sparse or too few to show epochs, and which would do; "" if they may suffice."""
    step, least = profile.step, _STEPS_AN_EPOCH * profile.step
    apart = note("samples are {step} apart", step=literal(lasting(step)))
    if np.isfinite(dataset_bytes) and dataset_bytes > 0:
        busy = profile.seconds - _begin(profile)
        epoch = busy * dataset_bytes / float(profile.total[-1])
        if epoch >= FEWEST_STEPS * step or profile.total[-1] < dataset_bytes:
            return note("")
        return note(
            "{apart}, and an epoch lasts about {epoch}; sample at least every {every}",
            apart=apart,
            epoch=literal(lasting(epoch)),
            every=literal(lasting(epoch / _STEPS_AN_EPOCH)),
        )
    if step > COARSEST_S:
        return note(
            "{apart}; without dataset_bytes, samples show epochs only where they are at most {coarsest} apart and "
            "there are six an epoch: epochs of {shortest} or more need a sample every {coarsest}, shorter ones more",
            apart=apart,
            coarsest=literal(lasting(COARSEST_S)),
            shortest=literal(lasting(_STEPS_AN_EPOCH * COARSEST_S)),
        )
    if profile.seconds < EPOCHS_NEEDED * least:
        return note(
            "{samples:,} sample{samples||s} {samples|is|are} too few for a period: {apart}, which shows epochs of "
            "{least} or more, and "
            "{needed} epochs are needed; sample at least six times an epoch, or give dataset_bytes",
            samples=profile.bytes.size,
            apart=apart,
            least=literal(lasting(least)),
            needed=literal(number(EPOCHS_NEEDED)),
        )
    return note("")


# ---- the cache


def _drop(profile: Series, dataset_bytes: float) -> int | None:
    """Return the step from which less is read until the end; None if there is none.

    A cache reduces reads from the second epoch on, while steps continue. A pause is not a drop: validation or a
    checkpoint ends soon, so the time after the drop must be at least half of the time before it, with less read in busy
    steps as well. If an epoch's bytes are known, the drop must lie at their end.
    """
    x = profile.bytes
    busy = np.flatnonzero(x > 0)
    total = profile.total
    n = x.size
    if n < 2 * _STEPS_AN_EPOCH or busy.size == 0:
        return None
    begin = int(busy[0])
    cut = np.arange(begin + _STEPS_AN_EPOCH, n - _STEPS_AN_EPOCH)
    cut = cut[n - cut >= SILENT * (cut - begin)]
    if cut.size and np.isfinite(dataset_bytes) and dataset_bytes > 0:
        at = total[cut] / dataset_bytes
        cut = cut[(at > 1 - AT_ITS_END) & (at < 1 + MOST_OVERHEAD + AT_ITS_END) | (total[n] - total[cut] <= 0)]
    if cut.size == 0:
        return None
    before = (total[cut] - total[begin]) / (cut - begin)
    after = (total[n] - total[cut]) / (n - cut)
    lasts = n - cut >= LASTING * (cut - begin)
    fits = (after < DROPPED * before) & lasts | (after < STOPPED * before)
    if not fits.any():
        return None
    # the largest difference between both sides, measured by the variance that a step at the cut explains
    gain = np.where(fits, (before - after) ** 2 * (cut - begin) * (n - cut), 0.0)
    found = int(cut[int(np.argmax(gain))])
    earlier, later = x[begin:found], x[found:]
    return found if _busy(later) < DROPPED * _busy(earlier) and _less(earlier, later) else None


def _stopped(profile: Series) -> int | None:
    """Return the step from which nothing is read, for too long to be a pause, until the end; None if there is none."""
    total, n = profile.total, profile.bytes.size
    begin = int(np.flatnonzero(profile.bytes > 0)[0])
    end = int(np.searchsorted(total, ALL_READ * total[-1]))
    if n - end < max(SILENT_STEPS, SILENCE * (end - begin)):
        return None
    return int(np.searchsorted(total, NOTHING_LEFT * total[-1]))


def _less(earlier: Floats, later: Floats) -> bool:
    """Return whether busy steps read less later on, by more than their noise explains, given their number."""
    busy = _busy(earlier) / 2
    one, two = earlier[earlier > busy], later[later > busy]
    if two.size < later.size / 4:
        return True
    return bool(one.mean() - two.mean() > SURE * np.hypot(one.std() / one.size**0.5, two.std() / two.size**0.5))


def _busy(x: Floats) -> float:
    """Return the bytes read in a busy step, without pauses: the upper quartile of all steps."""
    return float(np.quantile(x, 0.75))


def _cached(profile: Series, drop: int, dataset_bytes: float, reason: Note) -> Epochs:
    """Return what can be inferred if later epochs are read from a cache, completely or in part."""
    first = drop * profile.step
    volume = float(profile.total[drop])
    if not np.isnan(dataset_bytes) and volume < 0.9 * dataset_bytes:
        reason = note(
            "reading stops before the end of the data set: not all of it is read, or another counter has the rest"
        )
    return Epochs("none", first_s=first, cached=True, epoch_bytes=volume, reason=reason)


# ---- volume


def by_volume(profile: Series, dataset_bytes: float) -> Epochs:
    """Cut the profile each time the data set has been read once; within the first epoch, extrapolate from its share.

    Bytes beyond the data set's (protocol, validation) are estimated from whole epochs once there are some, if a pause
    or a burst near a cut shows the true boundary.
    """
    if dataset_bytes <= 0:
        return Epochs("none", reason=note("the data set's size is not above 0"))
    total, step = profile.total, profile.step
    size = dataset_bytes * (1 + OVERHEAD)
    refined = _period_near(profile, size)
    if refined is not None:
        size = min(max(refined, dataset_bytes), dataset_bytes * (1 + MOST_OVERHEAD))
    whole = int(total[-1] / size)
    begin = _begin(profile)
    if whole == 0:
        share = float(total[-1]) / size
        if share < 0.1:
            return Epochs("none", reason=note("only {share:.0%} of an epoch has been read", share=share))
        length = _pace(profile, float(total[-1])) * size
        first = profile.seconds + (1 - share) * length
        return Epochs(
            "volume", length, length * (FIRST_DOUBT + 0.15 * (1 - share)), first, profile.seconds - begin, share,
            epoch_bytes=size, shortest_s=MAY_BE_CACHED * length,
            reason=note("less than one epoch seen: the first one, which is often longer; {later}", later=_LATER),
        )  # fmt: skip
    at = step * np.arange(total.size)
    first = _after_pause(profile, float(np.interp(size, total, at)))
    phase = profile.seconds - _after_pause(profile, float(np.interp(size * whole, total, at)))
    if whole == 1:
        share = (total[-1] - size) / size
        if share < 0.25:
            length = _pace(profile, size) * size + first - float(np.interp(size, total, at))
            return Epochs(
                "volume", length, FIRST_DOUBT * length, first, phase, 1.0, False, size,
                note("only the first epoch seen; {later}", later=_LATER), MAY_BE_CACHED * length,
            )  # fmt: skip
        # the rest of this epoch, with its pauses, will take as long as that of the first one
        length = phase + first - float(np.interp(share * size, total, at))
        return Epochs("volume", length, (0.05 + 0.03 * (1 - share)) * length, first, phase, 1.0 + share, False, size)
    # The place of the cuts within an epoch should not matter, but bytes carry no time within pauses: so cut everywhere.
    levels = np.linspace(max(0.3 * size, min(size, total[-1] - 1.25 * size)), total[-1] - size, 200)
    lengths = np.interp(levels + size, total, at) - np.interp(levels, total, at)
    length = float(np.median(lengths))
    spread = max(float(np.hypot(step / np.sqrt(6), _spread(lengths))) / np.sqrt(whole - 1), 0.01 * length)
    return Epochs("volume", length, spread, first, phase, whole + phase / length, False, size)


FIRST_DOUBT = 0.08
"""Of an epoch's length, one standard error of what the first one tells of others."""
_LATER = note("later ones may be read from memory, and be shorter")


def _pace(profile: Series, upto: float) -> float:
    """Return the seconds per byte over the second half of the bytes: the first half includes the job's start-up.

    Time after the last byte is left out: a pause, or the start of a silence.
    """
    total, at = profile.total, profile.step * np.arange(profile.total.size)
    half, end = np.interp([0.5 * upto, ALL_READ * upto], total, at)
    return float(end - half) / ((ALL_READ - 0.5) * upto)


def _after_pause(profile: Series, at: float) -> float:
    """Return the end of the pause in or near which a second lies; else that second."""
    x, k = profile.bytes, int(at / profile.step)
    low = x < 0.25 * float(x[x > 0].mean())
    near = max(1, int(0.05 * k))
    begin = next((i for i in range(max(k - near, 0), min(k + near + 1, x.size)) if low[i]), x.size)
    end = begin
    while end < x.size and low[end]:
        end += 1
    return end * profile.step if begin < end < x.size else at


def _begin(profile: Series) -> float:
    """Return the second of the profile at which reading starts."""
    return float(np.flatnonzero(profile.bytes > 0)[0] * profile.step)


def _spread(values: Floats) -> float:
    """Return a robust standard deviation: from the median absolute deviation."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _period_near(profile: Series, size: float) -> float | None:
    """Return the bytes of an epoch from the period of the traffic, if there is a period of about that volume."""
    found = by_period(profile)
    if found.method == "none" or not abs(found.epoch_bytes / size - 1) < MOST_OVERHEAD:
        return None
    return found.epoch_bytes


# ---- periodicity


def autocorrelation(x: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return the unbiased autocorrelation of a series with gaps, 1 at lag 0; by FFT, in O(n log n).

    Each lag is divided by its number of pairs of known values.
    """
    n = x.size
    size = 1 << (2 * n - 1).bit_length()
    mask = known.astype(np.float64)
    mean = float(x[known].mean()) if known.any() else 0.0
    centred = (x - mean) * mask
    power = np.fft.irfft(np.abs(np.fft.rfft(centred, size)) ** 2, size)[:n]
    pairs = np.fft.irfft(np.abs(np.fft.rfft(mask, size)) ** 2, size)[:n]
    found = power / np.maximum(np.round(pairs), 1.0)
    return found / found[0] if found[0] > 0 else np.zeros(n)


def by_period(profile: Series) -> Epochs:
    """Estimate the epoch length from the lag at which the traffic repeats itself.

    Smooths over 5 s (less if epochs are that short); selects, among local maxima of the autocorrelation above 0.3, the
    smallest lag within 0.9 of the largest, so that neither multiples nor parts of an epoch (two bursts per epoch) are
    taken for it; refines it by a parabola. Needs 2.4 epochs.
    """
    n = profile.bytes.size
    most = int(n / EPOCHS_NEEDED)
    if most < _STEPS_AN_EPOCH:
        return Epochs("none", reason=note("{n:,} sample{n||s} {n|is|are} too few for a period", n=n))
    best: Epochs | None = None
    for seconds in (SMOOTH_S, SMOOTH_S / 2, 0.0):
        width = max(1, round(seconds / profile.step))
        found = _period(profile, width, most)
        if found is not None and (best is None or found.epoch_s < 0.97 * best.epoch_s < 4 * width * profile.step):
            best = found
        if width == 1:
            break
    if best is None:
        shortest, longest = _STEPS_AN_EPOCH * profile.step, profile.seconds / EPOCHS_NEEDED
        text = note(
            "no period from {shortest} to {longest}: epochs are longer (the profile is too short), "
            "shorter (an epoch of E seconds needs a sample every E/{steps} s), or traffic is too even or "
            "too irregular to show them (give dataset_bytes)",
            shortest=literal(lasting(shortest)),
            longest=literal(lasting(longest)),
            steps=_STEPS_AN_EPOCH,
        )
        return Epochs("none", reason=text)
    return best


def _period(profile: Series, width: int, most: int) -> Epochs | None:
    known = profile.known
    x = _smooth(profile.bytes, width)
    # The first epoch is longer and begins with a pause: search for lags from the point where reading starts.
    start = int(np.flatnonzero(profile.bytes > 0)[0])
    acf = autocorrelation(x[start:], known[start:])
    most = min(most, acf.size - 2)
    # a lag must be past the first dip: before it, the series merely resembles itself
    below = np.flatnonzero(acf[: most + 1] < LEAST_PEAK)
    if below.size == 0:
        return None
    lags = np.arange(max(int(below[0]), _STEPS_AN_EPOCH - 1), most + 1)
    # neighbours alike for this many steps count as one
    alike = max(width, 1.0 + 2.0 * float(acf[1 : int(below[0])].sum()))
    chance = np.maximum(
        _CHANCE * np.sqrt(width / (acf.size - lags)), _CHANCE_ALIKE * np.sqrt(alike / (acf.size - lags))
    )
    high = acf[lags] > np.maximum(LEAST_PEAK, chance)
    top = (acf[lags] >= acf[lags - 1]) & (acf[lags] > acf[lags + 1])
    tops, lags = lags[top], lags[top & high]
    if lags.size == 0:
        return None
    good = acf[lags] >= NEAR_BEST * acf[lags].max()
    lag = int(lags[good][0])
    # an epoch whose multiple came out slightly higher by chance
    for part in range(4, 1, -1):
        fraction = lags[np.abs(lags * part - lag) <= max(part, 0.03 * lag)]
        if fraction.size and acf[fraction].max() >= NEAR_FRACTION * acf[lag]:
            lag = int(fraction[np.argmax(acf[fraction])])
            break
    half = tops[(np.abs(2 * tops - lag) <= max(2.0, 0.06 * lag)) & ~np.isin(tops, lags)]
    if half.size and acf[half].max() >= HALF_AS_GOOD * acf[lag]:
        # every second epoch alike, or two bursts per epoch: the traffic does not distinguish them
        return None
    exact, peak_value = _parabola(acf, lag)
    length = exact * profile.step
    if length < _STEPS_AN_EPOCH * profile.step:
        return None
    cut = _epoch_start(x, start, exact)
    first = cut * profile.step
    n = x.size
    whole = int((n - cut) / exact)
    phase = (n - cut - whole * exact) * profile.step
    upto = np.interp([cut, cut + whole * exact], np.arange(n + 1), profile.total)
    bytes_an_epoch = float(upto[1] - upto[0]) / whole if whole else np.nan
    spread = max(profile.step / np.sqrt(12), length * 0.05 * (1 - min(peak_value, 1.0)) + 0.005 * length)
    seen = (n - start) / exact
    return Epochs("periodicity", length, spread, first, phase, seen, False, bytes_an_epoch)


def _smooth(x: Floats, width: int) -> Floats:
    if width <= 1:
        return x
    kernel = np.ones(width)
    return np.asarray(np.convolve(x, kernel, "same") / np.convolve(np.ones(x.size), kernel, "same"))


def _parabola(values: Floats, at: int) -> tuple[float, float]:
    """Return the vertex of the parabola through a local maximum and its neighbours."""
    left, middle, right = values[at - 1 : at + 2]
    bend = left - 2 * middle + right
    shift = 0.0 if bend == 0 else 0.5 * (left - right) / bend
    return at + float(np.clip(shift, -0.5, 0.5)), float(middle)


def _epoch_start(x: Floats, start: int, lag: float) -> float:
    """Return the step at which the second epoch begins: after the pause common to all periods, at their least mean."""
    place = np.arange(x.size - start) % lag
    bins = max(_STEPS_AN_EPOCH, round(lag))
    which = np.minimum((place / lag * bins).astype(int), bins - 1)
    count = np.bincount(which, minlength=bins)
    mean = np.bincount(which, x[start:], bins) / np.maximum(count, 1)
    level = np.median(mean)
    low = int(np.argmin(mean))
    for ahead in range(bins):
        if mean[(low + ahead) % bins] >= 0.5 * (level + mean[low]):
            low = (low + ahead) % bins
            break
    cut = start + low / bins * lag
    # the first epoch is at least half as long as the others
    return float(cut + lag if cut - start < 0.5 * lag else cut)


# ---- change points


def change_points(x: Floats, least: int = 2) -> list[int]:
    """Return the indices at which a new level begins, ascending: binary segmentation on the mean with BIC penalty.

    Splits if the sum of squares falls by more than ``3 log(n)`` times the noise, which is estimated from the
    differences of neighbours (median absolute deviation). Linear in n for each level of splits.
    """
    n = x.size
    if n < 2 * least:
        return []
    noise = 1.4826 * float(np.median(np.abs(np.diff(x)))) / np.sqrt(2)
    noise = max(noise, 1e-9 * float(np.abs(x).max()), 1e-300)
    penalty = 3.0 * np.log(n) * noise**2
    total = np.append(0.0, np.add.accumulate(x))
    found: list[int] = []
    todo = [(0, n)]
    while todo:
        begin, end = todo.pop()
        if end - begin < 2 * least:
            continue
        cut = np.arange(begin + least, end - least + 1)
        left = (total[cut] - total[begin]) / (cut - begin)
        right = (total[end] - total[cut]) / (end - cut)
        gain = (cut - begin) * (end - cut) / (end - begin) * (left - right) ** 2
        k = int(np.argmax(gain))
        if gain[k] > penalty:
            found.append(int(cut[k]))
            todo += [(begin, int(cut[k])), (int(cut[k]), end)]
    return sorted(found)


def by_change_points(profile: Series) -> Epochs:
    """Measure from the start of one burst to the next, for bursts of reading with pauses between epochs."""
    x, step = profile.bytes, profile.step
    cuts = change_points(x)
    edges = [0, *cuts, x.size]
    means = np.array([x[a:b].mean() for a, b in pairwise(edges)])
    if means.size < 4:
        return Epochs("none", reason=note("the traffic has too few changes of level"))
    high = means > 0.5 * (means.min() + means.max())
    begins = np.array([edges[k] for k in range(means.size) if high[k] and (k == 0 or not high[k - 1])])
    if begins.size < 3:
        return Epochs("none", reason=note("fewer than three bursts"))
    lengths = np.diff(begins)[1:] if begins.size > 3 else np.diff(begins)
    length = float(np.median(lengths))
    deviation = _spread(lengths.astype(float))
    if deviation > 0.15 * length or length < _STEPS_AN_EPOCH:
        return Epochs("none", reason=note("bursts do not come evenly"))
    if np.sqrt(2) * BURST_AT > TOLD * length * lengths.size:
        return Epochs("none", reason=note("too few samples between bursts to find the length of an epoch"))
    spread = max(step / np.sqrt(6), deviation * step / np.sqrt(lengths.size), 0.02 * length * step)
    total = profile.total
    volume = float(total[begins[-1]] - total[begins[-1 - lengths.size]]) / lengths.size
    return Epochs(
        "change-points", length * step, spread, float(begins[1]) * step, (x.size - float(begins[-1])) * step,
        float(begins.size - 1) + (x.size - begins[-1]) / length, False, volume,
        note("found from bursts alone: several bursts an epoch would look the same"),
    )  # fmt: skip

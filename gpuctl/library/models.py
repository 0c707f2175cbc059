"""Models of run times, waits and the cost of suspending a job: trained, saved, loaded, asked."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpuctl.core.errors import InputError, UsageError
from gpuctl.library.arguments import PathOrText, check_names, path_of
from gpuctl.library.frames import named_frame, write_frame
from gpuctl.library.traces import LogReading, input_paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    import polars as pl

    from gpuctl.library.result import Result

Kind = Literal["runtime", "wait", "overhead"]


def train(
    kind: Kind,
    source: object,
    model: PathOrText,
    *,
    test_share: float | None = None,
    quantiles: tuple[float, float, float] = (0.1, 0.5, 0.9),
    **reading: Unpack[LogReading],
) -> Result:
    """Train a model on a log, save it, and score it against simple rules on the log's last jobs.

    Args:
        kind: ``runtime`` (how long jobs run), ``wait`` (how long they wait) or ``overhead`` (what suspending costs).
        source: a `Trace`, a trace store, logs, or for run times a CSV or data frame of jobs.
        model: folder for the model; an existing model is replaced.
        test_share: share of the jobs held out for scoring: the last submitted. Default: 0.2, for waits 0.25.
        quantiles: of run times: lower end, prediction, upper end.
        reading: how logs are read.

    Returns:
        the scores, as ``gpuctl train`` prints them.

    Raises:
        InputError: there are too few jobs, or they cannot be read.
        UsageError: the kind is unknown, or the folder holds something else.

    Example:
        >>> import gpuctl
        >>> scores = gpuctl.train("runtime", "sample_data/philly", "model")
        >>> scores.tables[0]
        'runtime_predictors'
    """
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.library.result import Result
    from gpuctl.predictors import card
    from gpuctl.services.options import LogReading as Logs
    from gpuctl.services.options import record_of

    if kind not in {"runtime", "wait", "overhead"}:
        raise UsageError(f"train: no kind {kind!r}", hint="runtime, wait or overhead")
    check_names(reading, LogReading.__annotations__)
    command, folder = f"gpuctl.train {kind}", path_of(model, "model")
    card.check_place(folder)
    unknown = sorted(set(reading) - set(Logs.__dataclass_fields__))
    if unknown:
        raise UsageError(f"{', '.join(unknown)}: not an option of training", hint="gpuctl.open reads such logs")
    logs = record_of(Logs, reading)
    with ExitStack() as stack:
        paths = input_paths(source, stack)
        if kind == "overhead":
            from gpuctl.services.predictions import train_overhead

            found, _ = train_overhead(paths, folder, NOTEBOOK, db=None, cluster=logs.cluster, command=command)
        elif kind == "wait":
            from gpuctl.services.waits import Source, train_wait

            found, _ = train_wait(Source(paths, None, logs), folder, _or(test_share, 0.25), NOTEBOOK, command)
        else:
            from gpuctl.services.predictions import train_runtime

            found, _ = train_runtime(
                paths, None, logs, folder, NOTEBOOK,
                test_share=_or(test_share, 0.2), quantiles=quantiles, others=(), command=command,
            )  # fmt: skip
    return Result(found)


def load_model(folder: PathOrText) -> Model:
    """Load a model that `train` or ``gpuctl train`` saved; no code in the folder is run.

    Raises:
        InputError: the folder holds no such model, or its files are damaged.

    Example:
        >>> import gpuctl, polars
        >>> scores = gpuctl.train("runtime", "sample_data/philly", "model")
        >>> model = gpuctl.load_model("model")
        >>> model.kind
        'runtime'
        >>> model.predict(polars.DataFrame({"job_id": ["j1"], "gpus": [8]})).height
        1
    """
    from gpuctl.predictors.card import read_card

    place = path_of(folder, "folder")
    card = read_card(place)
    kind = {"history": "runtime", "wait": "wait", "overhead": "overhead"}.get(card["kind"], card["kind"])
    return Model(place, kind, card)


class Model:
    """A trained model.

    Attributes:
        folder: where it is saved.
        kind: ``runtime``, ``wait`` or ``overhead``.
        card: what it was trained on and how well it did.
    """

    def __init__(self, folder: Path, kind: str, card: dict[str, Any]) -> None:
        self.folder = folder
        self.kind = kind
        self.card = card

    def predict(self, jobs: object, accounting: object = None) -> pl.DataFrame:
        """Predict each job, with an interval.

        Args:
            jobs: a data frame. Of run times: ``job_id`` and any of user, queue, name, gpus, time_limit_s, submit_time;
                of waits: ``job_id`` and any of user, queue, gpus, nodes, time_limit_s, submit_time; of overheads: any
                of the options of ``gpuctl predict overhead`` (epoch_s, phase_s, checkpoint_bytes, gpus, mode ...).
            accounting: of waits: logs, a store or a `Trace` up to now, for the state of the queue. Default: not known.

        Returns:
            a row per job, in the order of `jobs`; columns as ``gpuctl predict`` has them.

        Raises:
            UsageError: `jobs` lacks a column, or the model is of a kind that predicts no jobs.
            InputError: a value is not what it should be, or two rows have the same ``job_id``.
        """
        from gpuctl.library.ingests import remarks

        with ExitStack() as stack:
            # columns that are not read are no surprise in a frame
            stack.enter_context(remarks())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuctl-")))
            needed = () if self.kind == "overhead" else ("job_id",)
            listed = write_frame(jobs, folder / "jobs.csv", needed)
            stack.enter_context(named_frame(listed))
            if self.kind == "runtime":
                return _in_order(listed, self._run_times)
            if self.kind == "wait":
                queue = [] if accounting is None else input_paths(accounting, stack)
                return _in_order(listed, lambda place: self._waits(place, queue))
            if self.kind == "overhead":
                return self._overheads(listed)
        raise UsageError(f"a model of kind {self.kind!r} predicts no jobs", hint="gpuctl train runtime, wait, overhead")

    def __repr__(self) -> str:
        return f"<gpuctl model of kind {self.kind} in {self.folder}>"

    def _run_times(self, listed: Path) -> pl.DataFrame:
        from gpuctl.library.progress import NOTEBOOK
        from gpuctl.services.predictions import RuntimeOptions, predict_runtime

        options = RuntimeOptions([], listed, (), None, self.folder, None, None, cumulative=False)
        return predict_runtime(options, NOTEBOOK, "gpuctl.predict")[0].tables[0].frame

    def _waits(self, listed: Path, paths: list[Path]) -> pl.DataFrame:
        from gpuctl.library.progress import NOTEBOOK
        from gpuctl.services.options import LogReading as Logs
        from gpuctl.services.waits import Source, predict_wait

        source = Source(paths, None, Logs())
        return predict_wait(source, self.folder, listed, NOTEBOOK, "gpuctl.predict")[0].tables[0].frame

    def _overheads(self, listed: Path) -> pl.DataFrame:
        import polars as pl

        from gpuctl.predictors.overhead_tables import Suspension, predict_overhead

        rows = pl.read_csv(listed).to_dicts()
        fields = Suspension.__dataclass_fields__
        unknown = next((name for name in (rows[0] if rows else {}) if name not in fields), None)
        if unknown is not None:
            raise UsageError(f"no column {unknown!r} of a suspension", hint=f"known: {', '.join(fields)}")
        usual = {"epoch_s": None, "phase_s": 0.0, "left": None, "checkpoint_bytes": None, "first_bytes": 0.0, "gpus": 1,
                 "bandwidth": None, "mode": "epoch", "model_name": None}  # fmt: skip
        found = [predict_overhead(Suspension(**{**usual, **row}), self.folder, "gpuctl.predict") for row in rows]
        return pl.concat([each.tables[0].frame for each in found], how="vertical_relaxed")


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _in_order(listed: Path, predict: Callable[[Path], pl.DataFrame]) -> pl.DataFrame:
    """Predict the jobs of a CSV; return a row per job in the order of the CSV.

    Raises:
        InputError: a job has no name, or the name of another one, or is not predicted.
    """
    import polars as pl

    names = pl.read_csv(listed, infer_schema=False, columns=["job_id"])["job_id"].str.strip_chars()
    if (nameless := names.fill_null("").eq("").arg_true()).len():
        raise InputError(f"jobs: row {nameless[0]} has no job_id", hint="rows are counted from 0")
    if (twice := names.is_duplicated().arg_true()).len():
        raise InputError(f"jobs: several rows have the job_id {names[twice[0]]!r}", hint="a name for each job")
    found = predict(listed)
    missing = names.filter(~names.is_in(found["job"].to_list()))
    if missing.len():
        raise InputError(
            f"jobs: {missing.len()} of {names.len()} cannot be predicted, the first is {missing[0]!r}",
            hint="its row has a value that is not what it should be, such as gpus below 1",
        )
    return pl.DataFrame({"job": names}).join(found, on="job", how="left", maintain_order="left").select(found.columns)

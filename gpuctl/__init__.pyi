from gpuctl import errors as errors
from gpuctl import plugins as plugins
from gpuctl.library.analysis import analyze as analyze
from gpuctl.library.analysis import classify as classify
from gpuctl.library.analysis import explain as explain
from gpuctl.library.models import load_model as load_model
from gpuctl.library.models import train as train
from gpuctl.library.plans import plan as plan
from gpuctl.library.replays import Simulation as Simulation
from gpuctl.library.replays import replay as replay
from gpuctl.library.replays import sweep as sweep
from gpuctl.library.reports import report as report
from gpuctl.library.result import Result as Result
from gpuctl.library.traces import Trace as Trace
from gpuctl.library.traces import ingest as ingest
from gpuctl.library.traces import open as open

__version__: str
DISTRIBUTION: str

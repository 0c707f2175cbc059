"""The library area that raised an error: the kind of fault if only a generic class and a free message are known.

A `ValueError` from a reader of files is bad input, the same class from a solver is a numerical error. Only the
innermost frame counts, and only a library's: the location of an error in the user's own code is not informative.
"""

from __future__ import annotations

import re

_LIBRARY = re.compile(
    r"(?:(?:site|dist)-packages[/\\]|[/\\]python3(?:\.\d+)?[/\\](?!(?:site|dist)-)|^<frozen )([^<>]+?)>?$"
)

_PATHS = {
    "incorrect_inputs": """
        json/decoder csv.py zipfile tarfile gzip.py bz2.py lzma.py _compression.py pickle.py shelve.py xml/
        html/ base64.py codecs encodings/ plistlib.py wave.py uuid.py _strptime.py datetime.py zoneinfo ast.py
        email/ mailbox.py dbm/ fileinput.py pandas/io/ numpy/lib/npyio numpy/lib/_npyio numpy/lib/format
        numpy/lib/_format numpy/lib/_datasource scipy/io/ h5py/ PIL/ imageio/ skimage/io/ cv2/ soundfile
        librosa/core/audio torchaudio/ pyarrow/ fastparquet/ zarr/ netCDF4/ xarray/backends/ rasterio/ fiona/
        geopandas/io/ lmdb/ webdataset/ datasets/ tokenizers/ sentencepiece/ nltk/data spacy/util
        torch/serialization safetensors/ openpyxl/ xlrd/ fastavro/ avro/ google/protobuf/ tfrecord/ Bio/ ase/io/
        nibabel/ pydicom/ SimpleITK/ tifffile/ msgpack/ cbor2/ ijson/ lxml/ bs4/ html5lib/ dateutil/parser
        pyproj/ shapely/io networkx/readwrite/ joblib/numpy_pickle gensim/models/keyedvectors onnx/ polars/io/
        dask/dataframe/io/ anndata/ scanpy/ torchvision/datasets/ torchvision/io/ decord/ av/ pandera/
        great_expectations/
    """,
    "syntax_error": "yaml/ ruamel/ tomllib/ tomli/ toml/ tomlkit/ jinja2/ mako/ json5/ pyparsing lark/ hcl2/ mistune/",
    "wrong_arguments": """
        argparse.py optparse.py getopt.py configparser.py click/ typer/ fire/ absl/flags docopt hydra/
        omegaconf/ gin/ pydantic jsonschema/ marshmallow/ cerberus/ voluptuous/ attr/validators cattrs/ environs
        decouple dynaconf/ ml_collections/ torch/optim/ traitlets/ confuse/ sacred/ jsonargparse/
        simple_parsing/ tyro/ sklearn/utils/_param_validation
    """,
    "network_error": """
        socket.py ssl.py http/ urllib/ ftplib.py smtplib.py poplib.py imaplib.py telnetlib.py xmlrpc/ urllib3/
        requests/ httpx/ httpcore/ aiohttp/ websockets/ websocket/ grpc/ paramiko/ redis/ pymongo/ kafka/ pika/
        botocore/ google/api_core/ psycopg2/ psycopg/ mysql/ pymysql/ elasticsearch/ elastic_transport/
        huggingface_hub/utils/_http zmq/ tornado/tcpclient
    """,
    "import_error": "importlib/ <frozen importlib pkg_resources/ stevedore/",
    "cannot_load_libs": "ctypes/",
    "numerical_error": """
        numpy/linalg/ scipy/linalg/ scipy/sparse/linalg/ scipy/optimize/ scipy/integrate/ scipy/interpolate/
        sympy/ mpmath/ decimal.py _pydecimal.py fractions.py statistics.py cvxpy/ torch/linalg
    """,
    "shape_error": """
        torch/nn/modules/ torch/nn/functional torch/functional jax/_src/lax/ numpy/_core/fromnumeric
        numpy/core/fromnumeric numpy/lib/stride_tricks numpy/lib/_stride_tricks keras/src/layers flax/linen/
        haiku/ einops/
    """,
}
REASONS = tuple(_PATHS)
"""What `area` may return."""
_BY_PATH = sorted(
    ((path, reason) for reason, paths in _PATHS.items() for path in paths.split()), key=lambda known: -len(known[0])
)


def area(frame: str | None) -> str | None:
    """Return the reason that a library's file indicates.

    Args:
        frame: path of the file whose line raised the error, as a traceback prints it; None if unknown.

    Returns:
        a reason's slug; None if the file is not a library's, or indicates none.
    """
    found = _LIBRARY.search(frame) if frame is not None else None
    return next((reason for path, reason in _BY_PATH if found[1].startswith(path)), None) if found else None


def library(frame: str | None) -> str | None:
    """Return the name of the library that a file belongs to; None if the file is none's, arguments as for `area`."""
    found = _LIBRARY.search(frame) if frame is not None else None
    return re.split(r"[/\\.]", found[1], maxsplit=1)[0] if found else None
